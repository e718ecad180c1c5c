"""How a run ended, who hears of it, and what would never end."""

import asyncio
import atexit
import threading
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weir.ends import Outlet, readable
from weir.errors import Error, Status, line_of, make
from weir.log import LOGGER

if TYPE_CHECKING:
    from weir.graph import Graph

SOON = 0.05  # seconds in which a run ends whose last message was taken
AT_LAST = 5  # and one that is being cut short
TAKE = "take them in `with graph.start():`, by `for message in outlet:`"


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
    def finished(self) -> bool:
        """True if the run came to its own end: all its sources were done. False: it was stopped, or failed."""
        return self.status == Status.OK and self.cause == "done"

    @property
    def stopped(self) -> bool:
        """True if it was ended before: by stop, Ctrl-C, ctx.drain or max_duration. False: it finished, or failed."""
        return self.status == Status.OK and self.cause != "done"


class Run:
    """A run of a graph, as the program hears of its end. Its error is made anew each time: one that was raised refers to the frames that it
    passed, and so to the graph.
    """

    def __init__(self, core: Any):
        self.core = core
        self.heard = False
        self.outcome: Outcome | None = None
        self.written: Any = None

    def end(self, found: dict[str, Any]) -> Outcome:
        """Notes the outcome, and raises what the run failed by."""
        outcome = self._note(found)
        self.heard = True
        error = error_of(self.core, outcome, self.written)
        if error:
            raise error
        return outcome

    def _note(self, found: dict[str, Any]) -> Outcome:
        if not self.outcome:
            self.outcome = Outcome(**{**found, "status": Status(found["status"])})
            self.written = self.core.take_written()
        return self.outcome

    def failure(self) -> BaseException | None:
        """What it failed by, if it has ended. The caller raises it."""
        if not self.outcome and not self.core.closed() and not self.core.running():
            found = self.core.wait(0)
            if found:
                self._note(found)
        error = error_of(self.core, self.outcome, self.written) if self.outcome else None
        self.heard = self.heard or error is not None
        return error

    def patience(self, sender: str | None) -> float:
        """Seconds to wait for the end, for one whose outlet or inlet was closed. sender: of the outlet."""
        if self.outcome or self.core.closed() or not self.core.running():
            return 0
        cut = self.core.failures or (sender and not self.core.entity_counts()[sender]["done"])
        return AT_LAST if cut else SOON

    def failure_soon(self, sender: str | None) -> BaseException | None:
        try:
            patience = self.patience(sender)
            if patience:
                self.core.wait(patience)
            return self.failure()
        except Error:  # the graph is being closed
            return None

    async def failure_soon_async(self, sender: str | None) -> BaseException | None:
        try:
            patience = self.patience(sender)
            if patience:
                await asyncio.wait_for(readable(self.core.fileno()), patience)
        except (Error, TimeoutError):
            pass
        return self.failure_soon(None) if not self.core.closed() and not self.core.running() else None

    def tell_unheard(self, name: str) -> None:
        """The graph goes, and nobody has asked how its run ended."""
        if self.heard:
            return
        try:
            error = self.failure()
        except Error:  # in a child of fork
            return
        if error:
            LOGGER.error("a run of graph %s failed, and nobody asked for its end (graph.wait(), graph.run()): %s", name, error)


def error_of(core: Any, outcome: Outcome, written: Any) -> BaseException | None:
    """What wait raises: of an exception of an operator with that attached, of Ctrl-C that itself."""
    failures = core.failures
    if written and outcome.status == Status.OK and not failures:
        error = make(Status.INVALID, f"'{written[0]}': {written[1]}" if written[0] else written[1], written[0], said=written[1])
        error.outcome = outcome
        return error
    if outcome.status == Status.OK and not failures:
        return None
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
    return caused(core, error)


def caused(core: Any, error: Error) -> BaseException:
    """Attaches the exception of the operator that ended the run. Of Ctrl-C, that is the error."""
    exception = core.failures.get(error.entity)
    if isinstance(exception, KeyboardInterrupt):
        return exception
    return error.caused_by(exception) if exception is not None else error


# ---- what would never end


def _alone() -> bool:
    """No other thread of Python's is there that could take messages."""
    own = threading.current_thread()
    return all(thread is own or isinstance(thread, threading._DummyThread) or thread.name.startswith("weir:") for thread in threading.enumerate())


def refuse_untaken(outlets: Iterable[Outlet]) -> None:
    """run() with outlets, where no other thread is there to take."""
    listed = ", ".join(outlet._port for outlet in outlets)
    if listed and _alone():
        raise make(Status.STATE, f"run() takes no messages, and no other thread is there to do it, so a run with an outlet of {listed} may never end: {TAKE}")


def refuse_stuck(core: Any, port: str) -> None:
    """push finds no room: refused if the outlets are full, all entities wait for room or messages, and no other thread is there to take."""
    full = [each["from"] for each in core.queue_counts() if each["to"] == "outlet" and each["queued"] >= each["capacity"]]
    if full and _alone() and all(one["cause"] in ("room", "messages") for one in core.explain_causes()):
        raise make(Status.STATE, f"push into {port} waits for room while the outlet of {full[0]} is full, and no other thread is there to take: "
                   "take between the pushes, or push in a thread")


def wait_for_end(graph: "Graph", outlets: list[Outlet], timeout: float | None) -> Any:
    """core.wait, which refuses to wait for ever for messages that only this thread could take."""
    core, told, begun = graph._core, False, time.monotonic()
    if timeout is not None or not outlets:
        return core.wait(timeout)
    while (found := core.wait(0.2)) is None:
        full = [each["from"] for each in core.queue_counts() if each["to"] == "outlet" and each["queued"]]
        if full and _alone():
            raise make(Status.STATE, f"the outlet of {full[0]} has messages, and no other thread is there to take them while this one waits: {TAKE}, "
                       "or outlet.close()")
        untaken = [outlet._port for outlet in outlets if outlet._port in full and not outlet._used]
        if untaken and not told and time.monotonic() > begun + 2:
            told = True
            LOGGER.warning("the outlet of %s has messages, and nobody has taken one since the start: the run waits for that; %s, or in a thread", untaken[0], TAKE)
    return found


# ---- what nobody has asked for

graphs: "weakref.WeakSet[Graph]" = weakref.WeakSet()  # that were started


@atexit.register
def _at_exit() -> None:
    for graph in list(graphs):
        graph._tell_unheard()
