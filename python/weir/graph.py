"""Graphs: making, running, waiting."""

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Unpack

from weir import _weir
from weir.build import Description
from weir.draw import svg_of
from weir.ended import Outcome, Run, caused, graphs, refuse_stuck, refuse_untaken, wait_for_end
from weir.ends import Inlet, Outlet, readable
from weir.entity import End, Entity
from weir.errors import Diagnostic, Error, Status, Timeout, line_of, make
from weir.operators import Policy, handles
from weir.options import Options, Path, check_timeout, options_of, text_of, with_options

FORMATS = ["text", "json", "dot"]
BACKENDS: dict[int, Literal["cuda", "host", "sim"]] = {1: "cuda", 2: "host", 3: "sim"}  # weir_backend of weir.h
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Unmet:
    """What keeps an entity from its next tick: weir_unmet of weir.h."""

    entity: str
    cause: str
    on: str | None
    blames: str | None
    condition: str
    verdict: str
    detail: str


def _source(graph: Any, path: Any) -> tuple[Any, bool]:
    """What the module reads: a text or path, and whether it is a path."""
    if path is not None:
        return text_of("path", path), True
    if isinstance(graph, str):
        return graph, False
    try:
        return json.dumps(graph), False
    except (TypeError, ValueError) as error:
        raise TypeError(f"a graph is a dict of what JSON has, or a text: {error}") from None


