"""Operators in Python: registration and its errors, parameters, exceptions, the context."""

import ctypes
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import graph_of

import weir


def refused(cls, *texts):
    """Registration fails with all of the texts in one line."""
    with pytest.raises(TypeError) as caught:
        weir.operator(cls)
    for text in (f"class {cls.__name__}", *texts):
        assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert cls.__name__ not in weir.operators()


def new(**body):
    return type("Wrong", (), {"compute": lambda self, ctx: None, **body})


# ---- registration


def test_a_class_without_compute_is_refused():
    refused(new(compute=None), "compute(self, ctx)")


def test_no_class_is_refused():
    for wrong in (len, 3):
        with pytest.raises(TypeError, match="decorates classes and functions"):
            weir.operator(wrong)


@pytest.mark.parametrize("ports, text", [
    ({"outputs": [weir.Port("out", any_size=True)]}, "outputs[0] 'out': any_size is for inputs"),
    ({"outputs": [weir.Port("out", take=2)]}, "outputs[0] 'out': take is for inputs"),
    ({"outputs": [weir.Port("out", device=True)]}, "outputs[0] 'out': device is for inputs"),
    ({"outputs": [weir.Port("out", policy="pop")]}, "outputs[0] 'out': policy is for inputs"),
    ({"inputs": [weir.Port("in", max_emits=2)]}, "inputs[0] 'in': max_emits is for outputs"),
    ({"inputs": [weir.Port("in", device=True, host=True)]}, "device or host"),
    ({"inputs": [weir.Port("in", optional=1)]}, "optional is True or False"),
    ({"inputs": [weir.Port("in", take=70000)]}, "take is a number"),
    ({"inputs": [weir.Port("in", policy="drop")]}, "policy is one of block, pop, reject, fault"),
    ({"inputs": [weir.Port("in", kinds="picture")]}, "no kind 'picture'"),
    ({"inputs": [weir.Port("in", dtype="float31")]}, "'in' has an unknown dtype 'float31' (did you mean 'float32'?)"),
    ({"inputs": [weir.Port("in", dtype=3)]}, "inputs[0] 'in': dtype is a text"),
    ({"inputs": [weir.Port("in", place="gpu")]}, "'in' has an unknown place 'gpu' (places: host, device)"),
    ({"outputs": [weir.Port("out", shape="[0, W]")]}, "'out' has the shape '[0, W]': a size is at least 1"),
    ({"outputs": [weir.Port("out", shape="[1, 2, 3, 4, 5, 6, 7, 8, 9]")]}, "more than 8 sizes"),
    ({"outputs": [weir.Port("out", shape=(2, 3))]}, "outputs[0] 'out': shape is a text"),
    ({"inputs": [weir.Port("in", kinds="bytes", dtype="uint8")]}, "its kinds are without WEIR_KIND_TENSOR"),
    ({"inputs": [weir.Port("in", take=3)]}, "'in' has a take larger than its capacity"),
    ({"inputs": ["in", "in"]}, "'in' appears twice"),
    ({"inputs": ["in put"]}, "'in put' is not a valid port name"),
    ({"inputs": "in"}, "inputs: it is a list"),
    ({"inputs": [weir.Port("in", kinds=3)]}, "inputs[0] 'in': there is no kind 3"),
    ({"inputs": [weir.Port("in", help=3)]}, "inputs[0] 'in': the help 3 is no text"),
    ({"inputs": [7]}, "inputs[0]: 7 is neither"),
])
def test_ports_with_wrong_flags_are_refused(ports, text):
    refused(new(**ports), text)


