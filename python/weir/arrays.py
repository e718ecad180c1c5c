"""What users of arrays expect of the module's classes."""

from typing import Any

from weir._weir import Context, Message


class _Bits:
    """Elements of bfloat16 as their bits, which NumPy knows."""

    def __init__(self, message: Any):
        self.base, self.__array_interface__ = message, message._bits


def _bfloat16(message: Message) -> Any:
    import numpy

    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("bfloat16 is no type of NumPy's: install ml_dtypes, or read the message by DLPack (torch, JAX)") from None
    return numpy.asarray(_Bits(message)).view(ml_dtypes.bfloat16)


def _array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    """`numpy.asarray(message)`: NumPy forgets why a buffer is refused, so this says it."""
    import numpy

    self.check_readable()
    array = _bfloat16(self) if self.kind == "tensor" and self.dtype == "bfloat16" else numpy.asarray(memoryview(self))
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


Message.__array__ = _array  # type: ignore[method-assign]

VALUE_OF = {"tensor": "np.asarray(message) is its array", "object": "message.object is what was emitted", "bytes": "bytes(message) are its bytes",
            "parts": 'message["name"] and message.parts are its parts', "empty": "it is empty"}


def _missing(self: Any, name: str) -> Any:
    """Of an attribute that there is not: what was emitted may have it."""
    if name.startswith("__"):
        return object.__getattribute__(self, name)
    try:
        kind = self.kind
    except Exception:  # in a child of fork
        kind = ""
    raise AttributeError(f"a Message has no attribute {name!r}{'; ' * (kind in VALUE_OF)}{VALUE_OF.get(kind, '')}", name=name, obj=self)


Message.__getattr__ = _missing  # type: ignore[attr-defined]

_empty_of_names = Context.empty


def _empty(self: Any, shape: Any, dtype: Any, on_host: Any = False) -> Any:
    """New pooled memory, of the device or pinned. dtype: a name, or what NumPy, CuPy and torch have for it."""
    if not isinstance(dtype, str):  # numpy.float32, numpy.dtype("float32"), torch.float32
        dtype = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
        dtype = "bool" if dtype == "bool_" else dtype  # NumPy before 2
    return _empty_of_names(self, (shape,) if isinstance(shape, int) else shape, dtype, on_host)


Context.empty = _empty  # type: ignore[method-assign]
