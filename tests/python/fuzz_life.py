"""Random programs that make, use, drop and end graphs at all the wrong moments: in computes, in finalizers, in gc, on threads.

    fuzz_life.py [--seconds N] [--seed FIRST] [--runs N] [--flat]

What each program does comes from its seed; when its threads do it does not. A program may fail by weir.Error alone, and ends in time.
--flat: it leaves no thread and no descriptor, either, but for graphs that could not be freed, as another thread was inside a call. At the
end it says how many there were.
tests/python/run.py --program gives the environment; its --sanitize finds what is used after it was freed.
"""

import argparse
import asyncio
import faulthandler
import gc
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback

import numpy as np

import weir

FORKS = "libasan" not in os.environ.get("LD_PRELOAD", "")  # the sanitizer's allocator is not made for fork
LIMIT = 120  # seconds for one program
OPTIONS = {"backend": "host", "drain": 5, "deadlock_grace": 0.05, "max_duration": 0.3}
ALLOWED = (weir.Error, StopIteration, asyncio.TimeoutError)
FREED = (AttributeError, TypeError, ImportError)  # in what runs while the interpreter ends


class Boom(Exception):
    """What operators raise."""


class World:
    """What one program has: its graphs, and all that it got from them."""

    def __init__(self, seed):
        self.seed, self.random, self.wrong = seed, random.Random(seed), []
        self.graphs, self.things, self.threads = [], [], []
        self.deep = threading.local()
        self.over = False

    def pick(self, listed):
        """One of a list that other threads change."""
        listed = list(listed)
        return self.random.choice(listed) if listed else None

    def of(self, kind):
        return self.pick([thing for thing in list(self.things) if type(thing).__name__ == kind])

    def keep(self, thing):
        self.add(self.things, thing)
        if len(self.things) > 40:
            self.drop()

    def add(self, listed, thing):
        """Nothing stays in a world that is over: a compute may go on after its graph was forgotten."""
        listed.append(thing)
        if self.over:
            listed.clear()

    def drop(self):
        for listed in (self.things, self.graphs)[: self.random.choice((1, 1, 2))]:
            try:
                listed.pop(self.random.randrange(len(listed)))
            except (IndexError, ValueError):
                pass

    def attempt(self, action, *arguments):
        """Does it; what is no weir.Error is a finding."""
        depth = getattr(self.deep, "depth", 0)
        if depth > 2 or self.over:
            return None
        self.deep.depth = depth + 1
        try:
            return action(*arguments)
        except (*ALLOWED, Boom):
            return None
        except BaseException as error:
            self.wrong.append("".join(traceback.format_exception(error)))
            return None
        finally:
            self.deep.depth = depth

    def act(self, actions):
        self.attempt(self.random.choice(actions))


world = World(0)
alone = threading.Lock()  # CPython 3.11 hangs in a child of fork if another thread has a sub-interpreter


class Mine:
    """An object whose finalizer does something, too."""

    def __del__(self):
        try:
            world.act(LIGHT)
        except FREED:
            pass  # the interpreter ends


class MyArray(np.ndarray, Mine):
    __del__ = Mine.__del__


def value():
    kind = world.random.randrange(8)
    if kind == 0:
        return None
    if kind == 1:
        return weir.Object(Mine())
    if kind == 2:
        return world.of("Message") or b"none"
    if kind == 3:
        return {"a": np.zeros(3), "b": weir.Object(Mine()), "c": world.of("Message")}
    if kind == 4:
        return np.arange(6.0).view(MyArray)
    return (b"bytes", bytearray(64), np.zeros((4, 4), bool)[::2])[kind - 5]