@pytest.mark.parametrize("parameters, text", [
    ({"radius": weir.Parameter(int, "three")}, "parameters['radius']: the default 'three' is not of type int"),
    ({"radius": weir.Parameter(int, True)}, "not of type int"),
    ({"gain": weir.Parameter(float, "1")}, "not of type number"),
    ({"mean": [0.5, "x"]}, "parameters['mean']: the default [0.5, 'x'] is no list of numbers"),
    ({"path": weir.Parameter(str, 1)}, "not of type string"),
    ({"mode": weir.Parameter("choice", "c", choices=("a", "b"))}, "'c' is none of a, b"),
    ({"set": {1, 2}}, "parameters['set']: <class 'set'> is no type"),
    ({"period": weir.duration("10 miles")}, "'period'"),
    ({"compute": 1}, "the class has a method compute"),
    ({"inputs": 1}, "the attribute inputs of the class describes the operator"),
    ({"mode": weir.Parameter("choice", "a", choices="abc")}, "parameters['mode']: choices, a list of texts, belong to the type \"choice\""),
    ({"mode": weir.Parameter("choice", "a")}, "parameters['mode']: choices, a list of texts, belong to the type \"choice\""),
    ({"radius": weir.Parameter(int, 1, help=7)}, "parameters['radius']: the help 7 is no text"),
    ({"radius": weir.Parameter(int, 1, min="0")}, "parameters['radius']: min is a whole number, not '0'"),
    ({"period": weir.duration({1})}, "parameters['period']: Object of type set is not JSON"),
    ({"radius": weir.Parameter(int, 30, max=20)}, "radius"),
    (["radius"], "parameters: it is a dict"),
])
def test_wrong_parameters_are_refused(parameters, text):
    refused(new(parameters=parameters), text)


async def waits(self, ctx):
    pass


def yields(self, ctx):
    yield


@pytest.mark.parametrize("attributes, text", [
    ({"compute": lambda self: None}, "compute: it is called as compute(self, ctx)"),
    ({"start": lambda self, ctx, more: None}, "start: it is called as start(self, ctx)"),
    ({"compute": waits}, "compute: compute alone may be async, and only with an output"),
    ({"start": yields}, "start: weir calls it as a function: without yield"),
    ({"__init__": lambda self, radius: None}, "__init__: it is called without arguments; what a graph sets is in parameters"),
    ({"conditions": [{"type": {1}}]}, "conditions[0]: Object of type set is not JSON"),
])
def test_other_wrong_attributes_are_refused(attributes, text):
    refused(new(**attributes), text)


def test_a_name_of_a_built_in_operator_is_refused():
    refused(type("ping", (), {"compute": lambda self, ctx: None}), "ping")


def test_a_name_in_use_is_refused_and_a_class_may_be_registered_again():
    first = type("Again", (), {"compute": lambda self, ctx: None})
    weir.operator(first)
    weir.operator(type("Again", (), {"compute": lambda self, ctx: None}))
    with pytest.raises(TypeError, match="there is an operator 'Again' already, class .*another name"):
        weir.operator(new(), name="Again")


def test_an_unknown_field_of_a_port_is_named():
    with pytest.raises(TypeError, match="Port 'in': there is no 'optinal'"):
        weir.Port("in", optinal=True)


# ---- parameters


@weir.operator
class Everything:
    """Has a parameter of each type."""

    outputs = ["out"]
    parameters = {"flag": True, "number": 3, "share": 0.5, "text": "a", "period": weir.duration("10ms"),
                  "room": weir.size("2KiB"), "mode": weir.Parameter("choice", "b", choices=("a", "b")),
                  "needed": int, "bounded": weir.Parameter(int, 5, min=1, max=9), "mean": [0.5, 1]}

    def compute(self, ctx):
        ctx.finish()


def test_parameters_are_attributes_with_defaults_filled_in():
    with weir.Graph(graph_of(("a", "Everything", {"needed": 8, "share": 2}), ("b", "Collect"))) as graph:
        graph.run(backend="host")
        a = graph["a"].instance
        found = (a.flag, a.number, a.share, a.text, a.period, a.room, a.mode, a.needed, a.bounded, a.mean)
        assert found == (True, 3, 2.0, "a", 10_000_000, 2048, "b", 8, 5, [0.5, 1.0])


