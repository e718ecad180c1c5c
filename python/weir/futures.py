"""What is emitted before it is there: futures of concurrent.futures and asyncio, coroutines, async computes.

`ctx.emit(port, future)` comes here with a Completion (python/future.cpp), which ends when the future does. Coroutines run on an
event loop of weir's own: one thread for the operators of a graph in a run, started at the first coroutine, closed when the last
operator that used it has stopped. What is not done by then is cancelled: a run that ends by itself has waited for all.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from typing import Any

from weir import _weir

_lock = threading.Lock()
_entities: dict[Any, "_Pending"] = {}  # what is pending, by the context of the entity


class _Pending:
    """Of one entity in one run."""

    def __init__(self) -> None:
        self.futures: weakref.WeakSet[Any] = weakref.WeakSet()  # of the program: one that it drops is never done, which ends the run
        self.made: set[Any] = set()  # here, for coroutines and asyncio's: an event loop alone may forget them
        self.loop: _Loop | None = None
        self.stopped = False
        self.lock = threading.Lock()  # of the two sets: futures end in any thread

    def forget(self, future: Any) -> None:
        with self.lock:
            self.futures.discard(future)
            self.made.discard(future)


class _Loop:
    """An event loop in a thread of its own, for the entities of a graph."""

    of: "dict[int, _Loop]" = {}  # by the identity of the graph

    def __init__(self) -> None:
        self.users = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run, name="weir:asyncio", daemon=True)
        self.thread.start()

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            if left:
                self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def _pending_of(context: _weir.Context) -> _Pending:
    with _lock:
        return _entities.setdefault(context, _Pending())


def _loop_of(context: _weir.Context) -> asyncio.AbstractEventLoop:
    """The loop of the graph's run."""
    pending = _pending_of(context)
    with _lock:
        if pending.loop is None:
            pending.loop = _Loop.of.get(context._graph)
            if pending.loop is None:
                pending.loop = _Loop.of[context._graph] = _Loop()
            pending.loop.users += 1
    return pending.loop.loop


def _from_asyncio(future: Any) -> Any:
    """A future of concurrent.futures for one that belongs to an event loop, which another thread may run."""
    result: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def cancelled(_: Any) -> None:
        if result.cancelled():
            loop.call_soon_threadsafe(future.cancel)

    def done(_: Any) -> None:
        if future.cancelled():
            result.cancel()
        elif result.set_running_or_notify_cancel():
            error = future.exception()
            if error is None:
                result.set_result(future.result())
            else:
                result.set_exception(error)

    loop = future.get_loop()
    result.add_done_callback(cancelled)
    loop.call_soon_threadsafe(future.add_done_callback, done)
    return result


def _as_future(value: Any, context: _weir.Context) -> Any:
    if inspect.iscoroutine(value):
        return asyncio.run_coroutine_threadsafe(value, _loop_of(context))
    return _from_asyncio(value) if asyncio.isfuture(value) else value


def _complete(completion: _weir.Completion, pending: _Pending, future: Any) -> None:
    pending.forget(future)
    try:
        value = future.result()
    except BaseException as error:
        completion.drop() if pending.stopped else completion.fail(error)
        return
    try:
        completion.succeed(value)
    except BaseException as error:  # of a value that no message can be made of
        completion.fail(error)


def watch(value: Any, completion: _weir.Completion, context: _weir.Context, entity: Any) -> None:
    """Lets the future end the completion: in the thread that ends the future."""
    pending = _pending_of(context)
    future = _as_future(value, context)
    with pending.lock:
        (pending.futures if future is value else pending.made).add(future)
    try:
        future.add_done_callback(functools.partial(_complete, completion, pending))
    except BaseException as error:
        pending.forget(future)
        completion.fail(error)
        raise


def stop(context: _weir.Context) -> None:
    """The entity has stopped: what it left is cancelled, and its loop closed if no other entity uses it."""
    with _lock:
        pending = _entities.pop(context, None)
    if pending is None:
        return
    pending.stopped = True
    with pending.lock:
        left = [*pending.futures, *pending.made]
    try:
        for future in left:
            future.cancel()
    finally:
        _leave(pending.loop, context._graph)


def _leave(loop: "_Loop | None", graph: int) -> None:
    if loop is None:
        return
    with _lock:
        loop.users -= 1
        last = not loop.users
        if last:
            del _Loop.of[graph]
    if last:
        loop.close()


class AsyncContext:
    """What an async compute gets: the messages of its tick, which it may also read after an await."""

    def __init__(self, context: _weir.Context, inputs: list[str]):
        self._received = {port: context.receive_all(port) for port in inputs}
        self.entity, self.tick, self.now = context.entity, context.tick, context.now
        self.waker = context.waker()

    def receive(self, port: str) -> _weir.Message | Any:
        """The first message of this tick, or None."""
        return next(iter(self._received[port]), None)

    def receive_all(self, port: str) -> list[_weir.Message]:
        """All messages of this tick, as a list."""
        return list(self._received[port])

    def count(self, port: str) -> int:
        """How many messages this tick received there."""
        return len(self._received[port])

    def emit(self, port: str, value: Any) -> None:
        raise TypeError("an async compute returns what it emits: `return value`, or a dict by output if there are several")


def _port_value(port: str, value: Any) -> Any:
    if not isinstance(value, dict) or port not in value:
        raise TypeError(f"an async compute of several outputs returns a dict with each of them: there is no '{port}'")
    return value[port]


def run_async(compute: Any, context: _weir.Context, inputs: list[str], outputs: list[str]) -> None:
    """One tick of an async compute: each output gets what the coroutine returns for it."""
    own = AsyncContext(context, inputs)
    if len(outputs) == 1:
        coroutine = compute(own)
        try:
            context.emit(outputs[0], coroutine)
        except BaseException:
            coroutine.close()  # it was refused, and is never awaited
            raise
        return
    whole = asyncio.run_coroutine_threadsafe(compute(own), _loop_of(context))
    for port in outputs:
        part: concurrent.futures.Future[Any] = concurrent.futures.Future()
        context.emit(port, part)
        whole.add_done_callback(functools.partial(_share, port, part))


def _share(port: str, part: Any, whole: Any) -> None:
    if not part.set_running_or_notify_cancel():
        return
    try:
        part.set_result(_port_value(port, whole.result()))
    except BaseException as error:
        part.set_exception(error)


def as_compute(compute: Any, inputs: list[str], outputs: list[str]) -> Callable[[_weir.Context], None]:
    """A compute as weir calls it, of one that is async."""
    return lambda context: run_async(compute, context, inputs, outputs)
