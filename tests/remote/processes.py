"""remote/: graphs in several processes. Nothing lost or doubled, bytes as in one process, and each failure in one line.

processes.py WEIR FOLDER PLUGIN: FOLDER is scratch. The engine's transports are those of UCX_TLS.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
import process

FOLDER = pathlib.Path(sys.argv[2])
PLUGIN = os.path.abspath(sys.argv[3])
TRANSPORTS = os.environ["UCX_TLS"].split(",")
BACKEND = os.environ.get("WEIR_TEST_BACKEND", "host")
del sys.argv[2:4]
LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
FOLDER.mkdir(parents=True, exist_ok=True)


def address():
    return f"127.0.0.1:{process.free_port()}"


def entity(name, operator, **parameters):
    return {"name": name, "operator": operator, "parameters": parameters}


def chain(*entities):
    names = [one["name"] for one in entities]
    return {
        "weir": 1,
        "entities": list(entities),
        "connections": [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])],
    }


def counted(operator, count, **parameters):
    return {**entity("source", operator, **parameters), "conditions": [{"type": "count", "count": count}]}


def beating(**parameters):
    return {**entity("source", "ping", **parameters), "conditions": [{"type": "periodic", "period": "2ms"}]}


def send(to, name="send", **parameters):
    return {**entity(name, "remote_send", to=to, **parameters), "ports": {"in": {"capacity": 4}}}


def receive(listen, name="receive", **parameters):
    return entity(name, "remote_receive", listen=listen, **parameters)


SINK = entity("end", "sink")


def start(weir, name, graph, *options, command="run", **more):
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(graph))
    backend = () if "--backend" in options else ("--backend", BACKEND)
    return process.start(weir, command, "--plugin", PLUGIN, *backend, *options, str(path), cwd=ROOT, **more)


class Ended:
    def __init__(self, child, limit=process.LIMIT):
        self.stdout, self.stderr = child.communicate(timeout=limit)
        self.code = child.returncode

    def __repr__(self):
        return f"{self.code}: {self.stdout} {self.stderr}"

    def counts(self, name):
        """(received, emitted) of the summary."""
        return tuple(int(number) for number in re.search(rf"\n  {name} +\d+ +(\d+) +(\d+)", self.stdout).groups())


def both(weir, sender, receiver, *options):
    """Of two processes that end well."""
    first, second = start(weir, "a", sender, *options), start(weir, "b", receiver, *options)
    ended = Ended(first), Ended(second)
    assert all(one.code == 0 and not one.stderr for one in ended), ended
    return ended


def fails(ended, pattern):
    """Its last line of standard error."""
    assert ended.code == 1, (pattern, ended)
    assert re.search(f"^weir run: .*{pattern}.*\n\\Z", ended.stderr, re.M), (pattern, ended.stderr)


def wait_until(child, there):
    until = time.monotonic() + process.LIMIT
    while not there():
        assert child.poll() is None and time.monotonic() < until, Ended(child)
        time.sleep(0.01)


def resident(child):
    """Bytes."""
    with open(f"/proc/{child.pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def frames(path):
    return path.stat().st_size if path.exists() else 0


def running(weir, sender=None, receiver=None, behind=None):
    """Two processes, between which some frames have gone."""
    to, seen = address(), FOLDER / "seen"
    seen.unlink(missing_ok=True)
    write = behind or entity("end", "frames_write", path=str(seen))
    b = start(weir, "b", chain(receive(to, **(receiver or {})), write))
    a = start(weir, "a", chain(beating(bytes=100000), send(to, **(sender or {}))))
    wait_until(b, lambda: frames(seen) > 200000)
    return a, b, to


def e05_r02_r05_all_that_is_sent_arrives(weir):
    for count, size in ((20000, 8), (3000, 100000), (20, 8 << 20)):
        for credits in (1, 8):
            to = address()
            options = ("--workers", "1") if credits == 1 else ()
            a, b = both(weir, chain(counted("ping", count, bytes=size), send(to)), chain(receive(to, credits=credits), SINK), *options)
            assert a.counts("send")[0] == b.counts("receive")[1] == b.counts("end")[0] == count, (a, b)
            assert not re.search("dropped|abandoned|closed", a.stdout + b.stdout), (a, b)


def r06_either_side_may_start_first(weir):
    for first in "ab":
        to = address()
        graphs = {"a": chain(counted("ping", 100), send(to)), "b": chain(receive(to), SINK)}
        early = start(weir, first, graphs[first])
        # Until it sleeps: for a receiver, or for a sender.
        wait_until(early, lambda: pathlib.Path(f"/proc/{early.pid}/task").exists() and len(os.listdir(f"/proc/{early.pid}/task")) > 3)
        late = start(weir, "late", graphs["b" if first == "a" else "a"])
        for ended in (Ended(early), Ended(late)):
            assert ended.code == 0 and not ended.stderr, ended


def t10_r02_pictures_are_those_of_one_process(weir):
    """examples/edges.json, cut at each connection."""
    graph = json.loads((ROOT / "examples/edges.json").read_text())
    graph["entities"][0]["parameters"]["repeat"] = 3
    for cut, place in ((None, None), (0, "host"), (0, "device"), (1, "device"), (2, "sent"), (3, "device"), (3, "sent"), (4, "host")):
        folder = FOLDER / f"edges-{cut}-{place}"
        graph["entities"][-1]["parameters"] = {"directory": str(folder), "every": 1}
        if cut is None:
            ended = Ended(start(weir, "edges", graph))
            assert ended.code == 0, ended
            continue
        to, (a, b) = address(), graph["connections"][cut]
        entities, connections = graph["entities"], graph["connections"]
        before = {"weir": 1, "entities": entities[: cut + 1] + [send(to)], "connections": connections[:cut] + [[a, "send.in"]]}
        behind = {"weir": 1, "entities": [receive(to, place=place)] + entities[cut + 1 :], "connections": [["receive.out", b]] + connections[cut + 1 :]}
        both(weir, before, behind)
        names = sorted(path.name for path in (FOLDER / "edges-None-None").iterdir())
        assert len(names) > 3 and names == sorted(path.name for path in folder.iterdir()), names
        for name in names:
            assert (folder / name).read_bytes() == (FOLDER / "edges-None-None" / name).read_bytes(), (cut, name)


def r01_r02_three_processes_in_a_row(weir):
    first, second = address(), address()
    raw, copy = FOLDER / "raw", FOLDER / "copy"
    raw.write_bytes(os.urandom(1000 * 5000))
    a = start(weir, "a", chain(entity("read", "frames_read", path=str(raw), bytes=5000), send(first)))
    b = start(weir, "b", chain(receive(first, credits=2), {**send(second), "ports": {"in": {"capacity": 1}}}))
    c = start(weir, "c", chain(receive(second), entity("write", "frames_write", path=str(copy))))
    for ended in (Ended(a), Ended(b), Ended(c)):
        assert ended.code == 0, ended
    assert copy.read_bytes() == raw.read_bytes()


def r01_a_slow_receiver_holds_the_sender_back(weir):
    """What is under way or waits stays bounded, so the sender's memory does."""
    to = address()
    slow = {**SINK, "conditions": [{"type": "periodic", "period": "5ms"}, {"type": "message_available", "port": "in"}]}
    a, b = both(
        weir, chain(counted("ping", 100, bytes=1 << 20), send(to)), chain(receive(to, credits=2), slow), "--workers", "1"
    )
    assert b.counts("end")[0] == 100, b


