"""What is emitted before it is there: futures, coroutines, async computes; and ctx.waker()."""

import asyncio
import concurrent.futures
import gc
import threading
import time

import numpy as np
import pytest

import weir


class Values:
    """Numbers by a pool of threads, of which some take longer."""

    outputs = [weir.Port("out", max_emits=1)]
    parameters = {"count": 20, "fails": -1, "slow": 3}

    def start(self, ctx):
        self.pool = concurrent.futures.ThreadPoolExecutor(4)

    def compute(self, ctx):
        ctx.emit("out", self.pool.submit(self.work, ctx.tick))
        if ctx.tick == self.count - 1:
            ctx.finish()

    def work(self, number):
        time.sleep(0.01 if number % self.slow == 0 else 0.001)
        if number == self.fails:
            raise KeyError("no such number")
        return np.full(3, number)

    def stop(self, ctx):
        self.pool.shutdown(wait=False)


class Seen:
    inputs = [weir.Port("in", capacity=8)]
    got = []

    def compute(self, ctx):
        message = ctx.receive("in")
        Seen.got.append(message.object if message.kind == "object" else np.asarray(message).tolist())


def run(graph, **options):
    Seen.got = []
    with weir.Graph(graph) as opened:
        return opened.run(**options)


def chain(source, sink="FutureSeen", **entity):
    return {"weir": 1, "entities": [{"name": "a", "operator": source, **entity}, {"name": "z", "operator": sink}],
            "connections": [["a.out", "z.in"]]}


@pytest.fixture(autouse=True)
def operators():
    for cls in (Values, Seen):
        weir.operator(cls, name=f"Future{cls.__name__}")


def test_results_come_in_order():
    outcome = run(chain("FutureValues"))
    assert outcome.finished
    assert Seen.got == [[i] * 3 for i in range(20)]


def test_an_outlet_gives_the_result():
    graph = {"weir": 1, "entities": [{"name": "a", "operator": "FutureValues"}]}
    with weir.Graph(graph) as opened:
        outlet = opened.outlet("a.out", capacity=4)
        opened.start()
        assert [np.asarray(message)[0] for message in outlet] == list(range(20))
        opened.wait()


def test_max_in_flight_bounds_the_futures():
    open_now, most = 0, 0
    lock = threading.Lock()

    @weir.operator(name="FutureBounded")
    class Bounded(Values):
        def work(self, number):
            nonlocal open_now, most
            with lock:
                open_now += 1
                most = max(most, open_now)
            time.sleep(0.002)
            with lock:
                open_now -= 1
            return number

    assert run(chain("FutureBounded", max_in_flight=2)).finished
    assert Seen.got == list(range(20))
    assert most <= 2


def test_a_failure_ends_the_run_with_its_exception():
    with pytest.raises(weir.Error) as raised:
        run(chain("FutureValues", parameters={"fails": 5}))
    assert raised.value.entity == "a"
    assert isinstance(raised.value.__cause__, KeyError)
    assert "no such number" in str(raised.value)
    assert len(Seen.got) <= 5


def test_a_cancelled_future_ends_the_run():
    @weir.operator(name="FutureCancelled")
    class Cancelled:
        outputs = ["out"]

        def compute(self, ctx):
            future = concurrent.futures.Future()
            ctx.emit("out", future)
            future.cancel()
            ctx.finish()

    with pytest.raises(weir.Error) as raised:
        run(chain("FutureCancelled"))
    assert isinstance(raised.value.__cause__, concurrent.futures.CancelledError)


def test_a_future_that_is_done_is_its_result():
    @weir.operator(name="FutureDone")
    class Done:
        outputs = ["out"]

        def compute(self, ctx):
            future = concurrent.futures.Future()
            future.set_result("at once")
            ctx.emit("out", future)
            ctx.finish()

    assert run(chain("FutureDone")).finished
    assert Seen.got == ["at once"]


def test_a_future_that_is_dropped_ends_the_run():
    @weir.operator(name="FutureDropped")
    class Dropped:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.emit("out", concurrent.futures.Future())
            ctx.finish()

    with pytest.raises(weir.Error, match="its future was dropped before it was done") as raised:
        run(chain("FutureDropped"))
    assert raised.value.entity == "a"


