"""Graphs that are built in Python: add, connect, `>>`, functions as operators, entities, to_json."""

import asyncio
import dataclasses
import functools
import gc
import json
import pathlib
import subprocess
import weakref

import numpy as np
import pytest

import weir

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Camera:
    """Emits pictures of one value each."""

    outputs = ["out"]

    def __init__(self, device, count=3):
        self.device, self.count = device, count

    def compute(self, ctx):
        ctx.emit("out", np.full((2, 2), ctx.tick, np.uint8))
        if ctx.tick + 1 == self.count:
            ctx.finish()


class Show:
    inputs = ["in"]

    def __init__(self, look=lambda picture: picture[0, 0]):
        self.look, self.seen = look, []

    def compute(self, ctx):
        self.seen.append(int(self.look(np.asarray(ctx.receive("in")))))


class Join:
    """Has as many inputs as its constructor says."""

    outputs = ["out"]

    def __init__(self, count):
        self.inputs = [f"in{i}" for i in range(count)]

    def compute(self, ctx):
        ctx.emit("out", sum(ctx.receive(port).object for port in self.inputs))


@weir.operator
class Ramp:
    """Numbers, registered."""

    outputs = ["out"]
    step = weir.parameter(1, "from one to the next", min=1, max=100)
    parameters = {"count": 3}

    def compute(self, ctx):
        ctx.emit("out", ctx.tick * self.step)
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
def threshold(picture, level=1):
    """Black and white."""
    return np.where(picture < level, 0, 255).astype(np.uint8)


@weir.operator
def upto(count=3):
    yield from range(count)


def refused(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert "\n" not in str(caught.value)


def run(graph):
    return graph.run(backend="host", workers=1)


# ---- entities


def test_objects_functions_and_built_in_operators_make_a_graph():
    graph = weir.Graph()
    camera = graph.add(Camera(device=np.int64(0), count=4))
    show = camera >> graph.add("pass") >> graph.add(threshold, level=np.int32(2)) >> graph.add(Show(look=np.max), name="eye")
    assert run(graph).ticks == 16 and show.instance.seen == [0, 0, 255, 255]
    assert list(graph) == ["camera", "pass", "threshold", "eye"] and camera.counts["ticks"] == 4
    assert camera.instance.device == 0 and graph["threshold"].parameters == {"level": 2}


def test_the_receiver_is_what_a_connection_gives():
    graph = weir.Graph()
    a, b = graph.add(Ramp()), graph.add("sink")
    assert (a.out >> b["in"]) == b and graph.connect(graph.add("ping"), b, capacity=4, policy="pop") == b
    assert weir.show(graph, format="json").count('"capacity": 4, "take": 1, "policy": "pop"') == 1


def test_an_object_is_the_same_in_each_run_and_a_class_makes_a_new_one():
    graph = weir.Graph()
    camera, show = graph.add(Camera(0)), graph.add(Show)
    camera >> show
    first = run(graph) and show.instance
    assert run(graph) and show.instance is not first and graph["camera"].instance is camera.instance
    graph.close()
    assert run(graph) and first.seen == show.instance.seen == [0, 1, 2]


def test_entities_are_called_as_their_operators_with_a_number_from_the_second_on():
    graph = weir.Graph()
    names = [graph.add(each).name for each in ("blur", "blur", Camera(0), Camera(0), threshold, threshold, lambda x: x, lambda x: x)]
    assert names == ["blur", "blur2", "camera", "camera2", "threshold", "threshold2", "lambda", "lambda2"]


def test_an_entity_says_what_it_is():
    graph = weir.Graph(name="edges")
    blur = graph.add("blur", radius=3)
    assert repr(blur) == "<weir.Entity 'blur': blur(in) -> out>" and repr(blur["in"]) == "<weir.End blur.in>"
    assert list(blur) == ["in", "out"] and len(blur) == 2 and "in" in blur and "x" not in blur and blur
    assert blur.parameters == {"radius": 3} and blur.operator == "blur" and str(blur.out) == "blur.out"
    assert blur == graph["blur"] and {blur: 1}[graph["blur"]] and blur.out == blur["out"] and {blur.out, blur["out"]} == {blur.out}
    assert {"out", "instance", "counts"} <= set(dir(blur)) and repr(graph) == "<weir.Graph 'edges', not running>"


def test_parameters_of_a_file_and_of_set_are_those_of_the_entity(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"weir": 1, "entities": [{"name": "b", "operator": "blur"}]}))
    assert weir.Graph.read(path)["b"].parameters["radius"] == 2 and weir.Graph.read(path, set=["b.radius=7"])["b"].parameters["radius"] == 7