def segments(child):
    """The pieces of memory of UCX that a process has mapped, by device and inode."""
    maps = pathlib.Path(f"/proc/{child.pid}/maps").read_text().splitlines()
    return {tuple(row.split()[3:5]) for row in maps if "ucx_shm_posix" in row or "/SYSV" in row}


def r04_processes_of_one_machine_share_memory_if_ucx_may(weir):
    """Each has mapped what the other one has, or nothing of it."""
    a, b, _ = running(weir)
    shared = segments(a) & segments(b)
    a.send_signal(signal.SIGINT)
    assert Ended(b).code == 0
    assert bool(shared) == ("sm" in TRANSPORTS), (shared, TRANSPORTS)


def r03_processes_of_different_rights_share_none(weir):
    """One could not read the other's memory, whatever UCX believes: the sender is in a user namespace of its own."""
    if subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode:
        return
    to, seen = address(), FOLDER / "seen"
    seen.unlink(missing_ok=True)
    b = start(weir, "b", chain(receive(to), entity("end", "frames_write", path=str(seen))))
    graph = FOLDER / "a.json"
    graph.write_text(json.dumps(chain(beating(bytes=100000), send(to, timeout="2s"))))
    a = process.start("unshare", "--user", weir, "run", "--plugin", PLUGIN, "--backend", "host", str(graph), cwd=ROOT)
    if "tcp" not in TRANSPORTS:
        fails(Ended(a), "no receiver at .*it refused: .*UCX has no way: see UCX_TLS")
        b.kill()
        return
    wait_until(b, lambda: frames(seen) > 200000)
    shared = segments(a) & segments(b)
    a.send_signal(signal.SIGINT)
    assert Ended(b).code == 0 and not shared, shared