@pytest.mark.parametrize("parameters, text", [
    ({}, "needed"), ({"needed": "x"}, "needed"), ({"needed": 1, "bounded": 10}, "bounded"),
    ({"needed": 1, "mode": "c"}, "mode"), ({"needed": 1, "other": 1}, "other"),
])
def test_wrong_values_in_a_graph_are_refused(parameters, text):
    with pytest.raises(weir.Error, match=text):
        weir.Graph(graph_of(("a", "Everything", parameters), ("b", "Collect")))


# ---- conditions


@pytest.mark.parametrize("conditions, text", [("periodic", "conditions: it is a list of dicts"),
                                              ([{"type": "perodic"}], "perodic")])
def test_wrong_conditions_are_refused(conditions, text):
    refused(new(conditions=conditions), text)


# ---- exceptions


@weir.operator
class Fails:
    inputs = [weir.Port("in", optional=True)]
    outputs = [weir.Port("out", optional=True)]
    parameters = {"where": "compute"}

    def fail(self, where):
        if self.where == where:
            raise ValueError("no such thing\nat all")

    def __init__(self):
        if getattr(Fails, "broken", False):
            raise RuntimeError("not made")

    def start(self, ctx):
        self.fail("start")

    def compute(self, ctx):
        self.fail("compute")
        ctx.finish()

    def stop(self, ctx):
        self.fail("stop")

    def __del__(self):
        if hasattr(self, "where"):
            self.fail("del")


@pytest.mark.parametrize("where", ["start", "compute", "stop"])
def test_an_exception_ends_the_run_with_entity_type_message_and_traceback(where):
    with weir.Graph(graph_of(("wrong", "Fails", {"where": where}))) as graph:
        with pytest.raises(weir.Error, match="ValueError") as caught:
            graph.run(backend="host")
        error = caught.value
        assert error.entity == "wrong" and error.status == weir.Status.FAILED
        assert "no such thing" in str(error) and "\n" not in str(error)
        assert isinstance(error.__cause__, ValueError) and "in fail" in error.traceback


