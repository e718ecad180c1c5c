"""The memory of a run in Python does not grow with its messages: arrays from operator to operator, through asyncio, results of futures
and of async computes.

    flat.py [MESSAGES [KIND]...]        prints a line for each kind; exit code 1 if one grew

The resident memory is looked at after a quarter of the messages and at the end, by the receiver.
"""

import asyncio
import concurrent.futures
import gc
import os
import sys
import time

import numpy as np

import weir

PAGE = os.sysconf("SC_PAGE_SIZE")
ALLOWED = 2 << 20  # bytes, of what the allocators and the collector keep: 10^6 messages that leak 3 bytes each are more


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


class Numbers:
    """Emits new arrays."""

    outputs = ["out"]

    def __init__(self, count):
        self.count = count

    def compute(self, ctx):
        ctx.emit("out", np.full(16, ctx.tick))
        if ctx.tick + 1 == self.count:
            ctx.finish()


class Last:
    """Checks each array, and notes the memory on the way."""

    inputs = ["in"]

    def __init__(self, count):
        self.early, self.at = count // 4, 0

    def compute(self, ctx):
        assert np.asarray(ctx.receive("in"))[0] == self.at
        self.at += 1
        if self.at == self.early:
            self.before = resident()


class InPool:
    """Emits a future of each array, which a thread ends."""

    inputs, outputs = [weir.Port("in", capacity=16)], ["out"]

    def start(self, ctx):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def compute(self, ctx):
        ctx.emit("out", self.pool.submit(np.copy, np.asarray(ctx.receive("in"))))

    def stop(self, ctx):
        self.pool.shutdown()


class Awaited:
    """An async compute."""

    inputs, outputs = [weir.Port("in", capacity=16)], ["out"]

    async def compute(self, ctx):
        await asyncio.sleep(0)
        return np.copy(np.asarray(ctx.receive("in")))


def chain(count, *between):
    with weir.Graph() as graph:
        at, last = graph.add(Numbers(count)), Last(count)
        for operator in between:
            at = graph.connect(at, graph.add(operator, max_in_flight=8))
        graph.connect(at, graph.add(last), capacity=16)
        graph.run(backend="host")
    return last.before


async def through_asyncio(count):
    early = count // 4
    with weir.Graph() as graph:
        entity = graph.add("pass")
        inlet, outlet = graph.inlet(entity), graph.outlet(entity)

        async def feed():
            for i in range(count):
                await inlet.push_async(np.full(16, i))
            inlet.close()

        graph.start(backend="host", workers=1)
        feeding, at = asyncio.create_task(feed()), 0
        async for message in outlet:
            assert np.asarray(message)[0] == at
            at += 1
            if at == early:
                before = resident()
        await feeding
        await graph.wait_async()
    return before


KINDS = {
    "arrays": chain,
    "push_async": lambda count: asyncio.run(through_asyncio(count)),
    "futures": lambda count: chain(count, InPool()),
    "async computes": lambda count: chain(count, Awaited()),
}


def main(count="100000", *kinds):
    grew = False
    for kind in kinds or KINDS:
        begun = time.perf_counter()
        before = KINDS[kind](int(count))
        spent, growth = time.perf_counter() - begun, resident() - before
        print(f"{kind:15} {int(count):,} messages, {spent * 1e6 / int(count):.1f} us each, memory {before >> 10} KiB {growth / 1024:+.0f}", flush=True)
        grew |= growth > ALLOWED
    return grew


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
