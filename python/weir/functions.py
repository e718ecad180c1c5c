"""Operators that are plain functions: their arguments are inputs and parameters, what they return is emitted."""

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from weir._weir import Context, Message
from weir.operators import OF_PYTHON, Parameter, Port, check_class


def value_of(message: Message | None) -> Any:
    """What a function gets of a message: an array, bytes, a dict of parts, an object; None: empty, or no message."""
    if message is None:
        return None
    kind = message.kind
    if kind == "tensor":
        return _array_of(message)
    if kind == "object":
        return message.object
    if kind == "bytes":
        return bytes(message)
    if kind == "parts":
        return {name: value_of(part) for name, part in message.parts.items()}
    return message if kind == "user" else None


def _array_of(message: Any) -> Any:
    try:
        import numpy
    except ImportError:
        return memoryview(message)
    return numpy.asarray(message)


def name_of(function: Any) -> str:
    """Of a bound method, a functools.partial, an object that can be called, too."""
    plain = _plain(function)
    name: str = getattr(plain, "__name__", type(plain).__name__)
    return "lambda" if name == "<lambda>" else name


def _plain(function: Any) -> Any:
    """The function itself, as far as there is one."""
    return function.func if isinstance(function, functools.partial) else function


def _wrong(function: Any, why: str) -> TypeError:
    return TypeError(f"function {name_of(function)}: {why}")


def _hints(function: Any) -> dict[str, Any]:
    try:
        plain = _plain(function)
        return typing.get_type_hints(plain if hasattr(plain, "__name__") else type(plain).__call__)
    except Exception:  # a name that is there for the type checker alone
        return {}


def _signature(function: Any) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise _wrong(function, "it does not say what its arguments are: call it in a function of yours") from None


class _Arguments:
    """What the arguments of a function are. Of what is no function of the program's own text, as an object that is called, or one of
    another library, a default that no graph file can have stays as it is.
    """

    def __init__(self, function: Any):
        self.inputs: list[str] = []
        self.parameters: dict[str, Any] = {}
        self.positional: list[str] = []  # passed by their places
        self.whole: set[str] = set()  # inputs that want the Message itself
        self.context: str | None = None
        self.hints = _hints(function)
        self.own = inspect.isfunction(function)
        self.places_end = False  # what comes behind a place that stays empty has none
        listed = _signature(function).parameters
        for name, argument in listed.items():
            if argument.kind == argument.VAR_KEYWORD and len(listed) > 1:
                continue  # a model's (*args, **kwargs)
            if argument.kind in (argument.VAR_KEYWORD, argument.VAR_POSITIONAL):
                self._take_all(function, argument)
            elif not self._is_left(argument):
                self._take(function, name, argument.default)
                if argument.kind == argument.POSITIONAL_ONLY:
                    self.positional.append(name)

    def _take_all(self, function: Any, argument: inspect.Parameter) -> None:
        """(*args): one input, if there is no other."""
        if argument.kind == argument.VAR_POSITIONAL and not self.inputs:
            self.inputs.append("in")
            self.positional.append("in")
        elif self.own or argument.kind == argument.VAR_KEYWORD:
            raise _wrong(function, f"the argument {argument}: an operator's arguments have names; *args alone is one input, `in`")

    def _is_left(self, argument: inspect.Parameter) -> bool:
        """Its default stays as it is, since no parameter can have it, or one before it cannot be passed."""
        if self.own or argument.default is argument.empty or isinstance(argument.default, Parameter):
            return False
        placed = argument.kind == argument.POSITIONAL_ONLY
        left = type(argument.default) not in (bool, int, float, str) or placed and self.places_end
        self.places_end |= placed and left
        return left

    def _take(self, function: Any, name: str, default: Any) -> None:
        hint = self.hints.get(name)
        if default is not inspect.Parameter.empty:
            self.parameters[name] = self._parameter(function, name, default, hint)
        elif hint is Context:
            self.context = name
        else:
            self.inputs.append(name)
            if hint is Message:
                self.whole.add(name)

    @staticmethod
    def _parameter(function: Any, name: str, default: Any, hint: Any) -> Any:
        if default is None:
            raise _wrong(function, f"{name}=None: a parameter has a default of a type that a graph file has, as 3 or \"text\"; "
                         "an object comes by the constructor of a class: graph.add(Detect(model))")
        if isinstance(default, Parameter) or hint not in OF_PYTHON:
            return default
        return Parameter(hint, default)


