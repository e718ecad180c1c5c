"""The command in a hostile environment: readers that close, full disks, pipes without a writer, operators that
crash, words of other projects.

hostile.py WEIR PLUGIN FOLDER: FOLDER is scratch.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import process

PLUGIN, FOLDER = sys.argv[2], pathlib.Path(sys.argv[3])
del sys.argv[2:4]
HOST = ["--backend", "host", "--workers", "2"]
ENDLESS = [
    {"name": "source", "operator": "ping", "conditions": [{"type": "periodic", "period": "1ms"}]},
    {"name": "say", "operator": "print"},
]


def write(name, graph):
    path = FOLDER / name
    path.write_text(json.dumps(graph))
    return str(path)


def endless(**scheduler):
    graph = {"weir": 1, "scheduler": scheduler, "entities": ENDLESS, "connections": [["source.out", "say.in"]]}
    return write("endless.json", graph)


def xb13_a_reader_that_goes_away_drains_the_run(weir):
    for backend in (HOST, ["--backend", "sim"]):
        child = process.start(weir, "run", endless(), *backend)
        assert child.stdout.readline() == "say: tick 0: empty\n"
        child.stdout.close()
        assert child.wait(process.LIMIT) == 0
        assert child.stderr.read() == ""


def xb13_a_full_disk_fails_the_operator_that_prints(weir):
    with open("/dev/full", "w") as full:
        ended = process.run(weir, "run", endless(), *HOST, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1, ended
    assert "operator failed in 'say': stdout: No space left on device" in ended.stderr.splitlines()[0], ended.stderr


def xb14_a_seed_of_zero_wins_over_the_graphs(weir):
    file = endless(seed=7, max_duration="5ms", backend="sim")
    assert "on sim: seed 7" in process.run(weir, "run", file).stdout
    assert "on sim: seed 0" in process.run(weir, "run", file, "--seed", "0").stdout


def xb14_a_duration_of_zero_lifts_the_graphs_limit(weir):
    child = process.start(weir, "run", endless(max_duration="1ms"), *HOST, "--duration", "0s")
    for _ in range(50):
        assert child.stdout.readline().startswith("say: ")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=process.LIMIT)
    assert child.returncode == 130, (out, err)


def f47_f49_xb27_a_crash_in_compute_names_entity_and_operator(weir):
    ways = {"read": "SIGSEGV", "abort": "SIGABRT", "divide": "SIGFPE", "overflow": "SIGSEGV"}
    for way, name in ways.items():
        for backend in (HOST, ["--backend", "sim"]):
            graph = {"weir": 1, "entities": [{"name": "boom", "operator": "crash", "parameters": {"way": way}}]}
            ended = process.run(weir, "run", "--plugin", PLUGIN, write("crash.json", graph), *backend)
            if "Sanitizer" in ended.stderr or "runtime error: " in ended.stderr:
                continue  # its handler was installed first, and reports more
            assert ended.returncode == -getattr(signal, name), (way, ended)
            assert f"weir run: {name} in compute of 'boom' (operator crash)\n" in ended.stderr, (way, ended)


def xb56_device_memory_is_closed_to_the_host_on_sim(weir):
    """A missing download, and a missing upload: one line that names entity and block. With a download all is well."""
    entities = [{"name": "src", "operator": "number", "conditions": [{"type": "count", "count": 2}]},
                {"name": "up", "operator": "upload", "resources": ["p"]}, {"name": "look", "operator": "peek"}]
    missing = {"weir": 1, "resources": {"p": {"type": "memory_pool", "block_size": 4096, "blocks": 4}}, "entities": entities,
               "connections": [["src.out", "up.in"], ["up.out", "look.in"]]}
    down = {**missing, "entities": [*entities, {"name": "down", "operator": "download"}],
            "connections": [["src.out", "up.in"], ["up.out", "down.in"], ["down.out", "look.in"]]}
    made = {"weir": 1, "entities": [{"name": "make", "operator": "scribble"}]}
    touches = "in compute of '{}' (operator {}): it touches device memory on the host"
    for graph, line in ((missing, touches.format("look", "peek") + ", the message in 'in' from up.out, pool 'p'; add a 'download' before it"),
                        (made, touches.format("make", "scribble") + "; make it on the host")):
        file = write("closed.json", graph)
        ended = process.run(weir, "run", "--plugin", PLUGIN, file, "--backend", "sim")
        if "Sanitizer" in ended.stderr:
            continue  # its handler was installed first
        assert ended.returncode == -signal.SIGSEGV and line in ended.stderr, ended
        assert process.run(weir, "run", "--plugin", PLUGIN, file, "--backend", "sim", "--no-strict").returncode == 0
    for backend in (HOST, ["--backend", "sim"]):
        ended = process.run(weir, "run", "--plugin", PLUGIN, write("closed.json", down), *backend)
        assert ended.returncode == 0, ended
    ended = process.run(weir, "run", "--plugin", PLUGIN, write("closed.json", down), *HOST, "--strict")
    assert ended.returncode == 0 or ended.returncode == 1 and "no protection keys" in ended.stderr, ended


def xb27_a_crash_outside_of_compute_says_so(weir):
    graph = {"weir": 1, "entities": [{"name": "boom", "operator": "crash", "parameters": {"way": "late"}}]}
    ended = process.run(weir, "run", "--plugin", PLUGIN, write("crash.json", graph), *HOST)
    if "Sanitizer" not in ended.stderr:
        assert ended.returncode == -signal.SIGSEGV, ended
        assert ended.stderr == "weir run: SIGSEGV outside of compute\n", ended


def xb27_a_compute_that_ends_its_thread_or_the_process_fails_the_run_on_sim_too(weir):
    """On sim, compute runs on the main thread: without the line, the process would end with 0."""
    for way in ("exit", "thread", "cancel"):
        graph = {"weir": 1, "entities": [{"name": "boom", "operator": "crash", "parameters": {"way": way}}]}
        for backend in (HOST, ["--backend", "sim"]):
            ended = process.run(weir, "run", "--plugin", PLUGIN, write("crash.json", graph), *backend)
            if "Sanitizer" in ended.stderr:
                continue  # the sanitizer does not follow a forced unwind
            assert ended.returncode == 1 and "pthread_exit or pthread_cancel" in ended.stderr, (way, ended)
            assert "'boom'" in ended.stderr and ended.stderr.count("\n") == 1, (way, ended)


def a_pipe_without_a_writer_can_be_left(weir):
    pipe = FOLDER / "pipe"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    for number in (signal.SIGINT, signal.SIGTERM):
        child = process.start(weir, "run", str(pipe))
        waits_in_open(child)
        child.send_signal(number)
        _, err = child.communicate(timeout=process.LIMIT)
        assert (child.returncode, err) == (128 + number, "weir run: stopped before the run began\n"), err


def waits_in_open(child):
    """The fifo is the first thing that the command blocks on."""
    end = time.monotonic() + process.LIMIT
    while time.monotonic() < end:
        state = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        caught = int(next(line for line in open(f"/proc/{child.pid}/status") if line.startswith("SigCgt")).split()[1], 16)
        if state == "S" and caught >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.002)
    raise AssertionError("it does not wait")


def times_have_one_grammar(weir):
    file = endless(backend="sim")
    for good in ("20ms", "0.02s", "20000us", "0.0005min"):
        assert process.run(weir, "run", file, "--duration", good).returncode == 0, good
        assert process.run(weir, "check", endless(max_duration=good)).returncode == 0, good
    for bad in (".5s", "60Hz", "5", "1e3s", "5 s"):
        assert process.run(weir, "run", file, "--duration", bad).returncode == 2, bad
        for key in ("max_duration", "drain", "deadlock_grace", "worker_spin"):
            ended = process.run(weir, "check", endless(**{key: bad}))
            assert ended.returncode == 3 and "W012" in ended.stderr, (key, bad, ended)


def a_word_in_capitals_has_a_hint(weir):
    for command, word in (("operators", "SPIN"), ("conditions", "Cuda_Stream")):
        ended = process.run(weir, command, word)
        assert f"(did you mean '{word.lower()}'?)" in ended.stderr, ended


def words_of_other_projects_and_former_ones_have_a_hint(weir):
    graph = {
        "weir": 1,
        "scheduler": {"pin_cores": [0], "stop_on_deadlock": True, "worker_thread_number": 2, "spin": 0},
        "resources": {"pool": {"type": "CudaStreamPool"}, "other": {"type": "stream_pool", "dev_id": 0}},
        "entities": [
            {
                "name": "a",
                "operator": "sink",
                "conditions": [{"type": "CudaStreamCondition"}, {"type": "message_available", "receiver": "in"}],
            }
        ],
        "connections": [{"from": "a.out", "to": "a.in", "initial": 1}],
    }
    said = process.run(weir, "check", write("words.json", graph)).stderr
    for hint in (
        "'pin_cores' (pin the threads with taskset)",
        "'stop_on_deadlock' (a deadlock ends the run, unless \"deadlock_grace\" is -1)",
        "'worker_thread_number' (did you mean 'workers'?)",
        "'spin' (did you mean 'worker_spin'?)",
        "'initial' (did you mean 'initial_messages'?)",
        "'CudaStreamPool' is not one of",
        "(did you mean 'stream_pool'?)",
        "'dev_id' (did you mean 'device'?)",
        "'CudaStreamCondition' (did you mean 'cuda_stream'?)",
        "'receiver' (did you mean 'port'?)",
    ):
        assert hint in said, (hint, said)


def plugins_load_without_proc(weir):
    hidden = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode:
        print("skipped plugins_load_without_proc: no namespace of its own")
        return
    ended = subprocess.run([*hidden, weir, "operators", "crash", "--plugin", PLUGIN], capture_output=True, text=True)
    looked = "LeakSanitizer" in ended.stderr  # which needs /proc
    assert (ended.returncode == 0 or looked) and ended.stdout.startswith("crash: "), ended


process.main(
    [
        xb13_a_reader_that_goes_away_drains_the_run,
        xb13_a_full_disk_fails_the_operator_that_prints,
        xb14_a_seed_of_zero_wins_over_the_graphs,
        xb14_a_duration_of_zero_lifts_the_graphs_limit,
        f47_f49_xb27_a_crash_in_compute_names_entity_and_operator,
        xb56_device_memory_is_closed_to_the_host_on_sim,
        xb27_a_crash_outside_of_compute_says_so,
        xb27_a_compute_that_ends_its_thread_or_the_process_fails_the_run_on_sim_too,
        a_pipe_without_a_writer_can_be_left,
        times_have_one_grammar,
        a_word_in_capitals_has_a_hint,
        words_of_other_projects_and_former_ones_have_a_hint,
        plugins_load_without_proc,
    ]
)
