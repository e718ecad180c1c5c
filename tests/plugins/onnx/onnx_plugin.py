"""The plugin `onnx`: the same bytes as ONNX Runtime's Python package, nothing lost, and each failure in one line.

onnx_plugin.py WEIR FOLDER PLUGIN...: FOLDER is scratch; the plugins are libweir_onnx.so and that of tensors.c.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "examples/onnx")]
try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}: run scripts/install-deps onnx")
    sys.exit(77)
import made
import models
import process
import reference

FOLDER = pathlib.Path(sys.argv[2]).resolve()
PLUGINS = [option for path in sys.argv[3:] for option in ("--plugin", os.path.abspath(path))]
RUNTIME = os.environ["WEIR_ONNXRUNTIME"]
BARE = process.environment()  # without it
process.environment = lambda: {**BARE, "WEIR_ONNXRUNTIME": RUNTIME}
onnxruntime.set_default_logger_severity(3)
del sys.argv[2:]
PICTURE = (1, 3, 224, 224)
SLOW = (1, 256, 64, 64)


def frames(shape, count=7):
    """Of different brightness, so that each gives a result of its own."""
    numbers = numpy.random.default_rng(5).random((count, *shape[1:]), dtype=numpy.float32)
    return numbers * numpy.linspace(0.1, 3, count, dtype=numpy.float32).reshape(-1, *[1] * (len(shape) - 1))


def write_frames(name, array, rows=1):
    array.tofile(FOLDER / name)
    shape = [rows, *array.shape[1:]] if rows else array.shape[1:]
    return {"path": str(FOLDER / name), "shape": ",".join(map(str, shape)), "count": len(array)}


def one_by_one(model, array):
    session = onnxruntime.InferenceSession(model)
    return numpy.concatenate([session.run(None, {session.get_inputs()[0].name: row[None]})[0] for row in array])


def describe(reads, model, ports=None, scheduler=None, output="y", **parameters):
    """read -> network -> write, as JSON; reads: by input, or of 'x'."""
    batch = parameters.get("batch", 1)
    network = {"name": "network", "operator": "onnx", "parameters": {"model": str(model), **parameters}, "ports": ports or {}}
    writer = {"name": "write", "operator": "tensor_write", "parameters": {"path": str(FOLDER / "results")}}
    writer["ports"] = {"in": {"capacity": 2 * batch + 2}}
    reads = reads if "path" not in reads else {"x": reads}
    readers = [{"name": f"read_{name}", "operator": "tensor_read", "parameters": read} for name, read in reads.items()]
    return {
        "weir": 1,
        "scheduler": scheduler or {},
        "entities": [*readers, network, writer],
        "connections": [*([f"read_{name}.out", f"network.{name}"] for name in reads), [f"network.{output}", "write.in"]],
    }


def written(graph, backend="host"):
    (FOLDER / "graph.json").write_text(json.dumps(graph))
    return ["--backend", backend, *PLUGINS, str(FOLDER / "graph.json")]


def run(weir, graph, *options, **more):
    return process.run(weir, "run", "--quiet", *options, *written(graph), **more)


def results(like):
    """What tensor_write wrote; it has checked that results come in the order of the frames, by their tags."""
    return numpy.fromfile(FOLDER / "results", numpy.float32).reshape(-1, *like.shape[1:])


def agrees(weir, model, array, expected=None, options=(), **parameters):
    expected = one_by_one(model, array) if expected is None else expected
    ended = run(weir, describe(write_frames("frames", array), model, **parameters), *options)
    assert ended.returncode == 0, ended
    found = results(expected)
    assert found.tobytes() == expected.tobytes(), (model, parameters, found.shape, expected.shape)


def results_are_those_of_the_package_one_by_one(weir):
    expected = one_by_one(FOLDER / "light.onnx", frames((1, 8, 64, 64)))
    assert len({row.tobytes() for row in expected}) == 7, "frames that give the same result show nothing"
    for parameters in ({"requests": 1}, {"requests": 4}, {"threads": 1}, {"requests": 3, "threads": 3}):
        agrees(weir, FOLDER / "light.onnx", frames((1, 8, 64, 64)), expected, **parameters)


def pictures(count=12, height=120, width=160):
    """Gradients and noise, red, green and blue."""
    random = numpy.random.default_rng(7)
    ramp = numpy.linspace(0, 1, width)[None, :, None] * random.random((count, 1, 1, 3)) * numpy.arange(1, count + 1).reshape(-1, 1, 1, 1)
    return ((ramp[:, None, 0] + random.random((count, height, width, 3)) / 3) * 255 / count).clip(0, 255).astype(numpy.uint8)


def example(name, array):
    size = ["--set", f"read.width={array.shape[2]}", "--set", f"read.height={array.shape[1]}"]
    return [*PLUGINS, *size, "--set", f"network.model={FOLDER / 'squeezenet.onnx'}", str(ROOT / "examples/onnx" / name)]


def the_example_gives_the_bytes_of_the_reference_through_a_pipe(weir):
    array = pictures()
    infer = reference.network(FOLDER / "squeezenet.onnx")
    expected = [reference.classify(infer, picture) for picture in array]
    assert len({row.tobytes() for row in expected}) == len(array)
    ended = process.run(weir, "run", "--quiet", *example("video.json", array), text=False, input=array.tobytes() * 5)
    assert ended.returncode == 0, ended.stderr
    found = numpy.frombuffer(ended.stdout, numpy.float32).reshape(5, len(array), -1)
    for i, row in enumerate(expected):
        assert (found[:, i] == row.ravel()).all(), (i, abs(found[:, i] - row.ravel()).max())


def the_example_prints_the_classes_of_photographs(weir):
    model = ["--set", f"network.model={FOLDER / 'squeezenet.onnx'}"]
    ended = process.run(weir, "run", "--quiet", *PLUGINS, *model, "examples/onnx/classify.json", cwd=ROOT)
    assert ended.returncode == 0, ended
    assert len(re.findall(r"^ *\d+ [\d.]+", ended.stdout, re.M)) == 15, ended.stdout


def the_classes_stand_on_the_frames(weir):
    array = pictures()
    ended = process.run(weir, "run", "--quiet", *example("screen.json", array), text=False, input=array.tobytes())
    assert ended.returncode == 0, ended.stderr
    shown = numpy.frombuffer(ended.stdout, numpy.uint8).reshape(array.shape)
    for before, after in zip(array, shown):
        rows, columns = numpy.nonzero((before != after).any(axis=2))
        assert len(rows) > 100 and rows.max() < array.shape[1] // 2 and columns.max() < array.shape[2] * 2 // 3


def a_batch_takes_what_is_there_and_results_come_one_by_one(weir):
    for model, batch in (("relu.onnx", 3), ("relu.onnx", 8), ("relu4.onnx", 4)):
        array = frames((1, 4), 7) - 0.5
        agrees(weir, FOLDER / model, array, numpy.maximum(array, 0), batch=batch, requests=2)
    graph = describe(write_frames("frames", frames((1, 4), 8)), FOLDER / "relu.onnx", batch=4)
    (FOLDER / "results").unlink()
    graph["entities"][1]["conditions"] = [{"type": "message_available", "port": "x", "min_size": 4}]
    ended = process.run(weir, "run", *written(graph))
    assert re.search(r"\n  network +2 +8 +8 ", ended.stdout), ended


def ports_are_the_inputs_and_outputs_by_their_names(weir):
    array = frames((1, 4))
    reads = {"x": write_frames("frames", array), "z": write_frames("others", array[::-1].copy())}
    ended = run(weir, describe(reads, FOLDER / "two.onnx"))
    assert ended.returncode == 0, ended
    assert (results(array) == array + array[::-1]).all()
    ended = run(weir, describe(reads, FOLDER / "two.onnx", output="less_0"))
    assert ended.returncode == 0, ended
    assert (results(array) == array - array[::-1]).all()
    shown = process.run(weir, "show", *written(describe(reads, FOLDER / "two.onnx"))[2:]).stdout
    assert "input z: capacity 1, take 1, block, gate (default), float32 [n, 4] in host memory" in shown, shown
    reads["z"]["shape"] = "2,4"
    refused(run(weir, describe(reads, FOLDER / "two.onnx")), "'network': input 'z' has 2 at dimension 0, but 'x' has 1: .*'n' for both")


def a_shape_that_only_a_run_tells_is_run_in_the_tick(weir):
    array = frames((1, 4))
    ended = process.run(weir, "run", *written(describe(write_frames("frames", array, rows=0), FOLDER / "open.onnx")))
    assert ended.returncode == 0, ended
    assert "network: the inputs do not tell the shapes of all outputs" in ended.stderr, ended.stderr
    assert (results(array[:, :1]).ravel() == array[array > 1]).all()


def instances_compute_at_once_and_results_stay_in_order(weir):
    """Both kinds of runs: those that a worker waits for, and those of the runtime's threads."""
    array = frames((1, 4), 300)
    for model, rows, expected in (("open.onnx", 0, array[array > 1]), ("relu.onnx", 1, array)):
        graph = describe(write_frames("frames", array, rows=rows), FOLDER / model, threads=1)
        graph["entities"][1]["instances"] = 3
        for options in (["--workers", "4"], ["--workers", "1"], ["--workers", "2", "--backend", "sim"]):
            ended = process.run(weir, "run", "--quiet", *written(graph), *options)
            assert ended.returncode == 0, ended
            assert (FOLDER / "results").read_bytes() == expected.tobytes(), (model, options)


