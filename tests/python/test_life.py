"""Ctrl-C, the interpreter's exit, fork, asyncio, memory: each in a process of its own where it ends one."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import numpy as np
import pytest
from conftest import graph_of

import weir

LONG = bool(os.environ.get("WEIR_LONG"))
long = pytest.mark.skipif(not LONG, reason="takes minutes: run.py --long")

BEGIN = """
import os, signal, sys, threading, time
import weir

@weir.operator
class Endless:
    outputs = ["out"]
    def compute(self, ctx):
        ctx.emit("out", bytearray(32))

@weir.operator
class End:
    inputs = ["in"]
    def compute(self, ctx):
        ctx.receive("in")

ENDLESS = {"weir": 1, "entities": [{"name": "a", "operator": "Endless"}, {"name": "b", "operator": "End"}],
           "connections": [["a.out", "b.in"]]}
"""


def script(text, allowed="", **others):
    """Runs a program; returns what it printed. It must end without a word on stderr, but for what ends with `allowed`."""
    found = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + text], capture_output=True, text=True, timeout=60, **others)
    quiet = not found.stderr or allowed and found.stderr.endswith(allowed)
    assert found.returncode == 0 and quiet, found.stderr
    return found.stdout.split()


# ---- Ctrl-C

INTERRUPT = """
sent = []
def interrupt(when):
    # Shortly after when() has become true.
    def send():
        while not when():
            time.sleep(0.001)
        time.sleep(0.05)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send).start()
def took():
    return time.monotonic() - sent[-1]
"""
SOON = 5  # seconds: a run that did not see the interrupt would go on for 30, or for ever


@pytest.mark.parametrize("wait", ["graph.run(backend='host')", "graph.start(backend='host').wait(30)",
                                  "[list(graph.start(backend='host').outlet('c.out')), graph.wait()]"],
                         ids=["run", "wait", "outlet"])
def test_ctrl_c_raises_keyboard_interrupt_soon(wait):
    delays = script(INTERRUPT + f"""
ENDLESS["entities"].append({{"name": "c", "operator": "Silent", "conditions": [{{"type": "boolean"}}]}})
@weir.operator
class Silent:
    outputs = [weir.Port("out", optional=True)]
    def compute(self, ctx): time.sleep(0.001)
graph = weir.Graph(ENDLESS)
graph.outlet("c.out")
interrupt(lambda: graph.running)
try:
    {wait}
except KeyboardInterrupt:
    print(took())
graph.close()
""")
    assert len(delays) == 1 and float(delays[0]) < SOON


def test_ctrl_c_drains_what_is_under_way():
    """What was emitted before is received: the source stops, the sink goes on."""
    counts = script(INTERRUPT + """
graph = weir.Graph(ENDLESS)
interrupt(lambda: graph.running)
try:
    graph.run(backend="host")
except KeyboardInterrupt:
    entities = graph.counts()["entities"]
    print(entities["a"]["emitted"], entities["b"]["received"])
""")
    assert counts[0] == counts[1] and int(counts[0]) > 0


def test_a_second_ctrl_c_cuts_the_run_short():
    """The drain cannot end, since an outlet is full."""
    delays = script(INTERRUPT + """
graph = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Endless"}]})
outlet = graph.outlet("a.out")
interrupt(lambda: graph.running)
interrupt(lambda: graph.stopping)
try:
    graph.run(backend="host", drain=30)
except KeyboardInterrupt:
    print(took())
""")
    assert float(delays[0]) < SOON


def test_a_compute_that_takes_long_sees_ctrl_c():
    delays = script(INTERRUPT + """
@weir.operator
class Long:
    def compute(self, ctx):
        until = time.monotonic() + 30
        while not ctx.stopping and time.monotonic() < until:
            time.sleep(0.001)

graph = weir.Graph({"weir": 1, "entities": [{"name": "long", "operator": "Long"}]})
interrupt(lambda: graph.running)
try:
    graph.run(backend="host")
except KeyboardInterrupt:
    print(took())
""")
    assert len(delays) == 1 and float(delays[0]) < SOON


def test_the_handler_of_the_program_is_called_in_a_wait():
    assert script("""
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
graph = weir.Graph(ENDLESS)
try:
    graph.run(backend="host")
except Alarm:
    print("alarm", graph.running)
""") == ["alarm", "False"]


@long
def test_a_thousand_interrupts():
    # One thread sends them all: an interrupt while a thread is started would break the start, not the wait.
    found = script("""