def test_at_a_future_the_array_is_whole():
    @weir.operator(name="FutureFilled")
    class Filled(Values):
        def compute(self, ctx):
            array = np.zeros(4)
            ctx.emit("out", array, at=self.pool.submit(self.fill, array, ctx.tick))
            if ctx.tick == 9:
                ctx.finish()

        def fill(self, array, number):
            time.sleep(0.002)
            array[:] = number

    assert run(chain("FutureFilled")).finished
    assert Seen.got == [[i] * 4 for i in range(10)]


def test_coroutines_run_on_a_loop_of_weirs():
    threads = set()

    @weir.operator(name="FutureCoroutines")
    class Coroutines:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.emit("out", self.work(ctx.tick))
            if ctx.tick == 19:
                ctx.finish()

        async def work(self, number):
            threads.add(threading.current_thread())
            await asyncio.sleep(0.005 if number % 3 == 0 else 0)
            return {"number": number}["number"]

    assert run(chain("FutureCoroutines")).finished
    assert Seen.got == list(range(20))
    assert len(threads) == 1
    assert not next(iter(threads)).is_alive()


def test_an_asyncio_future_of_the_programs_loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    @weir.operator(name="FutureOfLoop")
    class OfLoop:
        outputs = ["out"]

        def compute(self, ctx):
            made = concurrent.futures.Future()
            number = ctx.tick
            loop.call_soon_threadsafe(lambda: made.set_result(loop.create_task(asyncio.sleep(0.002, number))))
            ctx.emit("out", made.result())
            if ctx.tick == 5:
                ctx.finish()

    assert run(chain("FutureOfLoop")).finished
    assert Seen.got == list(range(6))
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_an_async_compute_returns_what_it_emits():
    @weir.operator(name="FutureTwice")
    class Twice:
        inputs = [weir.Port("in", capacity=4)]
        outputs = ["out"]

        async def compute(self, ctx):
            await asyncio.sleep(0.003 if ctx.tick % 4 == 0 else 0)
            return 2 * np.asarray(ctx.receive("in"))

    graph = {"weir": 1, "entities": [{"name": "a", "operator": "FutureValues"}, {"name": "t", "operator": "FutureTwice"},
                                     {"name": "z", "operator": "FutureSeen"}],
             "connections": [["a.out", "t.in"], ["t.out", "z.in"]]}
    assert run(graph).finished
    assert Seen.got == [[2 * i] * 3 for i in range(20)]


def test_an_async_compute_of_two_outputs_returns_a_dict():
    @weir.operator(name="FutureBoth")
    class Both:
        outputs = ["out", "other"]
        parameters = {"wrong": False}

        async def compute(self, ctx):
            await asyncio.sleep(0)
            return {"out": ctx.tick} if self.wrong else {"out": ctx.tick, "other": -ctx.tick}

    graph = {"weir": 1, "entities": [{"name": "a", "operator": "FutureBoth", "conditions": [{"type": "count", "count": 3}]},
                                     {"name": "z", "operator": "FutureSeen"}],
             "connections": [["a.out", "z.in"], ["a.other", "z.in"]]}
    assert run(graph).finished
    assert sorted(Seen.got) == [-2, -1, 0, 0, 1, 2]
    graph["entities"][0]["parameters"] = {"wrong": True}
    with pytest.raises(weir.Error, match="there is no 'other'"):
        run(graph)


def test_an_exception_of_an_async_compute_is_the_cause():
    @weir.operator(name="FutureRaises")
    class Raises:
        outputs = ["out"]

        async def compute(self, ctx):
            await asyncio.sleep(0)
            raise LookupError("nothing there")

    with pytest.raises(weir.Error) as raised:
        run(chain("FutureRaises"))
    assert isinstance(raised.value.__cause__, LookupError)


def test_an_exception_of_a_library_has_the_place_of_the_program():
    @weir.operator(name="FutureTakesLong")
    class TakesLong:
        outputs = ["out"]

        async def compute(self, ctx):
            await asyncio.wait_for(asyncio.sleep(30), 0.01)

    with pytest.raises(weir.Error, match=r"'a': TimeoutError \(test_futures.py:\d+\)") as raised:
        run(chain("FutureTakesLong"))
    assert "TakesLong" in raised.value.traceback or "compute" in raised.value.traceback