def threads_while_it_runs(weir, model, rows):
    read = {**write_frames("frames", frames((1, 4)) + 2, rows=rows), "count": 0}
    child = started_with_results(weir, describe(read, model, threads=2))
    threads = len(os.listdir(f"/proc/{child.pid}/task"))
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode == 130
    return threads


def a_worker_that_computes_is_one_of_the_threads(weir):
    assert threads_while_it_runs(weir, FOLDER / "open.onnx", 0) == threads_while_it_runs(weir, FOLDER / "relu.onnx", 1) - 1


def sizes_named_by_a_question_mark_are_independent(weir):
    made.relu(FOLDER / "unknown.onnx", ["?", "?"])
    array = frames((1, 4))
    ended = run(weir, describe(write_frames("frames", array), FOLDER / "unknown.onnx"))
    assert ended.returncode == 0, ended
    assert (FOLDER / "results").read_bytes() == one_by_one(FOLDER / "unknown.onnx", array).tobytes()


def many_small_frames_on_all_backends(weir):
    """Callbacks and ticks in all orders: 3,000 runs that end at once, by few and by many workers."""
    array = frames((1, 4), 3000)
    for options in (["--workers", "1"], ["--workers", "4"], ["--workers", "2", "--backend", "sim"]):
        for parameters in ({"requests": 1}, {"requests": 4}, {"requests": 3, "batch": 8}):
            agrees(weir, FOLDER / "relu.onnx", array, array, options, **parameters)


