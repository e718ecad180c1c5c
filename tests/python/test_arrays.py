"""Arrays: what comes in, what goes out, who holds it, what is refused."""

import array
import ctypes
import gc
import io
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from test_operators import run_compute

import weir

TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()


def through(value):
    """The message that a value becomes, taken from an outlet."""
    return run_compute(lambda self, ctx: ctx.emit("out", value), outputs=["out"])["out"][0]


@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_in_and_out(dtype):
    value = np.arange(24).reshape(2, 3, 4).astype(dtype)
    message = through(value)
    assert (message.kind, message.dtype, message.shape, message.device) == ("tensor", dtype, (2, 3, 4), -1)
    for found in (np.asarray(message), np.from_dlpack(message), np.asarray(memoryview(message))):
        assert found.dtype == value.dtype and (found == value).all()


@pytest.mark.parametrize("value", [np.arange(24).reshape(4, 6)[::2, ::3], np.arange(6).reshape(2, 3).T,
                                   np.zeros((0, 3)), np.float32(2.5), np.array(7)],
                         ids=["strided", "transposed", "empty", "scalar", "no dimensions"])
def test_shapes_and_strides_survive(value):
    assert (np.asarray(through(value)) == value).all() and np.asarray(through(value)).shape == value.shape


def test_bfloat16_in_and_out():
    value = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    for given in (value, value.T, value[::2, ::3]):
        message = through(given)
        assert (message.dtype, message.shape) == ("bfloat16", given.shape)
        found = np.asarray(message)
        assert found.dtype == ml_dtypes.bfloat16 and (found == given).all() and not found.flags.writeable
        assert found.ctypes.data == given.ctypes.data and np.array(message, np.float32)[0, 0] == given[0, 0]
    with pytest.raises(BufferError, match="bfloat16 has no format of buffers"):
        memoryview(message)


def test_an_array_of_bfloat16_lives_as_long_as_what_reads_it():
    box = [np.ones(3, ml_dtypes.bfloat16).view(type("Own", (np.ndarray,), {}))]
    gone = weakref.ref(box[0])
    message = run_compute(lambda self, ctx: ctx.emit("out", box.pop()), outputs=["out"])["out"][0]
    found = np.asarray(message)[1:]
    del message
    gc.collect()
    assert gone() is not None and found.tolist() == [1, 1]
    del found
    weir._weir.settle()
    gc.collect()
    assert gone() is None


def test_numbers_of_numpy_are_stamps():
    def compute(self, ctx):
        ctx.set_stamp(np.int64(5), np.uint8(7))
        ctx.emit("out", b"", stamp=(np.int64(1), np.int32(2)))
        ctx.emit("other", b"")

    found = run_compute(compute, outputs=["out", "other"])
    assert [message.stamp for message in found["out"]] == [(1, 2), (5, 7)]
    with pytest.raises(weir.Error, match=r"a stamp is \(time, tag\), two whole numbers"):
        run_compute(lambda self, ctx: ctx.emit("out", b"", stamp=(1.0, 2)), outputs=["out"])


def test_bfloat16_without_ml_dtypes_is_said(monkeypatch):
    message = through(np.zeros(3, ml_dtypes.bfloat16))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="install ml_dtypes, or read the message by DLPack"):
        np.asarray(message)


@pytest.mark.parametrize("dtype", [bool, np.bool_, "bool", ml_dtypes.bfloat16])
def test_memory_of_bool_and_bfloat16_is_filled(dtype):
    def compute(self, ctx):
        message = ctx.empty((2, 2), dtype, on_host=True)
        np.asarray(message)[:] = [[1, 0], [0, 1]]
        ctx.emit("out", message)

    message = run_compute(compute, outputs=[weir.Port("out", dtype="bool|bfloat16")])["out"][0]
    assert np.asarray(message).tolist() == [[1, 0], [0, 1]]


def test_nothing_is_copied():
    value = np.arange(1000.0)
    message = through(value)
    assert np.asarray(message).ctypes.data == value.ctypes.data == np.from_dlpack(message).ctypes.data


def test_what_is_read_only_is_lent():
    value = np.arange(6).reshape(2, 3)[:, ::2]
    value.flags.writeable = False
    message = through(value)
    found = np.asarray(message)
    assert (found == value).all() and found.ctypes.data == value.ctypes.data and not message.unique()


def test_negative_strides_are_copied():
    value = np.arange(6).reshape(2, 3)[::-1, ::-2]
    value.flags.writeable = False
    found = np.asarray(through(value))
    assert (found == value).all() and found.ctypes.data != value.ctypes.data


