"""remote/: two processes of two network namespaces, between which a relay delays, throttles, stalls and cuts. Needs root, ip and /dev/net/tun.

network.py WEIR FOLDER PLUGIN: FOLDER is scratch. The relay carries all ports, also those that the engine opens itself: each namespace has
one interface, whose packets this program reads and writes. Skipped with a line where that cannot be had.
"""
import collections
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import processes
from processes import Ended, SINK, beating, chain, counted, entity, frames, lost, receive, resident, send, start, wait_until
from silence import EITHER, SILENT, named_after

NAMES = [f"weir{os.getpid()}{side}" for side in "ab"]
ADDRESSES = ["10.213.0.1", "10.213.0.2"]
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
QUEUE = 150000  # bytes that wait in one direction; a packet with which there are more is dropped, as by a router


class Relay(threading.Thread):
    """Between two descriptors of packets. delay: seconds; rate: bytes/s; stalls: keeps what comes; cut: drops it."""

    def __init__(self, ends):
        super().__init__(daemon=True)
        self.ends, self.over = ends, False
        self.restore()

    def restore(self):
        self.delay, self.rate, self.stalls, self.cut = 0, None, False, False

    def run(self):
        waiting, held, free = [collections.deque(), collections.deque()], [0, 0], [0, 0]
        while not self.over:
            for at in select.select(self.ends, [], [], 0.002)[0]:
                way, packet = self.ends.index(at), os.read(at, 65536)
                if not self.cut and held[way] + len(packet) <= QUEUE:
                    held[way] += len(packet)
                    waiting[way].append((time.monotonic() + self.delay, packet))
            for way, queue in enumerate(waiting):
                while queue and not self.stalls and max(queue[0][0], free[way]) <= time.monotonic():
                    packet = queue.popleft()[1]
                    held[way] -= len(packet)
                    if self.cut:
                        continue
                    if self.rate:
                        free[way] = max(free[way], time.monotonic() - 0.01) + len(packet) / self.rate
                    os.write(self.ends[1 - way], packet)


def run(*words):
    subprocess.run(words, check=True, capture_output=True)


def make_end(name, address):
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    run("ip", "netns", "add", name)
    run("ip", "link", "set", name, "netns", name)
    for words in (("addr", "add", f"{address}/24", "dev", name), ("link", "set", name, "up"), ("link", "set", "lo", "up")):
        run("ip", "-n", name, *words)
    return end


def inside(weir, name):
    """The command, in that namespace."""
    path = processes.FOLDER / name
    path.write_text(f'#!/bin/sh\nexec ip netns exec {name} {weir} "$@"\n')
    path.chmod(0o755)
    return str(path)


def pair(weir, sender, receiver, source=None, behind=None, **more):
    """Joined over the relay, and some frames have come. more: of how the sender is started."""
    seen = processes.FOLDER / "seen"
    seen.unlink(missing_ok=True)
    relay.restore()
    behind = behind or entity("end", "frames_write", path=str(seen))
    b = start(inside(weir, NAMES[1]), "b", chain(receive(f"{ADDRESSES[1]}:9000", **receiver), behind))
    a = start(inside(weir, NAMES[0]), "a", chain(source or beating(bytes=100000), send(f"{ADDRESSES[1]}:9000", **sender)), **more)
    wait_until(b, lambda: frames(seen) > 300000)
    return a, b, seen


def all_arrives(weir, change, count, **parameters):
    """All of `count` frames, while the relay is so from the fourth on."""
    a, b, seen = pair(weir, parameters, {**parameters, "credits": 16}, source=counted("ping", count, bytes=100000))
    change()
    for ended in (Ended(a), Ended(b)):
        assert ended.code == 0 and not ended.stderr, ended
    assert frames(seen) == count * 100000, frames(seen)


def r02_r07_a_slow_way_loses_nothing(weir):
    def delays():
        relay.delay = 0.05

    all_arrives(weir, delays, 300, keepalive="3s")


def r02_r07_a_narrow_way_loses_nothing(weir):
    """300 kB a second: 16 frames of 100 kB are under way for longer than `keepalive`, and signs of life are not behind them."""

    def throttles():
        relay.rate = 3e5

    all_arrives(weir, throttles, 30, keepalive="3s")


def r02_r07_a_way_that_stalls_for_less_than_keepalive_loses_nothing(weir):
    def stalls():
        for _ in range(3):
            relay.stalls = True
            time.sleep(0.5)
            relay.stalls = False
            time.sleep(0.2)

    all_arrives(weir, stalls, 2000, keepalive="3s")


def e06_r07_a_way_that_is_cut_or_stalls_is_named_by_both(weir):
    for fault in ("cut", "stalls"):
        a, b, _ = pair(weir, {"keepalive": "2s"}, {"keepalive": "2s"})
        setattr(relay, fault, True)
        print(f"{fault}: the sender names it after {named_after(a, SILENT):.2f} s, the receiver {named_after(b, SILENT):.2f} s later")


def r03_r06_r07_who_waits_goes_on_when_the_way_is_back(weir):
    """Several times: what is lost is counted alike, the memory of both sides does not grow."""
    ways = {"on_lost": "wait", "keepalive": "500ms"}
    log, memory = processes.FOLDER / "again-log", []
    with open(log, "w", encoding="utf-8") as stderr:
        a, b, seen = pair(weir, ways, {**ways, "max_message": 100000}, source=beating(bytes=100000), stderr=stderr)
    for cuts in range(5):
        relay.cut = True
        wait_until(a, lambda: log.read_text().count("no sign of life") > cuts)
        time.sleep(0.4)
        relay.restore()
        wait_until(a, lambda: log.read_text().count("is there again") > cuts)
        there = frames(seen)
        wait_until(b, lambda: frames(seen) > there + 300000)
        memory.append((resident(a), resident(b)))
    a.send_signal(signal.SIGINT)
    a, b = Ended(a), Ended(b)
    said = log.read_text()
    assert (a.code, b.code) == (130, 0), (a, said, b)
    assert said.count("is there again") >= 5, said
    assert a.counts("send")[0] == lost(said) + b.counts("end")[0], (a, said, b)
    assert lost(said) == lost(b.stderr), (said, b)
    grown = [last - first for first, last in zip(memory[0], memory[-1])]
    print(f"resident after 5 cuts: {grown[0] >> 10} KiB and {grown[1] >> 10} KiB more than after the first")
    assert max(grown) < 8 << 20, memory


def main():
    try:
        ends = [make_end(name, address) for name, address in zip(NAMES, ADDRESSES)]
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no network namespaces with a tun interface here: {error}")
        sys.exit(77)
    global relay
    relay = Relay(ends)
    relay.start()
    processes.process.main(
        [
            r02_r07_a_slow_way_loses_nothing,
            r02_r07_a_narrow_way_loses_nothing,
            r02_r07_a_way_that_stalls_for_less_than_keepalive_loses_nothing,
            e06_r07_a_way_that_is_cut_or_stalls_is_named_by_both,
            r03_r06_r07_who_waits_goes_on_when_the_way_is_back,
        ]
    )


if __name__ == "__main__":
    try:
        main()
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
