"""The life cycle: what starts, what ends it, and what is left of it."""

import concurrent.futures
import copy
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import graph_of
from test_life import script

import weir

PING = {"weir": 1, "entities": [{"name": "p", "operator": "ping"}, {"name": "s", "operator": "sink"}], "connections": [["p.out", "s.in"]]}
ON = "a run of this graph is on: wait for its end, or stop it and wait"


def cost():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def not_above(before):
    return all(now <= then for now, then in zip(cost(), before))


# ---- starts


def test_another_thread_may_ask_whether_a_run_is_on_while_graphs_start_and_close():
    failed, over, now = [], [], [weir.Graph(PING)]

    def ask():
        while not over:
            try:
                assert now[0].running in (True, False) and now[0].stopping in (True, False)
            except weir.Error as error:
                if error.status != weir.Status.INVALID:  # it is closed
                    failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for i in range(60):
            now[0].run(max_duration=0.002, seed=i, backend="host")
            now[0].close()
            if i % 10 == 9:
                now[0] = weir.Graph(PING)
    finally:
        over.append(True)
        asking.join()
    assert not failed


@pytest.mark.parametrize("options", [{}, {"workers": 1}, {"max_duration": 0.1, "seed": 3}], ids=str)
def test_a_start_while_a_run_is_on_is_refused(options):
    with weir.Graph(PING) as graph:
        graph.start(backend="host")
        waited = []
        waiter = threading.Thread(target=lambda: waited.append(graph.wait()))
        waiter.start()
        for call in (graph.start, graph.run):
            with pytest.raises(weir.Error, match=ON) as error:
                call(**options)
            assert error.value.status == weir.Status.STATE and graph.running
        assert not waited
        graph.stop()
        waiter.join()
        assert waited[0].status == weir.Status.OK
        assert graph.run(max_duration=0.01).stopped  # afterwards it is not


def test_an_outcome_tells_finished_from_stopped(chain):
    graph = chain(("a", "Count"), ("b", "Collect"))
    outcome = graph.run(backend="host")
    assert outcome.finished and not outcome.stopped
    endless = weir.Graph(PING)
    for end in (lambda: endless.stop(), lambda: endless.stop(drain=False)):
        endless.start(backend="host")
        end()
        outcome = endless.wait()
        assert outcome.stopped and not outcome.finished
    outcome = endless.run(max_duration=0.01)
    assert outcome.stopped and not outcome.finished
    endless.close()
    with pytest.raises(weir.Error) as error:
        chain(("f", "FailsTwice"), ("b", "Collect")).run()
    assert not error.value.outcome.finished and not error.value.outcome.stopped


# ---- the end of a block


@pytest.mark.parametrize("capacity", [1, 4])
def test_break_out_of_an_outlet_ends_the_run(capacity):
    graph = weir.Graph({"weir": 1, "entities": [{"name": "e", "operator": "Ends"}]})
    outlet = graph.outlet("e.out", capacity=capacity)
    for _ in range(2):
        begun = time.monotonic()
        with graph.start(backend="host"):
            for message in outlet:
                if message.object == 5:
                    break
        assert message.object == 5 and not graph.running and time.monotonic() - begun < 4
    graph.close()


def test_an_outlet_that_another_thread_reads_goes_on_after_the_block(chain):
    graph = chain(("a", "Count", {"count": 50}))
    outlet, seen = graph.outlet("a.out"), []

    def take():
        seen.extend(int(np.asarray(message)[0]) for message in outlet)

    with graph.start(backend="host"):
        taker = threading.Thread(target=take)
        taker.start()
    taker.join()
    assert seen == list(range(50))


def test_a_first_message_by_a_loop_and_the_rest_by_take(chain):
    graph = chain(("a", "Count", {"count": 5}))
    outlet = graph.outlet("a.out", capacity=8)
    with graph.start(backend="host"):
        first = next(iter(outlet))
        rest = [outlet.take() for _ in range(4)]
    assert [int(np.asarray(m)[0]) for m in (first, *rest)] == list(range(5))


def test_a_closed_outlet_drops_what_comes_and_the_sender_goes_on(chain):
    graph = chain(("a", "Count", {"count": 50}))
    outlet = graph.outlet("a.out")
    for _ in range(2):  # the next start opens it
        graph.start(backend="host")
        outlet.take()
        outlet.close()
        with pytest.raises(weir.Closed):
            outlet.take()
        assert list(outlet) == []
        assert graph.wait().finished
        assert graph.counts()["entities"]["a"]["emitted"] == 50


# ---- failures


def test_the_first_exception_stays_the_cause_and_what_stop_adds_is_a_note(chain):
    with pytest.raises(weir.Error, match="ValueError: the real failure") as error:
        chain(("a", "FailsTwice"), ("b", "StopFails")).run(backend="host")
    assert isinstance(error.value.__cause__, ValueError)
    assert ["'a' failed again: KeyError: 'in stop'" in note for note in error.value.__cause__.__notes__] == [True]
    assert ["'b' failed, too: KeyError: 'in stop of b'" in note for note in error.value.__notes__] == [True]
    assert "the real failure" in error.value.traceback