def no_worker_waits_for_a_run(weir):
    """One worker; `beat` ticks each millisecond while long runs are under way."""
    graph = describe(write_frames("frames", frames(SLOW, 2)), FOLDER / "slow.onnx", threads=1)
    beat = {"name": "beat", "operator": "ping", "conditions": [{"type": "periodic", "period": "1ms"}, {"type": "count", "count": 200}]}
    graph["entities"] += [beat, {"name": "end", "operator": "sink"}]
    graph["connections"].append(["beat.out", "end.in"])
    ended = process.run(weir, "run", "--workers", "1", *written(graph))
    assert ended.returncode == 0, ended
    own = re.search(r"\n  network +2 +2 +2 +([\d.]+) (\w+)", ended.stdout)
    assert own and own.group(2) in ("us", "ms") and (own.group(2) == "us" or float(own.group(1)) < 100), ended.stdout


def started_with_results(weir, graph):
    (FOLDER / "results").unlink(missing_ok=True)
    child = process.start(weir, "run", *written(graph))
    deadline = time.monotonic() + 20
    while not (FOLDER / "results").exists() or not (FOLDER / "results").stat().st_size:
        assert time.monotonic() < deadline and child.poll() is None, "no result comes"
        time.sleep(0.01)
    return child


def a_tick_that_receives_too_many_is_refused(weir):
    graph = describe(write_frames("frames", frames((1, 4))), FOLDER / "relu.onnx", ports={"x": {"take": 2, "capacity": 2}})
    refused(run(weir, graph), "input 'x' received 2 messages in a tick, and a run takes at least 1 and at most 1")


