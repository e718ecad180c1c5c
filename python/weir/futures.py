"""What is emitted before it is there: futures of concurrent.futures and asyncio, coroutines, async computes.

`ctx.emit(port, future)` comes here with a Completion (python/future.cpp), which ends when the future does. Coroutines run on an
event loop of weir's own: one thread for the operators of a graph in a run, started at the first coroutine, closed when the last
operator that used it has stopped. What is not done by then is cancelled: a run that ends by itself has waited for all. Nothing waits
for ever for what goes on after that: an entity's stop fails by name, and the loop's thread is left to it.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from weir import _weir
from weir.errors import LIBRARY

PATIENCE = 5.0  # seconds that a coroutine has to end after its cancellation
_lock = threading.Lock()
_entities: dict[Any, "_Pending"] = {}  # what is pending, by the context of the entity


class _Pending:
    """Of one entity in one run."""

    def __init__(self) -> None:
        self.futures: weakref.WeakSet[Any] = weakref.WeakSet()  # of the program: one that it drops is never done, which ends the run
        self.made: set[Any] = set()  # here, for coroutines and asyncio's: an event loop alone may forget them
        self.results: set[_weir.Completion] = set()  # that are messages which are unfinished
        self.coroutines: weakref.WeakSet[Any] = weakref.WeakSet()
        self.loop: _Loop | None = None
        self.stopped = False
        self.lock = threading.Lock()  # of the sets: futures end in any thread

    def forget(self, future: Any) -> None:
        with self.lock:
            self.futures.discard(future)
            self.made.discard(future)


class _Loop:
    """An event loop in a thread of its own, for the entities of a graph."""

    of: "dict[int, _Loop]" = {}  # by the identity of the graph

    def __init__(self) -> None:
        self.users = 0
        self.left: list[str] = []  # tasks that did not end at its close
        self.given_up: set[Any] = set()  # tasks that go on after their cancellation
        self.stuck = False  # a coroutine does not come back to the loop
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run, name="weir:asyncio", daemon=True)
        self.thread.start()

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.left = self.loop.run_until_complete(self.end_tasks(lambda _: True))
        if self.given_up:
            self.loop.set_exception_handler(lambda *_: None)  # which would tell of each when it is dropped
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def close(self) -> None:
        """Raises if a task does not end that no coroutine of an operator's is."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(0 if self.stuck else PATIENCE + 1)
        if self.left or not self.stuck and self.thread.is_alive():
            raise RuntimeError(f"{', '.join(self.left) or self.place()} {TOO_LATE}")

    def end_coroutines(self, coroutines: Any) -> None:
        """Cancels them; raises if one goes on."""
        ended = asyncio.run_coroutine_threadsafe(self.end_tasks(lambda task: task.get_coro() in coroutines), self.loop)
        try:
            left = ended.result(PATIENCE + 1)
        except concurrent.futures.TimeoutError:
            left, self.stuck = [self.place()], True
        if left:
            raise RuntimeError(f"{', '.join(left)} {TOO_LATE}")

    async def end_tasks(self, wanted: Callable[[Any], bool]) -> list[str]:
        """Cancels tasks of this loop and waits for them. Returns what goes on, for people."""
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and task not in self.given_up and wanted(task)]
        for task in tasks:
            if not task.cancelling():
                task.cancel()
        left = (await asyncio.wait(tasks, timeout=PATIENCE))[1] if tasks else ()
        self.given_up.update(left)
        return [_words_of(task) for task in left]

    def place(self) -> str:
        """What holds up the loop."""
        frame = sys._current_frames().get(self.thread.ident or 0)
        return "a coroutine that blocks its event loop" + (f" ({_place_of(frame)})" if frame else "")


TOO_LATE = f"did not end within {PATIENCE:g} s of its cancellation: let asyncio.CancelledError end it"


