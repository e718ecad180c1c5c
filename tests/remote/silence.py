"""remote/: a side that is silent. A stopped process is named after `keepalive`, one that is full or idle is not; a killed one at once.

silence.py WEIR FOLDER PLUGIN [--long]: FOLDER is scratch. The times until a loss was named are printed; only a hang fails. --long: 200
processes are killed on each side, at random instants, instead of 5.
"""
import os
import random
import resource
import signal
import subprocess
import threading
import time

import processes
from processes import Ended, SINK, address, beating, chain, entity, fails, frames, receive, running, send, start, wait_until

SILENT = "is lost after \\d+ messages.*: no sign of life came from it for as long as 'keepalive' says"
EITHER = "is lost after \\d+ messages"


def named_after(other, pattern):
    """Waits until it has failed with that line; gives the seconds."""
    began = time.monotonic()
    other.wait(processes.process.LIMIT)
    took = time.monotonic() - began
    fails(Ended(other), pattern)
    return took


def ticks_of(child):
    """Processor time of the process, in clock ticks."""
    with open(f"/proc/{child.pid}/stat") as stat:
        return sum(int(number) for number in stat.read().rsplit(")", 1)[1].split()[11:13])


def r07_a_stopped_side_is_named(weir):
    keep = {"keepalive": "2s"}
    for side in "ab":
        a, b, _ = running(weir, sender=keep, receiver=keep)
        stopped, other = (a, b) if side == "a" else (b, a)
        stopped.send_signal(signal.SIGSTOP)
        print(f"{'the sender' if side == 'a' else 'the receiver'} was stopped: named after {named_after(other, SILENT):.2f} s")
        stopped.send_signal(signal.SIGCONT)
        fails(Ended(stopped), EITHER)  # it finds that the other one is gone


def r07_who_waits_goes_on_with_a_side_that_was_stopped(weir):
    """Both wait, twice. What was under way is lost, and counted once; the rest arrives."""
    ways = {"on_lost": "wait", "keepalive": "300ms"}
    for side in "ab":
        a, b, _ = running(weir, sender=ways, receiver=ways)
        stopped = a if side == "a" else b
        for _ in range(2):
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(1)
            stopped.send_signal(signal.SIGCONT)
            seen = frames(processes.FOLDER / "seen")
            wait_until(b, lambda: frames(processes.FOLDER / "seen") > seen + 100 * 100000)
        a.send_signal(signal.SIGINT)
        a, b = Ended(a), Ended(b)
        assert (a.code, b.code) == (130, 0), (side, a, b)
        assert a.counts("send")[0] == processes.lost(a.stderr) + b.counts("end")[0], (side, a, b)
        assert processes.lost(a.stderr) == processes.lost(b.stderr), (side, a, b)


def r07_who_is_full_or_has_nothing_to_send_is_not_silent(weir):
    """Two pairs, for longer than `keepalive`: one writes to a pipe that nobody reads, the other one's next message is due later. What
    keeps them together costs next to nothing."""
    keep, fifo, seen = {"keepalive": "3s"}, processes.FOLDER / "fifo", processes.FOLDER / "seen"
    for path in (fifo, seen):
        path.unlink(missing_ok=True)
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    to, rare = address(), processes.counted("ping", 2, bytes=100)
    rare["conditions"].append({"type": "periodic", "period": "8s"})
    idle = [
        start(weir, "idle-b", chain(receive(to, **keep), entity("end", "frames_write", path=str(seen)))),
        start(weir, "idle-a", chain(rare, send(to, **keep))),
    ]
    wait_until(idle[0], lambda: frames(seen) == 100)
    to = address()
    full = [
        start(weir, "full-b", chain(receive(to, credits=2, **keep), entity("end", "frames_write", path=str(fifo))), "--workers", "1"),
        start(weir, "full-a", chain(processes.counted("ping", 200, bytes=100000), send(to, **keep)), "--workers", "1"),
    ]
    time.sleep(2)
    before = [ticks_of(child) for child in idle + full]
    time.sleep(4)
    spent = [ticks_of(child) - first for child, first in zip(idle + full, before)]
    still = [child.poll() is None for child in idle + full]
    os.set_blocking(reader, True)
    read = 0
    while part := os.read(reader, 1 << 20):
        read += len(part)
    os.close(reader)
    for ended in [Ended(child) for child in full + idle]:
        assert ended.code == 0 and not ended.stderr, ended
    assert all(still) and read == 200 * 100000 and frames(seen) == 200, (still, read)
    assert max(spent) <= os.sysconf("SC_CLK_TCK") / 10, f"{spent} clock ticks of processor time in 4 s of nothing"


