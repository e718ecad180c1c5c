"""Graphs: reading, running, waiting, and the inlets and outlets by which a program feeds them."""

import asyncio
import json
import numbers
import operator
import os
import re
from dataclasses import dataclass

from weir import _weir
from weir.errors import Diagnostic, Error, Status, Timeout, line_of, make
from weir.operators import handles

FORMATS = ["text", "json", "dot"]
SECONDS = ("drain", "deadlock_grace", "max_duration", "worker_spin")
OPTIONS = ("workers", "backend", "signal", "seed", "max_in_flight", "root", "statistics", "skip",
           "trace", "trace_events", "gpu_time", "strict", *SECONDS)
FLAGS = ("statistics", "trace", "strict")
TEXTS = ("backend", "signal")
BACKENDS = {1: "cuda", 2: "host", 3: "sim"}  # weir_backend of weir.h
NUMBERS = {"workers": 2**32, "seed": 2**64, "max_in_flight": 2**31, "skip": 2**64, "trace_events": 2**64}  # below
GPU_TIME = re.compile("off|all|sample:([1-9][0-9]{0,5}|1000000)")


@dataclass(frozen=True)
class Outcome:
    """How a run ended: weir_outcome of weir.h. duration is in seconds."""

    status: Status
    entity: str | None
    text: str | None
    ticks: int
    leftover: int
    abandoned: int
    duration: float
    discarded: int
    waiting: str | None
    held: int
    stuck: str | None
    cause: str
    cause_entity: str | None
    cause_on: str | None

    @property
    def finished(self):
        """True if the run came to its own end: all its sources were done. False: it was stopped, or failed."""
        return self.status == Status.OK and self.cause == "done"

    @property
    def stopped(self):
        """True if it was ended before: by stop, Ctrl-C, ctx.drain or max_duration. False: it finished, or failed."""
        return self.status == Status.OK and self.cause != "done"


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


def _text(name, value):
    """A text or a path, as C takes it."""
    text = os.fspath(value)
    if isinstance(text, str) and "\0" in text:
        raise ValueError(f"{name} has a NUL character: {text!r}")
    return text


def _source(graph, path):
    """What the module reads: a text or path, and whether it is a path."""
    if path is not None:
        return _text("path", path), True
    if isinstance(graph, str):
        return graph, False
    try:
        return json.dumps(graph), False
    except (TypeError, ValueError) as error:
        raise TypeError(f"a graph is a dict of what JSON has, or a text: {error}") from None


def _listed(name, values):
    """A text is a list of its letters."""
    if isinstance(values, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is a list, not one: [{values!r}]")
    return [_text(name, value) for value in values]


def _is_number(value, kind=numbers.Real):
    return isinstance(value, kind) and not isinstance(value, bool)


def _option(name, value):
    """What the module takes for it."""
    if name in SECONDS:
        if not _is_number(value) or value != value:
            raise TypeError(f"{name} is a number of seconds, not {value!r}")
        if value < 0:
            return 2**63 - 1 if name == "deadlock_grace" else -1  # for ever; WEIR_NONE
        return int(min(value * 1e9, 2.0**63 - 1024))
    if name in NUMBERS:
        least = 1 - NUMBERS[name] if name == "max_in_flight" else 0
        if not _is_number(value, numbers.Integral) or not least <= value < NUMBERS[name]:
            raise TypeError(f"{name} is a whole number from {least} to {NUMBERS[name] - 1}, not {value!r}")
        return int(value)
    if name in FLAGS and not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    if name in TEXTS and not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r}")
    if name == "gpu_time":
        return _sampling(value)
    if name == "strict":
        return 1 if value else -1  # WEIR_NONE
    return _text(name, value) if name in (*TEXTS, "root") else value


def _options(options):
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(f"there is no option '{unknown[0]}'; there are {', '.join(OPTIONS)}")
    return {name: _option(name, value) for name, value in options.items() if value is not None}


def _check_timeout(timeout):
    if timeout is not None and not _is_number(timeout):
        raise TypeError(f"a timeout is a number of seconds, or None, not {timeout!r}")