def _emit(ctx: Context, function: Any, outputs: list[str], made: Any) -> None:
    if made is None:
        return
    if not outputs:
        raise TypeError(f"{name_of(function)} returned {type(made).__name__} and has no outputs: return None")
    if len(outputs) == 1:
        made = (made,)
    if not isinstance(made, tuple) or len(made) != len(outputs):
        raise TypeError(f"{name_of(function)} returned {type(made).__name__}: return a tuple of {len(outputs)} values for "
                        f"{', '.join(outputs)}; None: nothing is emitted there")
    for name, value in zip(outputs, made):
        if value is not None:
            ctx.emit(name, value)


def _methods(function: Any, given: _Arguments, outputs: list[str]) -> dict[str, Callable[..., Any]]:
    """compute(self, ctx) of the class receives, calls and emits. A generator is made in start."""
    inputs = [(name, name not in given.whole) for name in given.inputs]
    parameters, context, positional = list(given.parameters), given.context, given.positional

    def call(self: Any, ctx: Any) -> Any:
        values: dict[str, Any] = {name: value_of(ctx.receive(name)) if wanted else ctx.receive(name) for name, wanted in inputs}
        values.update((name, getattr(self, name)) for name in parameters)
        if context:
            values[context] = ctx
        placed = [values.pop(name) for name in positional]
        return function(*placed, **values)

    def compute(self: Any, ctx: Context) -> None:
        _emit(ctx, function, outputs, call(self, ctx))

    async def compute_async(self: Any, ctx: Any) -> Any:
        made = await call(self, ctx)
        if len(outputs) == 1:
            return made
        return dict(zip(outputs, made)) if isinstance(made, tuple) and len(made) == len(outputs) else made

    def start(self: Any, ctx: Context) -> None:
        self.values_of_run = call(self, ctx)

    def compute_next(self: Any, ctx: Context) -> None:
        for made in self.values_of_run:
            return _emit(ctx, function, outputs, made)
        ctx.finish()

    if inspect.isgeneratorfunction(function):
        return {"start": start, "compute": compute_next}
    return {"compute": compute_async if inspect.iscoroutinefunction(function) else compute}


def _ports(function: Any, given: _Arguments, ports: dict[str, Any]) -> tuple[list[Port], list[Port]]:
    own = {port.name: port for port in ports.get("inputs") or ()}
    unknown = sorted(set(own) - set(given.inputs))
    if unknown:
        raise _wrong(function, f"inputs: it has no argument '{unknown[0]}' without a default; there are {', '.join(given.inputs) or 'none'}")
    inputs = [own.get(name) or Port(name, place=None if name in given.whole else "host") for name in given.inputs]
    listed = ports.get("outputs")
    if listed is None:
        listed = [] if given.hints.get("return") is type(None) else [Port("out", optional=True)]
    return inputs, [Port(port) if isinstance(port, str) else port for port in listed]


def class_of_function(function: Any, ports: dict[str, Any]) -> Any:
    """The class of operators whose compute calls the function. A generator function is a source: each tick emits its next value."""
    if inspect.isasyncgenfunction(function):
        raise _wrong(function, "weir calls it as a plain function, or awaits it: not both async and yield")
    given = _Arguments(function)
    inputs, outputs = _ports(function, given, ports)
    if inspect.isgeneratorfunction(function) and inputs:
        raise _wrong(function, f"it yields and has the input '{inputs[0].name}': with inputs it returns what it emits")
    body = {
        "of_function": staticmethod(function),
        "inputs": inputs,
        "outputs": outputs,
        "parameters": given.parameters,
        "effects": bool(ports.get("effects")),
        "__doc__": _plain(function).__doc__,
        "__module__": getattr(function, "__module__", __name__),
        "__qualname__": getattr(function, "__qualname__", name_of(function)),
        **_methods(function, given, [port.name for port in outputs]),
    }
    cls = type(name_of(function), (), body)
    check_class(cls)
    return cls
