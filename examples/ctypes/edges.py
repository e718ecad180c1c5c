"""Runs a graph and takes its results: weir from Python, with the standard library alone.

    python3 examples/ctypes/edges.py [LIBWEIR [BACKEND]]

Three things are needed: describing the functions (`declare`), turning statuses into exceptions (`checked`),
and releasing each message that was taken (`weir_message_unref`).
"""
import ctypes as c
import sys

E_CLOSED = -6


class Tensor(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("data", c.c_void_p),
        ("device", c.c_int32),
        ("dimensions", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
    ]


class Options(c.Structure):
    """The first fields of weir_scheduler_options: `size` tells weir how many there are."""

    _fields_ = [("size", c.c_size_t), ("workers", c.c_uint), ("backend", c.c_char_p)]


class WeirError(Exception):
    pass


def declare(path):
    """Loads the library and declares the types of the functions used. Without a type, a pointer would be cut
    to 32 bits.
    """
    weir = c.CDLL(path)
    out = c.POINTER(c.c_void_p)
    texts = {"weir_last_error": [], "weir_version": [], "weir_scheduler_where": [c.c_void_p]}
    calls = {
        "weir_graph_open": [c.c_char_p, out],
        "weir_graph_add_outlet": [c.c_void_p, c.c_char_p, c.c_uint32, c.c_uint, out],
        "weir_graph_destroy": [c.c_void_p],
        "weir_scheduler_create": [c.c_void_p, c.POINTER(Options), out],
        "weir_scheduler_start": [c.c_void_p],
        "weir_scheduler_wait": [c.c_void_p, c.c_int64, c.c_void_p],
        "weir_scheduler_destroy": [c.c_void_p],
        "weir_outlet_take": [c.c_void_p, c.c_int64, out],
    }
    for name, arguments in {**texts, **calls}.items():
        getattr(weir, name).argtypes = arguments
        getattr(weir, name).restype = c.c_char_p if name in texts else c.c_int
    weir.weir_message_tensor.argtypes = [c.c_void_p]
    weir.weir_message_tensor.restype = c.POINTER(Tensor)
    weir.weir_message_unref.argtypes = [c.c_void_p]
    weir.weir_message_unref.restype = None
    return weir


def checked(weir, status):
    if status:
        raise WeirError(weir.weir_last_error().decode())


def picture(tensor):
    """Height, width, channels and the bytes, copied, since the message returns to its graph."""
    shape = tuple(tensor.shape[i] for i in range(tensor.dimensions))
    count = 1
    for extent in shape:
        count *= extent
    return shape, c.string_at(tensor.data, count)


def results(weir, outlet):
    """Yields results until the sender is done or the run has ended."""
    message = c.c_void_p()
    while True:
        status = weir.weir_outlet_take(outlet, -1, c.byref(message))  # -1: no limit; ctypes releases the GIL meanwhile
        if status == E_CLOSED:
            return
        checked(weir, status)
        try:
            yield picture(weir.weir_message_tensor(message).contents)
        finally:
            weir.weir_message_unref(message)


def run(weir, path, port, backend):
    graph, outlet, scheduler = c.c_void_p(), c.c_void_p(), c.c_void_p()
    options = Options(c.sizeof(Options), 0, backend.encode() if backend else None)
    try:
        checked(weir, weir.weir_graph_open(path.encode(), c.byref(graph)))
        checked(weir, weir.weir_graph_add_outlet(graph, port.encode(), 0, 0, c.byref(outlet)))
        checked(weir, weir.weir_scheduler_create(graph, c.byref(options), c.byref(scheduler)))
        checked(weir, weir.weir_scheduler_start(scheduler))
        for shape, data in results(weir, outlet):
            print(f"{'x'.join(map(str, shape))}: {100 * sum(data) / len(data) / 255:.1f} % edges")
        checked(weir, weir.weir_scheduler_wait(scheduler, -1, None))
    finally:
        weir.weir_scheduler_destroy(scheduler)  # accepts None
        weir.weir_graph_destroy(graph)


def main(library="libweir.so", backend=None):
    weir = declare(library)
    try:
        run(weir, "examples/ctypes/edges.json", "download.out", backend)
    except WeirError as error:
        sys.exit(f"weir {weir.weir_version().decode()}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
