"""The checks of nsight.py accept an export of a good run, and refuse each of the broken ones below. Needs no tool."""
import pathlib
import sqlite3
import sys
import tempfile

import nsight
from nsight_export import CATEGORY, DOMAIN, MARK, PUSH_POP, START_END, Export

PROCESS = 7 << 24
LOOP, FIRST, SECOND = PROCESS | 10, PROCESS | 11, PROCESS | 12  # threads
COUNTED = {"a": 2, "b": 2}
CATEGORIES = ["tick", "ready", "sleep", "signal", "wait", "replay", "steal", "run"]
MS = 1_000_000

# (kind, category, name, begin, end, thread, payload)
RUN = (START_END, "run", "run", 0, 100 * MS, LOOP, 2)
TICKS = [
    (PUSH_POP, "tick", name, begin * MS, (begin + 1) * MS, FIRST, number << 40 | tick)
    for begin, (number, name, tick) in zip((10, 12, 14, 16), ((0, "a", 0), (1, "b", 0), (0, "a", 1), (1, "b", 1)))
]
READY = [(MARK, "ready", name, begin - 1000, None, thread, payload >> 40 << 40) for _, _, name, begin, _, thread, payload in TICKS]
SLEEP = (PUSH_POP, "sleep", "sleep", 5 * MS, 50 * MS, SECOND, 1)
WAIT = (MARK, "wait", "b waits: message_available: too few messages", 9 * MS, None, FIRST, 1 << 40)
SIGNAL = (START_END, "signal", "b signal", 11 * MS, 12 * MS, FIRST, 1 << 40)
GOOD = [RUN, *TICKS, *READY, SLEEP, WAIT, SIGNAL]
THREADS = {LOOP: "weir:loop", FIRST: "weir:0", SECOND: "weir:1", 9 << 24 | 1: "weir:5"}  # the last: another process
WORK = [(tick[3] + 500_000, tick[3] + 20 * MS, 2 * MS) for tick in TICKS]  # enqueued, begin, duration


def write(path, events, threads, work):
    file = sqlite3.connect(path)
    file.executescript("""
        CREATE TABLE NVTX_EVENTS (start, end, eventType, category, text, textId, globalTid, endGlobalTid, domainId, uint64Value);
        CREATE TABLE StringIds (id, value); CREATE TABLE ThreadNames (nameId, globalTid);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, correlationId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, globalTid, correlationId);
    """)
    insert = "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, NULL, ?, NULL, 1, ?)"
    file.execute(insert, (0, None, DOMAIN, None, "weir", LOOP, None))
    for number, name in enumerate(CATEGORIES, 1):
        file.execute(insert, (0, None, CATEGORY, number, name, LOOP, None))
    for kind, category, name, begin, end, thread, payload in events:
        file.execute(insert, (begin, end, kind, CATEGORIES.index(category) + 1, name, thread, payload))
    for number, (thread, name) in enumerate(threads.items()):
        file.execute("INSERT INTO StringIds VALUES (?, ?)", (number, name))
        file.execute("INSERT INTO ThreadNames VALUES (?, ?)", (number, thread))
    for number, (enqueued, begin, duration) in enumerate(work):
        file.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?)", (enqueued, FIRST, number))
        file.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 1, ?)", (begin, begin + duration, number))
    file.commit()
    file.close()


def judge(events=GOOD, threads=THREADS, work=WORK):
    """Raises AssertionError if the checks refuse the export."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "export.sqlite"
        write(path, events, threads, work)
        export = Export(path)
        nsight.check_all(export, COUNTED, ["b"], 2)
        nsight.check_gpu(export, {"a": 4 * MS, "b": 4 * MS})


def changed(event, **fields):
    """GOOD with one event in another form."""
    names = ("kind", "category", "name", "begin", "end", "thread", "payload")
    new = tuple(fields.get(name, value) for name, value in zip(names, event))
    return [new if one == event else one for one in GOOD]


def without(event):
    return [one for one in GOOD if one != event]


tick, last = TICKS[0], TICKS[3]
BROKEN = {
    "a tick without a range": {"events": without(tick)},
    "a tick twice": {"events": GOOD + [(*last[:3], 60 * MS, 61 * MS, *last[5:])]},
    "a tick of another number": {"events": changed(tick, payload=5)},
    "a tick under another name": {"events": changed(tick, name="b")},
    "a tick without an end": {"events": changed(last, end=None)},
    "a tick on the loop's thread": {"events": changed(tick, thread=LOOP)},
    "a range of no entity": {"events": GOOD + [(PUSH_POP, "tick", "c", 70 * MS, 71 * MS, FIRST, 2 << 40)]},
    "no ready mark": {"events": without(READY[0])},
    "a ready mark after its tick": {"events": changed(READY[3], begin=80 * MS)},
    "a ready mark of another entity": {"events": changed(READY[0], payload=1 << 40)},
    "no sleep": {"events": without(SLEEP)},
    "a sleep of another worker": {"events": changed(SLEEP, payload=0)},
    "a sleep during a tick": {"events": changed(SLEEP, thread=FIRST, payload=0)},
    "no wait": {"events": without(WAIT)},
    "a wait of another entity": {"events": changed(WAIT, payload=0)},
    "no run": {"events": without(RUN)},
    "a signal without an end": {"events": changed(SIGNAL, end=None)},
    "two signals of an entity at once": {"events": GOOD + [(*SIGNAL[:3], 11_500_000, 13 * MS, *SIGNAL[5:])]},
    "no signal of a gated entity": {"events": without(SIGNAL)},
    "a signal under another name": {"events": changed(SIGNAL, name="a signal")},
    "a worker without a name": {"threads": {LOOP: "weir:loop", FIRST: "weir:0"}},
    "GPU time 6 % too long": {"work": [(at, begin, int(length * 1.06)) for at, begin, length in WORK]},
    "work enqueued between the ticks": {"work": [(at + MS, begin, length) for at, begin, length in WORK]},
    "no work on the GPU": {"work": []},
}


def main():
    judge()
    judge(work=[(at, begin, int(length * 1.04)) for at, begin, length in WORK])
    accepted = []
    for name, parts in BROKEN.items():
        try:
            judge(**parts)
            accepted.append(name)
        except AssertionError as refused:
            print(f"{name}: {refused}")
    for name in accepted:
        print(f"FAILED  {name} is accepted")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
