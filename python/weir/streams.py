"""`with ctx.stream:` makes the stream the current one of CuPy and torch, where these are imported.

Without CUDA (backend host) a stream has no handle, and the block changes nothing.
"""

import sys
from collections.abc import Iterator
from typing import Any

from weir._weir import Stream

LEGACY = 1  # the handle of the default stream of a device
known: dict[Any, Any] = {}  # (library, handle, device): the library's own object for the stream; a handle is a number to it
LIMIT = 4096


class _Handle:
    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)


def _cupy_stream(cupy: Any, handle: Any, device: Any) -> Any:
    if handle <= LEGACY:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_Handle(handle))  # of the current device
    return cupy.cuda.ExternalStream(handle, device)


def _torch_stream(torch: Any, handle: Any, device: Any) -> Any:
    return torch.cuda.ExternalStream(handle, device) if handle > LEGACY else torch.cuda.default_stream(device)


def _known(make: Any, library: Any, handle: Any, device: Any) -> Any:
    key = (make, handle, device)
    if key not in known:
        if len(known) > LIMIT:
            known.clear()
        known[key] = make(library, handle, device)
    return known[key]


def _blocks(handle: Any, device: Any) -> Iterator[Any]:
    """What `with` enters for a stream, in order."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy:
        yield cupy.cuda.Device(device)
        yield _known(_cupy_stream, cupy, handle, device)
    if torch:
        yield torch.cuda.stream(_known(_torch_stream, torch, handle, device))


def _end(entered: Any) -> None:
    while entered:
        entered.pop().__exit__(None, None, None)


def _enter(self: Any) -> Any:
    self.use()
    entered = []
    try:
        for block in _blocks(self.handle, self.device) if self.on_cuda else ():
            block.__enter__()
            entered.append(block)
    except BaseException:
        _end(entered)
        raise
    self.__dict__.setdefault("entered", []).append(entered)
    return self


def _leave(self: Any, *exception: Any) -> None:
    _end(self.entered.pop())


Stream.__enter__ = _enter  # type: ignore[method-assign]
Stream.__exit__ = _leave  # type: ignore[method-assign]
