"""Arrays that are made ahead of the tick that emits them: Port(ahead=...), ctx.reserve."""

import numpy as np
import pytest
from conftest import graph_of

import weir


@weir.operator
class Buffers:
    """Makes as many arrays as it gets memory for, then emits one in each tick, filled."""

    outputs = [weir.Port("out", ahead=3)]
    parameters = {"count": 3}

    def start(self, ctx):
        self.kept, self.got = [], [ctx.reserve(0)]

    def compute(self, ctx):
        if ctx.tick == 0:
            self.got += [ctx.reserve(5), ctx.reserve(2), ctx.reserve(3)]
            self.kept = [ctx.empty((4,), "float32", on_host=True) for _ in range(self.got[-1])]
            self.got += [ctx.reserve(1)]
            return
        array = self.kept.pop(0)
        np.asarray(array)[:] = ctx.tick
        ctx.emit("out", array)
        if not self.kept:
            ctx.finish()


def pooled(blocks):
    graph = graph_of(("a", "Buffers"), ("b", "Collect"))
    graph["resources"] = {"frames": {"type": "memory_pool", "place": "host", "block_size": 64, "blocks": blocks}}
    graph["entities"][0]["resources"] = ["frames"]
    return graph


def test_an_operator_that_has_all_blocks_of_its_pool_goes_on_to_emit_them():
    """A claim for each tick would wait for what only that tick gives away."""
    with weir.Graph(pooled(3)) as graph:
        graph.run(backend="host")
        assert [list(a) for a in graph["b"].instance.seen] == [[1] * 4, [2] * 4, [3] * 4]
        assert graph["a"].instance.got == [0, 3, 2, 3, 0]  # at most `ahead`; then the pool is empty


def test_fewer_are_reserved_where_the_pool_has_fewer():
    with weir.Graph(pooled(2)) as graph:
        graph.run(backend="host")
        assert graph["a"].instance.got == [0, 2, 2, 2, 0] and len(graph["b"].instance.seen) == 2


def test_without_a_pool_there_is_memory_for_all():
    with weir.Graph(graph_of(("a", "Buffers"), ("b", "Collect"))) as graph:
        graph.run(backend="host")
        assert graph["a"].instance.got[-2] == 3 and len(graph["b"].instance.seen) == 3


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"inputs": [weir.Port("in", ahead=1)]}, "inputs[0] 'in': ahead is for outputs"),
        ({"outputs": [weir.Port("out", ahead=-1)]}, "outputs[0] 'out': ahead is a number from 1 to 65536"),
        ({"outputs": [weir.Port("out", ahead=1)], "instances": True}, "'out' has 'ahead', which no operator with instances has"),
    ],
)
def test_what_cannot_be_is_refused_where_the_class_is_written(attributes, why):
    with pytest.raises(TypeError) as caught:
        weir.operator(type("Wrong", (), {"compute": lambda self, ctx: None, **attributes}))
    assert why in str(caught.value)
