"""The explanation of a standstill: on SIGUSR1, after a time without a tick, past a drain.

standstill.py WEIR FOLDER: FOLDER is scratch.
"""
import json
import pathlib
import signal
import sys
import time

import process

FOLDER = pathlib.Path(sys.argv[2])
del sys.argv[2]
HOST = ["--backend", "host", "--workers", "2"]


def stands(name="stands.json", count=300, **scheduler):
    """A chain behind a disabled entity, which stays open."""
    entities = [{"name": "source", "operator": "ping"}]
    entities += [{"name": f"d{i}", "operator": "delay", "parameters": {"duration": "0ns"}} for i in range(count)]
    entities += [{"name": "end", "operator": "sink", "conditions": [{"type": "boolean", "enable_tick": False}]}]
    names = [entity["name"] for entity in entities]
    connections = [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])]
    scheduler = {"deadlock_grace": -1, **scheduler}
    path = FOLDER / name
    path.write_text(json.dumps({"weir": 1, "scheduler": scheduler, "entities": entities, "connections": connections}))
    return str(path)


WHY = "end waits: boolean: disabled (WAIT); 301 others wait behind it\n"


def xb06_a_deadlock_of_300_entities_is_one_short_line(weir):
    file = stands("dead.json", deadlock_grace="0s")
    ended = process.run(weir, "run", file, *HOST)
    assert ended.returncode == 4, ended
    assert ended.stderr == f"weir run: {file}: deadlock: {WHY}", ended.stderr


def xb16_sigusr1_tells_why_and_the_run_goes_on(weir):
    child = process.start(weir, "run", stands(), *HOST)
    for _ in range(2):
        child.send_signal(signal.SIGUSR1) if listens(child) else None
        line = child.stderr.readline()
        while line != "weir run: " + WHY:  # the request came before the chain was full
            child.send_signal(signal.SIGUSR1)
            line = child.stderr.readline()
            assert line.startswith("weir run: "), line
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=process.LIMIT)
    assert child.returncode == 130, child.returncode


def listens(child):
    end = time.monotonic() + process.LIMIT
    while time.monotonic() < end:
        with open(f"/proc/{child.pid}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt")).split()[1]
        if int(caught, 16) >> (signal.SIGUSR1 - 1) & 1:
            return True
        time.sleep(0.002)
    return False


def xb16_after_a_time_without_a_tick_it_is_told_once(weir):
    file = stands(count=2)  # a long chain is not full in 500 ms on a busy machine
    child = process.start(weir, "run", file, *HOST, "--explain-after", "1s", "--duration", "4s")
    _, err = child.communicate(timeout=process.LIMIT)
    told = [line for line in err.splitlines(True) if "no tick for" in line]
    assert len(told) == 1 and told[0].endswith(": " + WHY.replace("301", "3")), err


STUCK = {
    "weir": 1,
    "resources": {"p": {"type": "memory_pool", "block_size": 4096, "blocks": 1}},
    "entities": [
        {"name": "a", "operator": "ping"},
        {"name": "s1", "operator": "spin", "resources": ["p"]},
        {"name": "s2", "operator": "spin", "resources": ["p"], "ports": {"in": {"capacity": 2}}},
        {"name": "k", "operator": "sink"},
        {"name": "beat", "operator": "ping", "conditions": [{"type": "periodic", "period": "100ms"}]},
        {"name": "k2", "operator": "sink"}],
    "connections": [["a.out", "s1.in"], ["s1.out", "s2.in"], ["s2.out", "k.in"], ["beat.out", "k2.in"]],
}


def stuck(weir, *options):
    """A part that stands for ever beside a heartbeat. It stands whatever the order of the ticks: s1's first message holds the only block."""
    path = FOLDER / "stuck.json"
    path.write_text(json.dumps(STUCK))
    ended = process.run(weir, "run", str(path), "--quiet", *options)
    return ended.returncode, [line for line in ended.stderr.splitlines() if "W049" not in line]


def s06_a_part_that_stands_for_ever_is_told_and_gives_the_code_of_a_deadlock(weir):
    for backend, durations in ((["--backend", "sim"], ["1500ms"]), (HOST, ["1500ms", "5s", "20s"])):
        for duration in durations:  # on a busy machine the part may stand late, and be seen later
            code, lines = stuck(weir, *backend, "--duration", duration)
            if code == 4 and "stands for ever" in lines[0]:
                break
        assert code == 4, (code, lines)
        assert len(lines) == 2 and "stands for ever while the rest goes on: circular wait: s2 waits" in lines[0], lines
        assert lines[1].endswith(lines[0].split("goes on: ")[1]) and ": deadlock: " in lines[1], lines


def s06_a_drain_tells_what_stands_for_less_than_a_look(weir):
    for backend, durations in ((["--backend", "sim"], ["100ms"]), (HOST, ["100ms", "200ms", "400ms"])):
        for duration in durations:  # a busy machine may take longer until the part stands
            code, lines = stuck(weir, *backend, "--duration", duration)
            if code:
                break
        assert code == 4 and len(lines) == 2 and ": deadlock: circular wait: s2 waits" in lines[1], (code, lines)