def r04_who_spins_looks_while_nothing_comes(weir):
    """Between messages of a slow source it ticks again and again: without `spin` seldom, for a hundredth of that time.
    Beside other programs it gives its core away meanwhile, so one of a few tries is enough."""
    slow = {**beating(bytes=8), "conditions": [{"type": "periodic", "period": "20ms"}, {"type": "count", "count": 20}]}
    ticks = {}
    for _ in range(5):
        for spin in ("0s", "100ms"):
            to = address()
            a, b = both(weir, chain(slow, send(to, spin=spin)), chain(receive(to, spin=spin), SINK))
            assert b.counts("end")[0] == 20, b
            ticks[spin] = [int(re.search(rf"\n  {name} +(\d+)", one.stdout)[1]) for name, one in (("send", a), ("receive", b))]
        if all(spun > 3 * still for spun, still in zip(ticks["100ms"], ticks["0s"])):
            return
    raise AssertionError(ticks)


def e06_r06_a_killed_side_is_named(weir):
    for side in "ab":
        a, b, _ = running(weir)
        (a if side == "a" else b).kill()
        ended = Ended(b if side == "a" else a)
        fails(ended, "the sender at 127.0.0.1 is lost after [1-9]\\d* messages, before its end" if side == "a" else "the receiver at .* is lost after \\d+ messages")


def s07_r05_a_drain_of_the_sender_ends_both(weir):
    a, b, _ = running(weir)
    a.send_signal(signal.SIGINT)
    a, b = Ended(a), Ended(b)
    assert a.code == 130 and b.code == 0, (a, b)
    assert a.counts("send")[0] == b.counts("end")[0], (a, b)


def r05_a_drain_without_a_receiver_drops_what_may_be_dropped(weir):
    """At once: the time of the drain is longer than the test's."""
    for on_lost in ("drop", "wait"):
        to = address()
        options = ("--drain", "1h" if on_lost == "drop" else "100ms")
        graph, seen = chain(beating(bytes=100), send(to, on_lost=on_lost)), FOLDER / "seen"
        graph["entities"].append(entity("end", "frames_write", path=str(seen)))
        graph["connections"].append(["source.out", "end.in"])
        seen.unlink(missing_ok=True)
        a = start(weir, "a", graph, *options)
        wait_until(a, lambda: frames(seen) >= 400)  # the queue of `send` is full
        a.send_signal(signal.SIGINT)
        a = Ended(a)
        assert a.code == 130, a
        if on_lost == "wait":
            assert f"send: the run drains, and there is no receiver at {to} (" in a.stderr, a
            continue
        found = re.search("([0-9]+) of ([0-9]+) messages were lost", a.stderr)
        assert found and found[1] == found[2] == str(a.counts("send")[0]) and int(found[1]) >= 4, a
        assert re.search("the input has ended, and the receiver at .* is away", a.stderr) and "abandoned" not in a.stdout + a.stderr, a


