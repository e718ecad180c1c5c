"""Several ticks of one entity at once: "instances"."""

import threading
import time

import pytest

import weir

made = []
both = threading.Barrier(2, timeout=20)


class Square:
    """Squares numbers, two at a time: neither tick is done before the other has begun."""

    inputs, outputs, instances = ["in"], ["out"], True

    def start(self, ctx):
        made.append(self)

    def compute(self, ctx):
        both.wait()
        time.sleep(0.004 if ctx.tick % 2 == 0 else 0)
        ctx.emit("out", ctx.receive("in").object ** 2)


class Alone:
    """Says nothing of instances."""

    inputs = ["in"]

    def compute(self, ctx):
        pass


def test_several_ticks_run_at_once_and_their_outputs_keep_the_order():
    made.clear()
    with weir.Graph() as graph:
        square = graph.add(Square, name="square", instances=2, ports={"in": {"capacity": 8}})
        inlet, outlet = graph.inlet(square["in"]), graph.outlet(square["out"], capacity=8)
        with graph.start(backend="host", workers=2):
            for number in range(8):
                inlet.push(number)
            seen = [outlet.take(20).object for _ in range(8)]
        counts = graph.counts()["entities"]
    assert seen == [number ** 2 for number in range(8)]
    assert list(counts) == ["square"] and counts["square"]["ticks"] == 8
    assert counts["square"]["instances"] == 2 and counts["square"]["unsent"] == 0
    assert len(made) == 2 and made[0] is not made[1]


def test_an_operator_that_does_not_say_so_has_none():
    with weir.Graph() as graph:
        with pytest.raises(weir.Error, match="does not say that several of its ticks may run at once"):
            graph.add(Alone, instances=2)
            graph.check()


def test_the_attribute_is_a_bool():
    class Wrong(Alone):
        instances = 2

    with weir.Graph() as graph:
        with pytest.raises(TypeError, match="instances"):
            graph.add(Wrong)