def test_the_array_lives_as_long_as_its_message_and_no_longer():
    box = [np.arange(10.0).view(type("Own", (np.ndarray,), {}))]
    gone = weakref.ref(box[0])
    message = run_compute(lambda self, ctx: ctx.emit("out", box.pop()), outputs=["out"])["out"][0]
    gc.collect()
    view = np.from_dlpack(message)
    del message
    alive = gone() is not None
    assert alive and view.sum() == 45
    del view
    weir._weir.settle()
    gc.collect()
    assert gone() is None


def test_the_array_goes_with_the_last_message_after_the_run():
    gone = []

    def emit(self, ctx):
        array = np.arange(10.0).view(type("Own", (np.ndarray,), {}))
        gone.append(weakref.ref(array))
        ctx.emit("out", array)

    kept = run_compute(emit, outputs=["out"])
    assert gone[0]() is not None
    kept.clear()
    gc.collect()
    assert gone[0]() is None


def test_messages_are_read_only():
    message = through(np.zeros(3))
    with pytest.raises(ValueError):
        np.asarray(message)[0] = 1
    assert memoryview(message).readonly
    with pytest.raises(TypeError):
        io.BytesIO(bytes(24)).readinto(message)


def test_unique_messages_may_be_written():
    def compute(self, ctx):
        message = ctx.receive("in")
        unique = message.unique()
        np.asarray(message)[:] += 1
        ctx.emit("out", message)
        return unique

    found = run_compute(compute, ["in"], ["out"], feed=np.arange(3.0), give=True)
    assert found["is"] and np.asarray(found["out"][0]).tolist() == [1, 2, 3]


def test_what_compute_received_may_be_kept():
    kept = run_compute(lambda self, ctx: ctx.receive("in"), inputs=["in"], feed=np.arange(3.0))["is"]
    assert np.asarray(kept).tolist() == [0, 1, 2]


def test_new_memory_is_filled_in_place():
    def compute(self, ctx):
        message = ctx.empty((2, 2), "float32", on_host=True)
        np.asarray(message)[:] = [[1, 2], [3, 4]]
        ctx.emit("out", message)

    assert np.asarray(run_compute(compute, outputs=["out"])["out"][0]).tolist() == [[1, 2], [3, 4]]


def test_bytes_travel_as_bytes():
    message = through(b"some bytes")
    assert message.kind == "bytes" and bytes(message) == b"some bytes" and message.nbytes == 10
    assert bytes(through(bytearray(b"x"))) == b"x" and bytes(through(b"")) == b""


def test_other_buffers_are_arrays():
    assert np.asarray(through(array.array("i", [1, 2]))).tolist() == [1, 2]


def test_any_object_travels():
    value = {"a": [1]}
    for given in ("text", 7, (1, 2), weir.Object(value), weir.Status.OK):
        message = through(given)
        assert message.kind == "object"
    assert through(weir.Object(value)).object is value
    with pytest.raises(weir.Error, match="not an array"):
        through("text").shape
    with pytest.raises(weir.Error, match="not an object of Python: its kind is tensor"):
        through(np.zeros(1)).object


def test_a_dict_is_a_message_of_parts():
    image = np.zeros((2, 2), np.uint8)
    message = through({"image": image, "boxes": np.ones((1, 4)), "name": "cat"})
    assert message.kind == "parts" and list(message.parts) == ["image", "boxes", "name"]
    assert np.asarray(message["image"]).ctypes.data == image.ctypes.data
    assert message["name"].object == "cat"
    with pytest.raises(KeyError):
        message["scores"]


def test_a_part_is_emitted_alone():
    def compute(self, ctx):
        ctx.emit("out", ctx.receive("in")["boxes"])

    found = run_compute(compute, ["in"], ["out"], feed={"image": np.zeros(1), "boxes": np.ones(4)})
    assert np.asarray(found["out"][0]).tolist() == [1] * 4


# ---- what is refused


class Legacy:
    """An array without DLPack."""

    __array_interface__ = {"version": 3}


class Elsewhere:
    """An array on an accelerator that is not CUDA."""

    def __dlpack_device__(self):
        return (10, 0)

    def __dlpack__(self, **_):
        raise AssertionError("never called")


class NoCapsule(Elsewhere):
    """An exporter that exports nothing."""

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return None


class OnAnotherDevice(Elsewhere):
    """An array on a CUDA device that is not the entity's."""

    def __dlpack_device__(self):
        return (2, 1)


def test_an_array_on_another_device_than_the_stream_is_refused():
    with pytest.raises(weir.Error, match="the array is on device 1, the stream on device 0") as caught:
        run_compute(lambda self, ctx: ctx.emit("out", OnAnotherDevice()), outputs=["out"])
    assert caught.value.entity == "once"


