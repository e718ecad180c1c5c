"""`with ctx.stream:` makes the stream the current one of CuPy and torch, where these are imported.

Without CUDA (backend host) a stream has no handle, and the block changes nothing.
"""

import contextlib
import sys

from weir._weir import Stream

LEGACY = 1  # the handle of the default stream of a device
known = {}  # (library, handle, device): the library's own object for the stream; a handle is a number to it
LIMIT = 4096


class _Handle:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


def _cupy_stream(cupy, handle, device):
    if handle <= LEGACY:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_Handle(handle))  # of the current device
    return cupy.cuda.ExternalStream(handle, device)


def _torch_stream(torch, handle, device):
    return torch.cuda.ExternalStream(handle, device) if handle > LEGACY else torch.cuda.default_stream(device)


def _known(make, library, handle, device):
    key = (make, handle, device)
    if key not in known:
        if len(known) > LIMIT:
            known.clear()
        known[key] = make(library, handle, device)
    return known[key]


def _enter(self):
    self.use()
    entered = contextlib.ExitStack()
    if self.on_cuda:
        cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
        handle, device = self.handle, self.device
        if cupy:
            entered.enter_context(cupy.cuda.Device(device))
            entered.enter_context(_known(_cupy_stream, cupy, handle, device))
        if torch:
            entered.enter_context(torch.cuda.stream(_known(_torch_stream, torch, handle, device)))
    self.__dict__.setdefault("entered", []).append(entered)
    return self


def _leave(self, *exception):
    self.entered.pop().close()


Stream.__enter__ = _enter
Stream.__exit__ = _leave
