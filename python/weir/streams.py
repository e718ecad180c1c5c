"""`with ctx.stream:` makes the stream the current one of CuPy and torch, where these are imported.

Without CUDA (backend host) a stream has no handle, and the block changes nothing.
"""

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


def _blocks(handle, device):
    """What `with` enters for a stream, in order."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy:
        yield cupy.cuda.Device(device)
        yield _known(_cupy_stream, cupy, handle, device)
    if torch:
        yield torch.cuda.stream(_known(_torch_stream, torch, handle, device))


def _end(entered):
    while entered:
        entered.pop().__exit__(None, None, None)


def _enter(self):
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


def _leave(self, *exception):
    _end(self.entered.pop())


Stream.__enter__ = _enter
Stream.__exit__ = _leave
