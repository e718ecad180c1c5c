"""What would be lost without a word is refused, or said."""

import asyncio
import gc
import logging
import threading
import time

import numpy as np
import pytest
from test_life import script

import weir


def test_what_compute_returns_is_refused_by_name():
    class Returns:
        outputs = ["out"]

        def compute(self, ctx):
            return np.zeros(3)

    graph = weir.Graph()
    graph.outlet(graph.add(Returns())["out"], 1)
    with pytest.raises(weir.Error, match="compute returned ndarray, which nobody gets: emit it") as caught:
        graph.start().wait()
    assert caught.value.entity == "returns" and isinstance(caught.value.__cause__, TypeError)


def test_a_loop_over_an_outlet_before_the_first_start_is_refused():
    graph = weir.Graph()
    outlet = graph.outlet(graph.add("ping", conditions=[{"type": "count", "count": 3}])["out"], 4)
    with pytest.raises(weir.Error, match="outlet of ping.out: no run is on: start the graph, then take"):
        list(outlet)
    with graph.start():
        assert len(list(outlet)) == 3


def test_a_wait_that_ends_before_the_run_says_what_it_waits_for():
    graph = weir.Graph()
    outlet = graph.outlet(graph.add("ping", conditions=[{"type": "count", "count": 3}])["out"], 1)
    with graph.start():
        with pytest.raises(weir.Timeout, match="the run goes on: .*outlet"):
            graph.wait(0.2)
        assert len(list(outlet)) == 3


# ---- a run that nobody can end


def pings(count=3, capacity=4):
    graph = weir.Graph()
    return graph, graph.outlet(graph.add("ping", conditions=[{"type": "count", "count": count}])["out"], capacity)


def test_a_run_whose_outlet_nobody_can_read_is_refused():
    graph, outlet = pings()
    with pytest.raises(weir.Error, match="run.. takes no messages.* outlet of ping.out .*take them in `with graph.start") as caught:
        graph.run()
    assert caught.value.status == weir.Status.STATE and not graph.running
    with pytest.raises(weir.Error, match="left behind: outlet of 'ping.out'"):
        for duration in (0.05, 0.5, 5):  # that ends, on a busy machine perhaps before the first message
            graph.run(max_duration=duration, drain=0.01)

    def take():
        while not graph.running:
            time.sleep(0.001)
        list(outlet)

    taker = threading.Thread(target=take)
    taker.start()
    assert graph.run(max_duration=20).finished
    taker.join()


def test_a_wait_for_messages_that_only_this_thread_could_take_is_refused():
    graph, outlet = pings()
    graph.start()
    with pytest.raises(weir.Error, match="the outlet of ping.out has messages, and no other thread is there to take them"):
        graph.wait()
    assert len(list(outlet)) == 3 and graph.wait().finished
    with pytest.raises(weir.Error, match="the outlet of ping.out has messages"):
        with graph.start():
            pass
    assert not graph.running


def test_a_push_that_waits_for_messages_that_only_this_thread_could_take_is_refused():
    graph = weir.Graph()
    entity = graph.add("pass")
    inlet, outlet = graph.inlet(entity["in"]), graph.outlet(entity.out, 2)
    graph.start()
    with pytest.raises(weir.Error, match="push into pass.in waits for room while the outlet of pass.out is full, .*push in a thread"):
        for _ in range(100):
            inlet.push(b"x")
    taken = 0
    while outlet.take(0.2 if taken < 3 else 5) and taken < 2:
        taken += 1
    inlet.push(b"x")  # there is room again
    inlet.close()
    list(outlet)
    graph.wait()


def test_a_push_waits_for_a_compute_that_takes_long():
    class Slow:
        inputs, outputs = ["in"], ["out"]

        def compute(self, ctx):
            time.sleep(0.3)
            ctx.emit("out", b"x")

    graph = weir.Graph()
    entity = graph.add(Slow())
    inlet, outlet = graph.inlet(entity["in"]), graph.outlet(entity.out, 8)
    with graph.start():
        for _ in range(4):
            inlet.push(b"x")
        inlet.close()
        assert len(list(outlet)) == 4