def r05_a_receiver_that_is_stopped_says_so(weir):
    a, b, _ = running(weir)
    b.send_signal(signal.SIGINT)
    fails(Ended(a), "the receiver at .* is lost after \\d+ messages.*: its run was stopped")
    assert Ended(b).code == 130


def r05_an_error_of_the_receiver_is_told_with_its_text(weir):
    """The bytes of `ping` are no pictures."""
    to = address()
    b = start(weir, "b", chain(receive(to), entity("end", "png_write", directory=str(FOLDER / "none"))))
    a = start(weir, "a", chain(beating(bytes=100), send(to)))
    why = "receive.out: emitted bytes, which end.in does not take"
    fails(Ended(a), f"the receiver at {to} is lost after \\d+ messages.*: {why}")
    fails(Ended(b), f"'receive': {why}")


def r05_an_error_of_another_entity_is_told_with_its_text(weir):
    """Of the receiver's run, and of the sender's."""
    slow = {**entity("slow", "delay", duration="1s"), "ports": {"in": {"capacity": 1, "policy": "fault"}}}
    why = "slow.in: the queue of 1 is full and its policy is 'fault'"
    to = address()
    b = start(weir, "b", chain(receive(to), entity("between", "pass"), slow, SINK))
    a = start(weir, "a", chain(beating(), send(to)))
    fails(Ended(a), f"the receiver at {to} is lost after \\d+ messages.*: its run has failed: between: {why}")
    fails(Ended(b), why)
    to, seen, fifo = address(), FOLDER / "seen", FOLDER / "fails"
    for path in (seen, fifo):
        path.unlink(missing_ok=True)
    os.mkfifo(fifo)
    b = start(weir, "b", chain(receive(to), entity("end", "frames_write", path=str(seen))))
    graph = chain(beating(bytes=100), send(to))
    graph["entities"] += [entity("read", "frames_read", path=str(fifo), bytes=100), slow, SINK]
    graph["connections"] += [["read.out", "slow.in"], ["slow.out", "end.in"]]
    writer = os.open(fifo, os.O_RDWR)
    a = start(weir, "a", graph)
    wait_until(b, lambda: frames(seen) > 300)  # they are joined
    os.write(writer, bytes(500))
    fails(Ended(b), f"the sender at 127.0.0.1 is lost.*: its run has failed: read: {why}")
    fails(Ended(a), why)
    os.close(writer)


def lost(text):
    return int(re.findall(r"there(?: again, after \d+ ms)?: (\d+) messages were lost so far", text)[-1])


GOES_ON = {**entity("other", "ping"), "conditions": [{"type": "periodic", "period": "20ms"}]}, entity("others", "sink")


def beside(graph):
    """The graph, and entities that it has nothing to do with, which go on."""
    return {**graph, "entities": [*graph["entities"], *GOES_ON], "connections": [*graph["connections"], ["other.out", "others.in"]]}


def r05_the_end_leaves_no_connection_though_both_runs_go_on(weir):
    to = address()
    b = start(weir, "b", beside(chain(receive(to), SINK)))
    few = {**entity("source", "ping"), "conditions": [{"type": "count", "count": 10}, {"type": "periodic", "period": "50ms"}]}
    a = start(weir, "a", beside(chain(few, send(to))))
    wait_until(a, lambda: sockets(a))  # half a second long
    wait_until(a, lambda: not sockets(a))
    host, port = to.split(":")
    wait_until(b, lambda: (host, int(port)) not in listening(b))
    for child in (a, b):
        child.send_signal(signal.SIGINT)
    a, b = Ended(a), Ended(b)
    assert (a.code, b.code) == (130, 130) and a.counts("send")[0] == b.counts("end")[0] == 10, (a, b)