def dict_in_itself():
    value = {"here": np.zeros(3)}
    value["again"] = value
    return value


@pytest.mark.parametrize("value, text", [
    (np.zeros(3, complex), r"arrays of complex128 .*array.view\(\"uint8\"\)"), (np.zeros(3, "M8[s]"), r"arrays of datetime64\[s\]"),
    (np.zeros(3, ">f4"), "arrays of >f4"), (memoryview(bytes(8)).cast("P"), "the format 'P'"),
    (np.zeros(3, ml_dtypes.float8_e4m3fn), "arrays of float8_e4m3fn"),
    (np.ma.masked_array([1, 2], [0, 1]), r"the array is masked.*array.filled"),
    (np.zeros((1,) * 9), "at most 8 dimensions"), (Legacy(), "neither DLPack nor a buffer"),
    (Elsewhere(), "neither on the host nor on a CUDA device"), (NoCapsule(), "__dlpack__ returned None, not a capsule of a tensor"), ({1: 2}, "names of parts are strings"),
    ({"a\0b": 1}, "name of a part has a NUL"), ({}, "parts"), (np.arange(5)[::-1], r"negative stride: emit array.copy\(\)"),
    ({"outer": {"inner": 1}}, r"part 'outer': it is a dict.* weir.Object"), (dict_in_itself(), "part 'again': it is a dict"),
], ids=["complex", "time", "big-endian", "buffer", "8 bits", "mask", "dimensions", "no DLPack", "device", "no capsule", "names", "NUL", "empty dict", "backwards",
        "dict in a dict", "dict in itself"])
def test_what_cannot_be_a_message_is_refused(value, text):
    with pytest.raises(weir.Error, match=text):
        through(value)


@pytest.mark.parametrize("demand, value, text", [
    ({"dtype": "uint8"}, np.zeros(3, np.float32), r"float32 \[3\] in host memory.*uint8"),
    ({"dtype": "int8|uint8"}, np.zeros(3, np.float32), r"float32 \[3\] in host memory.*int8\|uint8"),
    ({"place": "device"}, np.zeros(3, np.uint8), r"uint8 \[3\] in host memory.*tensors on a device"),
    ({"shape": "[N, N] | [4]"}, np.zeros(3, np.uint8), r"uint8 \[3\] in host memory.*\[N, N\] \| \[4\]"),
    ({"dense": True}, np.zeros((4, 4))[::2, ::2], "not contiguous: it expects a contiguous one"),
    ({"dtype": "uint8"}, "text", "kind"),
    ({"dense": True}, "text", "expects an array"),
])
def test_a_port_refuses_what_it_does_not_expect(demand, value, text):
    with pytest.raises(weir.Error, match=text) as caught:
        run_compute(lambda self, ctx: ctx.emit("out", value), outputs=[weir.Port("out", **demand)])
    assert caught.value.entity == "once" and "out" in str(caught.value)
    with pytest.raises(weir.Error, match=text) as caught:
        run_compute(lambda self, ctx: ctx.receive("in"), inputs=[weir.Port("in", **demand)], feed=value)
    assert "in" in str(caught.value)


@pytest.mark.parametrize("demand", [{"dtype": "float32|uint8", "place": "host", "shape": "[H, W] | [N]"}, {"shape": "[3]"}, {}])
def test_a_port_takes_what_fits(demand):
    kept = run_compute(lambda self, ctx: ctx.emit("out", np.asarray(ctx.receive("in")).copy()), feed=np.zeros(3, np.uint8),
                       inputs=[weir.Port("in", **demand)], outputs=[weir.Port("out", **demand)])
    assert [message.shape for message in kept["out"]] == [(3,)]


@pytest.mark.parametrize("value, text", [
    (np.zeros((3, 4), np.float32), "Message(tensor, float32 on the host, shape (3, 4))"),
    (np.zeros((4, 4))[:, ::2], "Message(tensor, float64 on the host, not contiguous, shape (4, 2))"),
    (b"abc", "Message(bytes, 3)"),
    ({"a": None, "b": "text"}, "Message(parts, a b)"),
    (None, "Message(empty)"),
    ("text", "Message(object, str)"),
])
def test_a_message_says_what_it_is(value, text):
    assert repr(through(value)) == text


def test_a_refusal_is_said_without_the_type_of_the_exception():
    with pytest.raises(weir.Error, match=r"^'once': input 'in' refuses an array of float64 .*\(test_arrays.py:\d+\)$"):
        run_compute(lambda self, ctx: ctx.receive("in"), inputs=[weir.Port("in", dense=True)], feed=np.ones((4, 4))[:, ::2])


