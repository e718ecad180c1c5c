"""weir.testing: one operator in a graph of its own, as in any other."""

import numpy as np
import pytest

import weir
from weir.testing import Stamped, run


class Threshold:
    inputs = [weir.Port("in", dtype="uint8")]
    outputs = ["out"]
    parameters = {"level": 128}

    def start(self, ctx):
        self.seen = 0

    def compute(self, ctx):
        picture = np.asarray(ctx.receive("in"))
        self.seen += 1
        if not picture.any():
            ctx.log("all is black", "warn")
        ctx.emit("out", np.where(picture < self.level, 0, 255).astype(np.uint8))


def test_an_operator_runs_on_values_and_tells_what_it_did():
    given = [np.array([[99, 100]], np.uint8), np.zeros((1, 2), np.uint8)]
    result = run(Threshold, {"in": given}, level=100)
    assert [each.tolist() for each in result.emitted["out"]] == [[[0, 255]], [[0, 0]]]
    assert (result.log, result.ticks, result.instance.seen) == ([("warn", "all is black")], 2, 2)
    assert result.outcome.finished and result.messages["out"][0].dtype == "uint8"


def test_one_value_in_the_place_of_a_list_is_refused():
    with pytest.raises(TypeError, match="inputs are lists by port"):
        run(Threshold, [np.zeros((2, 2), np.uint8)])
    for value in (np.zeros((2, 2), np.uint8), b"bytes"):
        with pytest.raises(TypeError, match=r"inputs\['in'\] is one value: give a list"):
            run(Threshold, {"in": value})


def test_its_object_may_be_given_and_a_function():
    class Keep:
        inputs = ["in"]

        def __init__(self, into):
            self.into = into

        def compute(self, ctx):
            self.into.append(ctx.receive("in").object)

    kept = Keep([])
    assert run(kept, {"in": [weir.Object("a"), weir.Object("b")]}).instance is kept and kept.into == ["a", "b"]

    def twice(number, by=2):
        return number * by

    assert run(twice, {"number": [np.float32([1, 2])]}, by=3).emitted["out"][0].tolist() == [3, 6]


def test_an_operator_in_c_runs_too():
    result = run("pass", {"in": [b"abc"]})
    assert (result.emitted, result.instance) == ({"out": [b"abc"]}, None)


class Two:
    inputs, outputs = ["left", "right"], ["out", "other"]

    def compute(self, ctx):
        left = ctx.receive("left")
        ctx.emit("out", {"a": left, "b": ctx.receive("right")})
        ctx.emit("other", weir.Object(left.stamp))
        ctx.emit("other", None) if ctx.tick else None


def test_ports_have_their_own_values_and_stamps():
    result = run(Two, {"left": [Stamped(b"1", (5, 7))] * 40, "right": iter([b"2"] * 40)}, ports={"other": {"max_emits": 2}})
    assert result.emitted["out"] == [{"a": b"1", "b": b"2"}] * 40 and result.messages["out"][0].stamp == (5, 7)
    assert result.emitted["other"] == [(5, 7)] + [(5, 7), None] * 39


class Source:
    outputs = ["out"]

    def compute(self, ctx):
        ctx.emit("out", ctx.tick.to_bytes(1, "big"))


def test_a_source_ends_after_so_many_ticks():
    assert run(Source, ticks=3).emitted["out"] == [b"\0", b"\1", b"\2"]


class Refuses:
    inputs = ["in"]

    def compute(self, ctx):
        raise ValueError("too dark")


def test_an_exception_comes_as_from_any_run():
    with pytest.raises(weir.Error, match="too dark") as caught:
        run(Refuses, {"in": [b"1"] * 1000})
    assert isinstance(caught.value.__cause__, ValueError) and caught.value.entity == "refuses"
    with pytest.raises(weir.Error, match="float32"):
        run(Threshold, {"in": [np.float32([1])]})
    with pytest.raises(KeyError, match="no port 'into'"):
        run(Threshold, {"into": []})
    with pytest.raises(weir.Error, match="threshold.in: nothing is connected"):
        run(Threshold)


class Once(Source):
    conditions = [{"type": "boolean"}]

    def compute(self, ctx):
        ctx.tell("boolean", "wait")


def test_what_an_operator_has_told_its_conditions_holds():
    result = run(Once)
    assert result.ticks == 1 and "boolean" in result.outcome.waiting


def test_what_does_not_end_says_what_it_waits_for():
    with pytest.raises(weir.Timeout, match="0.1 s: .*periodic"):
        run(Source, conditions=[{"type": "periodic", "period": "1h"}], timeout=0.1)