@pytest.mark.parametrize("make", [pickle.loads, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_errors_pickle_with_all_their_attributes(make, chain):
    errors = []
    for fails in (lambda: chain(("a", "FailsTwice"), ("b", "StopFails")).run(), lambda: weir.Graph({"weir": 1, "entities": [3]}),
                  lambda: weir.Graph(PING).wait()):
        with pytest.raises(weir.Error) as error:
            fails()
        errors.append(error.value)
    graph = chain(("a", "Count", {"count": 1}))
    outlet = graph.outlet("a.out")
    with graph.start():
        outlet.take()
        for _ in range(2):
            with pytest.raises(weir.Closed) as error:
                outlet.take()
        errors.append(error.value)
    for error in errors:
        again = make(pickle.dumps(error) if make is pickle.loads else error)
        assert type(again) is type(error) and str(again) == str(error)
        assert again.__dict__ == error.__dict__ and set(again.__dict__) >= {"status", "entity", "diagnostics", "traceback", "outcome"}


def job(x):
    weir.Graph(graph_of(("a", "FailsTwice"), ("b", "StopFails"))).run(backend="host")


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's allocator is not made for fork")
def test_errors_come_through_a_pool_of_processes():
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(weir.Error, match="'a': ValueError: the real failure"):
            pool.submit(job, 1).result(timeout=60)


def test_the_end_of_a_block_tells_of_a_run_that_failed_in_it(chain):
    graph = chain(("a", "FailsTwice"))
    outlet = graph.outlet("a.out")
    with pytest.raises(weir.Error, match="the real failure"), graph.start():
        assert list(outlet) == []
    with graph.start():
        with pytest.raises(weir.Error, match="the real failure"):
            graph.wait()  # and not twice


# ---- Ctrl-C in start


@pytest.mark.parametrize("kind", ["in a start in Python", "after the last of them"])
def test_ctrl_c_in_start_is_keyboard_interrupt_and_nothing_goes_on(kind):
    assert script(f"""
@weir.operator
class Model:
    inputs = ["in"]
    def start(self, ctx):
        if {kind.startswith("in")}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
    def compute(self, ctx): ctx.receive("in")

@weir.operator
class Kills:
    def compute(self, ctx): pass
ENDLESS["entities"][1]["operator"] = "Model"
graph = weir.Graph(ENDLESS)
start = weir.Graph.start
if {not kind.startswith("in")}:
    def wait(self, *_):
        raise KeyboardInterrupt
    weir.Graph.wait = wait
try:
    graph.run(backend="host")
except KeyboardInterrupt:
    print("interrupt", graph.running)
""") == ["interrupt", "False"]


def test_ctrl_c_while_the_library_starts_ends_the_run():
    """Signals come while no Python runs: start looks for them before it returns."""
    assert script("""
class Core:
    def __init__(self, core): self.core = core
    def __getattr__(self, name): return getattr(self.core, name)
    def start(self):
        signal.raise_signal = None
        import ctypes
        ctypes.pythonapi.PyErr_SetInterruptEx(signal.SIGINT)  # as the C handler does
        return self.core.start()
graph = weir.Graph(ENDLESS)
graph._core = Core(graph._core)
try:
    graph.start(backend="host")
except KeyboardInterrupt:
    print("interrupt", graph.running)
""") == ["interrupt", "False"]


# ---- what is left


def make_closure(keep=None):
    """A graph, its class, which refers to it, and what it ran."""

    @weir.operator(name="OfTheCycle")
    class Op:
        outputs = ["out"]

        def compute(self, ctx):
            assert graph
            ctx.emit("out", 1)
            ctx.finish()

    graph = weir.Graph({"weir": 1, "entities": [{"name": "o", "operator": "OfTheCycle"}, {"name": "s", "operator": "sink"}], "connections": [["o.out", "s.in"]]})
    graph.run(backend="host", workers=1)
    if keep == "self":
        graph["o"].instance.graph = graph
    if keep == "close":
        graph.close()
    return weakref.ref(graph)


# CPython 3.13 without a GIL keeps all classes for ever once a second thread was started.
CLASSES_STAY = sys.version_info[:2] == (3, 13) and not sys._is_gil_enabled()


@pytest.mark.skipif(CLASSES_STAY, reason="this interpreter frees no class")
@pytest.mark.parametrize("keep", [None, "self"])
def test_a_graph_its_class_and_its_registry_are_collected(keep):
    make_closure(keep)
    gc.collect()
    before = cost()
    graphs = [make_closure(keep) for _ in range(100)]
    gc.collect()
    weir._weir.settle()
    alive = [graph for graph in graphs if graph() is not None]
    assert len(alive) <= 1  # the class that was registered last
    assert not_above(before)


def test_close_frees_all():
    make_closure("close")
    gc.collect()
    before = cost()
    kept = [make_closure("close")() for _ in range(20)]
    assert all(kept) and not_above(before)
    assert not kept[0].running and kept[0]["o"]
    kept[0].stop()
    kept[0].close()
    assert kept[0].run().finished  # made anew
    kept[0].close()
    assert not_above(before)


def test_a_closed_graph_is_made_anew_with_its_ends(chain):
    graph = chain(("a", "Count", {"count": 3}))
    outlet = graph.outlet("a.out", capacity=4)
    graph.close()
    with pytest.raises(weir.Error, match="the graph is closed"):
        outlet.take()
    with graph.start(backend="host"):
        assert len(list(outlet)) == 3


def test_a_graph_that_is_dropped_in_its_own_compute_ends():
    assert script("""
held = {}
@weir.operator
class Op:
    outputs = [weir.Port("out", optional=True)]
    def compute(self, ctx):
        held.pop("g", None)  # the graph is dropped, here
        for _ in range(3):
            message = ctx.empty((4,), "uint8", on_host=True)
            held["kept"] = message
for i in range(20):
    held["g"] = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Op"}]})
    try: held["g"].start(workers=1, backend="host")
    except KeyError: pass
    while "g" in held: time.sleep(0.001)
until = time.monotonic() + 20
while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:
    held.clear()
    time.sleep(0.01)
print(len(os.listdir("/proc/self/task")))
""") == ["1"]


def test_a_graph_that_gc_finds_in_its_own_compute_ends():
    assert script("""
import gc
@weir.operator
class Op:
    outputs = [weir.Port("out", optional=True)]
    def compute(self, ctx):
        gc.collect()
        ctx.empty((4,), "uint8", on_host=True)
class App:
    def __init__(self):
        self.graph = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Op"}]})
        self.graph.app = self  # a cycle
        self.graph.start(workers=1, backend="host")
for i in range(20):
    App()
    time.sleep(0.02)
until = time.monotonic() + 20
while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until: time.sleep(0.01)
print(len(os.listdir("/proc/self/task")))
""") == ["1"]


# ---- fork and sub-interpreters


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's allocator is not made for fork")
def test_a_fork_in_compute_is_refused_everything_by_one_line():
    found = script("""
@weir.operator
class Forks:
    inputs = ["in"]
    outputs = ["out"]
    def compute(self, ctx):
        message = ctx.receive("in")
        child = os.fork()
        if not child:
            calls = [lambda: ctx.emit("out", 1), lambda: ctx.tick, lambda: ctx.empty(3, "uint8"), lambda: ctx.finish(), lambda: message.kind,
                     lambda: bytes(message), lambda: message.stamp, lambda: message.unique(), lambda: graph.stop(), lambda: graph.running,
                     lambda: graph.start(), lambda: graph.counts(), lambda: outlet.take(0), lambda: inlet.push(1, 0), lambda: outlet.close()]
            refused = 0
            for call in calls:
                try: call()
                except (weir.Error, BufferError) as error: refused += "belongs to the parent process: after a fork" in str(error)
                except Exception as error: print(repr(error), file=sys.stderr)
            print("refused", refused - len(calls), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        ctx.emit("out", message)

graph = weir.Graph({"weir": 1, "entities": [{"name": "f", "operator": "Forks"}]})
inlet, outlet = graph.inlet("f.in"), graph.outlet("f.out")
with graph.start(backend="host"):
    inlet.push(b"abc")
    print(bytes(outlet.take()).decode())
""")
    assert found == ["refused", "0", "abc"]


def test_a_sub_interpreter_is_refused_by_one_line():
    found = script("""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
sub = interpreters.create()
try:
    failed = interpreters.run_string(sub, "import weir")
    print(failed.formatted if failed else "imported")
except interpreters.RunFailedError as error:
    print(error)
interpreters.destroy(sub)
print(weir.Graph({"weir": 1, "entities": [{"name": "p", "operator": "ping", "conditions": [{"type": "count", "count": 2}]}, {"name": "s", "operator": "sink"}], "connections": [["p.out", "s.in"]]}).run().finished)
""")
    text = " ".join(found)
    # CPython 3.13 refuses by itself one with a GIL of its own
    assert "weir runs in the main interpreter alone, not in a sub-interpreter" in text or "does not support loading in subinterpreters" in text
    assert found[-1] == "True"


@weir.operator
class Ends:
    outputs = ["out"]

    def compute(self, ctx):
        ctx.emit("out", ctx.tick)


@weir.operator
class FailsTwice:
    outputs = ["out"]

    def compute(self, ctx):
        raise ValueError("the real failure")

    def stop(self, ctx):
        raise KeyError("in stop")


@weir.operator
class StopFails:
    inputs = ["in"]

    def compute(self, ctx):
        ctx.receive("in")

    def stop(self, ctx):
        raise KeyError("in stop of b")
