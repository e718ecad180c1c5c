"""The examples of streams, green contexts and libraries: every number is right, and a wrong one is reported."""
import os
import pathlib
import re
import tempfile

import acceptance

EXAMPLES = acceptance.ROOT / "examples"
STREAMS = "process: in1, in2 and this entity: {}\nsink: 20 frames, 1310720 numbers are right\n"
NOT_CHECKED = "compare: 10 frames; not checked: only a GPU has multiprocessors\n"
ON_A_GPU = r"compare: 10 frames; left ran on 8 multiprocessors, right on 8, rest on [1-9]\d*; none is shared\n"


def plugin(given, name):
    return os.path.join(given.examples, f"lib{name}.so")


def run(given, name, graph, *more):
    command = [given.weir, "run", "--quiet", "--plugin", plugin(given, name), EXAMPLES / graph]
    return acceptance.run([*command, "--backend", given.backend, "--signal", given.signal, *more])


def is_right(ended, pattern):
    told = (ended.returncode, ended.stdout, ended.stderr)
    assert ended.returncode == 0 and not ended.stderr and re.fullmatch(pattern, ended.stdout), told


def is_refused(ended, text):
    assert ended.returncode == 1 and text in ended.stderr, (ended.returncode, ended.stdout, ended.stderr)


def streams_of_a_pool_are_different(given):
    is_right(run(given, "streams", "streams/streams.json"), STREAMS.format("3 streams"))
    is_right(run(given, "streams", "streams/streams.json", "--workers", 1), STREAMS.format("3 streams"))


def default_streams_are_one(given):
    is_right(run(given, "streams", "streams/default.json"), STREAMS.format("1 stream"))


def the_graph_by_calls_is_the_same(given):
    program = os.path.join(given.examples, "streams")
    is_right(acceptance.run([program, given.backend]), STREAMS.format("3 streams"))
    is_right(acceptance.run([program, "--default", given.backend]), STREAMS.format("1 stream"))


def a_wrong_number_ends_the_run(given):
    wrong = run(given, "streams", "streams/streams.json", "--set", "sink.first2=1001")
    is_refused(wrong, "'sink': frame 0: number 0 is 263143 instead of 263144")


def partitions_share_nothing(given):
    is_right(run(given, "green", "green/green.json"), ON_A_GPU if given.backend == "cuda" else NOT_CHECKED)


def one_multiprocessor_too_many_is_found(given):
    if given.backend == "cuda":
        wrong = run(given, "green", "green/green.json", "--set", "compare.most=7")
        is_refused(wrong, "ran on 8 multiprocessors; its partition has 7")


def libraries_work_on_streams(given):
    for name, wrong in ("gemm", "compare.expect=sum"), ("addc", "compare.constant=99"):
        graph = f"libraries/{name}.json"
        if not os.path.exists(plugin(given, name)):
            acceptance.report(f"examples: {name} is not built")
        elif given.backend != "cuda":
            command = [given.weir, "check", "--plugin", plugin(given, name), EXAMPLES / graph]
            assert acceptance.run(command).returncode == 0, name
        else:
            is_right(run(given, name, graph), "compare: 20 frames, 327680 numbers are right\n")
            is_refused(run(given, name, graph, "--set", wrong), "'compare': frame 0, row 0, column 0:")
            acceptance.report(f"examples: {name} is right")


PHOTOGRAPHS = ("astronaut", "chelsea", "coffee")


def upscaled(given, folder, *more):
    """The pictures that a run writes, after the reference program has agreed to one of each photograph."""
    more = ("--set", f"write.directory={folder}", "--set", "write.every=1", *more)
    is_right(run(given, "upscale", "upscale/upscale.json", *more), "")
    pairs = []
    for i, name in enumerate(PHOTOGRAPHS):
        pairs += [EXAMPLES / "images" / f"{name}.png", pathlib.Path(folder) / f"frame{27 + i:06}.png"]
    reference = [os.path.join(given.examples, "reference"), "--cuda", 608, 512, *pairs]
    is_right(acceptance.run(reference), "3 pictures agree, 0 differ\n")
    return [path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())]


def t13_upscaled_pictures_are_the_same_by_replay(given):
    if given.backend != "cuda":
        return  # examples/check runs them without a GPU
    found = {}
    for replay in "true", "false":
        for workers in 1, 8:
            with tempfile.TemporaryDirectory(prefix="weir-upscale-") as folder:
                more = ("--set", f"upscale.replay={replay}", "--workers", workers)
                found[replay, workers] = upscaled(given, folder, *more)
    first = found["false", 1]
    assert len(first) == 30 and all(pictures == first for pictures in found.values())
    acceptance.report(f"upscale (cuda, {given.signal}): {len(first)} pictures, {len(found)} runs agree, also with one stream")


given = acceptance.arguments(examples=".")
acceptance.main(
    [
        streams_of_a_pool_are_different,
        default_streams_are_one,
        the_graph_by_calls_is_the_same,
        a_wrong_number_ends_the_run,
        partitions_share_nothing,
        one_multiprocessor_too_many_is_found,
        libraries_work_on_streams,
        t13_upscaled_pictures_are_the_same_by_replay,
    ],
    given,
)