def _words_of(task: "asyncio.Task[Any]") -> str:
    places = [f" ({_place_of(frame)})" for frame in task.get_stack()[-1:]]
    return f"coroutine {getattr(task.get_coro(), '__qualname__', '')}{''.join(places)}"


def _place_of(frame: Any) -> str:
    """The innermost place that is of the program's."""
    at = frame
    while at.f_back and at.f_code.co_filename.startswith(LIBRARY) and "site-packages" not in at.f_code.co_filename:
        at = at.f_back
    at = at if at.f_back else frame
    return f"{os.path.basename(at.f_code.co_filename)}:{at.f_lineno}"


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


def _follow(future: Any, result: "concurrent.futures.Future[Any]") -> None:
    """The result ends as the future does, with its very exception; in the thread of the future's loop."""

    def done(_: Any) -> None:
        if future.cancelled():
            result.cancel()
        elif result.set_running_or_notify_cancel():
            error = future.exception()
            if error is None:
                result.set_result(future.result())
            else:
                result.set_exception(error)

    future.add_done_callback(done)


def _cancel_with(result: "concurrent.futures.Future[Any]", loop: asyncio.AbstractEventLoop, future: Any) -> None:
    def cancelled(ended: "concurrent.futures.Future[Any]") -> None:  # `result`; naming that would be a circle that only gc frees
        if ended.cancelled():
            with contextlib.suppress(RuntimeError):  # of a loop that is closed: nothing of it goes on
                loop.call_soon_threadsafe(future.cancel)

    result.add_done_callback(cancelled)


def _from_asyncio(future: Any) -> Any:
    """A future of concurrent.futures for one that belongs to an event loop, which another thread may run."""
    result: concurrent.futures.Future[Any] = concurrent.futures.Future()
    loop = future.get_loop()
    _cancel_with(result, loop, future)
    try:
        loop.call_soon_threadsafe(_follow, future, result)
    except RuntimeError:
        raise RuntimeError("the future is never done: its event loop is closed") from None
    return result


def _begin(coroutine: Any, context: _weir.Context) -> Any:
    """The future of a coroutine, on the graph's loop."""
    loop, result = _loop_of(context), concurrent.futures.Future[Any]()
    _pending_of(context).coroutines.add(coroutine)

    def begin() -> None:
        task = loop.create_task(coroutine)
        _cancel_with(result, loop, task)
        _follow(task, result)

    loop.call_soon_threadsafe(begin)
    return result


def _as_future(value: Any, context: _weir.Context) -> Any:
    if inspect.iscoroutine(value):
        return _begin(value, context)
    return _from_asyncio(value) if asyncio.isfuture(value) else value


def _complete(completion: _weir.Completion, pending: _Pending, future: Any) -> None:
    pending.forget(future)
    try:
        value = future.result()
    except BaseException as error:
        completion.drop() if pending.stopped else completion.fail(error)
        return
    try:
        if not completion.succeed(value):
            _finish_later(completion, pending)
    except BaseException as error:  # of a value that no message can be made of
        completion.fail(error)


def _finish_later(completion: _weir.Completion, pending: _Pending) -> None:
    """The result is an unfinished message. This thread may be the one that finishes it."""

    def finish() -> None:
        completion.finish()
        with pending.lock:
            pending.results.discard(completion)

    with pending.lock:
        pending.results.add(completion)
    threading.Thread(target=finish, name="weir:result", daemon=True).start()
    if pending.stopped:
        completion.drop()


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
        left, results = [*pending.futures, *pending.made], list(pending.results)
    for completion in results:
        completion.drop()
    try:
        for future in left:
            future.cancel()
        if pending.loop:
            pending.loop.end_coroutines(pending.coroutines)
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
        self._ages = {port: context.age(port) for port in inputs}
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

    def age(self, port: str) -> int | None:
        """Nanoseconds since a message that is latest, or given again by aligned, was pushed, at the start of this tick; else None."""
        return self._ages[port]

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
    whole = _begin(compute(own), context)
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
