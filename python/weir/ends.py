"""Inlets and outlets: by which a program feeds a graph, and takes from it."""

import asyncio
import collections
import operator
import os
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from weir import _weir
from weir.errors import Closed, Error, Status, Timeout, closed_by, make
from weir.options import check_timeout

if TYPE_CHECKING:
    from weir.graph import Graph

Stamp = tuple[int, int]


def _stamp(stamp: Any) -> Stamp | None:
    if stamp is None:
        return None
    try:
        time, tag = (operator.index(each) for each in stamp)
    except (TypeError, ValueError):
        raise TypeError(f"a stamp is (time, tag), whole numbers, the time as graph.now; not {stamp!r}") from None
    if not (-(2**63) <= time < 2**63 and 0 <= tag < 2**64):
        raise ValueError(f"a time has 64 bits, a tag too and no sign; the stamp is {stamp!r}")
    return time, tag


class _Gone:
    """What the ends of a closed graph have."""

    def __init__(self, why: str):
        self.why = why

    def __getattr__(self, name: str) -> Any:
        raise make(Status.STATE, self.why)


class Inlet:
    """One more connection into an input port, which the program feeds."""

    def __init__(self, graph: "Graph", inlet: _weir.Inlet, port: str):
        self._graph, self._port = graph, port
        self._inlet: Any = inlet
        self._watch: _Watch | None = None
        self._brief = _Brief()

    def push(self, value: Any, timeout: float | None = None, stamp: Stamp | None = None, give: bool = False) -> None:
        """Pushes an array, bytes, a dict of parts, a message of this graph, None (empty) or any object.

        timeout: seconds to wait for room; None: without limit, unless outlets are full and no other thread is there to take; 0: raises
        weir.Error (BUSY) at once.
        stamp: (time, tag). give: the program does not use the array any more, so receivers may write it. Raises weir.Closed outside of a run, which names why it failed, during a drain, and if the receiver is done.
        """
        check_timeout(timeout)
        try:
            if timeout is None and self._graph._outlets:
                self._push_unless_stuck(value, _stamp(stamp), give)
            else:
                self._inlet.push(value, timeout, _stamp(stamp), give)
        except Closed as error:
            raise closed_by(error, self._graph._failure_soon())

    def _push_unless_stuck(self, value: Any, stamp: Stamp | None, give: bool) -> None:
        """Waits for room, unless only messages that this thread would have to take are in the way."""
        while True:
            try:
                return self._inlet.push(value, 0.2, stamp, give)  # type: ignore[no-any-return]
            except Timeout:
                self._graph._refuse_stuck(self._port)

    async def push_async(self, value: Any, stamp: Stamp | None = None, give: bool = False) -> None:
        """The same in asyncio. To wait for room it gives the other tasks four turns, holds up the loop until 50 µs are over, where
        that was enough lately, then sleeps until the loop wakes it."""
        try:
            left = self._inlet.try_push(value, None if stamp is None else _stamp(stamp), give)
            if left is not None and self._brief.is_due(self._watch):
                for wait in self._brief.waits():
                    await asyncio.sleep(0)
                    left = self._inlet.try_push(left, None, False, wait)
                    if left is None:
                        break
                self._brief.note(left is None)
            while left is not None:
                if self._watch is None or self._watch.loop is not asyncio.get_running_loop():
                    self._watch = _Watch(self._inlet)  # a push after this that finds no room clears the descriptor
                else:
                    await self._watch.readable()
                left = self._inlet.try_push(left, None, False)
        except Closed as error:
            raise closed_by(error, await self._graph._failure_soon_async())

    def fileno(self) -> int:
        """A descriptor for another loop: a push(value, 0) that finds no room clears it; readable when there is some.
        Watch it, but do not read it. Ask for it before that push.
        """
        fd: int = self._inlet.fileno()
        return fd

    def close(self) -> None:
        """No more messages in this run. Without it the run does not end."""
        self._inlet.close()

    def __repr__(self) -> str:
        return f"<weir.Inlet into {self._port}>"

    def _drop(self, why: str = "the graph is closed") -> None:
        self._inlet, self._watch = _Gone(why), None