def test_a_kind_that_the_port_refuses():
    with pytest.raises(weir.Error, match="kind|accept"):
        run_compute(lambda self, ctx: ctx.emit("out", "text"), outputs=[weir.Port("out", kinds="tensor")])


def test_a_message_of_another_graph_is_refused():
    kept = through(np.zeros(3))
    with pytest.raises(weir.Error, match="another graph"):
        through(kept)


def test_dlpack_refuses_copies_and_other_devices():
    message = through(np.zeros(3))
    with pytest.raises(BufferError, match="copies"):
        message.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="copies"):
        message.__dlpack__(copy=True)
    assert message.__dlpack_device__() == (1, 0)
    assert not hasattr(message, "__cuda_array_interface__")


def test_a_capsule_that_is_not_taken_frees_the_array():
    message = through(np.zeros(3))
    for version in (None, (1, 0)):
        capsule = message.__dlpack__(max_version=version)
        assert ("versioned" in repr(capsule)) == (version is not None)
        del capsule


class Managed(ctypes.Structure):
    """The begin of DLManagedTensorVersioned."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64)]


def is_read_only(capsule):
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return bool(Managed.from_address(pointer_of(capsule, b"dltensor_versioned")).flags & 1)


def test_a_capsule_says_whether_it_may_be_written():
    def compute(self, ctx):
        return is_read_only(ctx.empty(3, "float32", on_host=True).__dlpack__(max_version=(1, 0)))

    assert is_read_only(through(np.zeros(3)).__dlpack__(max_version=(1, 0)))
    assert not run_compute(compute)["is"]


class Exports:
    """An exporter without a buffer."""

    def __init__(self, array, **fixed):
        self.__dlpack_device__, self.fixed, self.array = array.__dlpack_device__, fixed, array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**{**arguments, **self.fixed})


@pytest.mark.parametrize("version, made, unique", [((1, 0), False, False), ((1, 0), True, True), (None, True, False)],
                         ids=["read-only", "may be written", "without a version"])
def test_what_dlpack_may_be_given_away(version, made, unique):
    """A capsule that is read-only, or cannot tell, is lent whatever the program says."""

    def emit(self, ctx):
        message = ctx.empty(3, "float32", on_host=True) if made else ctx.receive("in")
        np.asarray(message)[:] = 1 if made else np.asarray(message)
        ctx.emit("out", Exports(message, max_version=version), give=True)

    def emit_received(self, ctx):
        ctx.emit("out", Exports(ctx.receive("in"), max_version=version), give=True)

    found = run_compute(emit if made else emit_received, ["in"], ["out"], feed=np.zeros(3))
    message = found["out"][0]
    assert message.shape == (3,) and message.unique() == unique


def test_an_array_goes_with_a_capsule_that_is_not_taken():
    for version in (None, (1, 0)):
        box = [np.arange(10.0).view(type("Own", (np.ndarray,), {}))]
        gone = weakref.ref(box[0])
        message = run_compute(lambda self, ctx: ctx.emit("out", box.pop()), outputs=["out"])["out"][0]
        capsule = message.__dlpack__(max_version=version)
        del message
        gc.collect()
        assert gone() is not None
        del capsule
        weir._weir.settle()
        gc.collect()
        assert gone() is None


def test_a_message_outlives_its_graph():
    message = through(np.arange(4.0))
    gc.collect()
    assert np.asarray(message).sum() == 6


class OnDevice(np.ndarray):
    """As an array of CuPy: its buffer is not what is to be read, its DLPack is."""

    __cuda_array_interface__ = {}

    def __dlpack__(self, **others):
        return np.full(3, 7, np.float32).__dlpack__()


def test_an_array_of_a_device_is_taken_by_dlpack_though_it_has_a_buffer(chain):
    @weir.operator
    class EmitOnDevice:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.emit("out", np.zeros(3, np.float32).view(OnDevice))
            ctx.finish()

    graph = chain(("a", "EmitOnDevice"), ("b", "Collect"))
    graph.run(backend="host")
    assert graph["b"].instance.seen[0].tolist() == [7, 7, 7]


class Torch:
    """As torch writes its types."""

    def __str__(self):
        return "torch.int16"


def test_empty_takes_the_types_of_other_libraries_and_a_number_as_a_shape():
    made = []

    def compute(self, ctx):
        for dtype in ("int16", np.int16, np.dtype("int16"), Torch()):
            made.append(ctx.empty(3, dtype))
        with pytest.raises(weir.Error, match="there is no dtype 'complex128'"):
            ctx.empty((3,), np.complex128)

    run_compute(compute)
    assert [(message.shape, message.dtype) for message in made] == [((3,), "int16")] * 4
