"""weir run --trace: the file is whole, whatever ends the run, and a file that cannot be written does not change the run.

trace.py WEIR FOLDER: FOLDER is scratch.
"""
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import process

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "trace"))
import chrome  # noqa: E402: tests/trace/chrome.py

FOLDER = pathlib.Path(sys.argv[2]) / "trace"
del sys.argv[2]
FILE = FOLDER / "out.json"


def fresh():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)


def graph(count=10, sink="sink", **more):
    """ping -> delay -> sink, on two workers."""
    source = {"name": "source", "operator": "ping", **({"conditions": [{"type": "count", "count": count}]} if count is not None else {})}
    middle = {"name": "middle", "operator": "delay", "parameters": {"duration": "10us"}}
    entities = [source, middle, {"name": "end", "operator": sink, **more}]
    connections = [["source.out", "middle.in"], ["middle.out", "end.in"]]
    path = FOLDER / "graph.json"
    path.write_text(json.dumps({"weir": 1, "scheduler": {"workers": 2}, "entities": entities, "connections": connections}))
    return str(path)


def run(weir, *options, path=None, trace=FILE, by=process.run, **more):
    return by(weir, "run", "--backend", "host", "--trace", str(trace), *options, path or graph(), cwd=FOLDER, **more)


def ticks_of(path=FILE):
    return dict(chrome.Timeline(path).ticks()[0])


def a_run_is_a_timeline_with_all_its_ticks(weir):
    for options in ((), ("--backend", "sim", "--seed", "3")):
        fresh()
        ended = run(weir, *options)
        assert ended.returncode == 0 and not ended.stderr, ended
        assert ticks_of() == {"source": 10, "middle": 10, "end": 10}, options
        timeline = chrome.Timeline(FILE)
        assert timeline.begun == timeline.ended == {"source.out -> middle.in": 10, "middle.out -> end.in": 10}
        assert timeline.counters["queues", "middle.out -> end.in"][-1][1] == 0
        assert ("entities", "middle") in timeline.slices, "it has waited"


def simulated_runs_of_a_seed_are_the_same_to_the_byte(weir):
    fresh()
    files = []
    for _ in range(2):
        run(weir, "--backend", "sim", "--seed", "9")
        files.append(FILE.read_bytes())
    assert files[0] == files[1]


def a_fan_in_of_many_has_all_its_messages(weir):
    fresh()
    senders = [{"name": f"s{i}", "operator": "ping", "conditions": [{"type": "count", "count": 5}]} for i in range(40)]
    entities = [*senders, {"name": "end", "operator": "sink", "ports": {"in": {"capacity": 4}}}]
    connections = [[f"s{i}.out", "end.in"] for i in range(40)]
    path = FOLDER / "graph.json"
    path.write_text(json.dumps({"weir": 1, "entities": entities, "connections": connections}))
    assert run(weir, path=str(path)).returncode == 0
    timeline = chrome.Timeline(FILE)
    assert timeline.begun == timeline.ended == {f"s{i}.out -> end.in": 5 for i in range(40)}
    assert set(timeline.ticks()[0].values()) == {5, 200}


def memory_pools_and_ticks_in_flight_are_counted(weir):
    fresh()
    assert run(weir, path=process.graph("memory.json")).returncode == 0
    counters = chrome.Timeline(FILE).counters
    for pool, most in (("frames", 3), ("results", 4096)):
        values = [value for _, value in counters["memory pools", pool]]
        assert values[-1] == 0 < max(values) <= most, (pool, values)
    assert max(value for _, value in counters["ticks in flight", "make"]) >= 1


def a_run_without_ticks_is_a_timeline(weir):
    fresh()
    ended = run(weir, path=graph(count=0))
    assert ended.returncode == 0, ended
    assert not ticks_of()


def a_failing_compute_leaves_a_whole_file(weir):
    fresh()
    with open("/dev/full", "w") as full:
        ended = run(weir, path=graph(sink="print"), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1, ended
    assert ticks_of()["end"] == 1, "the one that failed"


def sigint_leaves_a_whole_file(weir):
    fresh()
    child = process.start(weir, "run", "--backend", "host", "--quiet", "--trace", str(FILE), graph(count=None, sink="print"))
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=process.LIMIT)
    assert child.returncode == 130
    assert ticks_of()["end"] >= 1