def test_what_the_constructor_sets_is_the_parameter_of_its_name():
    class Own(Ramp):
        def __init__(self, step):
            self.step = step

    graph = weir.Graph()
    own = graph.add(Own(np.int64(5)), count=2)
    seen = []
    own >> graph.add(lambda value: seen.append(value))
    run(graph)
    assert seen == [0, 5] and own.parameters == {"step": 5, "count": 2} and Ramp().step == 1


def test_a_dataclass_is_an_operator():
    @dataclasses.dataclass
    class Add:
        by: int
        inputs = ["in"]
        outputs = ["out"]

        def compute(self, ctx):
            ctx.emit("out", ctx.receive("in").object + self.by)

    graph, seen = weir.Graph(), []
    graph.add(upto) >> graph.add(Add(by=10)) >> graph.add(Add(by=5)) >> graph.add(lambda x: seen.append(x))
    run(graph)
    assert seen == [15, 16, 17]


def test_objects_of_one_class_may_have_ports_of_their_own():
    graph, seen = weir.Graph(), []
    two, three = graph.add(Join(2)), graph.add(Join(3))
    for i, (source, join) in enumerate([(upto, two), (upto, two), (upto, three), (upto, three), (two, three)]):
        begin = source if source is two else graph.add(source)
        graph.connect(begin, join[f"in{i % 2 if join is two else i - 2}"])
    three >> graph.add(lambda x: seen.append(x))
    run(graph)
    assert seen == [0, 4, 8] and (two.operator, three.operator) == ("Join", "Join2")


def test_conditions_resources_and_settings_are_those_of_a_file():
    graph = weir.Graph()
    pool = graph.add_resource("frames", "memory_pool", block_size="1MiB", blocks=8)
    ping = graph.add("ping", conditions=[{"type": "count", "count": 2}, "boolean"], max_in_flight=3, effects=True)
    ping >> graph.add("sink", ports={"in": {"capacity": 8}}, resources=[pool])
    text = weir.show(graph)
    assert all(word in text for word in ("when count ", "when boolean", "capacity 8", "frames"))


# ---- errors


def built():
    graph = weir.Graph()
    return graph, graph.add("ping"), graph.add("blur"), graph.add("sink"), graph.add(Join(2))