def _listed(name: str, values: Any) -> list[Any]:
    """A text is a list of its letters."""
    if isinstance(values, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is a list, not one: [{values!r}]")
    return [text_of(name, value) for value in values]


def _about(entity: str | Entity, call: Callable[..., None], *arguments: Any) -> None:
    try:
        call(_name_of(entity), *arguments)
    except KeyError:
        raise KeyError(f"the graph has no entity {_name_of(entity)!r}") from None


class Graph:
    """A graph, and its runs.

    Graph.read(path) reads a file, Graph(...) takes a dict or a text in the same format. All operators that are
    registered by then can be named. Close it, or use it in `with`, when the program goes on without it.

    check_writes: finds arrays of the host into which the program writes after their emit or push: the run is cut short
    and fails, and the error names the entity and the port. It reads each array two to three times.
    """

    def __init__(self, graph: Json | str | None = None, *, name: str | None = None, path: Path | None = None,
                 set: Iterable[str] = (), plugins: Iterable[Path] = (), check_writes: bool = False):
        if graph is None and path is None:
            graph = {"weir": 1, **({"name": name} if name else {}), "entities": [], "connections": []}
        elif name is not None:
            raise TypeError("a graph of a file, a dict or a text has its name there")
        text, is_path = _source(graph, path)
        named = graph.get("name") if isinstance(graph, Mapping) else os.path.basename(text) if is_path else None
        self._name = repr(named) if named else "without a name"
        self._description = Description(text, is_path, _listed("set", set), _listed("plugins", plugins))
        self._check_writes = bool(check_writes)
        self._inlets: dict[str, Inlet] = {}
        self._outlets: dict[str, Outlet] = {}
        self._run: Run | None = None  # the current or last one
        self._started, self._ran = False, False  # the last start's block may follow; there has been a start
        self._blocks: list[bool] = []  # True: a block of a run
        self._make()

    @classmethod
    def read(cls, path: Path, *, set: Iterable[str] = (), plugins: Iterable[Path] = (), check_writes: bool = False) -> "Graph":
        """Reads a graph file. set: ["entity.parameter=value", ...]; plugins: files of operators in C, or names of
        such that come with weir, "onnx"."""
        return cls(path=path, set=set, plugins=plugins, check_writes=check_writes)

    def _make(self) -> None:
        try:
            self._core = _weir.make_graph(*self._description.source(self._check_writes))
        except Error as error:
            raise (self._description.named(error) if self._description.changed else error) from None
        self._made: dict[str, Any] | None = None
        self._warnings = [d for d in (Diagnostic(*row) for row in self._core.warnings) if d.warning]

    def _reopen(self) -> None:
        """Makes a graph that was closed, or added to, anew, for the next start, with its inlets and outlets."""
        if not self._core.closed():
            return
        self._make()
        for port, inlet in self._inlets.items():
            inlet._inlet = self._core.inlet(port)
        for port, outlet in self._outlets.items():
            outlet._outlet = self._core.outlet(port, *outlet._options)

    @property
    def warnings(self) -> list[Diagnostic]:
        """What weir check warns of."""
        if not self._ran:
            self._reopen()
        return self._warnings

    # ---- building

    def add(self, operator: object, /, *, name: str | None = None, parameters: Json | None = None,
            conditions: Sequence[Any] = (), resources: Sequence[str] = (), ports: Mapping[str, Json] | None = None,
            effects: bool | None = None, max_in_flight: int | None = None, replay: bool | Json | None = None,
            main: bool | None = None, instances: int | None = None, default_stream_pool: bool | None = None, use_default_stream: bool | None = None,
            **others: Any) -> Entity:
        """Adds an entity and returns it. operator: the name of one, an object with compute(self, ctx), a class of such, or a
        function (weir.operator). Further keywords are its parameters; parameters= has those whose names are taken here.

        An object is one entity, the same in each run; a class makes a new object for each run. The other arguments are the keys
        of an entity in a graph file; a condition is its type, or a dict as there. Without a name it is called as its operator,
        in lower case, from the second on with a number: blur, blur2.
        """
        self._refuse_change()
        settings = {
            "parameters": {**(parameters or {}), **others},
            "conditions": [{"type": one} if isinstance(one, str) else one for one in _listed_of(conditions, "conditions")],
            "resources": _listed_of(resources, "resources"),
            "ports": dict(ports or {}),
            "effects": effects,
            "max_in_flight": max_in_flight,
            "replay": replay,
            "main": main,
            "instances": instances,
            "default_stream_pool": default_stream_pool,
            "use_default_stream": use_default_stream,
        }
        made = self._description.add(operator, name, settings)
        self._change()
        return Entity(self, made)

    def add_resource(self, name: str, type: str, **settings: Any) -> str:
        """Adds a resource, as "memory_pool" or "stream_pool", and returns its name, for `resources` of entities."""
        self._refuse_change()
        self._description.add_resource(name, {"type": type, **settings})
        self._change()
        return name

    def connect(self, source: Entity | End | str, target: Entity | End | str, *, initial_messages: int | None = None,
                capacity: int | None = None, take: int | Literal["all"] | None = None, policy: Policy | None = None,
                gate: bool | None = None, max_emits: int | None = None) -> Entity:
        """Connects an output with an input and returns the entity that receives. An end is a port, its name "blur.in", or an
        entity that has one port there.

        initial_messages: empty messages in the queue when a run starts. capacity, take, policy, gate: of the input, for all its
        connections; max_emits: of the output.
        """
        settings = {"capacity": capacity, "take": take, "policy": policy, "gate": gate, "max_emits": max_emits}
        return self._connect(source, target, initial_messages, {key: value for key, value in settings.items() if value is not None})

    def _connect(self, source: Any, target: Any, initial_messages: int | None = None, ports: Json | None = None) -> Entity:
        self._refuse_change()
        begin, end = self._end(source, "output"), self._end(target, "input")
        self._description.connect(str(begin), str(end), initial_messages, dict(ports or {}))
        self._change()
        return end.entity

    def _end(self, thing: Any, direction: Literal["input", "output"]) -> End:
        """The port that is meant."""
        if isinstance(thing, str):
            name, _, port = thing.partition(".")
            thing = self[name][port] if port else self[name]
        if not isinstance(thing, (Entity, End)):
            raise TypeError(f"{thing!r} is no entity of the graph: add it first: graph.add(...)")
        entity = thing.entity if isinstance(thing, End) else thing
        if entity.graph is not self:
            raise ValueError(f"entity '{entity.name}' is of another graph")
        described = self._description.describes_ports(entity.name)
        have = [end.port for end in (entity.inputs if direction == "input" else entity.outputs)]
        if isinstance(thing, End):
            if thing.port not in have and not described:
                raise ValueError(f"entity '{entity.name}' has no {direction} '{thing.port}'; its {direction}s are: {', '.join(have) or 'none'}")
            return thing
        if len(have) != 1:
            which = f"has no {direction}"
            if have:
                which = f"has {len(have)} {direction}s, {', '.join(have)}: name one, as {entity.name}[{have[0]!r}]"
            elif described:
                which = f"has {direction}s that come of its parameters: name one, as {entity.name}['NAME']"
            raise ValueError(f"entity '{entity.name}' {which}")
        return End(entity, have[0])

    def _ends(self) -> list[Inlet | Outlet]:
        return [*self._inlets.values(), *self._outlets.values()]

    def _refuse_change(self) -> None:
        if self._ran:
            raise make(Status.STATE, "the graph has been started: add and connect before its first start")

    def _change(self) -> None:
        """What was made of the description before is of no use."""
        self._core.close()
        for end in self._ends():
            end._drop("the graph was added to: it is made anew by its start")

    def to_json(self) -> str:
        """The graph as a graph file, which `weir show` prints and weir.Graph takes. It names the operators in Python; objects that
        were added, and operators that are not registered, are not in it: their entities have a comment that says so. With an object of a
        class that is registered the file would run, with another object: that is refused (weir.Error, UNSUPPORTED).
        """
        return self._description.to_json()

    # ---- running

    @with_options
    def run(self, **options: Unpack[Options]) -> Outcome:
        """Runs the graph to its end and returns the Outcome; raises weir.Error if it failed."""
        if not (options or self._made or {}).get("max_duration"):
            refuse_untaken(self._outlets.values())
        try:
            return self.start(**options)._wait_or_cut()
        except KeyboardInterrupt:
            self._cut()
            raise

    def _wait_or_cut(self) -> Outcome:
        try:
            return self.wait()
        except Error:
            self._cut()
            raise

    def _cut(self) -> None:
        """After Ctrl-C, or a wait that was refused: nothing of the run goes on behind the exception."""
        if self._core.running():
            self._core.stop(False)
            self._core.wait(None)

    @with_options
    def start(self, **options: Unpack[Options]) -> "Graph":
        """Starts a run. The options are those of weir_scheduler_options, times in seconds; without any,
        those of the run before. Returns the graph, so that `with graph.start():` waits at the end. Refused while a run
        is on (weir.Error, STATE). After Ctrl-C no run is on.
        """
        given = options_of(options)
        self._reopen()
        if self._core.running():
            raise make(Status.STATE, "a run of this graph is on: wait for its end, or stop it and wait, before the next start")
        if not self._core.has_scheduler() or (options and given != self._made):
            self._core.create(given)
            self._made = given
        self._tell_unheard()  # of the run before
        self._core.failures.clear()
        for outlet in self._outlets.values():
            outlet._used = outlet._closed = False
        self._ran = True
        try:
            failed = self._core.start()
            self._started = not failed
        except KeyboardInterrupt:
            self._cut()
            raise
        if failed:
            raise caused(self._core, make(**failed))
        self._run = Run(self._core)
        graphs.add(self)
        return self

    def wait(self, timeout: float | None = None) -> Outcome:
        """Waits for the end of the run and returns its Outcome; raises weir.Error if it failed, and
        weir.Timeout after the timeout, in seconds. Ctrl-C drains the run; then KeyboardInterrupt is raised.
        """
        check_timeout(timeout)
        self._started = False
        run = self._run or Run(self._core)
        found = wait_for_end(self, list(self._outlets.values()), timeout)
        if found is None:
            raise Timeout(Status.TIMEOUT, f"the run goes on: {self.explain_line()}")
        return run.end(found)

    def _failure_soon(self, sender: str | None = None) -> BaseException | None:
        """What the run failed by, for one whose inlet or outlet was closed."""
        return self._run.failure_soon(sender) if self._run else None

    async def _failure_soon_async(self, sender: str | None = None) -> BaseException | None:
        return await self._run.failure_soon_async(sender) if self._run else None

    def _refuse_stuck(self, port: str) -> None:
        refuse_stuck(self._core, port)

    def _tell_unheard(self) -> None:
        run, self._run = self._run, None
        if run:
            run.tell_unheard(self._name)

    def __del__(self) -> None:
        if getattr(self, "_run", None):
            self._tell_unheard()

    def stop(self, drain: bool = True) -> None:
        """Stops the run: sources stop, the rest is worked off; without drain it is cut short. Any thread."""
        self._core.stop(drain)

    def collect(self, timeout: float | None = None) -> None:
        """Between two runs, frees the arrays and messages that were dropped while the device still used them, and
        waits for it. timeout: in seconds; None: without limit; raises weir.Timeout, and weir.Error (STATE) in a run.
        """
        check_timeout(timeout)
        self._core.collect(timeout)

    async def wait_async(self) -> Outcome:
        """Waits as wait() does, in asyncio."""
        while self.running:
            await readable(self._core.fileno())
        return self.wait()

    @property
    def running(self) -> bool:
        """True from start to the end of the run."""
        return self._core.running()

    @property
    def stopping(self) -> bool:
        """True while the run is being stopped: drained, or cut short."""
        return self._core.stopping()

    @property
    def where(self) -> str:
        """The backend and its device, for people: "cuda: NVIDIA H100", "host"."""
        return self._core.where()

    @property
    def backend(self) -> Literal["cuda", "host", "sim"]:
        """What it runs on: "cuda", "host" or "sim"."""
        return BACKENDS[self._core.backend()]

    @property
    def now(self) -> int:
        """The clock of the runs in nanoseconds, for stamps."""
        return self._core.now()

    def explain(self) -> list[tuple[str, str, str, str]]:
        """Why nothing happens: a list of (entity, condition, verdict, detail), root causes first."""
        return self._core.explain()

    def explain_causes(self) -> list[Unmet]:
        """The same as a list of Unmet, with causes to act on."""
        return [Unmet(**one) for one in self._core.explain_causes()]

    def explain_line(self) -> str:
        """The same in one line; "" if no entity waits."""
        return self._core.explain_line()

    def counts(self) -> dict[str, Any]:
        """Counters of the current or last run: {"entities": {name: ...}, "queues": [...], "pools": {...}}."""
        core = self._core
        return {"entities": core.entity_counts(), "queues": core.queue_counts(), "pools": core.pool_counts()}

    def statistics(self) -> dict[str, Any]:
        """All statistics of the current or last run, of start(statistics=True), as a dict: docs/statistics.md."""
        found: dict[str, Any] = json.loads(self._core.statistics())
        return found

    def metrics(self) -> str:
        """Metrics of the current or last run in Prometheus' text format, for a program that has an HTTP server:
        docs/metrics.md. With start(statistics=True) also times.
        """
        return self._core.metrics()

    def write_trace(self, path: Path) -> int:
        """Writes the timeline of the last run, of start(trace=True), in Chrome's trace event format, which
        Perfetto opens: docs/profiling.md. Returns how many records had no room (trace_events): the oldest.
        """
        return self._core.write_trace(text_of("path", path))

    def fileno(self) -> int:
        """A descriptor that is readable once the run has ended. Do not read it."""
        return self._core.fileno()

    # ---- entities

    def __getitem__(self, entity: str) -> Entity:
        """The entity of that name."""
        there = self._description.entities()
        if entity not in there:
            raise KeyError(f"the graph has no entity {entity!r}; there are: {', '.join(there) or 'none'}")
        return Entity(self, entity)

    def __iter__(self) -> Iterator[str]:
        """The names of its entities."""
        return iter(self._description.entities())

    def __len__(self) -> int:
        return len(self._description.entities())

    def __bool__(self) -> bool:
        return True

    def __contains__(self, entity: object) -> bool:
        return entity in self._description.entities()

    def tell(self, entity: str | Entity, condition: str, told: str | _weir.Fence) -> None:
        """Tells a condition "ready", "wait", "event_waiting", "event_done", "never", or a Fence."""
        _about(entity, self._core.tell, condition, told)

    def poke(self, entity: str | Entity) -> None:
        """Asks the entity's conditions again."""
        _about(entity, self._core.poke)

    # ---- inlets and outlets

    def inlet(self, port: str | End | Entity) -> Inlet:
        """An inlet into an input port, "blur.in"; made at the first call, which comes before the first start."""
        port = self._port(port, "input")
        self._reopen()
        if port not in self._inlets:
            self._refuse_end("inlet", port)
            self._inlets[port] = Inlet(self, self._core.inlet(port), port)
        return self._inlets[port]

    def outlet(self, port: str | End | Entity, capacity: int = 0, early: bool = False) -> Outlet:
        """An outlet of an output port, "blur.out"; made at the first call, which comes before the first start.

        capacity: messages that wait for the program. early: messages are given before the device has
        finished them.
        """
        port = self._port(port, "output")
        self._reopen()
        if port not in self._outlets:
            self._refuse_end("outlet", port)
            self._outlets[port] = Outlet(self, self._core.outlet(port, capacity, early), port, (capacity, early))
        return self._outlets[port]

    def _refuse_end(self, word: str, port: str) -> None:
        if self._core.has_scheduler():
            raise make(Status.STATE, f"{word} of {port}: the graph has been started: create {word}s before its first start, or after graph.close()")

    def _port(self, port: Any, direction: Literal["input", "output"]) -> str:
        """Its name. Of a text, weir says what is wrong."""
        return port if isinstance(port, str) else str(self._end(port, direction))

    # ---- the end

    def close(self) -> None:
        """Cuts a run short and frees the graph: its threads, descriptors, counts. A further start makes it anew. Arrays
        and messages that the program keeps stay valid, and keep the graph's memory; instances stay, too.
        """
        self._tell_unheard()
        self._core.close()
        self._made = None
        for end in self._ends():
            end._drop()

    def __enter__(self) -> "Graph":
        self._blocks.append(self._started)
        self._started = False
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None = None, _trace: TracebackType | None = None) -> None:
        """Closes the inlets and waits, and raises what the run failed by; after an exception the run fails, too, which other processes
        that it is joined to hear, or is cut short (KeyboardInterrupt and the like). Of `with weir.Graph(...)`, and after
        an exception, closes the graph; of `with graph.start()` does not: its counts and statistics stay.
        """
        of_run = self._blocks.pop()
        if kind is None and (self.running or self._unheard):
            self._end_block()
            self._wait_or_cut()
        self._leave_block(of_run, _error)

    @property
    def _unheard(self) -> bool:
        return self._run is not None and not self._run.heard

    def _is_failure(self, error: BaseException | None) -> bool:
        """What the run failed by, which a loop over an outlet has raised: it has ended."""
        return self._run is not None and getattr(error, "outcome", self) is self._run.outcome

    async def __aenter__(self) -> "Graph":
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, _error: BaseException | None = None, _trace: TracebackType | None = None) -> None:
        """The same in asyncio: waits without blocking the loop."""
        of_run = self._blocks.pop()
        try:
            if kind is None and (self.running or self._unheard):
                self._end_block()
                await self.wait_async()
        except asyncio.CancelledError:
            self.close()
            raise
        self._leave_block(of_run, _error)

    def _leave_block(self, of_run: bool, error: BaseException | None) -> None:
        left = error is not None and not self._is_failure(error)
        if left and isinstance(error, Exception):
            self._core.fail(f"the program failed: {line_of(error)}")
        if left or not of_run:
            self.close()

    def _end_block(self) -> None:
        """Ends what only the block could feed and take. An outlet whose loop it left takes no more: the run is drained."""
        if not self.running:
            return
        for inlet in self._inlets.values():
            inlet.close()
        left = [outlet for outlet in self._outlets.values() if outlet._left and not outlet._loops]
        for outlet in left:
            outlet.close()
        if left:
            self.stop()

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return svg_of({name: entity["operator"] for name, entity in self._description.entities().items()}, list(self._description.connections()))

    def __repr__(self) -> str:
        return f"<weir.Graph {self._name}, {self._state()}>"

    def _state(self) -> str:
        try:
            closed = self._core.closed() and (self._ran or not self._description.changed)
            return "running" if self.running else "closed" if closed else "not running"
        except AttributeError:  # it could not be made
            return "not made"
        except Error as error:
            return str(error)


