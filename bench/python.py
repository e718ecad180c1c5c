"""The cost of a tick in Python, beside threads with queue.Queue and tasks with asyncio.Queue, and what a chain of operators in C
keeps of its rate beside it. No pass or fail.

    python3 bench/python.py [--quick] [--seconds S]        with the package weir-gpu installed

--seconds: how long each run with the chain in C takes.
"""

import argparse
import asyncio
import queue
import statistics
import threading
import time

import weir

parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true")
parser.add_argument("--seconds", type=float)
given = parser.parse_args()
QUICK = given.quick
TICKS = 20_000 if QUICK else 400_000
SECONDS = given.seconds or (0.1 if QUICK else 2.0)
ROUNDS = 2 if QUICK else 7
COUNT = TICKS // 8  # messages beside queues, which are slow


class Emits:
    outputs = ["out"]
    parameters = {"count": TICKS}

    def start(self, ctx):
        self.left = self.count

    def compute(self, ctx):
        ctx.emit("out", self.value)
        self.left -= 1
        if not self.left:
            ctx.finish()


@weir.operator
class EmitsEmpty(Emits):
    value = None


@weir.operator
class EmitsObject(Emits):
    value = "text"


@weir.operator
class EmitsArray(Emits):
    value = bytearray(64)

    def start(self, ctx):
        super().start(ctx)
        self.value = memoryview(bytearray(64))


@weir.operator
class Takes:
    inputs = ["in"]

    def compute(self, ctx):
        ctx.receive("in")


@weir.operator
class Forever(EmitsObject):
    def compute(self, ctx):
        ctx.emit("out", self.value)


def chain(source, sink, prefix, capacity=64):
    first, last = f"{prefix}1", f"{prefix}2"
    return {"weir": 1, "entities": [{"name": first, "operator": source},
                                    {"name": last, "operator": sink, "ports": {"in": {"capacity": capacity}}}],
            "connections": [[f"{first}.out", f"{last}.in"]]}


def tick_ns(source, workers, capacity):
    times = []
    with weir.Graph(chain(source, "Takes", "p", capacity)) as graph:
        for _ in range(ROUNDS):
            begun = time.perf_counter_ns()
            ticks = graph.run(backend="host", workers=workers).ticks
            times.append((time.perf_counter_ns() - begun) / ticks)
    return min(times), statistics.median(times)


def rate(graph, workers, entity):
    """Ticks per second of an entity."""
    with weir.Graph(graph) as made:
        outcome = made.run(backend="host", workers=workers, max_duration=SECONDS)
        return made.counts()["entities"][entity]["ticks"] / outcome.duration


def together(*chains):
    return {"weir": 1, "entities": [e for c in chains for e in c["entities"]],
            "connections": [pair for c in chains for pair in c["connections"]]}


def beside():
    """The C chain's rate alone, beside another C chain and beside the Python chain; rounds alternate."""
    alone = chain("ping", "sink", "c")
    other = together(alone, chain("ping", "sink", "o"))
    short, long = (together(alone, chain("Forever", "Takes", "p", capacity)) for capacity in (1, 64))
    cases = [(alone, 1), (alone, 2), (other, 2), (short, 2), (long, 2)]
    rows = [[rate(graph, workers, "c2") for graph, workers in cases] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*rows)]


class Passes:
    inputs, outputs = ["in"], ["out"]

    def compute(self, ctx):
        ctx.emit("out", ctx.receive("in"))


def stages_ns(capacity, count):
    """ns a message from source to sink, through `count` operators."""
    with weir.Graph() as graph:
        at = graph.add(EmitsArray, count=COUNT)
        for each in [Passes] * (count - 2) + [Takes]:
            at = graph.connect(at, graph.add(each), capacity=capacity)
        return graph.run(backend="host").duration / COUNT * 1e9


def threads_ns(capacity, count):
    """The same with a thread for each stage and a queue.Queue between two."""
    queues = [queue.Queue(capacity) for _ in range(count - 1)]
    value = memoryview(bytearray(64))

    def source():
        for _ in range(COUNT):
            queues[0].put(value)
        queues[0].put(None)

    def stage(own, following):
        while (taken := own.get()) is not None:
            if following:
                following.put(taken)
        if following:
            following.put(None)

    threads = [threading.Thread(target=source), *(threading.Thread(target=stage, args=pair) for pair in zip(queues, [*queues[1:], None]))]
    begun = time.perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter_ns() - begun) / COUNT


async def through_weir(count):
    """ns a message from push_async through an entity of `pass` to async for."""
    with weir.Graph() as graph:
        entity = graph.add("pass")
        inlet, outlet = graph.inlet(entity), graph.outlet(entity)
        graph.start(backend="host", workers=1)
        return await tasks_ns(count, inlet.push_async, outlet.take_async)


async def through_queues(count):
    """The same with a task that passes on between two asyncio.Queue(1)."""
    first, second = asyncio.Queue(1), asyncio.Queue(1)

    async def passes():
        for _ in range(count):
            await second.put(await first.get())

    passing = asyncio.create_task(passes())
    found = await tasks_ns(count, first.put, second.get)
    await passing
    return found


async def tasks_ns(count, put, get):
    async def feed():
        for i in range(count):
            await put(i)

    begun = time.perf_counter_ns()
    feeding = asyncio.create_task(feed())
    for _ in range(count):
        await get()
    await feeding
    return (time.perf_counter_ns() - begun) / count


def queues():
    """(what, ns with weir, ns with queues): least of rounds that alternate."""
    pairs = [(f"{count} stages, capacity {capacity}", lambda c=capacity, n=count: stages_ns(c, n), lambda c=capacity, n=count: threads_ns(c, n))
             for count in (2, 5) for capacity in (1, 64)]
    pairs.append(("asyncio, capacity 1", lambda: asyncio.run(through_weir(COUNT // 5)), lambda: asyncio.run(through_queues(COUNT // 5))))
    for what, weirs, others in pairs:
        rounds = [(weirs(), others()) for _ in range(min(ROUNDS, 3))]
        yield (what, *(min(column) for column in zip(*rounds)))


CASES = ["alone, 1 worker", "alone, 2 workers", "beside another C chain, 2 workers",
         "beside the Python chain, capacity 1, 2 workers", "beside the Python chain, capacity 64, 2 workers"]


def main():
    print("Python source -> Python sink, ns per tick, least and median")
    for source in ("EmitsEmpty", "EmitsObject", "EmitsArray"):
        for workers in (1, 2):
            for capacity in (1, 64):
                least, median = tick_ns(source, workers, capacity)
                print(f"  {source:12} {workers} workers, capacity {capacity:2}: {least:6.0f} {median:6.0f}")
    print("arrays through Python stages, ns a message: weir, threads with queue.Queue or tasks with asyncio.Queue, their ratio")
    for what, own, other in queues():
        print(f"  {what:24} {own:9,.0f} {other:9,.0f}  {own / other:.2f}")
    print("C chain ping -> sink, messages per second; parts of `alone, 2 workers` and of `beside another C chain`")
    rates = beside()
    for name, found in zip(CASES, rates):
        print(f"  {name:48} {found:12,.0f}  {found / rates[1]:.2f}  {found / rates[2]:.2f}")


main()