@pytest.mark.parametrize("call, kind, text", [
    (lambda g, a, b, s, j: g.add("blurr"), weir.Error, "/entities/blurr/operator: there is no operator 'blurr' .did you mean 'blur'"),
    (lambda g, a, b, s, j: g.add("blur", radiuss=3), weir.Error, "/entities/blur2/parameters/radiuss: .* .did you mean 'radius'"),
    (lambda g, a, b, s, j: g.add("blur", radius=object()), TypeError, "entity 'blur2': <object .* constructor of a class"),
    (lambda g, a, b, s, j: g.add("blur", name="blur"), ValueError, "there is an entity 'blur' already: give this one another name"),
    (lambda g, a, b, s, j: g.add("blur", conditions="boolean"), TypeError, r"conditions is a list, not one: \['boolean'\]"),
    (lambda g, a, b, s, j: g.add("blur", resources=["x"]), weir.Error, "there is no resource 'x'"),
    (lambda g, a, b, s, j: g.add(3), TypeError, "3 is no operator: add the name of one, an object with compute"),
    (lambda g, a, b, s, j: g.add(Camera), TypeError, r"class Camera: __init__: .* graph.add\(Camera\(...\)\)"),
    (lambda g, a, b, s, j: g.add(j.instance), ValueError, "this object of class Join is the entity 'join' of this graph already"),
    (lambda g, a, b, s, j: weir.Graph().add(j.instance), ValueError, "is the entity 'join' of another graph already"),
    (lambda g, a, b, s, j: g.add_resource("m", "memory_pul"), weir.Error, "memory_pul"),
    (lambda g, a, b, s, j: a >> j, ValueError, r"entity 'join' has 2 inputs, in0, in1: name one, as join\['in0'\]"),
    (lambda g, a, b, s, j: s >> b, ValueError, "entity 'sink' has no output"),
    (lambda g, a, b, s, j: b["x"], KeyError, "entity 'blur' has no port 'x'; its ports are: in, out"),
    (lambda g, a, b, s, j: b.x, AttributeError, r"no port 'x'; .* graph\['blur'\].instance"),
    (lambda g, a, b, s, j: g.connect(a, b["out"]), ValueError, "entity 'blur' has no input 'out'; its inputs are: in"),
    (lambda g, a, b, s, j: (a >> b, a.out >> b["in"]), ValueError, "ping.out is connected with blur.in already"),
    (lambda g, a, b, s, j: b >> b, ValueError, "blur.out -> blur.in: an entity is not connected with itself: put a 'pass' between"),
    (lambda g, a, b, s, j: a >> Show(), TypeError, r"is no entity of the graph: add it first: graph.add\(...\)"),
    (lambda g, a, b, s, j: a >> weir.Graph().add("sink"), ValueError, "entity 'sink' is of another graph"),
    (lambda g, a, b, s, j: g.connect("pong.out", b), KeyError, "no entity 'pong'; there are: ping, blur, sink, join"),
    (lambda g, a, b, s, j: (g.connect(a, s, capacity=4), g.connect(b, s, capacity=5)), ValueError, "capacity of sink.in is 4 already"),
    (lambda g, a, b, s, j: b.instance, weir.Error, "'blur' is of an operator in C"),
    (lambda g, a, b, s, j: g.run(), weir.Error, "ping.out: this output is .*connected"),
    (lambda g, a, b, s, j: weir.Graph({"weir": 1, "entities": []}, name="x"), TypeError, "has its name there"),
])
def test_a_mistake_is_named_with_its_place(call, kind, text):
    refused(lambda: call(*built()), kind, text)


def test_a_refused_call_leaves_the_graph_as_it_was():
    graph, a, b, s, _ = built()
    before = graph.to_json()
    for call in (lambda: graph.add("blur", radiuss=3), lambda: graph.connect(a, b, capacity="four"), lambda: graph.add("sink", name="sink")):
        try:
            call()
        except (TypeError, ValueError, weir.Error):
            assert graph.to_json() == before


def test_a_graph_that_was_started_is_not_changed():
    graph = weir.Graph()
    ping = graph.add("ping", conditions=[{"type": "count", "count": 1}])
    ping >> graph.add("sink")
    run(graph)
    for call in (lambda: graph.add("sink"), lambda: graph.connect(ping, "sink.in"), lambda: graph.add_resource("x", "stream_pool")):
        refused(call, weir.Error, "the graph has been started: add and connect before its first start")


def test_an_object_may_go_to_another_graph_when_its_graph_is_gone():
    show = Show()
    graph = weir.Graph()
    gone = weakref.ref(graph)
    graph.add(show)
    del graph
    gc.collect()
    assert gone() is None and weir.Graph().add(show).name == "show"


def test_an_added_object_that_keeps_its_graph_is_collected():
    graph = weir.Graph()
    camera = Camera(0)
    camera.graph, gone = graph, weakref.ref(graph)
    graph.add(camera) >> graph.add(Show())
    run(graph)
    del graph, camera
    gc.collect()
    assert gone() is None