def test_a_run_whose_outlet_nobody_reads_beside_other_threads_says_so():
    found = script("""
import logging
class Lines(logging.Handler):
    def emit(self, record):
        print("LINE", record.levelname, "ping.out" in record.getMessage(), flush=True)
        graph.stop(False)
logging.getLogger("weir").addHandler(Lines())
threading.Thread(target=time.sleep, args=[10], daemon=True).start()
graph = weir.Graph()
graph.outlet(graph.add("ping", conditions=[{"type": "count", "count": 3}])["out"], 4)
print(graph.run().stopped)
""")
    assert found == ["LINE", "WARNING", "True", "True"]


# ---- a run that failed


class Breaks:
    inputs = [weir.Port("in", optional=True)]
    outputs = [weir.Port("out", optional=True)]

    def compute(self, ctx):
        ctx.emit("out", ctx.tick)
        if ctx.tick == 2:
            raise ValueError("the third is broken")


def broken(**more):
    graph = weir.Graph()
    entity = graph.add(Breaks(), name="b", **more)
    return graph, graph.outlet(entity.out, 8)


def check_error(error):
    assert error.entity == "b" and isinstance(error.__cause__, ValueError) or isinstance(error.__cause__.__cause__, ValueError)
    assert "the third is broken" in str(error) and error.outcome and error.cause == "compute"


def test_a_loop_over_an_outlet_raises_what_the_run_failed_by():
    for _ in range(20):
        graph, outlet = broken()
        graph.start()
        seen = []
        with pytest.raises(weir.Error, match="'b': ValueError: the third is broken") as caught:
            for message in outlet:
                seen.append(message.object)
        check_error(caught.value)
        assert seen == [0, 1][:len(seen)]
        with pytest.raises(weir.Error, match="'b': ValueError"):
            graph.wait()


def test_a_loop_in_asyncio_raises_what_the_run_failed_by():
    async def use():
        graph, outlet = broken()
        async with graph.start():
            return [message.object async for message in outlet]

    with pytest.raises(weir.Error, match="'b': ValueError: the third is broken") as caught:
        asyncio.run(use())
    check_error(caught.value)


def test_a_loop_of_a_failed_run_leaves_its_counts():
    graph, outlet = broken()
    with pytest.raises(weir.Error, match="ValueError"):
        with graph.start():
            list(outlet)
    assert graph.counts()["entities"]["b"]["ticks"] == 2  # and the third, which failed


def test_a_loop_whose_outlet_the_program_closes_does_not_wait_for_the_run(monkeypatch):
    monkeypatch.setattr(weir.ended, "AT_LAST", 3600)
    graph, outlet = pings(count=10**9)
    graph.start()
    for _ in outlet:
        outlet.close()
    assert graph.running
    graph.stop()
    assert graph.wait().stopped


def test_push_and_take_of_a_failed_run_say_why():
    graph = weir.Graph()
    entity = graph.add(Breaks(), name="b")
    inlet, outlet = graph.inlet(entity["in"]), graph.outlet(entity.out, 8)
    graph.start()

    def push():
        while True:
            inlet.push(b"x")

    async def push_async():
        await inlet.push_async(b"x")

    def take():
        while True:
            outlet.take()

    for call in (push, lambda: asyncio.run(push_async()), take, lambda: asyncio.run(outlet.take_async())):
        with pytest.raises(weir.Closed, match="the run has failed: 'b': ValueError: the third is broken") as caught:
            call()
        check_error(caught.value)


def test_a_failed_run_that_nobody_asks_for_is_logged(caplog):
    def start():
        graph, _ = broken()
        graph.start()
        while graph.running:
            time.sleep(0.001)
        return graph

    for end in (lambda graph: graph.close(), lambda graph: None):
        caplog.clear()
        graph = start()
        end(graph)
        del graph
        gc.collect()
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert "nobody asked" in caplog.text and "'b': ValueError: the third is broken" in caplog.text
    caplog.clear()
    graph = start()
    with pytest.raises(weir.Error):
        graph.wait()
    del graph
    gc.collect()
    assert not caplog.records


def test_a_failed_run_that_nobody_asked_for_is_logged_at_exit():
    script("""
@weir.operator
class Wrong:
    def compute(self, ctx): raise ValueError("wrong")
graph = weir.Graph({"weir": 1, "entities": [{"name": "w", "operator": "Wrong"}]})
graph.start()
while graph.running: time.sleep(0.001)
""", allowed="'w': ValueError: wrong (<string>:22)\n")