@pytest.mark.parametrize("method", ["start", "stop"])
def test_compute_alone_may_be_async(method):
    with pytest.raises(TypeError, match="compute alone may be async"):
        weir.operator(type("Wrong", (), {method: Seen_async, "compute": lambda self, ctx: None, "outputs": ["out"]}))
    with pytest.raises(TypeError, match="compute alone may be async"):
        weir.operator(type("Sink", (), {"compute": Seen_async, "inputs": ["in"]}))


async def Seen_async(self, ctx):
    pass


def test_a_run_that_is_cut_short_cancels_what_is_left():
    begun = threading.Event()
    cancelled = []

    @weir.operator(name="FutureEndless")
    class Endless:
        outputs = ["out"]

        async def compute(self, ctx):
            if ctx.tick == 1:
                begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.append(ctx.tick)
                raise

    with weir.Graph(chain("FutureEndless", conditions=[{"type": "count", "count": 2}])) as opened:
        opened.start()
        begun.wait()
        until = time.monotonic() + 20
        while "waits for a fence that the program completes" not in opened.explain_line():
            assert time.monotonic() < until, opened.explain_line()
            time.sleep(0.01)
        opened.stop(drain=False)
        opened.wait()
    assert sorted(cancelled) == [0, 1]


def test_a_drain_waits_for_futures():
    with weir.Graph(chain("FutureValues", parameters={"count": 10**6})) as opened:
        Seen.got = []
        opened.start()
        time.sleep(0.1)
        opened.stop()
        assert opened.wait().stopped
        assert Seen.got == [[i] * 3 for i in range(len(Seen.got))]
        assert opened.counts()["entities"]["a"]["ticks"] == len(Seen.got)


def test_a_result_is_lent_and_has_the_stamp():
    seen = []

    @weir.operator(name="FutureStamped")
    class Stamped(Values):
        def compute(self, ctx):
            ctx.emit("out", self.pool.submit(lambda: np.zeros(2)), stamp=(7, 9))
            ctx.finish()

    @weir.operator(name="FutureLooks")
    class Looks:
        inputs = ["in"]

        def compute(self, ctx):
            message = ctx.receive("in")
            seen.append((message.stamp, message.unique(), np.asarray(message).flags.writeable))

    assert run(chain("FutureStamped", "FutureLooks")).finished
    assert seen == [((7, 9), False, False)]


def test_a_late_future_keeps_its_graph_and_leaks_nothing():
    late = concurrent.futures.Future()

    @weir.operator(name="FutureLate")
    class Late:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.emit("out", late)
            ctx.finish()

    late.set_running_or_notify_cancel()  # nobody cancels it any more
    with weir.Graph(chain("FutureLate")) as opened:
        opened.start()
        time.sleep(0.05)
        opened.stop(drain=False)
        opened.wait()
    del opened
    gc.collect()
    late.set_result(np.zeros(3))


def test_a_waker_pokes_from_any_thread():
    wakers, ready = [], threading.Event()

    @weir.operator(name="FutureSleeps")
    class Sleeps:
        conditions = [{"type": "boolean", "enable_tick": False}]

        def start(self, ctx):
            wakers.append(ctx.waker())
            ready.set()

        def compute(self, ctx):
            pass

    with weir.Graph({"weir": 1, "entities": [{"name": "s", "operator": "FutureSleeps"}]}) as opened:
        opened.start(deadlock_grace=-1)
        ready.wait()
        waker = wakers[0]
        results = []
        thread = threading.Thread(target=lambda: results.append(waker.wake()))
        thread.start()
        thread.join()
        assert results == [True]
        opened.stop()
        opened.wait()
        assert not waker.wake()
    assert not waker.wake()
    assert "Waker of 's'" in repr(waker)


# ---- the ends that do not come


def test_a_result_may_be_a_message_that_the_same_thread_completes():
    """The thread that ends a future does not wait for what it ends next."""
    @weir.operator(name="FutureOfItself")
    class OfItself:
        outputs = ["out", "other"]

        def compute(self, ctx):
            message = ctx.empty((2,), "int64", on_host=True)
            np.asarray(message)[:] = 7
            future = concurrent.futures.Future()
            ctx.emit("other", future)  # its result is complete when the next one is, which the same call completes
            ctx.emit("out", message, at=future)
            threading.Thread(target=future.set_result, args=[message]).start()
            ctx.finish()

    graph = chain("FutureOfItself")
    graph["connections"].append(["a.other", "z.in"])
    assert run(graph, max_duration=20).finished
    assert Seen.got == [[7, 7]] * 2