def a_drain_finishes_what_is_under_way(weir):
    read = {**write_frames("frames", frames(SLOW, 2)), "count": 0}
    child = started_with_results(weir, describe(read, FOLDER / "slow.onnx", requests=2))
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 130, (child.returncode, err)
    received, emitted = re.search(r"\n  network +\d+ +(\d+) +(\d+)", out).groups()
    assert received == emitted and int(emitted) > 0, out
    size = os.path.getsize(FOLDER / "results")
    assert size == int(emitted) * 4 * 256 * 64 * 64, (size, out, err)


def what_is_under_way_is_ended_when_a_run_is_cut_short(weir):
    """A run that takes ten seconds on an idle core, and those that wait behind it."""
    read = {**write_frames("frames", frames(SLOW, 2)), "count": 0}
    for requests in (1, 2):
        graph = describe(read, FOLDER / "slower.onnx", requests=requests, scheduler={"drain": "10ms"})
        begun = time.monotonic()
        ended = process.run(weir, "run", "--duration", "300ms", *written(graph))
        assert ended.returncode == 5 and ended.stderr.count("\n") == 1, ended
        assert time.monotonic() - begun < 8, ended


def a_run_that_fails_ends_the_graph_s(weir):
    array = numpy.ones((9, 4), numpy.float32)
    array[4] = 0.75
    for requests in (1, 4):
        ended = run(weir, describe(write_frames("frames", array), FOLDER / "fails.onnx", requests=requests))
        refused(ended, "operator failed in 'network': the network failed: .*")
        assert len(results(array[:, :1])) <= 4


def refused(ended, pattern):
    assert ended.returncode in (1, 3), ended
    assert re.fullmatch(f"[^\n]*{pattern}[^\n]*\n", ended.stderr), (pattern, ended.stderr)


def wrong_models_are_refused_by_check_in_one_line(weir):
    read = write_frames("frames", frames((1, 4)))
    (FOLDER / "text.onnx").write_text("this is no network\n")
    (FOLDER / "empty.onnx").write_text("")
    (FOLDER / "cut.onnx").write_bytes((FOLDER / "light.onnx").read_bytes()[:-50])
    os.path.exists(FOLDER / "fifo") or os.mkfifo(FOLDER / "fifo")
    for name, batch, pattern in (
        ("missing.onnx", 1, "model '.*missing.onnx': No such file or directory"),
        ("text.onnx", 1, "ONNX Runtime refuses it: "),
        ("cut.onnx", 1, "ONNX Runtime refuses it: "),
        ("empty.onnx", 1, "has 0 bytes"),
        ("fifo", 1, "is not a regular file"),
        (".", 1, "is not a regular file|Is a directory"),
        ("outside.onnx", 1, "ONNX Runtime refuses it: .*/dev/null"),
        ("strings.onnx", 1, "'x' has elements of a type that weir has not"),
        ("two.onnx", 4, '"batch" 4: the model has 2 inputs, and a batch is for one'),
        ("relu4.onnx", 3, r'"batch" 3: the first size of \'x\' must be open, or 3, but it is \[4, 4\]'),
        ("row.onnx", 4, r"the first size of 'y' must be open, or 4, but it is \[1, 4\]"),
    ):
        ended = process.run(weir, "check", *written(describe(read, FOLDER / name, batch=batch))[2:])
        refused(ended, f"W060: /entities/1/parameters: .*(?:{pattern})")
    for name, provider, pattern in (
        ("relu4.onnx", "cpu", "\"cuda_graph\" is for the provider 'cuda'"),
        ("relu.onnx", "cuda", '"cuda_graph": the model leaves sizes open'),
    ):
        ended = process.run(weir, "check", *written(describe(read, FOLDER / name, provider=provider, cuda_graph=True))[2:])
        refused(ended, f"W060: /entities/1/parameters: .*{pattern}")
    outside = run(weir, describe(read, FOLDER / "relu.onnx"), "--root", str(ROOT / "examples"))
    refused(outside, "W060: .*model '.*relu.onnx': Invalid cross-device link")


def a_wrong_size_is_known_before_the_run(weir):
    ended = process.run(weir, "check", *PLUGINS, "--set", f"network.model={FOLDER / 'squeezenet.onnx'}",
                        "--set", "resize.width=256", "examples/onnx/classify.json", cwd=ROOT)
    refused(ended, r"W055: .*download.out -> network.data_0: sends .*\(H is 224, W is 256 by resize.out -> normalize.in\), .* \[1, 3, 224, 224\]")


