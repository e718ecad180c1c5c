"""Tests of one operator: it runs alone, in a real graph, on what a test gives it.

    def test_threshold():
        given = np.array([[99, 100]], np.uint8)
        result = weir.testing.run(Threshold, {"in": [given]}, level=100)
        assert result.emitted["out"][0].tolist() == [[0, 255]]
        assert result.log == []

The graph has the operator as its only entity, an inlet for each input that is given, an outlet for each output. So the context is no
imitation: ports, parameters, conditions, errors, stamps are those of any run.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from weir._weir import Message
from weir.ends import Inlet, Outlet
from weir.entity import Entity
from weir.errors import Closed, Status, Timeout
from weir.ended import Outcome
from weir.graph import Graph
from weir.log import LOGGER


MOST = 65536  # messages that a tick may emit


class Stamped(NamedTuple):
    """A value with the stamp of its message, (time, tag): for the inputs of `run`."""

    value: Any
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Result:
    """What an operator did in `run`."""

    emitted: dict[str, list[Any]]
    """By output what it emitted: arrays of NumPy, objects, bytes, dicts of named parts; None: an empty message."""
    messages: dict[str, list[Message]]
    """The same as messages, which have a kind and a stamp, too."""
    log: list[tuple[str, str]]
    """(level, text) of its lines in the log, "info" and so on as for ctx.log."""
    instance: Any
    """Its object. None: an operator in C."""
    ticks: int
    """How often compute was called."""
    outcome: Outcome
    """How the run ended."""


def run(operator: object, inputs: Mapping[str, Iterable[Any]] | None = None, /, *, ticks: int | None = None, timeout: float = 10,
        backend: str = "host", **settings: Any) -> Result:
    """Runs an operator on what its inputs get, until all of it is worked off, and returns what came of it.

    operator and settings are what graph.add takes: a class, an object, a function or a name; parameters, conditions. inputs: by
    port the values, each of which is a message (weir.testing.Stamped: with its stamp); ports that are not given stay
    unconnected. ticks: ends it after so many, for one without inputs. An exception of the operator comes as from any run: as a
    weir.Error, whose __cause__ it is. weir.Timeout: it did not end within so many seconds; the text says what it waits for.
    """
    if inputs is not None and not isinstance(inputs, Mapping):
        raise TypeError('inputs are lists by port: give a dict, {"in": [value]}')
    for port, values in (inputs or {}).items():
        if isinstance(values, str | bytes) or hasattr(values, "__array__"):
            raise TypeError(f"inputs[{port!r}] is one value: give a list, [value]")
    if ticks is not None:
        settings["conditions"] = [*settings.get("conditions", ()), {"type": "count", "count": ticks}]
    with Graph() as graph:
        entity = graph.add(operator, **settings)
        inlets = {port: graph.inlet(entity[port]) for port in inputs or {}}
        outlets = {end.port: graph.outlet(end, MOST) for end in entity.outputs}
        messages: dict[str, list[Message]] = {port: [] for port in outlets}
        work = [_Work(_push, inlets[port], values) for port, values in (inputs or {}).items()]
        work += [_Work(messages[port].extend, outlet) for port, outlet in outlets.items()]
        with _lines_of(entity) as lines:
            outcome = _run(graph, work, timeout, backend)
            counts = entity.counts
        instance = entity.instance if graph._description.is_of_python(entity.name) else None
        emitted = {port: [_plain(message) for message in listed] for port, listed in messages.items()}
    return Result(emitted, messages, lines, instance, counts["ticks"], outcome)


class _Work(threading.Thread):
    """A thread whose exception is kept."""

    def __init__(self, call: Callable[..., None], *arguments: Any):
        super().__init__(daemon=True)
        self.call, self.arguments = call, arguments
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.call(*self.arguments)
        except BaseException as error:
            self.error = error


def _push(inlet: Inlet, values: Iterable[Any]) -> None:
    try:
        for value in values:
            given = value if isinstance(value, Stamped) else Stamped(value, None)  # type: ignore[arg-type]
            inlet.push(given.value, stamp=given.stamp)
    except Closed:
        return  # the run has ended without taking them
    finally:
        inlet.close()


def _run(graph: Graph, work: list[_Work], timeout: float, backend: str) -> Outcome:
    graph.start(backend=backend)  # type: ignore[arg-type]
    for each in work:
        each.start()
    try:
        outcome = graph.wait(timeout)
    except Timeout:
        why = graph.explain_line()
        raise Timeout(Status.TIMEOUT, f"the run of the operator has not ended after {timeout} s: {why}") from None
    finally:
        graph.stop(drain=False)
        for each in work:
            each.join()
    for each in work:
        if each.error:
            raise each.error
    return outcome


@contextmanager
def _lines_of(entity: Entity) -> Iterator[list[tuple[str, str]]]:
    """What the entity logs in the block, at all levels."""
    lines: list[tuple[str, str]] = []
    begin = f"{entity.name}: "

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if text.startswith(begin):
                lines.append(({"WARNING": "warn"}.get(record.levelname, record.levelname.lower()), text.removeprefix(begin)))

    handler, level = Handler(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)


def _plain(message: Message) -> Any:
    if message.kind == "parts":
        return {name: _plain(part) for name, part in message.parts.items()}
    if message.kind == "tensor":
        try:
            import numpy
        except ImportError:
            return message
        return numpy.array(message)
    kinds: dict[str, Callable[[Any], Any]] = {"empty": lambda m: None, "bytes": bytes, "object": lambda m: m.object}
    return kinds.get(message.kind, lambda m: m)(message)