class Wild:
    """An operator that does anything."""

    inputs = [weir.Port("in", optional=True)]
    outputs = [weir.Port("out", optional=True, max_emits=2)]
    conditions = [{"type": "boolean"}]

    def __init__(self):
        self.mine = Mine()

    def start(self, ctx):
        self.last = world.random.randrange(1, 60)
        self.ctx = ctx if world.random.random() < 0.2 else None
        self.wild(ctx, 0.1)

    def compute(self, ctx):
        message = ctx.receive("in")
        for _ in range(world.random.choice((0, 1, 1, 1, 2))):
            world.attempt(ctx.emit, "out", message if message and world.random.random() < 0.5 else value())
        self.wild(ctx, 0.5)
        if message and world.random.random() < 0.3:
            world.keep(message)
        if ctx.tick >= self.last:
            ctx.finish()

    def stop(self, ctx):
        self.wild(ctx, 0.2)

    def wild(self, ctx, chance):
        if world.random.random() > chance:
            return
        what = world.random.randrange(12)
        if what == 0:
            raise Boom("of an operator")
        if what == 1:
            world.keep(ctx)
        elif what == 2:
            world.attempt(lambda: world.keep(ctx.stream))
        elif what == 3:
            world.attempt(lambda: world.keep(ctx.stream.record()))
        elif what == 4:
            world.attempt(lambda: world.keep(ctx.empty((3,), "float32", on_host=True)))
        elif what == 5:
            world.attempt(lambda: ctx.tell("boolean", world.random.choice(("ready", "wait", "never"))))
        elif what == 6:
            ctx.log("a line", world.random.choice(("info", "debug")))
        elif what == 7:
            world.attempt(ctx.drain)
        elif what == 8:  # also the graph of this compute
            forget_at_once()
            world.attempt(gc.collect)
        else:
            world.act(ALL)


weir.operator(Wild)


# ---- what programs do


def make():
    """A chain of one to three, of the class or of objects, fed by an inlet or by itself, read by an outlet or by none."""
    if len(world.graphs) > 3:
        return
    graph = weir.Graph(check_writes=world.random.random() < 0.2)
    chain = [graph.add(world.random.choice((Wild, "Wild", Wild()))) for _ in range(world.random.randint(1, 3))]
    for one, other in zip(chain, chain[1:]):
        graph.connect(one, other, capacity=world.random.choice((1, 4)))
    if world.random.random() < 0.5:
        world.keep(graph.inlet(chain[0]["in"]))
    if world.random.random() < 0.5:
        world.keep(graph.outlet(chain[-1]["out"], world.random.choice((2, 8))))
    if world.random.random() < 0.5:
        world.keep(chain[0])
    if world.random.random() < 0.5:
        graph.wild = [graph, Mine()]  # a cycle, which gc finds
    world.add(world.graphs, graph)


def with_graph(use):
    def action():
        graph = world.pick(world.graphs)
        return graph and use(graph)

    return action


def begin(graph):
    graph.start(workers=world.random.randint(1, 3), **OPTIONS)


def close_inlet():
    inlet = world.of("Inlet")
    return inlet and inlet.close()


def close_outlet():
    outlet = world.of("Outlet")
    return outlet and outlet.close()


def push():
    inlet = world.of("Inlet")
    return inlet and inlet.push(value(), world.random.choice((0, 0.002)), give=world.random.random() < 0.3)


def take():
    outlet = world.of("Outlet")
    if outlet:
        world.keep(outlet.take(world.random.choice((0, 0.002))))


def take_or_push_later():
    """By asyncio, and given up in between."""
    outlet, inlet = world.of("Outlet"), world.of("Inlet")

    async def use():
        work = outlet.take_async() if outlet else inlet.push_async(value())
        await asyncio.wait_for(work, world.random.choice((0, 0.003)))

    if outlet or inlet:
        asyncio.run(use())


def look():
    """At what is kept, whoever it is of, and whether or not that is still there."""
    thing = world.pick(world.things)
    kind = type(thing).__name__
    if kind == "Message":
        repr(thing), thing.stamp
        if thing.kind == "tensor":
            world.attempt(lambda: world.keep(np.asarray(thing)))
            world.attempt(lambda: world.keep(np.from_dlpack(thing)))
        elif thing.kind == "parts":
            world.attempt(lambda: world.keep(thing["b"]))
    elif kind == "Context":
        world.attempt(lambda: thing.tick)
        world.attempt(lambda: thing.emit("out", 1))
        world.attempt(lambda: thing.receive("in"))
    elif kind == "Stream":
        world.attempt(lambda: thing.handle)
        world.attempt(lambda: world.keep(thing.record()))
    elif kind == "Entity":
        world.attempt(lambda: (thing.counts, thing.instance, repr(thing)))


def tell(graph):
    graph.tell(next(iter(graph)), "boolean", world.random.choice(("ready", "wait", world.of("Fence") or "ready")))


def in_thread():
    if len(world.threads) < 6:
        thread = threading.Thread(target=lambda: [world.act(ALL) for _ in range(3)])
        thread.start()
        world.threads.append(thread)