import queue
graph = weir.Graph(ENDLESS)
seen, worst, at, delays = 0, 0, [], queue.SimpleQueue()
def send():
    while (delay := delays.get()) is not None:
        time.sleep(delay)
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=send)
thread.start()
for i in range(1000):
    at.clear()
    graph.start(backend="host", workers=2)
    try:
        delays.put(i % 7 * 0.001)
        graph.wait(20)
    except KeyboardInterrupt:
        seen += 1
        worst = max(worst, time.monotonic() - at[0])
        if graph.running:  # it came before the wait
            graph.stop()
            graph.wait(20)
delays.put(None)
thread.join()
print(seen, worst)
""")
    print("1000 interrupts, longest delay", found[1], "s")
    assert int(found[0]) == 1000 and float(found[1]) < 0.2


# ---- the exit of the interpreter


@pytest.mark.parametrize("end", [
    "", "sys.exit(0)", "del graph", "graph.close()", "message = outlet.take()",
    "import numpy as np; array = np.asarray(outlet.take()); del graph", "view = memoryview(outlet.take())", "kept = graph['a'].instance; del graph, outlet",
    "thread = threading.Thread(target=lambda: [m for m in outlet], daemon=True); thread.start(); time.sleep(0.02)",
    "thread = threading.Thread(target=graph.wait, daemon=True); thread.start(); time.sleep(0.02)",
    "import atexit; atexit.register(lambda: graph.stop())",
    "class Late:\n    def __del__(self, graph=graph): graph.stop()\nlate = Late()",
], ids=lambda text: text[:24] or "nothing")
def test_objects_die_at_exit_in_any_order(end):
    # Without a GIL an interpreter empties the classes of modules before it calls a __del__ as late as the last one's.
    late = "__del__" in end and not getattr(sys, "_is_gil_enabled", lambda: True)()
    script(allowed="'NoneType' object is not callable\n" if late else "", text=f"""
ENDLESS["entities"].append({{"name": "c", "operator": "Endless"}})
graph = weir.Graph(ENDLESS)
outlet = graph.outlet("c.out")
graph.start(backend="host")
outlet.take(10)
{end}
""")


def test_the_end_of_a_graph_does_not_wait_for_threads_that_wait():
    """At exit a thread that is left in a call would end the process: without the GIL it cannot go on."""
    script("""
@weir.operator
class Slow:
    inputs = ["in"]
    outputs = ["out"]
    def compute(self, ctx):
        global ended
        begun.set()
        over.wait(20)
        ended = time.monotonic()

def wait(call):
    try:
        call()
    except (weir.Closed, StopIteration):
        left.append(time.monotonic())
        if len(left) == 4:
            over.set()

begun, over, left = threading.Event(), threading.Event(), []
graph = weir.Graph({"weir": 1, "entities": [{"name": "slow", "operator": "Slow"}]})
inlet, outlet = graph.inlet("slow.in"), graph.outlet("slow.out")
graph.start(backend="host", workers=1)
inlet.push(b"0")
begun.wait()
inlet.push(b"1")
calls = [outlet.take, lambda: next(iter(outlet)), graph.wait, lambda: inlet.push(b"2")]
threads = [threading.Thread(target=wait, args=[call]) for call in calls]
for thread in threads:
    thread.start()
time.sleep(0.05)
graph.close()
for thread in threads:
    thread.join()
assert len(left) == 4 and max(left) < ended, (left, ended)
""")


def test_a_graph_that_is_dropped_ends_its_run():
    gc.collect()  # graphs of other tests, in cycles with what these raised: without the GIL they stay longer
    graph = weir.Graph(graph_of(("a", "Forever"), ("b", "Drop"))).start(backend="host", workers=2)
    while len(_workers()) < 3:  # and the loop
        time.sleep(0.001)
    del graph
    for _ in range(2000):  # a thread that was joined may still be listed
        if not _workers():
            break
        time.sleep(0.001)
    assert _workers() == []


@pytest.mark.parametrize("end", ["close", "drop"])
def test_computes_that_end_each_others_graphs_do_not_wait_for_each_other(end):
    script(f"""
both, graphs = threading.Barrier(2), []
@weir.operator
class Ends:
    parameters = {{"other": 0}}
    def compute(self, ctx):
        ctx.finish()
        both.wait()
        graph, graphs[self.other] = graphs[self.other], None
        both.wait()
        graph.close() if "{end}" == "close" else None

for i in range(2):
    graphs.append(weir.Graph({{"weir": 1, "entities": [{{"name": "e", "operator": "Ends", "parameters": {{"other": 1 - i}}}}]}}))
for graph in list(graphs):
    graph.start(backend="host", workers=1)
del graph
until = time.monotonic() + 20
def left():
    weir._weir.settle()
    return len(os.listdir("/proc/self/task")) > 1
while left() and time.monotonic() < until:
    time.sleep(0.01)