# ---- names of operators


def test_operators_of_one_name_do_not_meet_in_two_graphs():
    def another():
        class Show:
            inputs = ["other"]

            def compute(self, ctx):
                pass

        return Show

    first, second = weir.Graph(), weir.Graph()
    assert first.add(Show()).operator == second.add(another()()).operator == "Show" and list(second["show"]) == ["other"]
    refused(lambda: first.add(another()()), TypeError, "class Show: this graph has another operator 'Show', class test_build.Show: give one")
    assert "Show" not in weir.operators()


def test_an_operator_that_was_registered_anew_is_not_mixed_with_the_one_before():
    def make():
        @weir.operator
        class Anew:
            def compute(self, ctx):
                ctx.finish()

    make()
    graph = weir.Graph()
    graph.add("Anew")
    make()
    refused(lambda: graph.add("Anew"), TypeError, "operator 'Anew' was registered anew since this graph took it: make the graph anew")
    assert weir.Graph().add("Anew") and run(graph).finished


# ---- functions


def test_a_function_is_an_operator_of_a_graph_file():
    graph = weir.Graph({"weir": 1, "entities": [{"name": "u", "operator": "upto", "parameters": {"count": 2}}, {"name": "s", "operator": "sink"}],
                        "connections": [["u.out", "s.in"]]})
    assert run(graph).ticks == 5 and threshold(np.zeros(1), 0)[0] == 255 and weir.operators()["upto"] is upto


def test_what_a_function_returns_is_emitted():
    seen = {"left": [], "right": [], "nothing": []}

    @weir.operator(outputs=["left", weir.Port("right")], effects=True)
    def halves(value: int, ctx: weir.Context):
        return value, None if ctx.tick == 1 else {"tick": np.int32(ctx.tick)}

    graph = weir.Graph()
    both = graph.add(upto) >> graph.add(halves)
    both.left >> graph.add(lambda left: seen["left"].append(left))
    both.right >> graph.add(lambda right: seen["right"].append(int(right["tick"])))
    run(graph)
    assert seen == {"left": [0, 1, 2], "right": [0, 2], "nothing": []}


def test_a_function_gets_values_or_the_message():
    seen = []

    def look(value, whole: weir.Message, scale: float = 2) -> None:
        seen.append((value, whole.kind, scale))

    def both():
        yield b"xy"
        yield None
        yield {"a": b"z"}
        yield "text"

    graph = weir.Graph()
    source, sink = graph.add(both), graph.add(look)
    graph.add(upto, count=3) >> sink["whole"]
    source >> sink["value"]
    run(graph)
    assert seen[0] == (b"xy", "object", 2.0) and [type(s[2]) for s in seen] == [float] * 3 and sink.outputs == []
    assert [s[0] for s in seen[1:]] == [{"a": b"z"}, "text"]


def test_an_async_function_is_awaited_and_its_order_kept():
    @weir.operator
    async def later(value, scale=2):
        await asyncio.sleep(0.02 if value == 0 else 0)
        return value * scale

    @weir.operator(outputs=["a", "b"])
    async def both(value):
        return value, -value

    graph, seen = weir.Graph(), {"a": [], "b": []}
    two = graph.add(upto, count=4) >> graph.add(later, scale=3) >> graph.add(both)
    for name in seen:
        two[name] >> graph.add(lambda x, name=name: seen[name].append(x), name=name)
    run(graph)
    assert seen == {"a": [0, 3, 6, 9], "b": [0, -3, -6, -9]}


@pytest.mark.parametrize("function, text", [
    (lambda x, model=None: x, "model=None: a parameter has a default of a type that a graph file has"),
    (lambda picture, *more: None, r"the argument \*more: an operator's arguments have names; \*args alone is one input, `in`"),
    (lambda **more: None, r"the argument \*\*more: an operator's arguments have names"),
    (lambda x, mode={1}: x, "parameters\\['mode'\\]"),
])
def test_a_function_that_is_no_operator_is_refused(function, text):
    refused(lambda: weir.operator(name="wrong")(function), TypeError, f"function lambda: {text}")


