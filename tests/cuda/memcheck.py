"""compute-sanitizer's memcheck reports nothing in short runs of the examples, of wrapped streams and of the
default one.

Skipped if the tool is missing.
"""
import json
import os
import pathlib
import shutil
import tempfile

import acceptance
import prepare

EXAMPLES = acceptance.ROOT / "examples"
TOOL = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
LIMIT = 120  # seconds per run
FRAMES = 20


def is_clean(given, name, command):
    ended = acceptance.run([TOOL, "--tool", "memcheck", "--error-exitcode", "99", *command], LIMIT)
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "ERROR SUMMARY" in line]
    summary = f"exit {ended.returncode}, {' '.join(lines)}"
    acceptance.report(f"memcheck ({given.backend}, {given.signal}): {name}: {summary}")
    assert ended.returncode == 0 and any("0 errors" in line for line in lines), (ended.stdout + ended.stderr)[-3000:]


def weir_run(given, *more):
    return [given.weir, "run", "--quiet", "--backend", given.backend, "--signal", given.signal, *more]


def f60_memcheck_finds_nothing_in_edges(given):
    with tempfile.TemporaryDirectory(prefix="weir-memcheck-") as folder:
        settings = ["--set", "read.repeat=1", "--set", f"write.directory={folder}", "--set", "write.every=1"]
        is_clean(given, "edges", weir_run(given, acceptance.EDGES, *settings))


def f60_memcheck_finds_nothing_in_what_prepares_pictures(given):
    with tempfile.TemporaryDirectory(prefix="weir-memcheck-") as folder:
        path = pathlib.Path(folder) / "graph.json"
        path.write_text(json.dumps(prepare.graph()))
        is_clean(given, "prepare", weir_run(given, path))


def example(given, name, graph):
    plugin = os.path.join(given.examples, f"lib{name}.so")
    is_clean(given, graph, weir_run(given, "--plugin", plugin, EXAMPLES / name / graph))


def f60_memcheck_finds_nothing_in_streams(given):
    example(given, "streams", "streams.json")
    example(given, "streams", "default.json")


def f60_memcheck_finds_nothing_in_green_contexts(given):
    example(given, "green", "green.json")


def handles(given, name):
    settings = ["--backend", given.backend, "--signal", given.signal, "--frames", FRAMES]
    is_clean(given, name, [given.program("handles"), *settings, name])


def f60_memcheck_finds_nothing_in_wrapped_streams(given):
    handles(given, "t06_t07_a_wrapped_stream_works_and_travels")
    handles(given, "f71_the_default_stream_may_be_wrapped")


def f60_memcheck_finds_nothing_in_default_streams(given):
    handles(given, "f71_all_work_on_the_default_stream")
    handles(given, "f71_blocking_streams_wait_for_the_default_one")


given = acceptance.arguments(examples=".")
checks = [
    f60_memcheck_finds_nothing_in_edges,
    f60_memcheck_finds_nothing_in_what_prepares_pictures,
    f60_memcheck_finds_nothing_in_streams,
    f60_memcheck_finds_nothing_in_green_contexts,
    f60_memcheck_finds_nothing_in_wrapped_streams,
    f60_memcheck_finds_nothing_in_default_streams,
]
if os.path.exists(TOOL):
    acceptance.main(checks, given)
acceptance.report("memcheck: there is no compute-sanitizer here")