def r06_a_receiver_that_comes_back_goes_on(weir):
    """wait: the input waits; drop: what comes meanwhile is dropped, and counts as lost."""
    for way in ("wait", "drop"):
        a, b, to = running(weir, sender={"on_lost": way})
        b.kill()
        b.communicate()
        again, seen = FOLDER / "again", FOLDER / "seen"
        again.unlink(missing_ok=True)
        b = start(weir, "b", chain(receive(to), entity("end", "frames_write", path=str(again))))
        wait_until(b, lambda: frames(again) > 1000000)
        a.send_signal(signal.SIGINT)
        a, b = Ended(a), Ended(b)
        assert (a.code, b.code) == (130, 0), (way, a, b)
        # The first receiver may have emitted some that it could not confirm: those count as lost, too. Of those that it has
        # confirmed one may have been in the queue, and one not written yet.
        arrived = b.counts("end")[0]
        assert a.counts("send")[0] - lost(a.stderr) - arrived <= frames(seen) // 100000 + 2, (way, a, b)  # one waits, one is written
        assert a.counts("send")[0] >= lost(a.stderr) + arrived, (way, a, b)


def r06_a_sender_that_comes_back_goes_on(weir):
    a, b, to = running(weir, receiver={"on_lost": "wait"})
    a.kill()
    a.communicate()
    a = Ended(start(weir, "a", chain(counted("ping", 50, bytes=100000), send(to))))
    b = Ended(b)
    assert (a.code, b.code) == (0, 0) and "another sender at 127.0.0.1 is there" in b.stderr, (a, b)
    assert b.counts("end")[0] > 50 and "is lost after" in b.stderr, b


WRONG_SUM = b"weirmet2" + struct.pack("<IIQQq", 0, 100, 0, 0, 0) + bytes(100)  # of a frame with an address of 100 bytes, which is none


def slow(period):
    """A sink that takes its time, and where its frames of 100 bytes are seen."""
    seen = FOLDER / "seen"
    seen.unlink(missing_ok=True)
    conditions = [{"type": "periodic", "period": period}, {"type": "message_available", "port": "in"}]
    return {**entity("end", "frames_write", path=str(seen)), "conditions": conditions}, seen


def r06_who_fails_when_its_sender_is_lost_takes_no_other(weir):
    """The receiver still emits what had come when another sender connects."""
    to, (end, seen) = address(), slow("100ms")
    b = start(weir, "b", chain(receive(to, credits=16), end))
    a = start(weir, "a", chain(beating(bytes=100), send(to)))
    wait_until(b, lambda: frames(seen) > 300)
    a.kill()
    c = start(weir, "c", chain(counted("ping", 5, bytes=100), send(to, timeout="5s")))
    b = Ended(b)
    fails(b, "the sender at 127.0.0.1 is lost after [1-9]\\d* messages, before its end")
    assert b.counts("receive")[1] == b.counts("end")[0], b
    c.kill()


def r05_r06_who_has_all_ends_well_without_its_sender(weir):
    """The end was told, and all before it has come, when the sender is lost; what waits is emitted."""
    to, (end, seen) = address(), slow("200ms")
    b = start(weir, "b", chain(receive(to, credits=16), end))
    a = start(weir, "a", chain(counted("ping", 14, bytes=100), send(to)))
    wait_until(b, lambda: frames(seen) > 1000)  # two seconds after the first one came
    a.kill()
    b = Ended(b)
    assert b.code == 0 and b.counts("end")[0] == 14, b


def r06_what_is_not_confirmed_at_the_end_counts_as_lost(weir):
    to, (end, seen) = address(), slow("1s")
    b = start(weir, "b", chain(receive(to, credits=16), end))
    a = start(weir, "a", chain(counted("ping", 10, bytes=100), send(to, on_lost="drop")))
    wait_until(b, lambda: frames(seen) > 100)
    b.kill()
    a = Ended(a)
    assert a.code == 0, a
    found = re.search("the input has ended, and the receiver at .* is away\n.*: ([0-9]+) of 10 messages were lost", a.stderr)
    assert found and 6 <= int(found[1]) <= 10, a  # one a second was emitted


