"""What is public says what it does, is in the manual, and behaves as Python's users expect."""

import inspect
import pathlib
import re

import numpy as np
import pytest
from conftest import graph_of
from test_operators import run_compute

import weir

MANUAL = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()


def public():
    """(name, object) of all that the package offers, and of the attributes of its classes."""
    for name in weir.__all__:
        thing = getattr(weir, name)
        yield name, thing
        if inspect.isclass(thing):
            own = [word for base in thing.__mro__ if base.__module__.startswith("weir") for word in vars(base)]
            for word in sorted({word for word in own if not word.startswith("_")}):
                yield f"{name}.{word}", getattr(thing, word)


FIELDS = {name for name, thing in public() if isinstance(thing, (int, str, tuple, type(None), weir.Status)) or inspect.ismemberdescriptor(thing)}


def sentence_of(name, thing):
    """The docstring without the signatures that the module puts first."""
    lines = (thing.__doc__ or "").splitlines()
    return " ".join(line for line in lines if not line.startswith(name.split(".")[-1] + "(")).strip()


def test_all_that_is_public_has_a_sentence():
    assert [name for name, thing in public() if name not in FIELDS and len(sentence_of(name, thing)) < 10] == []


def signature_of(name):
    """The arguments of ctx.NAME with their defaults, as the module says them in its docstring."""
    thing = getattr(weir.Context, name)
    if isinstance(thing, property) or not callable(thing):
        return None
    try:
        return [p.name for p in inspect.signature(thing).parameters.values()][1:]
    except (ValueError, TypeError):
        first = thing.__doc__.splitlines()[0]
        return re.findall(r"(\w+): ", first[first.index("(") : first.rindex(") ->")])


def test_the_manual_has_each_member_of_ctx_with_its_arguments():
    begin = MANUAL.index("| `ctx` |")
    rows = MANUAL[begin : MANUAL.index("`ctx` is valid", begin)].splitlines()
    told = {}
    for row in filter(None, rows[2:]):
        for name, _, arguments in re.findall(r"`(\w+)(\(([^`]*)\))?`", row.split("|")[1]):
            told[name] = None if not _ else [a.split("=")[0].strip() for a in arguments.split(",") if a.strip()]
    have = {name for name in dir(weir.Context) if not name.startswith("_")}
    assert set(told) == have
    for name in sorted(have):
        said, real = told[name], signature_of(name)
        assert (said is None) == (real is None), name
        assert real is None or said == real[: len(said)], f"ctx.{name}{tuple(said)}: the module has {real}"


def test_messages_have_a_length_names_and_are_true():
    def compute(self, ctx):
        ctx.emit("out", {"a": np.zeros(3), "b": b"xy"})
        ctx.emit("out", b"")
        ctx.emit("out", np.float32(1))

    pack, empty, scalar = run_compute(compute, outputs=[weir.Port("out", max_emits=3)])["out"]
    assert len(pack) == 2 and list(pack) == ["a", "b"] and "a" in pack and "c" not in pack and 3 not in pack
    assert len(pack["a"]) == 3 and len(pack["b"]) == 2 and len(empty) == 0 and empty
    with pytest.raises(TypeError, match="len"):
        len(scalar)
    with pytest.raises(TypeError, match="np.asarray"):
        iter(pack["a"])


def test_a_graph_is_a_collection_of_entities(chain):
    graph = chain(("a", "Count"), ("b", "Collect"), name="counts")
    assert graph and repr(graph) == "<weir.Graph 'counts', not running>"
    assert list(graph) == ["a", "b"] and len(graph) == 2 and "a" in graph and "x" not in graph
    graph.run(backend="host")
    graph.close()
    assert repr(graph) == "<weir.Graph 'counts', closed>"


def test_reprs_say_what_it_is():
    seen = []

    def compute(self, ctx):
        seen.extend((repr(ctx), repr(ctx.stream)))

    run_compute(compute)
    assert seen[0] == "<weir.Context of 'once'>" and re.fullmatch(r"<weir.Stream \d+ of device 0>", seen[1])
    graph = weir.Graph(graph_of(("c", "Count"), ("b", "Collect")))
    assert repr(graph.outlet("c.out")) == "<weir.Outlet of c.out>" and repr(graph.inlet("b.in")) == "<weir.Inlet into b.in>"
    assert repr(weir.Object([1])) == "weir.Object([1])"
    graph.close()


def test_a_package_that_pip_did_not_install_says_that_it_has_no_header():
    for ask, what in ((weir.get_include, "no header"), (weir.get_library_dir, "no library")):
        with pytest.raises(FileNotFoundError, match=what):
            ask()