def test_a_coroutine_may_return_a_message_of_another_one():
    @weir.operator(name="FutureOfOther")
    class OfOther:
        outputs = ["out", "other"]

        def compute(self, ctx):
            message = ctx.empty((2,), "int64", on_host=True)
            self.begun = asyncio.Event()
            ctx.emit("out", message, at=self.fill(np.asarray(message)))
            ctx.emit("other", self.give(message))
            ctx.finish()

        async def fill(self, array):
            await self.begun.wait()
            await asyncio.sleep(0.01)
            array[:] = 7

        async def give(self, message):
            self.begun.set()
            return message

    graph = chain("FutureOfOther")
    graph["connections"].append(["a.other", "z.in"])
    assert run(graph, max_duration=20).finished
    assert Seen.got == [[7, 7]] * 2


def test_a_result_that_is_never_finished_ends_with_the_run():
    never, given = concurrent.futures.Future(), threading.Event()

    @weir.operator(name="FutureNever")
    class Never:
        outputs = ["out", "other"]

        def compute(self, ctx):
            message = ctx.empty((2,), "int64", on_host=True)
            done = concurrent.futures.Future()
            ctx.emit("out", message, at=never)
            ctx.emit("other", done)
            done.set_result(message)
            ctx.finish()
            given.set()

    graph = chain("FutureNever")
    graph["connections"].append(["a.other", "z.in"])
    with weir.Graph(graph) as opened:
        opened.start()
        given.wait()
        opened.stop(drain=False)
        assert opened.wait(20).stopped
    for thread in threading.enumerate():
        if thread.name == "weir:result":
            thread.join(20)
    assert "weir:result" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("way", ["swallows", "blocks"])
def test_what_goes_on_after_its_cancellation_fails_by_its_name(way, monkeypatch):
    monkeypatch.setattr(weir.futures, "PATIENCE", 0.2)
    begun, over = threading.Event(), threading.Event()

    @weir.operator(name="FutureGoesOn")
    class GoesOn:
        outputs = ["out"]

        async def compute(self, ctx):
            begun.set()
            while way == "swallows":
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    pass
            over.wait(30)

    with weir.Graph(chain("FutureGoesOn", conditions=[{"type": "count", "count": 1}])) as opened:
        opened.start()
        begun.wait()
        time.sleep(0.02)
        opened.stop(drain=False)
        with pytest.raises(weir.Error, match=r"'a': its stop failed.*test_futures.py:\d+.*did not end.*its cancellation") as raised:
            opened.wait(20)
        assert raised.value.entity == "a"
        assert ("GoesOn.compute" if way == "swallows" else "blocks its event loop") in str(raised.value)
        over.set()


def test_a_task_of_a_coroutine_may_clean_up_when_it_is_cancelled():
    begun, ended = threading.Event(), []

    @weir.operator(name="FutureCleansUp")
    class CleansUp:
        outputs = ["out", "other"]

        async def compute(self, ctx):
            try:
                begun.set()
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.05)
                ended.append(True)

    graph = chain("FutureCleansUp", conditions=[{"type": "count", "count": 1}])
    graph["connections"].append(["a.other", "z.in"])
    with weir.Graph(graph) as opened:
        opened.start()
        begun.wait()
        opened.stop(drain=False)
        assert opened.wait(20).stopped
    assert ended == [True]


def test_a_loop_of_the_programs_that_is_closed_first_is_no_traceback(caplog):
    loop, begun = asyncio.new_event_loop(), threading.Event()

    @weir.operator(name="FutureOfClosed")
    class OfClosed:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.emit("out", loop.create_future())
            ctx.finish()
            begun.set()

    with weir.Graph(chain("FutureOfClosed")) as opened:
        opened.start()
        begun.wait()
        loop.close()
        opened.stop(drain=False)
        assert opened.wait(20).stopped
    assert not caplog.records

    with pytest.raises(weir.Error, match="its event loop is closed") as raised:
        run(chain("FutureOfClosed"))
    assert raised.value.entity == "a"