def _stamp(stamp):
    if stamp is None:
        return None
    try:
        time, tag = (operator.index(each) for each in stamp)
    except (TypeError, ValueError):
        raise TypeError(f"a stamp is (time, tag), whole numbers, the time as graph.now; not {stamp!r}") from None
    if not (-(2**63) <= time < 2**63 and 0 <= tag < 2**64):
        raise ValueError(f"a time has 64 bits, a tag too and no sign; the stamp is {stamp!r}")
    return time, tag


def _about(entity, call, *arguments):
    try:
        call(entity, *arguments)
    except KeyError:
        raise KeyError(f"the graph has no entity {entity!r}") from None


def _sampling(text):
    """weir_scheduler_options.gpu_time of "off", "all" or "sample:N"."""
    found = GPU_TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"gpu_time is 'off', 'all' or 'sample:N' with N from 1 to 1000000, not {text!r}")
    return {"off": -1, "all": 1}.get(text) or int(found[1])


class Graph:
    """A graph, and its runs.

    Graph.read(path) reads a file, Graph(...) takes a dict or a text in the same format. All operators that are
    registered by then can be named. Close it, or use it in `with`, when the program goes on without it.

    check_writes: finds arrays of the host into which the program writes after their emit or push: the run is cut short
    and fails, and the error names the entity and the port. It reads each array twice.
    """

    def __init__(self, graph=None, *, path=None, set=(), plugins=(), check_writes=False):
        text, is_path = _source(graph, path)
        named = graph.get("name") if isinstance(graph, dict) else os.path.basename(text) if is_path else None
        self._name = repr(named) if named else "without a name"
        self._source = (text, is_path, _listed("set", set), _listed("plugins", plugins), handles(), bool(check_writes))
        self._core = _weir.make_graph(*self._source)
        self._made = None
        self._inlets, self._outlets = {}, {}
        self._waits = False  # for the end of a run of which nobody has heard yet
        self._started, self._blocks = False, []  # the last start's block may follow; True: a block of a run
        self.warnings = [d for d in (Diagnostic(*row) for row in self._core.warnings) if d.warning]

    @classmethod
    def read(cls, path, *, set=(), plugins=(), check_writes=False):
        """Reads a graph file. set: ["entity.parameter=value", ...]; plugins: files of operators in C."""
        return cls(path=path, set=set, plugins=plugins, check_writes=check_writes)

    def _reopen(self):
        """Makes a graph that was closed anew, for the next start, with its inlets and outlets."""
        if not self._core.closed():
            return
        self._core = _weir.make_graph(*self._source)
        for port, inlet in self._inlets.items():
            inlet._inlet = self._core.inlet(port)
        for port, outlet in self._outlets.items():
            outlet._outlet = self._core.outlet(port, *outlet._options)

    # ---- running

    def run(self, **options):
        """Runs the graph to its end and returns the Outcome; raises weir.Error if it failed."""
        try:
            return self.start(**options).wait()
        except KeyboardInterrupt:
            self._cut()
            raise

    def _cut(self):
        """After Ctrl-C: nothing of the run goes on behind the exception."""
        if self._core.running():
            self._core.stop(False)
            self._core.wait(None)

    def start(self, **options):
        """Starts a run. The options are those of weir_scheduler_options, times in seconds; without any,
        those of the run before. Returns the graph, so that `with graph.start():` waits at the end. Refused while a run
        is on (weir.Error, STATE). After Ctrl-C no run is on.
        """
        given = _options(options)
        self._reopen()
        if self._core.running():
            raise make(Status.STATE, "a run of this graph is on: wait for its end, or stop it and wait, before the next start")
        if not self._core.has_scheduler() or (options and given != self._made):
            self._core.create(given)
            self._made = given
        self._core.failures.clear()
        try:
            failed = self._core.start()
            self._started = self._waits = not failed
        except KeyboardInterrupt:
            self._cut()
            raise
        if failed:
            raise self._failure(make(**failed))
        return self

    def wait(self, timeout=None):
        """Waits for the end of the run and returns its Outcome; raises weir.Error if it failed, and
        weir.Timeout after the timeout, in seconds. Ctrl-C drains the run; then KeyboardInterrupt is raised.
        """
        _check_timeout(timeout)
        self._started = False
        found = self._core.wait(timeout)
        if found is None:
            raise Timeout(Status.TIMEOUT, "the run goes on")
        self._waits = False
        return self._ended(Outcome(**{**found, "status": Status(found["status"])}))

    def _ended(self, outcome):
        failures, written = self._core.failures, self._core.take_written()
        if written and outcome.status == Status.OK and not failures:
            error = make(Status.INVALID, f"'{written[0]}': {written[1]}" if written[0] else written[1], written[0], said=written[1])
            error.outcome = outcome
            raise error
        if outcome.status == Status.OK and not failures:
            return outcome
        entity = outcome.entity or next(iter(failures), None)
        if outcome.status:
            text, on = outcome.text or outcome.status.name, outcome.cause_on
            cause = outcome.cause if outcome.cause != "none" else None
        else:
            text, cause, on = f"its stop failed: {failures[entity]!r}", None, None
        error = make(outcome.status or Status.FAILED, f"'{entity}': {text}" if entity else text,
                     entity or outcome.cause_entity, said=text, cause=cause, on=on)
        error.outcome = outcome
        for other, exception in failures.items():
            if other != entity:
                error.add_note(f"'{other}' failed, too: {line_of(exception, other)}")
        raise self._failure(error)

    def _failure(self, error):
        """Attaches the exception of the operator that ended the run. Of Ctrl-C, that is the error."""
        exception = self._core.failures.get(error.entity)
        if isinstance(exception, KeyboardInterrupt):
            return exception
        return error.caused_by(exception) if exception is not None else error

    def stop(self, drain=True):
        """Stops the run: sources stop, the rest is worked off; without drain it is cut short. Any thread."""
        self._core.stop(drain)

    def collect(self, timeout=None):
        """Between two runs, frees the arrays and messages that were dropped while the device still used them, and
        waits for it. timeout: in seconds; None: without limit; raises weir.Timeout, and weir.Error (STATE) in a run.
        """
        _check_timeout(timeout)
        self._core.collect(timeout)

    async def wait_async(self):
        """Waits as wait() does, in asyncio."""
        while self.running:
            await _readable(self._core.fileno())
        return self.wait()

    @property
    def running(self):
        """True from start to the end of the run."""
        return self._core.running()

    @property
    def stopping(self):
        """True while the run is being stopped: drained, or cut short."""
        return self._core.stopping()

    @property
    def where(self):
        """The backend and its device, for people: "cuda: NVIDIA H100", "host"."""
        return self._core.where()

    @property
    def backend(self):
        """What it runs on: "cuda", "host" or "sim"."""
        return BACKENDS[self._core.backend()]

    @property
    def now(self):
        """The clock of the runs in nanoseconds, for stamps."""
        return self._core.now()

    def explain(self):
        """Why nothing happens: a list of (entity, condition, verdict, detail), root causes first."""
        return self._core.explain()

    def explain_causes(self):
        """The same as a list of Unmet, with causes to act on."""
        return [Unmet(**one) for one in self._core.explain_causes()]

    def explain_line(self):
        """The same in one line; "" if no entity waits."""
        return self._core.explain_line()

    def counts(self):
        """Counters of the current or last run: {"entities": {name: ...}, "queues": [...], "pools": {...}}."""
        core = self._core
        return {"entities": core.entity_counts(), "queues": core.queue_counts(), "pools": core.pool_counts()}

    def statistics(self):
        """All statistics of the current or last run, of start(statistics=True), as a dict: docs/statistics.md."""
        return json.loads(self._core.statistics())

    def write_trace(self, path):
        """Writes the timeline of the last run, of start(trace=True), in Chrome's trace event format, which
        Perfetto opens: docs/profiling.md. Returns how many records had no room (trace_events): the oldest.
        """
        return self._core.write_trace(_text("path", path))

    def fileno(self):
        """A descriptor that is readable once the run has ended. Do not read it."""
        return self._core.fileno()

    # ---- entities

    def __getitem__(self, entity):
        """The instance of a Python operator in the current or last run."""
        instances = self._core.instances
        if entity not in instances:
            have = ", ".join(instances) or "none"
            raise KeyError(f"{entity!r} is no entity whose operator in Python has run; there are: {have}")
        return instances[entity]

    def __iter__(self):
        """The names of the entities whose instance graph[name] gives."""
        return iter(list(self._core.instances))

    def __len__(self):
        return len(self._core.instances)

    def __bool__(self):
        return True

    def __contains__(self, entity):
        return entity in self._core.instances

    def tell(self, entity, condition, told):
        """Tells a condition "ready", "wait", "event_waiting", "event_done", "never", or a Fence."""
        _about(entity, self._core.tell, condition, told)

    def poke(self, entity):
        """Asks the entity's conditions again."""
        _about(entity, self._core.poke)

    # ---- inlets and outlets

    def inlet(self, port):
        """An inlet into an input port, "blur.in"; made at the first call, which comes before the first start."""
        self._reopen()
        if port not in self._inlets:
            self._inlets[port] = Inlet(self, self._core.inlet(port), port)
        return self._inlets[port]

    def outlet(self, port, capacity=0, early=False):
        """An outlet of an output port, "blur.out"; made at the first call, which comes before the first start.

        capacity: messages that wait for the program. early: messages are given before the device has
        finished them.
        """
        self._reopen()
        if port not in self._outlets:
            self._outlets[port] = Outlet(self, self._core.outlet(port, capacity, early), port, (capacity, early))
        return self._outlets[port]

    # ---- the end

    def close(self):
        """Cuts a run short and frees the graph: its threads, descriptors, counts. A further start makes it anew. Arrays
        and messages that the program keeps stay valid, and keep the graph's memory; instances stay, too.
        """
        self._core.close()
        self._made, self._waits = None, False
        for end in (*self._inlets.values(), *self._outlets.values()):
            end._drop()

    def __enter__(self):
        self._blocks.append(self._started)
        self._started = False
        return self

    def __exit__(self, kind, *_):
        """Closes the inlets and waits, and raises what the run failed by; after an exception the run is cut short. Of `with weir.Graph(...)`, and after
        an exception, closes the graph; of `with graph.start()` does not: its counts and statistics stay.
        """
        of_run = self._blocks.pop()
        if kind is None and (self.running or self._waits):
            self._end_block()
            self.wait()
        if kind is not None or not of_run:
            self.close()

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, kind, *_):
        """The same in asyncio: waits without blocking the loop."""
        of_run = self._blocks.pop()
        try:
            if kind is None and (self.running or self._waits):
                self._end_block()
                await self.wait_async()
        except asyncio.CancelledError:
            self.close()
            raise
        if kind is not None or not of_run:
            self.close()

    def _end_block(self):
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

    def __repr__(self):
        return f"<weir.Graph {self._name}, {self._state()}>"

    def _state(self):
        try:
            return "running" if self.running else "closed" if self._core.closed() else "not running"
        except AttributeError:  # it could not be made
            return "not made"
        except Error as error:
            return str(error)