def r07_zero_is_never(weir):
    """Each says 0; a receiver that is stopped for a while is none that is lost."""
    never = {"keepalive": "0s"}
    a, b, _ = running(weir, sender=never, receiver=never)
    b.send_signal(signal.SIGSTOP)
    time.sleep(1)
    b.send_signal(signal.SIGCONT)
    a.send_signal(signal.SIGINT)
    a, b = Ended(a), Ended(b)
    assert (a.code, b.code) == (130, 0) and a.counts("send")[0] == b.counts("end")[0], (a, b)


def e06_r06_a_receiver_without_descriptors_waits_for_one(weir):
    """A connection that it cannot accept keeps it neither busy nor from its work."""
    to = address()
    b = start(weir, "b", chain(receive(to), SINK))
    wait_until(b, lambda: tuple(to.split(":")) in [(host, str(port)) for host, port in processes.listening(b)])
    most = resource.prlimit(b.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(b.pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{b.pid}/fd")), most[1]))
    before = ticks_of(b)
    a = start(weir, "a", chain(processes.counted("ping", 10), send(to)))
    time.sleep(2)
    assert a.poll() is None and b.poll() is None
    assert ticks_of(b) - before < os.sysconf("SC_CLK_TCK") / 2, "it is busy while it waits"
    resource.prlimit(b.pid, resource.RLIMIT_NOFILE, most)
    a, b = Ended(a), Ended(b)
    assert (a.code, b.code) == (0, 0) and b.counts("end")[0] == 10, (a, b)


def r07_a_keepalive_that_is_too_short_is_refused(weir):
    ended = Ended(start(weir, "bad", chain(beating(), send(address(), keepalive="50ms"))))
    fails(ended, "'keepalive' is shorter than 100 ms")


def e06_r06_killed_at_any_moment_a_side_is_named(weir):
    """From before it has loaded the engine until it runs: named at once; where no link was made yet, a sender comes later."""
    random.seed(7)
    slowest = {True: 0, False: 0}
    for side in "ab":
        for _ in range(100 if processes.LONG else 5):
            to = address()
            b = start(weir, "b", chain(receive(to), SINK))
            a = start(weir, "a", chain(beating(bytes=10000), send(to, timeout="1s")))
            time.sleep(random.uniform(0, 0.4))
            killed, other = (a, b) if side == "a" else (b, a)
            killed.kill()
            killed.communicate()
            began = time.monotonic()
            try:
                other.wait(5)
            except subprocess.TimeoutExpired:  # it waits for a first sender: it shall get one
                assert side == "a", Ended(other)
                late = Ended(start(weir, "a", chain(processes.counted("ping", 3), send(to))))
                assert late.code == 0 and Ended(other).code == 0, (late, Ended(other))
                continue
            took, ended = time.monotonic() - began, Ended(other)
            fails(ended, f"(no receiver at|{EITHER})")
            linked = "is lost after" in ended.stderr
            slowest[linked] = max(slowest[linked], took)
    print(f"killed: named after {slowest[True]:.2f} s at most; {slowest[False]:.2f} s where there was no link yet, of a 'timeout' of 1 s")


if __name__ == "__main__":
    processes.process.main(
        [
            r07_a_stopped_side_is_named,
            r07_who_waits_goes_on_with_a_side_that_was_stopped,
            r07_who_is_full_or_has_nothing_to_send_is_not_silent,
            r07_zero_is_never,
            r07_a_keepalive_that_is_too_short_is_refused,
            e06_r06_a_receiver_without_descriptors_waits_for_one,
            e06_r06_killed_at_any_moment_a_side_is_named,
        ]
    )
