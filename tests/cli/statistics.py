"""--stats, --stats-file, --stats-skip: what the file has agrees with itself and with the summary, however the run ends."""
import json
import os
import pathlib
import re
import signal
import tempfile

import process

SIM = ["--backend", "sim"]


def written(weir, *arguments, code=0):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        ended = process.run(weir, "run", *arguments, "--stats-file", path)
        assert ended.returncode == code, ended
        return json.loads(path.read_text()), ended


def histograms(value):
    """Every histogram within a JSON value."""
    if isinstance(value, dict):
        if "buckets" in value:
            yield value
        for inner in value.values():
            yield from histograms(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from histograms(inner)


def agrees_with_itself(run):
    assert run["weir_statistics"] == 1 and run["duration"] > 0, run
    for times in histograms(run):
        assert sum(count for _, _, count in times["buckets"]) == times["count"] > 0, times
        assert all(start < end for start, end, _ in times["buckets"]), times
        assert times["min"] <= times["p50"] <= times["p90"] <= times["p99"] <= times["max"], times
        assert times["min"] * times["count"] <= times["sum"] <= times["max"] * times["count"], times
    for queue in run["queues"]:
        ways = ("delivered", "dropped", "closed", "queued", "abandoned")
        assert queue["pushed"] == sum(queue[way] for way in ways), queue
        assert queue["depth"]["mean"] <= queue["depth"]["max"] <= queue["capacity"], queue
        assert 0 <= queue["depth"]["full_time"] <= run["duration"], queue
    assert len(run["workers"]) == run["workers_count"], run["workers"]
    assert sum(worker["ticks"] for worker in run["workers"]) >= sum(e["ticks"] for e in run["entities"]), run
    for worker in run["workers"]:
        assert worker["busy"] + worker["asleep"] <= run["duration"], worker


def the_counts_are_those_of_the_summary(weir):
    for seed in range(1, 6):
        run, ended = written(weir, process.graph("ping.json"), *SIM, "--seed", str(seed), "--workers", "3")
        agrees_with_itself(run)
        assert run["ending"] == "finished" and run["where"].startswith("sim"), run
        for entity in run["entities"]:
            line = re.search(rf"^  {entity['name']} +(\d+) +(\d+) +(\d+)", ended.stdout, re.M)
            assert [int(n) for n in line.groups()] == [entity[k] for k in ("ticks", "received", "emitted")], line
            assert entity["submit"]["count"] == entity["ready_to_compute"]["count"] == entity["ticks"], entity
        assert run["paths"][0]["count"] == run["paths"][0]["measured"] == run["entities"][-1]["ticks"], run["paths"]


def the_first_ticks_are_left_out(weir):
    whole, _ = written(weir, process.graph("ping.json"), *SIM)
    skipped, _ = written(weir, process.graph("ping.json"), *SIM, "--stats-skip", "3")
    agrees_with_itself(skipped)
    for before, after in zip(whole["entities"], skipped["entities"]):
        assert before["ticks"] == after["ticks"] and after["submit"]["count"] == before["ticks"] - 3, after
    assert skipped["paths"][0]["count"] == whole["paths"][0]["count"] - 3, skipped["paths"]
    assert skipped["skip"] == 3 and any("first 3 ticks" in note for note in skipped["notes"]), skipped["notes"]
    nothing, _ = written(weir, process.graph("ping.json"), *SIM, "--stats-skip", "1000000")
    assert not any("submit" in entity for entity in nothing["entities"]) and not nothing["paths"], nothing


def a_failing_run_writes_it_whole(weir):
    run, ended = written(weir, process.graph("fault.json"), *SIM, code=1)
    assert ended.stderr and run["ending"] != "finished", (run["ending"], ended)
    run, ended = written(weir, process.graph("stuck.json"), *SIM, code=4)
    assert run["ending"] == run["status"] == "deadlock" and run["text"] in ended.stderr, (run["text"], ended)
    assert run["cause"] != "none" and run["cause_entity"] and not run["drained"], run


def xb60_frames_per_second_are_messages_of_the_main_sink(weir):
    run, ended = written(weir, process.graph("main.json"), *SIM)
    assert (run["main"], run["frames"], run["entities"][1]["ticks"]) == ("keep", 12, 3), run
    rate = float(re.search(r", ([\d,.]+) frames/s", ended.stdout)[1].replace(",", ""))
    assert abs(rate * run["duration"] / 12e9 - 1) < 0.01, (rate, run["duration"])


def a_stopped_run_writes_it_whole(weir):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        child = process.start(weir, "run", process.graph("endless.json"), "--backend", "host", "--stats-file", path,
                              "--quiet", "--set", "end.quiet=true", "--duration", "30s")
        while not path.exists():  # it is made before the run
            pass
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=process.LIMIT)
        assert child.returncode == 130, child.returncode
        if path.exists():  # else it was stopped before the run
            agrees_with_itself(json.loads(path.read_text()))


def a_path_that_cannot_be_written_is_refused_before_the_run(weir):
    for path, why in (("/nonexistent/run.json", "No such file"), (process.GRAPHS, "Is a directory")):
        ended = process.run(weir, "run", process.graph("ping.json"), *SIM, "--stats-file", path)
        assert ended.returncode == 1 and not ended.stdout, ended
        assert ended.stderr.count("\n") == 1 and "--stats-file" in ended.stderr and why in ended.stderr, ended


def a_full_disk_costs_the_file_alone(weir):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        ended = process.run(weir, "run", process.graph("ping.json"), *SIM, "--stats-file", path, **process.small_files(512))
        assert ended.returncode == 0 and "finished" in ended.stdout, ended
        assert ended.stderr.count("\n") == 1 and "run.json" in ended.stderr, ended
        assert not path.exists() and not os.listdir(folder), os.listdir(folder)
        path.write_text("old")
        ended = process.run(weir, "run", process.graph("ping.json"), *SIM, "--stats-file", path, **process.small_files(512))
        assert ended.returncode == 0 and ended.stderr.count("\n") == 1, ended
        assert path.read_text() == "old" and os.listdir(folder) == ["run.json"], os.listdir(folder)


def a_fifo_without_a_reader_costs_the_file_alone(weir):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        os.mkfifo(path)
        ended = process.run(weir, "run", process.graph("ping.json"), *SIM, "--stats-file", path)
        assert ended.returncode == 0 and ended.stderr == f"weir run: {path}: the FIFO has no reader\n", ended
        ended, text = process.run_into_fifo(path, weir, "run", process.graph("ping.json"), *SIM, "--stats-file", path)
        assert ended.returncode == 0 and not ended.stderr, ended
        agrees_with_itself(json.loads(text))


def a_run_that_does_not_begin_leaves_no_file(weir):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        ended = process.run(weir, "run", process.graph("wrong.json"), "--stats-file", path)
        assert ended.returncode == 3 and not path.exists(), ended


if __name__ == "__main__":
    process.main([the_counts_are_those_of_the_summary, the_first_ticks_are_left_out, a_failing_run_writes_it_whole,
                  xb60_frames_per_second_are_messages_of_the_main_sink,
                  a_stopped_run_writes_it_whole, a_path_that_cannot_be_written_is_refused_before_the_run,
                  a_full_disk_costs_the_file_alone, a_fifo_without_a_reader_costs_the_file_alone,
                  a_run_that_does_not_begin_leaves_no_file])