def e06_r06_what_is_no_weir_harms_nothing(weir):
    """A scanner of ports, and a client of HTTP, at a receiver that waits; then the sender comes."""
    to = address()
    b = start(weir, "b", chain(receive(to), SINK))
    wait_until(b, lambda: tuple(to.split(":")) in [(host, str(port)) for host, port in listening(b)])
    for host, port in listening(b):  # those of the engine, too
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(64), bytes(range(256)) * 4, b"weirmet2" + bytes(32), b"weirmet2" + b"\xff" * 500, WRONG_SUM):
            assert not connect(host, port, said), (host, port, said, b.poll())
    a = Ended(start(weir, "a", chain(counted("ping", 100), send(to))))
    b = Ended(b)
    assert (a.code, b.code) == (0, 0) and b.counts("end")[0] == 100, (a, b)
    assert "127.0.0.1 connected, and is no remote_send" in b.stderr, b


def sockets(child):
    """Those of TCP that a process has: rows of /proc/PID/net/tcp."""
    own = set()
    for path in pathlib.Path(f"/proc/{child.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            own.add(os.readlink(path))
    rows = [row.split() for row in pathlib.Path(f"/proc/{child.pid}/net/tcp").read_text().splitlines()[1:]]
    return [row for row in rows if f"socket:[{row[9]}]" in own]


def listening(child):
    """The addresses and ports at which a process listens."""
    rows = [row[1].split(":") for row in sockets(child) if row[3] == "0A"]
    return [(socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)) for host, port in rows]


def connect(host, port, said):
    """None, if it went well."""
    try:
        with socket.create_connection((host, port), 5) as client:
            client.sendall(said)
            client.settimeout(0.2)
            try:
                client.recv(100)
            except OSError:
                pass
            return None
    except OSError as error:
        return error


def e06_a_server_that_is_no_receiver_is_named(weir):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        a = start(weir, "a", chain(beating(), send(f"127.0.0.1:{listener.getsockname()[1]}", timeout="300ms")))
        fails(Ended(a), "no receiver at 127.0.0.1:\\d+ for \\d+ ms \\(.*\\): start it, or see 'timeout'")


def e06_what_cannot_be_is_refused_in_one_line(weir):
    to = address()
    for graph, pattern in (
        (chain(beating(), send("nobody")), "no address of 'nobody': write HOST:PORT, or name it"),
        (chain(beating(), send(to, timeout="50ms")), f"no receiver at {to} for \\d+ ms \\(nothing listens there\\)"),
        (chain(receive("192.0.2.1:9"), SINK), "cannot listen at 192.0.2.1:9"),
        (chain(receive("nobody"), SINK), "no address of 'nobody'"),
        (chain(receive(to, credits=0), SINK), "credits"),
        (chain(receive(to, place="device"), entity("write", "png_write", directory="out")), "receive.out -> write.in: .*device"),
        (chain(receive(to, place="here"), SINK), "place"),
    ):
        ended = Ended(start(weir, "bad", graph))
        assert ended.code != 0, (pattern, ended)
        assert re.search(pattern, ended.stderr), (pattern, ended)


def e06_what_a_link_waits_for_is_explained(weir):
    ended = Ended(start(weir, "b", chain(receive(address()), SINK), "--explain-after", "100ms", "--duration", "500ms"))
    assert "receive waits: remote_input on out: nothing comes from the sender: has waited " in ended.stderr, ended
    ended = Ended(start(weir, "a", chain(beating(), send(address(), timeout="1s")), "--explain-after", "100ms"))
    assert "send waits: remote_output on in: the receiver has no room yet, or is not there: has waited " in ended.stderr, ended