class Outlet:
    """Gives the program what an output port emits; iterable, also by `async for`."""

    def __init__(self, graph: "Graph", outlet: _weir.Outlet, port: str, options: tuple[int, bool]):
        self._graph, self._port, self._options = graph, port, options
        self._outlet: Any = outlet
        self._watch: _Watch | None = None
        self._brief = _Brief()
        self._loops, self._left = 0, False  # that iterate; one of them was left before the end
        self._used, self._closed = False, False  # since the start

    def take(self, timeout: float | None = None) -> _weir.Message:
        """The next message. timeout: in seconds; None: without limit; raises weir.Timeout, and weir.Closed when
        no more will come.
        """
        check_timeout(timeout)
        self._left, self._used = False, True
        try:
            message: _weir.Message = self._outlet.take(timeout)
        except Closed as error:
            raise closed_by(error, self._graph._failure_soon(self._sender))
        return message

    @property
    def _sender(self) -> str | None:
        """The entity; None: it goes on, since the program takes no more."""
        return None if self._closed else self._port.partition(".")[0]

    async def take_async(self) -> _weir.Message:
        """The next message, in asyncio: waits as `push_async` does; raises weir.Closed when no more will come."""
        self._left, self._used = False, True
        try:
            message: _weir.Message | None = self._outlet.try_take()
            if message is None and self._brief.is_due(self._watch):
                for wait in self._brief.waits():
                    await asyncio.sleep(0)
                    message = self._outlet.try_take(wait)
                    if message is not None:
                        break
                self._brief.note(message is not None)
            while message is None:
                if self._watch is None or self._watch.loop is not asyncio.get_running_loop():
                    self._watch = _Watch(self._outlet)
                else:
                    await self._watch.readable()
                message = self._outlet.try_take()
        except Closed as error:
            raise closed_by(error, await self._graph._failure_soon_async(self._sender))
        return message

    def close(self) -> None:
        """Takes no more in this run: what it holds is dropped, and what comes. The sender goes on."""
        self._closed = True
        self._outlet.close()

    def __repr__(self) -> str:
        return f"<weir.Outlet of {self._port}>"

    def _drop(self, why: str = "the graph is closed") -> None:
        self._outlet, self._watch = _Gone(why), None

    def fileno(self) -> int:
        """A descriptor that is readable while a take returns at once. Watch it, but do not read it."""
        fd: int = self._outlet.fileno()
        return fd

    def __iter__(self) -> Iterator[_weir.Message]:
        """Messages until no more will come; after the last one of a run that failed it raises what graph.wait() raises. A loop that is
        left before, inside of `with`, ends the run there."""
        if not self._graph._core.runs:
            raise make(Status.STATE, f"outlet of {self._port}: no run is on: start the graph, then take")
        loop = _Loop(self)
        self._used = True
        yield from iter(self._outlet.next_or_none, None)
        loop.ended = True
        failure = self._graph._failure_soon(self._sender)
        if failure:
            raise failure

    def __aiter__(self) -> AsyncIterator[_weir.Message]:
        """The same in asyncio."""
        return _Loop(self)


class _Loop:
    """One iteration over an outlet: notes whether it came to the end."""

    def __init__(self, outlet: Outlet):
        self.outlet, self.ended = outlet, False
        outlet._loops += 1

    def __aiter__(self) -> "_Loop":
        return self

    async def __anext__(self) -> _weir.Message:
        try:
            return await self.outlet.take_async()
        except Error as error:
            if error.status != Status.CLOSED:
                raise
        self.ended = True
        failure = await self.outlet._graph._failure_soon_async(self.outlet._sender)
        raise failure or StopAsyncIteration

    def __del__(self) -> None:
        self.outlet._loops -= 1
        self.outlet._left = not self.ended


async def readable(fd: int) -> None:
    """Waits until a descriptor is readable. Each waiter has its own: a loop knows a descriptor once."""
    loop = asyncio.get_running_loop()
    own = os.dup(fd)
    ready = loop.create_future()
    loop.add_reader(own, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(own)
        os.close(own)


TURNS = 4  # of the others in the loop, after each of which an end is asked again
BRIEF = 50_000  # ns, of these turns and the wait after them
PAUSE = 63  # waits that are not brief, at most, until one is tried again


class _Brief:
    """Whether the next wait of an end in asyncio is brief at first: it gives the others of the loop some turns, which is enough where
    workers have cores of their own, and then waits in the call itself. A worker wakes that directly, or runs on this core meanwhile; by
    the descriptor and the loop it costs several times as much. After one that did not suffice there are pauses, twice as long each time: what comes seldom, or into a loop that is
    busy otherwise, is slept for.
    """

    def __init__(self) -> None:
        self.pause = self.left = 0

    def is_due(self, watch: "_Watch | None") -> bool:
        if watch is not None and watch.waiting:
            return False
        self.left -= 1
        return self.left < 0

    def waits(self) -> Iterator[int]:
        """How long to wait after each turn of the others: only after the last, and not at all if the others took that long."""
        begun = time.perf_counter_ns()
        for _ in range(TURNS - 1):
            yield 0
        yield max(0, BRIEF - (time.perf_counter_ns() - begun))

    def note(self, enough: bool) -> None:
        self.pause = 0 if enough else min(2 * self.pause + 1, PAUSE)
        self.left = self.pause


class _Watch:
    """Wakes what waits in one loop for one descriptor, of its own: a loop knows a descriptor once. It stays with the loop while it
    is needed. The descriptor is readable until what is woken has acted, so the loop calls once more before that shows: that call
    is left out. One left out in error comes again.
    """

    def __init__(self, end: Any):
        self.loop, self.fd, self.watched = asyncio.get_running_loop(), os.dup(end.fileno()), False
        self.waiting: collections.deque[asyncio.Future[None]] = collections.deque()
        self.woken = self.stale = False

    async def readable(self) -> None:
        """Waits until the descriptor is readable."""
        future = self.loop.create_future()
        self.waiting.append(future)
        self.stale, self.woken = self.woken, False
        if not self.watched:
            self.loop.add_reader(self.fd, self._ready)
            self.watched = True
        await future

    def _ready(self) -> None:
        if self.stale:
            self.stale = False
            return
        while self.waiting:
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(None)
                self.woken = True
                return
        self.loop.remove_reader(self.fd)
        self.watched = False

    def __del__(self) -> None:
        os.close(self.fd)