class Unsayable(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize("raised, text", [
    (ValueError("half a pair: \ud800"), r"ValueError: half a pair: \\+ud800 \("), (ValueError("cut\0off"), r"ValueError: cut\\+0off \("),
    (Unsayable(), r"Unsayable: its text raises RuntimeError \("),
], ids=["surrogate", "NUL", "no text"])
def test_an_exception_whose_text_cannot_be_printed_is_named_all_the_same(raised, text):
    def compute(self, ctx):
        raise raised

    with pytest.raises(weir.Error, match=text) as caught:
        run_compute(compute)
    assert caught.value.__cause__ is raised


def test_an_exception_of_init_ends_the_start():
    Fails.broken = True
    try:
        with weir.Graph(graph_of(("wrong", "Fails"))) as graph:
            with pytest.raises(weir.Error, match="RuntimeError: not made"):
                graph.start(backend="host")
    finally:
        Fails.broken = False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_of_a_destructor_ends_nothing():
    graph = weir.Graph(graph_of(("wrong", "Fails", {"where": "del"})))
    assert graph.run(backend="host").status == weir.Status.OK
    graph.run()
    graph.close()


def test_a_graph_runs_again_after_a_failure():
    with weir.Graph(graph_of(("wrong", "Fails"))) as graph:
        for _ in range(3):
            with pytest.raises(weir.Error):
                graph.run(backend="host")


# ---- the context


def run_compute(compute, inputs=(), outputs=(), feed=None, start=None, give=False):
    """Runs one tick of compute(self, ctx), fed with one value, and returns what it returned."""
    found = {}

    def once(self, ctx):
        found["is"] = compute(self, ctx)
        ctx.finish()

    cls = type("Once", (), {"inputs": list(inputs), "outputs": list(outputs), "compute": once,
                            **({"start": start} if start else {})})
    cls.__module__ = "once"
    weir.operator(cls)
    with weir.Graph(graph_of(("once", "Once"))) as graph:
        ends = [graph.inlet("once.in")] if inputs else []
        outs = [graph.outlet(f"once.{getattr(o, 'name', o)}", capacity=8) for o in outputs]
        with graph.start(backend="host"):
            for inlet in ends:
                inlet.push(feed, give=give)
            found["out"] = [message for outlet in outs for message in outlet]
            graph.wait(10)
    kept = dict(found)
    found.clear()  # the registered class keeps it
    return kept


def test_ctx_is_refused_outside_of_its_calls():
    kept = run_compute(lambda self, ctx: ctx)["is"]
    for use in (lambda: kept.emit(0, 1), lambda: kept.tick, lambda: kept.stream, lambda: kept.receive("in")):
        with pytest.raises(weir.Error, match="outside of start, compute and stop") as caught:
            use()
        assert caught.value.entity == "once"


def test_emitting_in_start_is_refused():
    with pytest.raises(weir.Error, match="once"):
        run_compute(lambda self, ctx: None, outputs=["out"], start=lambda self, ctx: ctx.emit("out", 1))


def test_ctx_is_refused_on_another_thread():
    def compute(self, ctx):
        errors = []

        def use():
            try:
                ctx.emit("out", 1)
            except weir.Error as error:
                errors.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return errors

    assert "another thread" in str(run_compute(compute, outputs=["out"])["is"][0])


def test_an_unknown_port_is_named():
    with pytest.raises(weir.Error, match="has no output 'aut'"):
        run_compute(lambda self, ctx: ctx.emit("aut", 1), outputs=["out"])


def test_more_than_max_emits_is_refused():
    def compute(self, ctx):
        ctx.emit("out", 1)
        ctx.emit("out", 2)

    with pytest.raises(weir.Error, match="max_emits"):
        run_compute(compute, outputs=["out"])


def test_receive_all_gives_the_messages_of_a_batch():
    values = {}

    @weir.operator
    class Batch:
        inputs = [weir.Port("in", capacity=8, take=-1)]

        def compute(self, ctx):
            assert ctx.count("in") == len(ctx.receive_all("in")) and ctx.sender("in") == "a.out"
            for message in ctx.receive_all("in"):
                values[int(np.asarray(message)[0])] = True

    with weir.Graph(graph_of(("a", "Count", {"count": 40}), ("b", "Batch"))) as graph:
        graph.run(backend="host")
    assert sorted(values) == list(range(40))


def test_the_small_things_of_a_context():
    def compute(self, ctx):
        return ctx.entity, ctx.tick, ctx.now > 0, ctx.stopping, ctx.device, ctx.on_cuda

    assert run_compute(compute)["is"] == ("once", 0, True, False, 0, False)


def test_streams_on_the_host_have_no_handle():
    def compute(self, ctx):
        side = ctx.allocate_stream("side")
        ctx.synchronize_streams([side], ctx.stream)
        ctx.set_stream("out", side)
        with ctx.stream as stream:
            ctx.emit("out", np.ones(3))
        return stream.handle, stream.__cuda_stream__(), ctx.receive_stream("in").id == stream.id, \
            ctx.receive_streams("in"), ctx.default_stream.handle

    assert run_compute(compute, ["in"], ["out"], feed=1)["is"] == (0, (0, 0), True, [], 0)


def test_a_stream_of_another_run_is_refused():
    kept = run_compute(lambda self, ctx: ctx.stream)["is"]
    with pytest.raises(weir.Error, match="another entity or in another run"):
        run_compute(lambda self, ctx: ctx.set_stream("out", kept), outputs=["out"])


def test_a_value_is_emitted_at_an_earlier_point_of_the_tick():
    kept = []

    def compute(self, ctx):
        fence = ctx.stream.record()
        ctx.allocate_stream("side").wait(fence)
        ctx.emit("out", np.arange(3), at=fence)
        kept.append(fence)
        return fence.stream == ctx.stream.id, fence.value > 0, repr(fence)

    own, counted, text = run_compute(compute, outputs=["out"])["is"]
    assert own and counted and text.startswith("Fence(stream=")
    with pytest.raises(weir.Error, match="a fence that this tick recorded"):
        run_compute(lambda self, ctx: ctx.emit("out", 1, at=kept[0]), outputs=["out"])


def test_an_operator_waits_for_its_own_work_by_the_condition_fence():
    class Told:
        conditions = [{"type": "fence"}]
        ticks = 0

        def start(self, ctx):
            ctx.tell("fence", ctx.stream.record())

        def compute(self, ctx):
            Told.ticks += 1
            if Told.ticks == 3:
                ctx.finish()
            else:
                ctx.tell("fence", ctx.stream.record())

    weir.operator(Told)
    with weir.Graph(graph_of(("told", "Told"))) as graph:
        assert graph.run(backend="host").ticks == 3


def test_a_program_tells_fences_and_words():
    fences = []

    class Gives:
        def compute(self, ctx):
            fences.append(ctx.stream.record())

    class Waits:
        conditions = [{"type": "fence"}]

        def compute(self, ctx):
            pass

    weir.operator(Gives)
    weir.operator(Waits)
    gives = {"name": "gives", "operator": "Gives", "conditions": [{"type": "count", "count": 2}]}
    with weir.Graph({"weir": 1, "entities": [gives, {"name": "waits", "operator": "Waits"}]}) as graph:
        graph.start(backend="host")
        while len(fences) < 2:
            time.sleep(0.001)
        graph.tell("waits", "fence", fences[1])
        graph.tell("waits", "fence", "never")
        assert graph.wait(30).ticks == 3
        for told in ("nothing", "soon", 3):
            with pytest.raises(ValueError, match="told is one of ready, wait"):
                graph.tell("waits", "fence", told)
        with pytest.raises(weir.Error, match="no condition 'other'"):
            graph.tell("waits", "other", "ready")


def test_scratch_memory_is_the_same_in_each_tick():
    places = []

    class Scratch:
        def compute(self, ctx):
            side = ctx.allocate_stream("side")
            places.append((ctx.scratch(1000), ctx.scratch(64, side)))
            ctypes.memset(places[-1][0], ctx.tick, 1000)

    weir.operator(Scratch)
    scratch = {"name": "scratch", "operator": "Scratch", "conditions": [{"type": "count", "count": 3}]}
    with weir.Graph({"weir": 1, "entities": [scratch]}) as graph:
        graph.run(backend="host")
    assert len(set(places)) == 1 and all(places[0]) and places[0][0] != places[0][1]


def test_a_stream_is_recorded_inside_the_operator_alone():
    kept = run_compute(lambda self, ctx: ctx.stream)["is"]
    with pytest.raises(weir.Error, match="outside of start, compute and stop"):
        kept.record()


def test_the_gil_is_taken_once_for_each_call():
    from weir import _weir

    with weir.Graph(graph_of(("a", "Count", {"count": 1000}), ("b", "Collect"))) as graph:
        before = _weir.gil_takes()
        graph.run(backend="host")
        assert _weir.gil_takes() - before == 2000 + 2 + 2  # computes, starts, stops


def test_two_graphs_run_in_two_threads():
    def run(results, i):
        with weir.Graph(graph_of(("a", "Count", {"count": 500}), ("b", "Collect"))) as graph:
            graph.run(backend="host", workers=2)
            results[i] = len(graph["b"].instance.seen)

    results = [0, 0]
    threads = [threading.Thread(target=run, args=(results, i)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [500, 500]


def test_a_graph_runs_inside_an_operator_of_another():
    def compute(self, ctx):
        with weir.Graph(graph_of(("a", "Count", {"count": 5}), ("b", "Collect"))) as inner:
            inner.run(backend="host", workers=1)
            return len(inner["b"].instance.seen)

    assert run_compute(compute)["is"] == 5


def test_a_stream_that_is_kept_belongs_to_each_tick_that_uses_it(chain):
    carried = []

    @weir.operator
    class Keep:
        outputs = ["out"]

        def start(self, ctx):
            self.stream = ctx.stream

        def compute(self, ctx):
            if ctx.tick % 2:
                with self.stream:
                    pass
            ctx.emit("out", ctx.empty([1], "uint8"))
            if ctx.tick == 3:
                ctx.finish()

    @weir.operator
    class Carried:
        inputs = [weir.Port("in", device=True)]

        def compute(self, ctx):
            carried.append(len(ctx.receive_streams("in")))

    chain(("keep", "Keep"), ("carried", "Carried")).run(backend="host")
    assert carried == [0, 1, 0, 1]


def test_a_stream_is_entered_inside_the_operator_alone():
    kept = run_compute(lambda self, ctx: ctx.stream)["is"]
    assert kept.handle == 0
    for use in (kept.__enter__, kept.use, lambda: kept.on_cuda):
        with pytest.raises(weir.Error, match="outside of start, compute and stop"):
            use()


class Entered:
    """A library's stream or device, which notes when it is entered."""

    def __init__(self, log, *name):
        self.log, self.name = log, name

    def __enter__(self):
        self.log.append(self.name)

    def __exit__(self, *exception):
        self.log.append("end")


class OfCuda:
    """A stream of a GPU, as python/weir/streams.py sees it."""

    on_cuda, device = True, 0

    def __init__(self, handle):
        self.handle = handle

    def use(self):
        pass


def libraries_of_cuda(log):
    """What `with stream:` calls of CuPy and torch."""
    streams = SimpleNamespace(null=Entered(log, "cupy", "null"),
                              from_external=lambda s: Entered(log, "cupy", s.__cuda_stream__()[1]))
    cupy = SimpleNamespace(cuda=SimpleNamespace(Stream=streams, Device=lambda d: Entered(log, "device", d)))
    torch = SimpleNamespace(cuda=SimpleNamespace(stream=lambda s: s, ExternalStream=lambda h, d: Entered(log, "torch", h),
                                                 default_stream=lambda d: Entered(log, "torch", "default")))
    return {"cupy": cupy, "torch": torch}


@pytest.mark.parametrize("handle, names", [(1, ("null", "default")), (0x7000, (0x7000, 0x7000))])
def test_the_block_of_a_stream_enters_that_of_each_library(monkeypatch, handle, names):
    from weir import streams

    log = []
    for name, library in libraries_of_cuda(log).items():
        monkeypatch.setitem(sys.modules, name, library)
    monkeypatch.setattr(streams, "known", {})
    stream = OfCuda(handle)
    streams._enter(stream)
    streams._leave(stream)
    assert log == [("device", 0), ("cupy", names[0]), ("torch", names[1]), "end", "end", "end"]


def test_a_connection_of_ports_that_do_not_agree_is_refused():
    for name, ports in (("Floats", {"outputs": [weir.Port("out", dtype="float32", shape="[N, 3]")]}),
                        ("Bytes", {"inputs": [weir.Port("in", dtype="uint8|int8", shape="[N, 3]")]})):
        weir.operator(new(**ports), name=name)
    with pytest.raises(weir.Error, match=r"a.out -> b.in: sends float32 \[N, 3\], but the input takes uint8\|int8 \[N, 3\]: put a "
                                         r"conversion of the dtype between them"):
        weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Floats"}, {"name": "b", "operator": "Bytes"}],
                    "connections": [["a.out", "b.in"]]})