class _Gone:
    """What the ends of a closed graph have."""

    def __getattr__(self, name):
        raise make(Status.STATE, "the graph is closed")


class Inlet:
    """One more connection into an input port, which the program feeds."""

    def __init__(self, graph, inlet, port):
        self._graph, self._inlet, self._port = graph, inlet, port

    def push(self, value, timeout=None, stamp=None, give=False):
        """Pushes an array, bytes, a dict of parts, a message of this graph, None (empty) or any object.

        timeout: seconds to wait for room; None: without limit; 0: raises weir.Error (BUSY) at once.
        stamp: (time, tag). give: the program does not use the array any more, so receivers may write it. Raises weir.Closed outside of a run, during a drain, and if the receiver is done.
        """
        _check_timeout(timeout)
        self._inlet.push(value, timeout, _stamp(stamp), give)

    async def push_async(self, value, stamp=None, give=False):
        """The same in asyncio: waits for room without blocking the loop. It is woken, and asks for nothing meanwhile."""
        stamp, fd = _stamp(stamp), self._inlet.fileno()
        while True:
            try:
                return self._inlet.push(value, 0, stamp, give)
            except Error as error:
                if error.status != Status.BUSY:
                    raise
            await _readable(fd)

    def fileno(self):
        """A descriptor for another loop: a push(value, 0) that finds no room clears it; readable when there is some.
        Watch it, but do not read it. Ask for it before that push.
        """
        return self._inlet.fileno()

    def close(self):
        """No more messages in this run. Without it the run does not end."""
        self._inlet.close()

    def __repr__(self):
        return f"<weir.Inlet into {self._port}>"

    def _drop(self):
        self._inlet = _Gone()