class Model:
    """As torch's modules are called."""

    def __call__(self, *args, **kwargs):
        assert len(args) == 1 and not kwargs
        return 2 * args[0]


class Masked:
    def __call__(self, x, mask=None, by=2, /, names=(), *, offset=0, **kwargs):
        return by * x + offset if mask is None and names == () else None


def placed(x, by=2, /, *, offset=0):
    return by * x + offset


@pytest.mark.parametrize("thing, name, inputs, parameters, result", [
    (Model(), "model", ["in"], {}, 6),
    (functools.partial(Model()), "model", ["in"], {}, 6),
    (Model().__call__, "__call__", ["in"], {}, 6),
    (lambda *args: args[0] + 1, "lambda", ["in"], {}, 4),
    (Masked(), "masked", ["x"], {"offset": 0}, 6),  # by has no place, as mask stays
    (placed, "placed", ["x"], {"by": 2, "offset": 0}, 6),
    (functools.partial(placed, offset=5), "placed", ["x"], {"by": 2, "offset": 5}, 11),
    (functools.partial(Masked(), names=()), "masked", ["x"], {"offset": 0}, 6),
    (abs, "abs", ["x"], {}, 3),
    (np.negative, "negative", ["x"], {"where": True, "casting": "same_kind", "order": "K", "subok": True}, -3),
    (np.mean, "mean", ["a"], {}, 3),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_called_by_places_is_an_operator(thing, name, inputs, parameters, result):
    entity = weir.Graph().add(thing)
    assert entity.name == name and [end.port for end in entity.inputs] == inputs
    if thing is not np.negative:  # whose keywords differ from one NumPy to the next
        assert entity.parameters == parameters
    found = weir.testing.run(thing, {inputs[0]: [np.array([3.0])]})
    assert np.ravel(found.emitted["out"][0]).tolist() == [result]


def test_a_default_that_a_partial_binds_is_a_parameter():
    found = weir.testing.run(functools.partial(placed, offset=5), {"x": [np.array([3.0])]}, offset=7)
    assert found.emitted["out"][0].tolist() == [13]


def test_a_function_whose_value_does_not_fit_its_outputs_ends_the_run():
    for outputs, value, text in ((["a", "b"], 3, "returned int: return a tuple of 2 values for a, b"), ([], 3, "returned int and has no outputs")):
        @weir.operator(name="unfit", outputs=[weir.Port(name, optional=True) for name in outputs])
        def unfit():
            return value

        graph = weir.Graph()
        graph.add(unfit)
        refused(lambda: run(graph), weir.Error, text)


def test_what_can_be_called_is_a_function():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, value: int):
            return value * self.by

        def also(self, value, plus=1):
            return value * self.by + plus

    def add(value, other, by):
        return value + other + by

    graph, seen = weir.Graph(), []
    at = graph.add(upto)
    for each in (Scale(2), Scale(3), Scale(2).also, functools.partial(add, other=10, by=object() and 5), functools.partial(add, 1, by=0)):
        at = at >> graph.add(each)
    at >> graph.add(lambda x: seen.append(x))
    run(graph)
    assert seen == [17, 29, 41] and list(graph)[1:6] == ["scale", "scale2", "also", "add", "add2"] and graph["also"].parameters == {"plus": 1}
    refused(lambda: weir.Graph().add(max), TypeError, "function max: it does not say what its arguments are")


def test_what_can_be_called_has_another_name_than_an_operator_in_c(capsys):
    graph = weir.Graph()
    graph.add(upto, count=2) >> graph.add(print, end=";")
    run(graph)
    assert list(graph) == ["upto", "print_"] and capsys.readouterr().out == "0;1;"


def test_a_generator_with_inputs_is_refused():
    def wrong(x):
        yield x

    refused(lambda: weir.operator(wrong), TypeError, "function wrong: it yields and has the input 'x'")


# ---- JSON


def test_what_was_built_is_the_graph_of_its_json(tmp_path):
    graph = weir.Graph(name="edges")
    ramp = graph.add("Ramp", count=4, step=2)
    graph.connect(ramp, graph.add("sink"), capacity=3, initial_messages=1)
    again = weir.Graph(graph.to_json())
    assert again.to_json() == graph.to_json() and weir.show(again) == weir.show(graph) and run(again).ticks == run(graph).ticks
    assert "comment" not in graph.to_json() and weir.check(graph) == weir.check(again)


def test_the_json_says_what_is_not_in_it():
    graph = weir.Graph()
    graph.add(Camera(0)) >> graph.add(threshold) >> graph.add(Show)
    entities = {entity["name"]: entity for entity in json.loads(graph.to_json())["entities"]}
    assert "its object is one of the program, and is not in this file" in entities["camera"]["comment"]
    assert "needs it registered, by weir.operator" in entities["show"]["comment"] and "comment" not in entities["threshold"]


def test_the_json_of_an_object_of_a_registered_class_is_refused():
    @weir.operator
    class Detects:
        inputs = ["in"]

        def __init__(self, model=None):
            self.model = model

        def compute(self, ctx):
            pass

    graph = weir.Graph()
    graph.add(upto, count=1) >> graph.add(Detects("a model"), name="found")
    refused(graph.to_json, weir.Error, r"'found': a graph file cannot tell its object, and would run with a new Detects\(\) in its place: add .*graph.add\(Detects")
    run(graph)
    assert '"found"' in weir.show(graph, format="json")
    of_class = weir.Graph()
    of_class.add(upto, count=1) >> of_class.add(Detects)
    assert run(weir.Graph(of_class.to_json())).finished


def test_a_graph_of_a_file_may_be_added_to(tmp_path):
    path = tmp_path / "g.json"
    path.write_text('{"weir": 1, "entities": [{"name": "u", "operator": "upto"}]}')
    graph, seen = weir.Graph.read(path, set=["u.count=2"]), []
    graph["u"] >> graph.add(lambda x: seen.append(x))
    run(graph)
    assert seen == [0, 1]


def test_an_inlet_goes_on_when_the_graph_is_added_to():
    graph, seen = weir.Graph(), []
    first = graph.add("pass")
    inlet = graph.inlet(first)
    first >> graph.add(lambda x: seen.append(x))
    refused(lambda: inlet.push(1), weir.Error, "the graph was added to: it is made anew by its start")
    with graph.start(backend="host"):
        inlet.push(7)
    assert seen == [7]


def test_ports_that_come_of_parameters_are_connected_by_their_names(tmp_path):
    plugin, seen = tmp_path / "libdescribed.so", []
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", plugin, ROOT / "tests/python/described_plugin.c"], check=True)
    graph = weir.Graph(plugins=[plugin])
    source = graph.add(upto, count=3)
    named = graph.add("named", parameters={"from": "a", "to": "b"})
    assert [end.port for end in named.outputs] == ["more"] and not named.inputs
    refused(lambda: graph.connect(source, named), ValueError, r"entity 'named' has inputs that come of its parameters: name one, as named\['NAME'\]")
    graph.connect(source, named["a"], capacity=2)
    graph.connect("named.b", graph.add(lambda x: seen.append(x), name="see"))
    assert [*named] == ["a", "more", "b"]
    run(graph)
    assert seen == [0, 1, 2]
    graph = weir.Graph(plugins=[plugin])
    graph.connect(graph.add(upto, count=3), graph.add("named", parameters={"from": "a", "to": "b"}).wrong)
    with pytest.raises(weir.Error, match=r"operator 'named' has no input 'wrong' \(inputs: a\)"):
        run(graph)
