"""`numpy.asarray(message)`: NumPy forgets why a buffer is refused, so this says it."""

from weir._weir import Message


def _array(self, dtype=None, copy=None):
    import numpy

    self.check_readable()
    array = numpy.asarray(memoryview(self))
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


Message.__array__ = _array