def _name_of(entity: str | Entity) -> str:
    return entity.name if isinstance(entity, Entity) else entity


def _listed_of(values: Any, name: str) -> list[Any]:
    if isinstance(values, (str, Mapping)):
        raise TypeError(f"{name} is a list, not one: [{values!r}]")
    return list(values)


def _sources(graph: Any, path: Any, set: Any, plugins: Any) -> tuple[str, bool, list[Any], list[Any], list[_weir.Kind]]:
    """What the module takes of a graph, a dict, a text or a path."""
    if isinstance(graph, Graph):
        text, is_path, sets, others, kinds, *_ = graph._description.source(False)
        return text, is_path, sets + _listed("set", set), others + _listed("plugins", plugins), kinds
    text, is_path = _source(graph, path)
    return text, is_path, _listed("set", set), _listed("plugins", plugins), handles()


def check(graph: Graph | Json | str | None = None, *, path: Path | None = None, set: Iterable[str] = (),
          plugins: Iterable[Path] = ()) -> list[Diagnostic]:
    """All errors and warnings of a graph, as weir check finds them: a list of Diagnostic."""
    try:
        found = _weir.check_graph(*_sources(graph, path, set, plugins))
    except Error as error:
        if not error.diagnostics:
            raise
        return list(error.diagnostics)
    return [Diagnostic(*row) for row in found]


def show(graph: Graph | Json | str | None = None, *, path: Path | None = None, format: Literal["text", "json", "dot"] = "text",
         set: Iterable[str] = (), plugins: Iterable[Path] = ()) -> str:
    """The graph with all defaults filled in, as weir show prints it. format: "text", "json" or "dot"."""
    text, is_path, sets, others, kinds = _sources(graph, path, set, plugins)
    if format not in FORMATS:
        raise ValueError(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    return _weir.show_graph(text, is_path, FORMATS.index(format), sets, others, kinds)
