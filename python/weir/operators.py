"""Operators in Python: the decorator, ports and parameters, and the checks of a class.

A class is checked where it is registered, or added to a graph; an error names the class and the attribute.
"""

import inspect
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from weir import _weir

KINDS = {"empty": 1, "bytes": 2, "tensor": 4, "user": 8, "object": 8, "parts": 16}
EXAMPLES = {"dtype": '"uint8" or "uint8|float32"', "place": '"host" or "device"', "shape": '"[H, W, 3]"'}
POLICIES = ["block", "pop", "reject", "fault", "latest"]  # in the order of weir_policy
OPTIONAL, ANY_SIZE, DEVICE, HOST = 1, 2, 4, 8  # WEIR_PORT_...
STREAM, EFFECTS, INSTANCES = 1, 2, 8  # WEIR_OPERATOR_...
TAKE_ALL = 2**32 - 1
TYPES = """bool int number string duration size choice input output inputs outputs numbers read_file write_file
read_descriptor write_descriptor""".split()
OF_PYTHON = {bool: "bool", int: "int", float: "number", str: "string", list: "numbers", tuple: "numbers"}
VALUES: dict[str, Any] = {"bool": bool, "int": int, "number": (int, float), "choice": str, "string": str, "read_file": str,
                          "write_file": str, "read_descriptor": int, "write_descriptor": int}
Policy = Literal["block", "pop", "reject", "fault", "latest"]
Thing = TypeVar("Thing", bound=Callable[..., Any])
T = TypeVar("T")

registered: dict[str, tuple[Any, _weir.Kind]] = {}  # by name: what was decorated, its handle in the module


