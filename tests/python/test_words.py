"""What a program does wrong is said in one line that names the place and what to do instead."""

import concurrent.futures
import re

import numpy as np
import pytest

import weir


class Wants:
    inputs = [weir.Port("in", dtype="float32")]

    def compute(self, ctx):
        ctx.receive("in")


def failure(compute, outputs=("out",), sink=None):
    """The text of the run's error, of an operator with that compute before the sink."""
    source = type("Source", (), {"outputs": list(outputs), "compute": lambda self, ctx: compute(ctx)})()
    graph = weir.Graph()
    added = graph.add(source, name="a")
    if outputs:
        added.out >> graph.add(sink() if sink else (lambda x: None), name="z")
    with pytest.raises(weir.Error) as caught:
        graph.run(max_duration=20)
    assert caught.value.entity == "a"
    return str(caught.value)


@pytest.mark.parametrize("compute, outputs, said", [
    (lambda ctx: ctx.emit("out", 1), (), """has no output 'out': it has none; its class lists them, outputs = \\["out"\\]"""),
    (lambda ctx: ctx.receive("in"), ["out"], """has no input 'in': it has none; its class lists them, inputs = \\["in"\\]"""),
    (lambda ctx: ctx.emit("aut", 1), [weir.Port("out"), weir.Port("more", optional=True)], "has no output 'aut'; its outputs are 'out', 'more'"),
    (lambda ctx: ctx.emit(-1, 1), ["out"], "has no output -1; its outputs are 'out'"),
    (lambda ctx: ctx.emit(2**70, 1), ["out"], "has no output 1180591620717411303424; its outputs are 'out'"),
    (lambda ctx: ctx.emit(np.zeros(3), 1), ["out"], "has no output by an object of the type 'ndarray'; its outputs are 'out'"),
    (lambda ctx: ctx.emit(np.zeros(3), "out"), ["out"], r"the arguments of emit are swapped: ctx.emit\('out', value\)"),
    (lambda ctx: ctx.emit(None, "out"), ["out"], r"the arguments of emit are swapped: ctx.emit\('out', value\)"),
], ids=range(8))
def test_a_port_that_is_not_there(compute, outputs, said):
    text = failure(compute, outputs)
    assert re.search(said, text), text


@pytest.mark.parametrize("value, call, said", [
    (np.zeros(3), lambda message: message.mean(), r"a Message has no attribute 'mean'; np.asarray\(message\) is its array"),
    (np.zeros(3), lambda message: message[0], r"np.asarray\(message\)\[...\] is for the elements of its array"),
    (b"text", lambda message: message.decode(), r"no attribute 'decode'; bytes\(message\) are its bytes"),
    ({1, 2}, lambda message: message.pop(), "no attribute 'pop'; message.object is what was emitted"),
    ({"a": b"x"}, lambda message: message.get("a"), r"no attribute 'get'; message\[\"name\"\] and message.parts are its parts"),
    (None, lambda message: message.mean(), "no attribute 'mean'; it is empty"),
], ids=range(6))
def test_what_a_message_is_not(value, call, said):
    graph = weir.Graph()
    entity = graph.add("pass")
    inlet, outlet = graph.inlet(entity["in"]), graph.outlet(entity.out, 1)
    with graph.start():
        inlet.push(value)
        message = outlet.take()
        with pytest.raises((AttributeError, TypeError), match=said):
            call(message)
        assert not hasattr(message, "__array_struct__") and not hasattr(message, "mean")


def test_a_future_into_a_port_with_a_dtype_names_the_way():
    later = lambda ctx: ctx.emit("out", concurrent.futures.Future())  # noqa: E731
    way = r"whose result travels as an object, on output 'out', and {} takes none, .*ctx.emit\(port, array, at=future\)"
    assert re.search(way.format("z.in"), failure(later, sink=Wants))
    assert re.search(way.format("a.out"), failure(later, [weir.Port("out", dtype="float32", optional=True)]))


def test_an_object_into_a_port_with_a_dtype_names_the_port():
    text = failure(lambda ctx: ctx.emit("out", weir.Object(1)), sink=Wants)
    assert "an object of Python was emitted on output 'out', and z.in takes none, by its dtype, shape or kinds" in text


def test_ends_are_made_before_the_start():
    graph = weir.Graph()
    entity = graph.add("ping", conditions=[{"type": "count", "count": 1}])
    sink = graph.add("pass")
    entity >> sink >> graph.add(lambda x: None)
    graph.run()
    for make, word in ((lambda: graph.outlet(entity.out), "outlet of ping.out"), (lambda: graph.inlet(sink["in"]), "inlet of pass.in")):
        with pytest.raises(weir.Error, match=f"{word}: the graph has been started: create {word[:6].strip()}s before its first start"):
            make()
    graph.close()
    graph.outlet(entity.out)


def test_an_object_that_is_emitted_while_the_graph_ends_is_refused():
    said = []

    class Emits:
        outputs = ["out"]

        def compute(self, ctx):
            pass

        def stop(self, ctx):
            try:
                ctx.emit("out", 1)
            except weir.Error as error:
                said.append(str(error))

    graph = weir.Graph()
    graph.add(Emits()) >> graph.add(lambda x: None)
    graph.start()
    graph.close()
    assert said == ["emits: emit is for compute only"]