def xb16_a_part_that_stands_beside_one_that_goes_on_is_explained(weir):
    code, lines = stuck(weir, "--backend", "sim", "--duration", "8s", "--explain-after", "2s")
    told = [line for line in lines if "nothing taken from s1.out -> s2.in for 2 s: circular wait: s2 waits" in line]
    assert code == 4 and len(told) == 1, (code, lines)


def s07_a_drain_has_the_time_that_it_is_given(weir):
    spins = [{"name": "s", "operator": "spin", "parameters": {"duration": "3s"}},
             {"name": "d", "operator": "delay", "parameters": {"duration": "1ms"}},
             {"name": "t", "operator": "spin", "parameters": {"duration": "3s"}}]
    path = FOLDER / "slow.json"
    path.write_text(json.dumps({
        "weir": 1,
        "entities": [{"name": "ping", "operator": "ping"}, *spins, {"name": "k", "operator": "sink"}],
        "connections": [["ping.out", "s.in"], ["s.out", "d.in"], ["d.out", "t.in"], ["t.out", "k.in"]]}))
    options = ["run", str(path), "--backend", "sim", "--duration", "1s", "--quiet"]
    assert process.run(weir, *options).returncode == 0
    ended = process.run(weir, *options, "--drain", "1s")
    assert ended.returncode == 5 and "took longer than 1 s without a message taken" in ended.stderr, ended
    assert "(weir run --drain)" in ended.stderr, ended


def xb16_on_sim_the_time_is_virtual(weir):
    began = time.monotonic()
    options = ["--backend", "sim", "--explain-after", "1h", "--duration", "3h"]
    ended = process.run(weir, "run", stands(), *options)
    assert ended.stderr == f"weir run: no tick for 3600 s: {WHY}", ended.stderr
    assert time.monotonic() - began < 30


def xb16_a_graph_that_ticks_is_not_told_to_stand(weir):
    ended = process.run(weir, "run", process.graph("endless.json"), *HOST, "--explain-after", "2s", "--duration", "3s")
    assert "no tick" not in ended.stderr, ended.stderr


def xb16_a_tick_within_the_last_look_is_no_standstill(weir):
    """The command looks every 200 ms: a time below that does not make a standstill of what it did not see."""
    entities = [{"name": "source", "operator": "ping", "conditions": [{"type": "periodic", "period": "5ms"}]}, {"name": "end", "operator": "sink"}]
    path = FOLDER / "often.json"
    path.write_text(json.dumps({"weir": 1, "entities": entities, "connections": [["source.out", "end.in"]]}))
    ended = process.run(weir, "run", str(path), *HOST, "--explain-after", "1ms", "--duration", "700ms")
    assert ended.returncode == 0 and "no tick" not in ended.stderr, ended.stderr


def hangs(**scheduler):
    """A compute of 7 s, and 1 s to drain."""
    entities = [{"name": "source", "operator": "ping"}]
    entities += [{"name": "slow", "operator": "delay", "parameters": {"duration": "7s"}}, {"name": "end", "operator": "sink"}]
    graph = {"weir": 1, "scheduler": {"drain": "1s", **scheduler}, "entities": entities}
    graph["connections"] = [["source.out", "slow.in"], ["slow.out", "end.in"]]
    path = FOLDER / "hangs.json"
    path.write_text(json.dumps(graph))
    return str(path)


def xb16_a_compute_that_hangs_past_its_drain_is_named(weir):
    """Without a request: the time of the drain has passed."""
    child = process.start(weir, "run", hangs(), *HOST)
    assert listens(child)
    line = ""
    while "slow waits: compute: runs for" not in line:
        child.send_signal(signal.SIGUSR1)
        line = child.stderr.readline()
        assert line, "the run ended"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=process.LIMIT)
    assert "slow waits: compute: runs for" in err, err


def xb16_so_is_one_that_hangs_past_the_drain_of_a_duration(weir):
    for option in (True, False):
        for duration in ("100ms", "500ms", "2500ms"):  # a busy machine may take longer until the first tick
            options = ["--duration", duration] if option else []
            ended = process.run(weir, "run", hangs(max_duration=0 if option else duration), *HOST, *options)
            if ended.returncode:
                break
        assert ended.returncode == 5, ended
        assert ended.stderr.count("no tick for 5 s: slow waits: compute: runs for ") == 1, ended.stderr


process.main(
    [
        xb06_a_deadlock_of_300_entities_is_one_short_line,
        xb16_sigusr1_tells_why_and_the_run_goes_on,
        xb16_after_a_time_without_a_tick_it_is_told_once,
        s06_a_part_that_stands_for_ever_is_told_and_gives_the_code_of_a_deadlock,
        s06_a_drain_tells_what_stands_for_less_than_a_look,
        xb16_a_part_that_stands_beside_one_that_goes_on_is_explained,
        s07_a_drain_has_the_time_that_it_is_given,
        xb16_on_sim_the_time_is_virtual,
        xb16_a_graph_that_ticks_is_not_told_to_stand,
        xb16_a_tick_within_the_last_look_is_no_standstill,
        xb16_a_compute_that_hangs_past_its_drain_is_named,
        xb16_so_is_one_that_hangs_past_the_drain_of_a_duration,
    ]
)
