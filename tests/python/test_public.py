"""What is public says what it does, is in the manual, and behaves as Python's users expect."""

import ast
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


# ---- types


STUB = pathlib.Path(weir.__file__).with_name("_weir.pyi")


def stub_of(body):
    """{name: node} of a stub's functions, properties and classes."""
    return {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def arguments_of(node):
    """(name, default) of each argument but self."""
    listed = node.args.posonlyargs + node.args.args
    defaults = [None] * (len(listed) - len(node.args.defaults)) + node.args.defaults
    pairs = [*zip(listed, defaults), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
    return [(a.arg, d and ast.unparse(d)) for a, d in pairs if a.arg != "self"]


def real_arguments(thing):
    """The same of the module: nanobind says it in the docstring."""
    first = (thing.__doc__ or "").splitlines()[0]
    if inspect.isfunction(thing):
        return [(p.name, None if p.default is p.empty else repr(p.default)) for p in list(inspect.signature(thing).parameters.values())[1:]]
    return arguments_of(ast.parse(f"def {re.sub(r'weir._weir.', '', first)}: ...").body[0])


def test_the_stub_of_the_module_is_the_module():
    import weir._weir as module

    stub = stub_of(ast.parse(STUB.read_text()).body)
    assert set(stub) == {name for name in dir(module) if not name.startswith("_")}
    for name in ("Message", "Stream", "Fence", "Context", "Waker", "Completion", "Inlet", "Outlet", "Graph"):
        cls, members = getattr(module, name), stub_of(stub[name].body)
        said = {*members, *(node.target.id for node in stub[name].body if isinstance(node, ast.AnnAssign))}
        assert {m for m in said if m[0] != "_"} == {m for m in vars(cls) if m[0] != "_"}, name
        for member, node in members.items():
            is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
            if member.startswith("_") or is_property:
                assert hasattr(cls, member) or member == "__buffer__", f"{name}.{member}"
                continue
            real = real_arguments(getattr(cls, member))
            if not any(argument.startswith("arg") for argument, _ in real):
                assert arguments_of(node) == real, f"{name}.{member}"


def test_all_that_is_public_is_annotated():
    assert STUB.with_name("py.typed").exists()
    missing = []
    for name, thing in public():
        function = thing.fget if isinstance(thing, property) else thing
        if not inspect.isfunction(function) or not function.__module__.startswith("weir") or function.__name__ == "_empty":
            continue
        own = {a for a in inspect.signature(function).parameters if a not in ("self", "cls")}
        missing += [f"{name}: {a}" for a in sorted(own | {"return"}) if a not in function.__annotations__ and a not in weir.graph.Options.__annotations__]
    assert missing == []


def test_the_options_of_a_run_are_in_its_signature():
    for method in (weir.Graph.run, weir.Graph.start):
        assert {"workers", "backend", "drain", "statistics"} <= set(inspect.signature(method).parameters)