@dataclass(frozen=True)
class Port:
    """A port of an operator: weir_port of weir.h.

    kinds       "tensor", "bytes", "empty", "object", "parts": one or several in a list; None: any
    optional    may stay unconnected
    any_size    inputs: any number of connections
    device      inputs: compute orders its work on the device and reads nothing on the host, so there is no gate
    host        inputs of operators with uses_stream: read on the host; outputs: the device writes host memory
    capacity, take, policy   inputs: messages that wait; that a tick receives (-1: all); when a queue is full. "latest": each tick
                receives the newest message, again and again, so there is neither capacity nor take
    max_emits   outputs: messages that a tick may emit
    ahead       outputs: arrays of ctx.empty that are kept for later ticks to emit, at most; ctx.reserve asks for their memory
    dtype       "uint8", or alternatives, "uint8|float32"; None: any. So are the next two
    place       "host" or "device": where the memory of arrays is
    shape       "[H, W, 3]", "[H, W] | [H, W, 1..4]": numbers, ranges, and names, each of which stands for one size at all ports
                of an entity
    dense       arrays must be contiguous, in C's order

    A connection whose ends have no dtype, place or shape in common is refused when the graph is read, and what is emitted or
    pushed must fit its port and those that receive it.
    """

    name: str
    _: KW_ONLY
    kinds: str | Sequence[str] | None = None
    optional: bool = False
    any_size: bool = False
    device: bool = False
    host: bool = False
    capacity: int = 0
    take: int = 0
    max_emits: int = 0
    ahead: int = 0
    policy: Policy = "block"
    dtype: str | None = None
    place: Literal["host", "device"] | None = None
    shape: str | None = None
    dense: bool = False
    help: str = ""

    if not TYPE_CHECKING:  # the same arguments, with an error that lists them

        def __init__(self, name, **others):
            known = {field.name: field.default for field in fields(self)}
            unknown = set(others) - set(known)
            if unknown:
                raise TypeError(f"Port '{name}': there is no '{sorted(unknown)[0]}'; there are {', '.join(known)}")
            for field, value in {**known, **others, "name": name}.items():
                object.__setattr__(self, field, value)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operator: weir_parameter of weir.h. Without a default it is required.

    type  bool, int, float, str, or "duration" (ns), "size" (bytes), "choice", "input", "output", "inputs", "outputs",
          list (numbers); "read_file", "write_file" (a path), "read_descriptor", "write_descriptor": a run refuses
          to write what it reads, and to write one file twice
    """

    type: Any
    default: Any = None
    help: str = ""
    min: int = 0
    max: int = 0
    choices: Sequence[str] = ()

    if not TYPE_CHECKING:  # as an attribute of a class: parameter()

        def __get__(self, instance, owner=None):
            if instance is None or self.default is None:
                return self
            return _weir.parse_duration(self.default) if self.type == "duration" and self.default else self.default


@overload
def parameter(default: type[T], help: str = "", *, min: int = 0, max: int = 0) -> T: ...
@overload
def parameter(default: T, help: str = "", *, min: int = 0, max: int = 0, choices: Sequence[str] = ()) -> T: ...
def parameter(default: Any, help: str = "", *, min: int = 0, max: int = 0, choices: Sequence[str] = ()) -> Any:
    """A parameter as an attribute of the class, of the type of its default: `width = weir.parameter(640, "of the picture")`.

    A type instead of a default (`width = weir.parameter(int)`): it is required. choices: of a text, the texts that it may be.
    Type checkers know `self.width`.
    """
    kind, value = (default, None) if isinstance(default, type) else (type(default), default)
    return Parameter("choice" if choices else kind, value, help, min, max, choices)


def duration(default: str | None = None, help: str = "") -> Any:
    """A parameter that is a time, "10ms" or "60Hz"; the attribute is in nanoseconds."""
    return Parameter("duration", default, help)


def size(default: str | int | None = None, help: str = "") -> Any:
    """A parameter that is a number of bytes, "16MiB"; the attribute is in bytes."""
    return Parameter("size", default, help)


@overload
def operator(thing: Thing, /) -> Thing: ...
@overload
def operator(*, name: str | None = None, inputs: Iterable[Port] = (), outputs: Iterable[str | Port] | None = None,
             effects: bool = False) -> Callable[[Thing], Thing]: ...
def operator(thing: Any = None, /, *, name: str | None = None, inputs: Iterable[Port] = (),
             outputs: Iterable[str | Port] | None = None, effects: bool = False) -> Any:
    """Registers a class or a function as an operator, under its name or another one.

    @weir.operator
    class Brighten:
        inputs = ["in"]
        outputs = ["out"]
        parameters = {"by": 10}

        def compute(self, ctx): ...

    @weir.operator
    def brighten(picture, by=10):
        return picture + by

    Of a function, arguments without a default are inputs, those with one are parameters, and what it returns is emitted on
    `out`; None: nothing is. inputs: ports in place of arguments of their names; outputs: other outputs than `out`: of several
    the function returns a tuple; effects: it does more than emit.
    """
    if thing is None:
        return lambda wanted: _register(wanted, name, {"inputs": inputs, "outputs": outputs, "effects": effects})
    return _register(thing, name, {})


def _register(thing: Any, name: str | None, ports: dict[str, Any]) -> Any:
    cls = class_of(thing, ports)
    check_constructor(cls)
    name = name or str(cls.__name__)
    known = registered.get(name)
    if known and (known[0].__module__, known[0].__qualname__) != (thing.__module__, thing.__qualname__):
        other = f"{known[0].__module__}.{known[0].__qualname__}"
        raise TypeError(f"{word_of(cls)}: there is an operator '{name}' already, {word_of(known[0], other)}: give this one another name")
    registered[name] = (thing, make_kind(cls, name))
    return thing


def class_of(thing: Any, ports: dict[str, Any] | None = None) -> Any:
    """The class of an operator, checked: itself, or one that calls the function."""
    from weir.functions import class_of_function

    if inspect.isfunction(thing):
        return class_of_function(thing, ports or {})
    if any((ports or {}).values()):
        raise TypeError(f"{thing!r}: inputs, outputs and effects are for functions; a class has attributes of these names")
    check_class(thing)
    return thing


def word_of(thing: Any, name: str | None = None) -> str:
    """What errors call an operator: "class Blur", "function blur"."""
    is_function = not isinstance(thing, type) or "of_function" in vars(thing)
    return f"{'function' if is_function else 'class'} {name or thing.__name__}"


def operators() -> dict[str, Any]:
    """The registered operators in Python: a dict of classes and functions by name."""
    return {name: thing for name, (thing, _) in registered.items()}


def handles() -> list[_weir.Kind]:
    return [handle for _, handle in registered.values()]


def _wrong(cls: Any, attribute: Any, why: Any) -> TypeError:
    return TypeError(f"{word_of(cls)}: {attribute}: {why}")


def check_class(cls: Any) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"weir.operator decorates classes and functions, not {cls!r}")
    if not callable(getattr(cls, "compute", None)):
        raise TypeError(f"class {cls.__name__}: it has no method compute(self, ctx)")
    for method in ("start", "compute", "stop"):
        if not callable(getattr(cls, method, cls)):
            raise _wrong(cls, method, "it is not a method")
        _check_arguments(cls, method)
    for flag in ("uses_stream", "effects", "instances"):
        if not isinstance(getattr(cls, flag, False), bool):
            raise _wrong(cls, flag, "it is True or False")


def check_constructor(cls: Any) -> None:
    """A graph file makes the object of an entity."""
    try:
        inspect.signature(cls).bind()
    except TypeError as error:
        raise _wrong(cls, "__init__", "it is called without arguments; what a graph sets is in parameters. Without the decorator an "
                     f"object of the class is added: graph.add({cls.__name__}(...)): {error}") from None
    except ValueError:
        pass  # of a class in C


def _check_arguments(cls: Any, method: Any) -> None:
    function = inspect.getattr_static(cls, method, None)
    if not inspect.isfunction(function):
        return
    if any(check(function) for check in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
        raise _wrong(cls, method, "weir calls it as a function: without yield")
    if inspect.iscoroutinefunction(function) and (method != "compute" or not getattr(cls, "outputs", ())):
        raise _wrong(cls, method, "compute alone may be async, and only with an output, which gets what it returns")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise _wrong(cls, method, f"it is called as {method}(self, ctx): {error}") from None


def make_kind(cls: Any, name: Any) -> _weir.Kind:
    """The handle of an operator in the module."""
    flags = STREAM * getattr(cls, "uses_stream", False) | EFFECTS * getattr(cls, "effects", False)
    flags |= INSTANCES * getattr(cls, "instances", False)
    text = (cls.__doc__ or "").strip().splitlines()
    inputs = _ports(cls, "inputs")
    outputs = _ports(cls, "outputs")
    parameters = _parameters(cls)
    conditions = _conditions(cls)
    try:
        return _weir.make_kind(cls, name, text[0] if text else "", flags, inputs, outputs, parameters, conditions)
    except Exception as error:
        raise TypeError(f"{word_of(cls)}: {error}") from None


def _ports(cls: Any, attribute: Any) -> list[dict[str, Any]]:
    listed = getattr(cls, attribute, ())
    if not isinstance(listed, (list, tuple)):
        raise _wrong(cls, attribute, "it is a list of names or weir.Port")
    return [_port(cls, f"{attribute}[{i}]", port, attribute == "inputs") for i, port in enumerate(listed)]


def _port(cls: Any, place: Any, port: Any, is_input: Any) -> dict[str, Any]:
    if isinstance(port, str):
        port = Port(port)
    if not isinstance(port, Port) or not isinstance(port.name, str):
        raise _wrong(cls, place, f"{port!r} is neither a name nor a weir.Port")
    place = f"{place} '{port.name}'"
    _check_flags(cls, place, port)
    _check_help(cls, place, port.help)
    for flag in ("any_size", "take", "capacity", "device"):
        if not is_input and getattr(port, flag):
            raise _wrong(cls, place, f"{flag} is for inputs")
    for count in ("max_emits", "ahead"):
        if is_input and getattr(port, count):
            raise _wrong(cls, place, f"{count} is for outputs")
    if not is_input and port.policy != "block":
        raise _wrong(cls, place, "policy is for inputs")
    if port.device and port.host:
        raise _wrong(cls, place, "a port is device or host, not both")
    return _row(cls, place, port)


def _check_flags(cls: Any, place: Any, port: Any) -> None:
    for flag in ("optional", "any_size", "device", "host", "dense"):
        if not isinstance(getattr(port, flag), bool):
            raise _wrong(cls, place, f"{flag} is True or False")
    for count in ("capacity", "take", "max_emits", "ahead"):
        value = getattr(port, count)
        if type(value) is not int or not -(count == "take") <= value <= 65536:
            raise _wrong(cls, place, f"{count} is a number from 1 to 65536{', or -1' * (count == 'take')}")
    if port.policy not in POLICIES:
        raise _wrong(cls, place, f"policy is one of {', '.join(POLICIES)}")
    for text in ("dtype", "place", "shape"):  # weir reads them
        if not isinstance(getattr(port, text), (str, type(None))):
            raise _wrong(cls, place, f"{text} is a text, {EXAMPLES[text]}")


def _row(cls: Any, place: Any, port: Any) -> dict[str, Any]:
    kinds = port.kinds if isinstance(port.kinds, (list, tuple)) else [port.kinds] if port.kinds else []
    for kind in kinds:
        if not isinstance(kind, str) or kind not in KINDS:
            raise _wrong(cls, place, f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
    mask = 0
    for kind in kinds:
        mask |= KINDS[kind]
    flags = OPTIONAL * port.optional | ANY_SIZE * port.any_size | DEVICE * port.device | HOST * port.host
    return {
        "name": port.name,
        "flags": flags,
        "kinds": mask,
        "capacity": port.capacity,
        "take": TAKE_ALL if port.take == -1 else port.take,
        "max_emits": port.max_emits,
        "ahead": port.ahead,
        "policy": POLICIES.index(port.policy),
        "help": port.help,
        "dtype": port.dtype,
        "place": port.place,
        "shape": port.shape,
        "dense": port.dense,
    }


def _conditions(cls: Any) -> list[str]:
    listed = getattr(cls, "conditions", ())
    if not isinstance(listed, (list, tuple)) or not all(isinstance(condition, dict) for condition in listed):
        raise _wrong(cls, "conditions", "it is a list of dicts, as in a graph file")
    return [_json(cls, f"conditions[{i}]", condition) for i, condition in enumerate(listed)]


def _json(cls: Any, place: Any, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise _wrong(cls, place, str(error)) from None


def _check_help(cls: Any, place: Any, text: Any) -> None:
    if not isinstance(text, str):
        raise _wrong(cls, place, f"the help {text!r} is no text")


def _parameters(cls: Any) -> list[dict[str, Any]]:
    listed = getattr(cls, "parameters", {})
    if not isinstance(listed, dict):
        raise _wrong(cls, "parameters", "it is a dict of defaults or weir.Parameter, by name")
    attributes = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items() if isinstance(value, Parameter)}
    return [_parameter(cls, name, value) for name, value in {**attributes, **listed}.items()]


ATTRIBUTES = ("inputs", "outputs", "parameters", "conditions", "uses_stream", "effects", "instances")


def _parameter(cls: Any, name: Any, value: Any) -> dict[str, Any]:
    place = f"parameters[{name!r}]"
    if not isinstance(name, str):
        raise _wrong(cls, place, "the name is not a string")
    if callable(getattr(cls, name, None)):
        raise _wrong(cls, place, f"the class has a method {name}")
    if name in ATTRIBUTES:
        raise _wrong(cls, place, f"the attribute {name} of the class describes the operator: give the parameter another name")
    if isinstance(value, type):
        value = Parameter(value)
    if not isinstance(value, Parameter):
        value = Parameter(type(value), value)
    kind = OF_PYTHON.get(value.type, value.type)
    if kind not in TYPES:
        raise _wrong(cls, place, f"{value.type!r} is no type; there are bool, int, float, str, list, {', '.join(t for t in TYPES[4:] if t != 'numbers')}")
    _check_help(cls, place, value.help)
    _check_bounds(cls, place, kind, value)
    _check_default(cls, place, kind, value)
    return {
        "name": name,
        "type": TYPES.index(kind) + 1,
        "fallback": None if value.default is None else _json(cls, place, value.default),
        "help": value.help,
        "min": value.min,
        "max": value.max,
        "choices": "|".join(value.choices),
    }


def _check_bounds(cls: Any, place: Any, kind: Any, value: Any) -> None:
    for bound in ("min", "max"):
        if type(getattr(value, bound)) is not int or abs(getattr(value, bound)) >= 2**63:
            raise _wrong(cls, place, f"{bound} is a whole number, not {getattr(value, bound)!r}")
    listed = isinstance(value.choices, (list, tuple)) and all(isinstance(choice, str) for choice in value.choices)
    if not listed or (kind == "choice") != bool(value.choices):
        raise _wrong(cls, place, 'choices, a list of texts, belong to the type "choice": weir.Parameter("choice", "a", choices=["a", "b"])')


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_default(cls: Any, place: Any, kind: Any, value: Any) -> None:
    wanted = VALUES.get(kind)
    if kind == "numbers" and isinstance(value.default, (list, tuple)) and not all(map(_is_number, value.default)):
        raise _wrong(cls, place, f"the default {value.default!r} is no list of numbers")
    if value.default is None or not wanted:
        return
    if not isinstance(value.default, wanted) or (isinstance(value.default, bool) and kind != "bool"):
        raise _wrong(cls, place, f"the default {value.default!r} is not of type {kind}")
    if kind == "choice" and value.default not in value.choices:
        raise _wrong(cls, place, f"the default {value.default!r} is none of {', '.join(value.choices)}")


def load_file(path: str) -> ModuleType:
    """Runs a Python file that registers operators, as `weir run --python FILE` does."""
    import importlib.util

    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(f"weir_file_{name}", path)
    if spec is None or not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: no such Python file")
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