assert not left() and weir._weir.leaks() == 0
""")


def _workers():
    names = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read())
    return [name for name in names if name.startswith("weir:")]


def test_an_operator_that_keeps_its_graph_is_collected():
    graph = weir.Graph(graph_of(("a", "Count"), ("b", "Collect")))
    gone = weakref.ref(graph)
    graph.run(backend="host")
    graph["b"].instance.graph = graph
    del graph
    gc.collect()
    alive = gone() is not None
    assert not alive


# ---- fork


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's allocator is not made for fork")
def test_a_child_is_refused_the_graphs_of_its_parent_and_makes_its_own():
    assert script("""
graph = weir.Graph(ENDLESS)
outlet = None
graph.start(backend="host")
child = os.fork()
if not child:
    try:
        graph.stop()
    except weir.Error as error:
        print("belongs to the parent" in str(error))
    del graph
    own = weir.Graph(ENDLESS)
    own.start(backend="host")
    time.sleep(0.02)
    own.stop()
    print(own.wait(10).status.name, flush=True)
    sys.exit(0)
code = os.waitpid(child, 0)[1]
graph.stop()
print(code, graph.wait(10).status.name)
""") == ["True", "OK", "0", "OK"]


# ---- asyncio


def test_asyncio_takes_pushes_and_waits():
    async def serve():
        graph = weir.Graph(graph_of(("a", "Twice")))
        inlet, outlet = graph.inlet("a.in"), graph.outlet("a.out")
        graph.start(backend="host")

        async def feed():
            for i in range(50):
                await inlet.push_async(np.full(2, i))
            inlet.close()

        feeding = asyncio.create_task(feed())
        seen = [int(np.asarray(message)[0]) async for message in outlet]
        await feeding
        outcome = await graph.wait_async()
        graph.close()
        return seen, outcome.status

    assert asyncio.run(asyncio.wait_for(serve(), 20)) == ([2 * i for i in range(50)], weir.Status.OK)


def test_asyncio_runs_other_tasks_while_a_graph_runs():
    async def serve():
        graph = weir.Graph(graph_of(("a", "Count", {"count": 200}), ("b", "Collect")))
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.create_task(beat())
        await asyncio.sleep(0)
        await graph.start(backend="host").wait_async()
        beating.cancel()
        graph.close()
        return beats

    assert asyncio.run(serve()) >= 1


# ---- memory


def test_messages_leave_nothing_behind():
    graph = weir.Graph(graph_of(("a", "Count", {"count": 2000, "shape": 64}), ("b", "Drop")))
    graph.run(backend="host")
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(5):
        graph.run()
    weir._weir.settle()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    graph.close()
    assert grown < 20000, f"{grown} bytes of Python's memory stayed after 10000 messages"


def test_a_pool_is_empty_in_the_end():
    text = graph_of(("a", "Pooled"), ("b", "Drop"))
    text["resources"] = {"frames": {"type": "memory_pool", "place": "host", "block_size": 64, "blocks": 4}}
    text["entities"][0]["resources"] = ["frames"]
    with weir.Graph(text) as graph:
        graph.run(backend="host")
        pool = graph.counts()["pools"]["frames"]
        assert pool["used"] == 0 and pool["outside"] == 0 and pool["allocations"] == 100


@long
def test_a_million_messages():
    graph = weir.Graph(graph_of(("a", "Count", {"count": 1_000_000}), ("b", "Drop")))
    begun = time.monotonic()
    graph.run(backend="host")
    spent = time.monotonic() - begun
    print(f"10^6 arrays from Python to Python in {spent:.2f} s")
    assert graph.counts()["entities"]["b"]["received"] == 1_000_000
    graph.close()


@long
def test_two_graphs_in_two_threads_for_long():
    def work():
        for _ in range(50):
            with weir.Graph(graph_of(("a", "Count", {"count": 1000}), ("b", "Drop"))) as graph:
                graph.run(backend="host", workers=2)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@weir.operator
class Forever:
    outputs = ["out"]

    def compute(self, ctx):
        ctx.emit("out", np.zeros(2))


@weir.operator
class Drop:
    inputs = ["in"]

    def compute(self, ctx):
        ctx.receive("in")


@weir.operator
class Twice:
    inputs, outputs = ["in"], ["out"]

    def compute(self, ctx):
        ctx.emit("out", 2 * np.asarray(ctx.receive("in")))


@weir.operator
class Pooled:
    outputs = ["out"]

    def compute(self, ctx):
        message = ctx.empty((16,), "uint8", on_host=True)
        np.asarray(message)[:] = 1
        ctx.emit("out", message)
        if ctx.tick == 99:
            ctx.finish()