def a_full_disk_is_one_line_and_leaves_the_old_file_or_none(weir):
    fresh()
    ended = run(weir, path=graph(count=1000), **process.small_files(20000))
    assert ended.returncode == 0 and ended.stderr.count("\n") == 1, ended
    assert ended.stderr.startswith("weir run: trace '") and ended.stderr.endswith("File too large\n"), ended
    assert not FILE.exists()
    FILE.write_text("old")
    ended = run(weir, path=graph(count=1000), **process.small_files(20000))
    assert ended.returncode == 0 and ended.stderr.endswith("File too large\n") and FILE.read_text() == "old", ended
    assert not list(FILE.parent.glob(".weir-*")), "a part was left"
    ended = run(weir, trace="/dev/full")
    assert ended.returncode == 0 and "trace '/dev/full': No space left on device\n" in ended.stderr, ended
    assert os.path.exists("/dev/full")


def a_full_disk_does_not_change_the_code_of_a_failure(weir):
    fresh()
    with open("/dev/full", "w") as full:
        ended = run(weir, path=graph(sink="print"), trace="/dev/full", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1 and "in 'end'" in ended.stderr.splitlines()[-1], ended


def a_path_that_cannot_be_written_ends_the_command_before_the_run(weir):
    fresh()
    for path, why in ((FOLDER / "no/out.json", "No such file or directory"), (FOLDER, "Is a directory")):
        ended = run(weir, trace=path)
        assert ended.returncode == 1 and not ended.stdout, ended
        assert ended.stderr == f"weir run: --trace '{path}': {why}\n", ended


def a_run_that_does_not_start_leaves_no_file(weir):
    fresh()
    ended = run(weir, path=graph(sink="png_write", parameters={"directory": "graph.json"}))
    assert ended.returncode and not FILE.exists(), ended
    FILE.write_text("mine")
    run(weir, path=graph(sink="png_write", parameters={"directory": "graph.json"}))
    assert FILE.read_text() == "mine"


def a_link_is_followed_and_an_old_file_replaced(weir):
    fresh()
    (FOLDER / "target.json").write_text("x" * 1000000)
    FILE.symlink_to("target.json")
    assert run(weir).returncode == 0
    assert FILE.is_symlink() and ticks_of(FOLDER / "target.json")["end"] == 10


def a_fifo_is_written_if_it_is_read(weir):
    fresh()
    os.mkfifo(FILE)
    ended = run(weir)
    assert ended.returncode == 0 and "the FIFO has no reader" in ended.stderr, ended
    ended, text = run(weir, by=functools.partial(process.run_into_fifo, FILE))
    assert ended.returncode == 0 and not ended.stderr, ended
    assert len(json.loads(text)["traceEvents"]) > 30


def the_root_is_for_operators_alone(weir):
    fresh()
    (FOLDER / "root").mkdir()
    assert run(weir, "--root", str(FOLDER / "root")).returncode == 0
    assert FILE.exists()


def what_was_dropped_is_said(weir):
    fresh()
    ended = run(weir, "--trace-events", "64", path=graph(count=200))
    assert ended.returncode == 0 and "oldest records were dropped; --trace-events keeps more\n" in ended.stderr, ended
    timeline = chrome.Timeline(FILE)
    first = min(event["ts"] for event in timeline.events if event["ph"] != "M")
    assert timeline.about["dropped_records"] > 0
    assert 0 < timeline.about["from_ns"] <= round(first * 1000), "a record need not have an event of its own"


def wrong_values_are_refused(weir):
    fresh()
    for option, value in (("--trace", ""), ("--trace-events", "0"), ("--trace-events", "x"), ("--trace-events", "268435457")):
        ended = process.run(weir, "run", option, value, graph())
        assert ended.returncode == 2 and ended.stderr.startswith(f"weir run: {option} '{value}': expected "), ended


process.main(
    [
        a_run_is_a_timeline_with_all_its_ticks,
        simulated_runs_of_a_seed_are_the_same_to_the_byte,
        a_fan_in_of_many_has_all_its_messages,
        memory_pools_and_ticks_in_flight_are_counted,
        a_run_without_ticks_is_a_timeline,
        a_failing_compute_leaves_a_whole_file,
        sigint_leaves_a_whole_file,
        a_full_disk_is_one_line_and_leaves_the_old_file_or_none,
        a_full_disk_does_not_change_the_code_of_a_failure,
        a_path_that_cannot_be_written_ends_the_command_before_the_run,
        a_run_that_does_not_start_leaves_no_file,
        a_link_is_followed_and_an_old_file_replaced,
        a_fifo_is_written_if_it_is_read,
        the_root_is_for_operators_alone,
        what_was_dropped_is_said,
        wrong_values_are_refused,
    ]
)
