"""`with ctx.stream:` makes the stream the current one of CuPy and torch, where these are imported.

Without CUDA (backend host) a stream has no handle, and the block changes nothing.
"""

import contextlib
import sys

from weir._weir import Stream


def _cupy_stream(cupy, stream):
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.handle, stream.device)


def _enter(self):
    entered = contextlib.ExitStack()
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if self.handle and cupy:
        entered.enter_context(cupy.cuda.Device(self.device))
        entered.enter_context(_cupy_stream(cupy, self))
    if self.handle and torch:
        entered.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(self.handle, self.device)))
    self.__dict__.setdefault("entered", []).append(entered)
    return self


def _leave(self, *exception):
    self.entered.pop().close()


Stream.__enter__ = _enter
Stream.__exit__ = _leave