class Outlet:
    """Gives the program what an output port emits; iterable, also by `async for`."""

    def __init__(self, graph, outlet, port, options):
        self._graph, self._outlet, self._port, self._options = graph, outlet, port, options
        self._loops, self._left = 0, False  # that iterate; one of them was left before the end

    def take(self, timeout=None):
        """The next message. timeout: in seconds; None: without limit; raises weir.Timeout, and weir.Closed when
        no more will come.
        """
        _check_timeout(timeout)
        self._left = False
        return self._outlet.take(timeout)

    async def take_async(self):
        """The next message, in asyncio: waits without blocking the loop; raises weir.Closed when no more will come."""
        self._left = False
        while True:
            try:
                return self._outlet.take(0)
            except Timeout:
                await _readable(self._outlet.fileno())

    def close(self):
        """Takes no more in this run: what it holds is dropped, and what comes. The sender goes on."""
        self._outlet.close()

    def __repr__(self):
        return f"<weir.Outlet of {self._port}>"

    def _drop(self):
        self._outlet = _Gone()

    def fileno(self):
        """A descriptor that is readable while a take returns at once. Watch it, but do not read it."""
        return self._outlet.fileno()

    def __iter__(self):
        """Messages until no more will come. A loop that is left before, inside of `with`, ends the run there."""
        loop = _Loop(self)
        yield from iter(self._outlet.next_or_none, None)
        loop.ended = True

    def __aiter__(self):
        return _Loop(self)


