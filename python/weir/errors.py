"""weir.Error: what failed, in which entity, and where."""

import enum
import os
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from weir.ended import Outcome


class Status(enum.IntEnum):
    """weir_status of weir.h."""

    OK = 0
    INVALID = -1
    NOMEM = -2
    DEVICE = -3
    DEADLOCK = -4
    ABANDONED = -5
    CLOSED = -6
    TIMEOUT = -7
    BUSY = -8
    UNSUPPORTED = -9
    IO = -10
    FAILED = -11
    STATE = -12


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning about a graph file; docs/errors.md explains the numbers."""

    number: int
    file: str | None
    pointer: str | None
    line: int
    column: int
    text: str
    warning: bool

    def __str__(self) -> str:
        place = f"{self.file or 'graph'}:{self.line}:{self.column}: " if self.line else ""
        kind = "warning" if self.warning else "error"
        pointer = f"{self.pointer}: " if self.pointer else ""
        return f"{place}{kind} W{self.number:03d}: {pointer}{self.text}"


class Error(Exception):
    """A call of weir, or a run, that failed.

    status       a Status
    entity       the entity that it is about, or None
    cause        of a run that failed, as in its Outcome: a word such as "compute" or "room"; else None
    on           its port, or a pool, or None
    diagnostics  of a graph that was refused: everything that is wrong with it
    file, line, column   of the first of them; None or 0: not read from a file
    traceback    of an exception in an operator: its traceback as text; the exception is __cause__
    outcome      of a run that failed: its Outcome
    """

    def __init__(self, status: Status, text: str, entity: str | None = None, diagnostics: Iterable[Diagnostic] = (), cause: str | None = None,
                 on: str | None = None) -> None:
        super().__init__(text)
        self.said: str = text  # without the entity's name before it
        self.status = status
        self.entity = entity
        self.cause = cause
        self.on = on
        self.diagnostics = tuple(diagnostics)
        self.traceback: str | None = None
        self.outcome: Outcome | None = None
        first = next((d for d in self.diagnostics if not d.warning), None)
        self.file = first.file if first else None
        self.line = first.line if first else 0
        self.column = first.column if first else 0

    def __reduce__(self) -> Any:  # without __init__, of which a subclass may have its own; __cause__ stays behind
        return _unpickled, (type(self), self.args), self.__dict__

    def caused_by(self, exception: Any) -> Self:
        """Attaches the exception of an operator. Returns self."""
        self.__cause__ = exception
        self.traceback = "".join(traceback.format_exception(exception))
        return self


class Closed(Error):
    """No more messages: the run has ended, or the other end is done."""


class Timeout(Error, TimeoutError):
    """Not in the time given: WEIR_E_TIMEOUT, or WEIR_E_BUSY of a call that was not to wait."""


def _unpickled(kind: Any, args: Any) -> Any:
    error = kind.__new__(kind)
    error.args = args
    return error


OWN = (os.path.dirname(__file__) + os.sep, "<frozen ")  # files of this package and of the import
LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's own files
KINDS = {Status.CLOSED: Closed, Status.TIMEOUT: Timeout}


def make(status: Any, text: Any, entity: Any = None, diagnostics: Any = None, said: Any = None, cause: Any = None, on: Any = None) -> "Error":
    """The exception for a status: called by the module. said: the text without the entity's name before it."""
    status = Status(status)
    found = [Diagnostic(*row) for row in diagnostics or ()]
    wrong = [d for d in found if not d.warning]
    first = next((d for d in wrong if d.text in text), next(iter(wrong), None))  # a port that is not connected may get an inlet
    error = KINDS.get(status, Error)(status, str(first) if first else text, entity, found, cause, on)
    error.said = said or error.said
    return error


def closed_by(error: Closed, failure: BaseException | None) -> BaseException:
    """What push and take raise outside of a run that failed: Closed, with what it failed by."""
    if not isinstance(failure, Error):
        return failure or error
    made = make(Status.CLOSED, f"the run has failed: {failure}", failure.entity, cause=failure.cause, on=failure.on)
    made.outcome, made.traceback, made.__cause__ = failure.outcome, failure.traceback, failure
    return made


def add_later(first: Any, later: Any, entity: Any) -> None:
    """A failure of an entity that has failed: a note of the first. Called by the module."""
    first.add_note(f"'{entity}' failed again: {line_of(later, entity)}")


def line_of(exception: Any, entity: Any = None) -> str:
    """An exception in the entity as one line of UTF-8, with the last place that is the program's, not a library's: called by
    the module."""
    return _line_of(exception, entity).encode(errors="backslashreplace").decode().replace("\0", "\\0")


def _line_of(exception: Any, entity: Any) -> str:
    try:
        said = str(exception)
    except Exception as error:
        said = f"its text raises {type(error).__name__}"
    if isinstance(exception, Error):
        text = exception.said if exception.entity == entity else said
    else:
        text = f"{type(exception).__name__}: {said}" if said else type(exception).__name__
    frames = [f for f in traceback.extract_tb(exception.__traceback__) if not f.filename.startswith(OWN)]
    if not frames:
        return text
    own = [f for f in frames if not f.filename.startswith(LIBRARY) and "site-packages" not in f.filename] or frames
    return f"{text} ({os.path.basename(own[-1].filename)}:{own[-1].lineno})"