def wrong_frames_are_refused_in_one_line(weir):
    read = write_frames("frames", frames((1, 4)))
    for name, change, pattern in (
        ("relu4.onnx", {}, r"emitted float32 \[1, 4\] in host memory, but network.x takes float32 \[4, 4\] in host memory"),
        ("relu.onnx", {"shape": "1,5"}, r"emitted float32 \[1, 5\] in host memory, but network.x takes float32 \[n, 4\]"),
        ("relu.onnx", {"bits": 16}, r"emitted float16 \[1, 4\] in host memory, but network.x takes float32"),
        ("bytes.onnx", {}, r"emitted float32 \[1, 4\] in host memory, but network.x takes uint8 \[1, 4\]"),
    ):
        refused(run(weir, describe({**read, **change}, FOLDER / name)), f"invalid in 'read_x': .*{pattern}")
    refused(run(weir, describe(read, FOLDER / "relu.onnx", provider="cuda")), "network: provider 'cuda' needs the backend 'cuda'")


def a_runtime_that_is_missing_is_named_with_the_remedy(weir):
    graph = describe(write_frames("frames", frames((1, 4))), FOLDER / "relu.onnx")
    bare = {key: value for key, value in BARE.items() if key != "VIRTUAL_ENV"}
    if not shutil.which("ldconfig") or "libonnxruntime" not in process.run("ldconfig", "-p").stdout:
        refused(run(weir, graph, env=bare), "ONNX Runtime is not found: install .* set WEIR_ONNXRUNTIME")
    for value, pattern in (
        (FOLDER / "none.so", "WEIR_ONNXRUNTIME: .*none.so: cannot open"),
        (FOLDER, "WEIR_ONNXRUNTIME: the folder has no libonnxruntime.so"),
        (PLUGINS[-1], "no ONNX Runtime"),
    ):
        refused(run(weir, graph, env={**bare, "WEIR_ONNXRUNTIME": str(value)}), pattern)
    python = {**bare, "VIRTUAL_ENV": str(pathlib.Path(RUNTIME).parents[4])}
    assert run(weir, graph, env=python).returncode == 0


def make_models():
    FOLDER.mkdir(parents=True, exist_ok=True)
    onnx.save(models.with_weights(models.light("squeezenet")), FOLDER / "squeezenet.onnx")
    made.relu(FOLDER / "relu.onnx", ["n", 4])
    made.relu(FOLDER / "relu4.onnx", [4, 4])
    made.two_inputs(FOLDER / "two.onnx")
    made.one_row(FOLDER / "row.onnx")
    made.bytes_in(FOLDER / "bytes.onnx")
    made.texts(FOLDER / "strings.onnx")
    made.open_output(FOLDER / "open.onnx")
    made.outside_weights(FOLDER / "outside.onnx")
    made.fails(FOLDER / "fails.onnx")
    made.convolutions(FOLDER / "light.onnx", layers=3, channels=8)
    made.convolutions(FOLDER / "slow.onnx", layers=3)
    made.convolutions(FOLDER / "slower.onnx", layers=150)


if __name__ == "__main__":
    make_models()
    process.main(
        [
            results_are_those_of_the_package_one_by_one,
            the_example_gives_the_bytes_of_the_reference_through_a_pipe,
            the_example_prints_the_classes_of_photographs,
            the_classes_stand_on_the_frames,
            a_batch_takes_what_is_there_and_results_come_one_by_one,
            ports_are_the_inputs_and_outputs_by_their_names,
            a_shape_that_only_a_run_tells_is_run_in_the_tick,
            instances_compute_at_once_and_results_stay_in_order,
            a_worker_that_computes_is_one_of_the_threads,
            sizes_named_by_a_question_mark_are_independent,
            many_small_frames_on_all_backends,
            no_worker_waits_for_a_run,
            a_tick_that_receives_too_many_is_refused,
            a_drain_finishes_what_is_under_way,
            what_is_under_way_is_ended_when_a_run_is_cut_short,
            a_run_that_fails_ends_the_graph_s,
            wrong_models_are_refused_by_check_in_one_line,
            a_wrong_size_is_known_before_the_run,
            wrong_frames_are_refused_in_one_line,
            a_runtime_that_is_missing_is_named_with_the_remedy,
        ]
    )