def e06_two_receivers_at_one_address_are_refused(weir):
    to = address()
    b = start(weir, "b", chain(receive(to), SINK))
    host, port = to.split(":")
    wait_until(b, lambda: not connect(host, int(port), b""))
    fails(Ended(start(weir, "c", chain(receive(to), SINK))), f"cannot listen at {to}: the address is in use")
    b.kill()


def e06_a_second_sender_is_refused(weir):
    a, b, to = running(weir)
    fails(Ended(start(weir, "c", chain(beating(), send(to, timeout="500ms")))), "no receiver at .*it refused: it has a sender")
    a.send_signal(signal.SIGINT)
    assert Ended(b).code == 0


def e06_a_machine_that_peers_leaves_out_is_refused(weir):
    to = address()
    b = start(weir, "b", chain(receive(to, peers="10.0.0.1, 10.0.0.2"), SINK))
    fails(Ended(start(weir, "a", chain(beating(), send(to, timeout="1s")))), "no receiver at")
    b.kill()


def e06_peers_are_those_of_the_machine_at_any_listener(weir):
    """At [::] one of IPv4 has a longer name."""
    to = address()
    b = start(weir, "b", chain(receive(f"[::]:{to.split(':')[1]}", peers="127.0.0.1"), SINK))
    a = Ended(start(weir, "a", chain(counted("ping", 10), send(to, timeout="5s"))))
    assert (a.code, Ended(b).code) == (0, 0), a


def e06_a_message_larger_than_the_places_is_named(weir):
    to = address()
    b = start(weir, "b", chain(receive(to, max_message=1000), SINK))
    a = Ended(start(weir, "a", chain(beating(bytes=1001), send(to))))
    fails(a, "a message of 1001 bytes is larger than the receiver's places, 1000: raise 'max_message'")
    fails(Ended(b), "the sender .* is lost after 0 messages, before its end: a message of 1001 bytes is larger")


def r06_names_come_from_the_environment(weir):
    to = address()
    named = {**process.environment(), "WEIR_REMOTE_EDGES": to}
    b = start(weir, "b", chain(receive("edges"), SINK), env=named)
    a = Ended(start(weir, "a", chain(counted("ping", 10), send("edges")), env=named))
    assert (a.code, Ended(b).code) == (0, 0), a


if __name__ == "__main__":
    process.main(
        [
            e05_r02_r05_all_that_is_sent_arrives,
            r06_either_side_may_start_first,
            t10_r02_pictures_are_those_of_one_process,
            r01_r02_three_processes_in_a_row,
            r01_a_slow_receiver_holds_the_sender_back,
            r04_processes_of_one_machine_share_memory_if_ucx_may,
            r03_processes_of_different_rights_share_none,
            r04_who_spins_looks_while_nothing_comes,
            e06_r06_a_killed_side_is_named,
            s07_r05_a_drain_of_the_sender_ends_both,
            r05_a_drain_without_a_receiver_drops_what_may_be_dropped,
            r05_a_receiver_that_is_stopped_says_so,
            r05_an_error_of_the_receiver_is_told_with_its_text,
            r05_an_error_of_another_entity_is_told_with_its_text,
            r05_the_end_leaves_no_connection_though_both_runs_go_on,
            r06_a_receiver_that_comes_back_goes_on,
            r06_a_sender_that_comes_back_goes_on,
            r06_who_fails_when_its_sender_is_lost_takes_no_other,
            r05_r06_who_has_all_ends_well_without_its_sender,
            r06_what_is_not_confirmed_at_the_end_counts_as_lost,
            e06_r06_what_is_no_weir_harms_nothing,
            e06_a_server_that_is_no_receiver_is_named,
            e06_what_cannot_be_is_refused_in_one_line,
            e06_what_a_link_waits_for_is_explained,
            e06_two_receivers_at_one_address_are_refused,
            e06_a_second_sender_is_refused,
            e06_a_machine_that_peers_leaves_out_is_refused,
            e06_peers_are_those_of_the_machine_at_any_listener,
            e06_a_message_larger_than_the_places_is_named,
            r06_names_come_from_the_environment,
        ]
    )
