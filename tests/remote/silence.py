"""remote/: a side that is silent. A stopped process is named after `keepalive`, one that is full or idle is not; a killed one at once.

silence.py WEIR FOLDER PLUGIN [--long]: FOLDER is scratch. The times until a loss was named are printed; only a hang fails. --long: 200
processes are killed on each side, at random instants, instead of 5.
"""
import os
import random
import re
import resource
import select
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


def are_at_rest(children):
    """Each has taken the time that it needs to begin, and in half a second next to none."""
    before = [ticks_of(child) for child in children]
    time.sleep(0.5)
    return min(before) > 0 and all(ticks_of(child) - ticks <= 1 for child, ticks in zip(children, before))


def never_warns(name, operator, **parameters):
    """However long it waits for its descriptor."""
    return {**entity(name, operator, **parameters), "conditions": [{"type": "file_descriptor", "warn_after": "0s"}]}


class Frames(threading.Thread):
    """Reads frames of `ping` from a FIFO until it is closed. What is no frame, or not a later one than the one before, is a fault."""

    def __init__(self, path, size):
        super().__init__(daemon=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        self.size, self.count, self.missing, self.fault = size, 0, 0, ""
        self.reader = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
        self.pattern = bytes(range(256)) * (size // 256 + 2)

    def open(self):
        """Once there is a writer."""
        select.select([self.reader], [], [], processes.process.LIMIT)
        os.set_blocking(self.reader.fileno(), True)
        self.start()

    def run(self):
        frame, last = bytearray(self.size), -1
        while (have := self.reader.readinto(frame)) or have is None:
            while have < self.size and (more := self.reader.readinto(memoryview(frame)[have:])):
                have += more
            gap = (frame[0] - last - 1) % 256
            if have < self.size or frame != self.pattern[frame[0] : frame[0] + self.size] or gap == 255:
                self.fault = f"frame {self.count} behind {last}: {have} bytes, {frame[:8].hex()}"
                self.reader.close()  # which ends who writes
                return
            last, self.count, self.missing = frame[0], self.count + 1, self.missing + gap


LARGE = 16 << 20


def large(weir, name, way, keepalive):
    """Two processes, the first of which writes large messages all the time; the second one's log is a file."""
    to, seen, log = address(), Frames(processes.FOLDER / name, LARGE), processes.FOLDER / f"{name}-log"
    keep = {"keepalive": keepalive, "on_lost": way}
    with open(log, "w", encoding="utf-8") as stderr:
        write = entity("end", "frames_write", path=str(processes.FOLDER / name))
        b = start(weir, f"{name}-b", chain(receive(to, credits=2, **keep), write), stderr=stderr)
    a = start(weir, f"{name}-a", chain(entity("source", "ping", bytes=LARGE), send(to, **keep)))
    seen.open()
    wait_until(b, lambda: seen.count > 2 or seen.fault)
    return a, b, seen, log


def shared(child):
    """Bytes of the engine's shared memory in the process."""
    with open(f"/proc/{child.pid}/maps", encoding="utf-8") as maps:
        ranges = [line.split()[0].split("-") for line in maps if "/ucx_shm" in line or "/SYSV" in line]
    return sum(int(end, 16) - int(begin, 16) for begin, end in ranges)


def memory(children):
    """(resident, shared) of each, at the least within half a second."""
    seen = []
    for _ in range(50):
        seen.append([(processes.resident(child), shared(child)) for child in children])
        time.sleep(0.01)
    return [tuple(min(sample[n][k] for sample in seen) for k in range(2)) for n in range(len(children))]


def r03_r07_who_fails_when_its_sender_stops_in_mid_write_emits_whole_messages_alone(weir):
    random.seed(3)
    for _ in range(30 if processes.LONG else 3):
        a, b, seen, log = large(weir, "mid", "fail", "2s")
        time.sleep(random.uniform(0, 0.2))
        a.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        b.wait(processes.process.LIMIT)
        print(f"stopped in mid-write: named after {time.monotonic() - began:.2f} s of 2 s, {seen.count} frames")
        seen.join(processes.process.LIMIT)
        assert b.returncode == 1 and re.search(SILENT, log.read_text()), log.read_text()
        assert not seen.fault and not seen.missing and not seen.is_alive(), seen.fault
        a.send_signal(signal.SIGCONT)
        fails(Ended(a), EITHER)


def r03_r07_a_sender_that_was_stopped_in_mid_write_goes_on(weir):
    """Several times, and on until a stop met a write. What was half written is lost, and counted; no memory of either side stays with it."""
    random.seed(4)
    a, b, seen, log = large(weir, "again", "wait", "500ms")
    before = memory([a, b])
    n, least = 0, 30 if processes.LONG else 4
    halves = "sm" not in processes.TRANSPORTS  # by `sm` the receiver reads, and reads on
    while n < least or (halves and not seen.missing and n < least + 40):
        n += 1
        time.sleep(random.uniform(0, 0.2))
        named = len(re.findall(SILENT, log.read_text()))
        a.send_signal(signal.SIGSTOP)
        wait_until(b, lambda: len(re.findall(SILENT, log.read_text())) > named or seen.fault)
        count = seen.count
        a.send_signal(signal.SIGCONT)
        wait_until(b, lambda: seen.count > count + 3 or seen.fault)
        assert not seen.fault, seen.fault
    after = memory([a, b])
    a.send_signal(signal.SIGINT)
    a, _ = Ended(a), b.wait(processes.process.LIMIT)
    seen.join(processes.process.LIMIT)
    text = log.read_text()
    print(f"stopped {n} times in mid-write: {processes.lost(text)} lost, {seen.count} came; memory (resident, shared) {before}, then {after}")
    assert (a.code, b.returncode) == (130, 0) and not seen.fault and not seen.is_alive(), (a, text, seen.fault)
    assert a.counts("send")[0] == seen.count + processes.lost(text), (a, text)
    assert processes.lost(a.stderr) == processes.lost(text) == seen.missing, (a, text, seen.missing)
    assert seen.missing or not halves, "none was stopped in mid-write"
    for (resident_before, shared_before), (resident_after, shared_after) in zip(before, after):
        assert resident_after < resident_before + 3 * LARGE and shared_after <= shared_before, (before, after)


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
    """Two pairs, for longer than `keepalive`: one writes to a pipe that nobody reads, the other one reads from one that nobody writes
    to. What keeps them together costs next to nothing."""
    keep, fifo, rare, seen = {"keepalive": "3s"}, processes.FOLDER / "fifo", processes.FOLDER / "rare", processes.FOLDER / "seen"
    for path in (fifo, rare, seen):
        path.unlink(missing_ok=True)
    os.mkfifo(fifo)
    os.mkfifo(rare)
    reader, writer = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), os.open(rare, os.O_RDWR)
    to = address()
    idle = [
        start(weir, "idle-b", chain(receive(to, **keep), entity("end", "frames_write", path=str(seen)))),
        start(weir, "idle-a", chain(never_warns("source", "frames_read", path=str(rare), bytes=100), send(to, **keep))),
    ]
    os.write(writer, bytes(100))
    wait_until(idle[0], lambda: frames(seen) == 100)
    to = address()
    full = [
        start(weir, "full-b", chain(receive(to, credits=2, **keep), never_warns("end", "frames_write", path=str(fifo))), "--workers", "1"),
        start(weir, "full-a", chain(processes.counted("ping", 200, bytes=100000), send(to, **keep)), "--workers", "1"),
    ]
    select.select([reader], [], [], processes.process.LIMIT)
    wait_until(full[0], lambda: are_at_rest(idle + full))  # however long they take to begin
    before = [ticks_of(child) for child in idle + full]
    time.sleep(4)
    spent = [ticks_of(child) - first for child, first in zip(idle + full, before)]
    still = [child.poll() is None for child in idle + full]
    os.write(writer, bytes(100))
    os.close(writer)
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
                other.wait(5 if side == "a" else processes.process.LIMIT)
            except subprocess.TimeoutExpired:  # it waits for a first sender: it shall get one
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
            r03_r07_who_fails_when_its_sender_stops_in_mid_write_emits_whole_messages_alone,
            r03_r07_a_sender_that_was_stopped_in_mid_write_goes_on,
            r07_zero_is_never,
            e06_r06_a_receiver_without_descriptors_waits_for_one,
            e06_r06_killed_at_any_moment_a_side_is_named,
        ]
    )