def in_child():
    """The parent's graphs are refused there, unless they are closed, and a graph of its own runs."""
    if not FORKS or world.random.random() > 0.05:
        return
    graph = world.pick(world.graphs)
    with alone:
        child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            gc.collect()
            world.attempt(lambda: graph and begin(graph))
            world.attempt(lambda: graph and graph.close())
            os._exit(weir.testing.run("pass", {"in": [b"x"]}).emitted["out"] != [b"x"])
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child ended with {status}"


def in_interpreter():
    """A sub-interpreter cannot import weir, and does no harm."""
    if world.random.random() > 0.02:
        return
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    with alone:
        other = interpreters.create()
        try:
            interpreters.run_string(other, "try:\n import weir\nexcept ImportError:\n pass\nelse:\n raise SystemExit('imported')")
        finally:
            interpreters.destroy(other)


def forget_at_once():
    world.graphs.clear()
    world.things.clear()


LIGHT = [lambda: world.drop(), look, with_graph(lambda g: g.counts()), with_graph(lambda g: g.poke(next(iter(g)))),
         with_graph(lambda g: g.explain_line()), with_graph(lambda g: g.stop(drain=world.random.random() < 0.5)), close_inlet, close_outlet]
ALL = [*LIGHT, make, make, with_graph(begin), with_graph(begin), with_graph(begin), push, push, take, take, take_or_push_later, gc.collect,
       with_graph(tell), with_graph(lambda g: g.wait(0.002)), with_graph(lambda g: g.close()), with_graph(lambda g: g.collect(0.002)),
       with_graph(lambda g: g.run(workers=1, **OPTIONS)), with_graph(lambda g: g.statistics()), lambda: weir.operator(Wild),
       with_graph(lambda g: g.explain_causes()), in_thread, in_thread, in_child, in_interpreter, forget_at_once]


def collected(phase, _info):
    if phase == "stop" and world.random.random() < 0.2:
        world.act(LIGHT)


def count(folder):
    return len(os.listdir(f"/proc/self/{folder}"))


def names(folder):
    """For people: what is open, or what the threads are called."""
    root = pathlib.Path("/proc/self", folder)
    return [os.readlink(path) if folder == "fd" else (path / "comm").read_text().strip() for path in sorted(root.iterdir()) if os.path.lexists(path)]


def settled(folder, most):
    """Threads of ended runs go at once, but not before the call returns; a run within a compute may drain for 5 s."""
    for _ in range(2000):
        weir._weir.settle()
        gc.collect()
        if count(folder) <= most:
            return True
        time.sleep(0.01)
    return False


def left(base):
    """What the program leaves; base: what there was before. After a graph that could not be freed that is counted anew."""
    leaks = weir._weir.leaks()
    found = [f"{folder}: {names(folder)}, not {base[folder]}" for folder in ("task", "fd") if not settled(folder, base[folder])]
    if leaks != base["leaks"] or weir._weir.leaks() != leaks:
        base.update(baseline())
        return []
    return found


def baseline():
    return {"task": count("task"), "fd": count("fd"), "leaks": weir._weir.leaks()}


def program(seed):
    global world
    world = World(seed)
    often = world.random.random() < 0.3
    gc.set_threshold(*((1, 1, 1) if often else (700, 10, 10)))
    gc.callbacks.append(collected)
    try:
        world.attempt(make)
        world.attempt(with_graph(begin))
        for _ in range(world.random.randint(5, 60)):
            world.act(ALL)
        for thread in world.threads:
            thread.join(LIMIT)
        if world.random.random() < 0.5:
            for graph in list(world.graphs):
                world.attempt(graph.close)
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(700, 10, 10)
    wrong, world.over = world.wrong, True
    forget_at_once()
    world.threads.clear()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10**9)
    parser.add_argument("--flat", action="store_true")
    own = parser.parse_args()
    weir._weir.log_to_stderr(0)
    import logging

    logging.disable(logging.CRITICAL)
    faulthandler.dump_traceback_later(LIMIT, exit=True)  # is a thread
    for seed in (own.seed, own.seed + 1):  # what is made once
        program(seed)
    settled("task", 0)
    base = baseline()
    begin, seed = time.monotonic(), own.seed
    while time.monotonic() < begin + own.seconds and seed < own.seed + own.runs:
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        print(f"seed {seed}", flush=True)
        wrong = program(seed)
        if own.flat:
            wrong += left(base)
        if wrong:
            sys.exit(f"seed {seed}:\n" + "\n".join(wrong))
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{seed - own.seed} programs, seeds from {own.seed}; {weir._weir.leaks()} graphs not freed")


main()