class _Loop:
    """One iteration over an outlet: notes whether it came to the end."""

    def __init__(self, outlet):
        self.outlet, self.ended = outlet, False
        outlet._loops += 1

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.outlet.take_async()
        except Error as error:
            if error.status != Status.CLOSED:
                raise
        self.ended = True
        raise StopAsyncIteration

    def __del__(self):
        self.outlet._loops -= 1
        self.outlet._left = not self.ended


async def _readable(fd):
    """Waits until a descriptor is readable. Each waiter has its own: a loop knows a descriptor once."""
    loop = asyncio.get_running_loop()
    own = os.dup(fd)
    ready = loop.create_future()
    loop.add_reader(own, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(own)
        os.close(own)


def check(graph=None, *, path=None, set=(), plugins=()):
    """All errors and warnings of a graph, as weir check finds them: a list of Diagnostic."""
    text, is_path = _source(graph, path)
    try:
        found = _weir.check_graph(text, is_path, _listed("set", set), _listed("plugins", plugins), handles())
    except Error as error:
        if not error.diagnostics:
            raise
        return list(error.diagnostics)
    return [Diagnostic(*row) for row in found]


def show(graph=None, *, path=None, format="text", set=(), plugins=()):
    """The graph with all defaults filled in, as weir show prints it. format: "text", "json" or "dot"."""
    text, is_path = _source(graph, path)
    if format not in FORMATS:
        raise ValueError(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    kind = FORMATS.index(format)
    return _weir.show_graph(text, is_path, kind, _listed("set", set), _listed("plugins", plugins), handles())
