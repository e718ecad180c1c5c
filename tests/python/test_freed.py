"""Results of futures, coroutines and async computes are freed when the last receiver is done: not by the cyclic collector, which may
come many frames later.
"""

import asyncio
import concurrent.futures
import gc
import weakref

import numpy as np
import pytest

import weir

FRAMES = 200
MOST = 16  # alive at once: what queues hold, and what is on its way


class Made:
    """Arrays, and the most of them that were alive at once."""

    def __init__(self):
        self.alive, self.most = weakref.WeakSet(), 0

    def make(self, number):
        made = np.full(4, number).view(Named)
        self.alive.add(made)
        self.most = max(self.most, len(self.alive))
        return made


class Named(np.ndarray):
    """Hashable by identity, so that a WeakSet takes it."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def ends(ctx):
    if ctx.tick == FRAMES - 1:
        ctx.finish()


class Source:
    outputs = ["out"]

    def __init__(self, made):
        self.made = made


class ByThread(Source):
    def start(self, ctx):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def compute(self, ctx):
        ctx.emit("out", self.pool.submit(self.made.make, ctx.tick))
        ends(ctx)

    def stop(self, ctx):
        self.pool.shutdown()


class ByCoroutine(Source):
    async def one(self, number):
        await asyncio.sleep(0)
        return self.made.make(number)

    def compute(self, ctx):
        ctx.emit("out", self.one(ctx.tick))
        ends(ctx)


class Ticks:
    outputs = ["out"]

    def compute(self, ctx):
        ctx.emit("out", np.zeros(1))
        ends(ctx)


class ByAsyncCompute(Source):
    inputs = ["in"]

    async def compute(self, ctx):
        await asyncio.sleep(0)
        return self.made.make(ctx.tick)


class ByAsyncComputeOfTwo(Source):
    inputs, outputs = ["in"], ["out", "other"]

    async def compute(self, ctx):
        await asyncio.sleep(0)
        return {"out": self.made.make(ctx.tick), "other": self.made.make(-1)}


class Sink:
    inputs = ["in"]

    def __init__(self):
        self.count = 0

    def compute(self, ctx):
        np.asarray(ctx.receive("in"))
        self.count += 1


@pytest.mark.parametrize("way", [ByThread, ByCoroutine, ByAsyncCompute, ByAsyncComputeOfTwo])
def test_a_result_is_freed_without_the_collector(way):
    made, sinks = Made(), [Sink(), Sink()]
    gc.collect()
    gc.disable()
    try:
        with weir.Graph() as graph:
            entity = graph.add(way(made), max_in_flight=4)
            if hasattr(way, "inputs"):
                graph.connect(graph.add(Ticks()), entity)
            for port, sink in zip(way.outputs, sinks):
                graph.connect(entity[port], graph.add(sink))
            graph.run(backend="host")
    finally:
        gc.enable()
    assert sinks[0].count == FRAMES and 0 < made.most <= MOST
