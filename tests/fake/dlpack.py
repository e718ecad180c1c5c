"""The order of DLPack's streams, on the fake CUDA: whatever reads an array is behind what writes it, and the memory is not
given out again before it was read. The libraries of arrays are stood for by calls of CUDA: each has a stream of its own, and its
work there takes a while, so that what is not behind it comes too early. `run.py --libraries` runs it.
"""

import ctypes

import pytest

import weir

cuda = ctypes.CDLL("libfake_cuda.so")
libc = ctypes.CDLL(None)
SIZE = 1 << 12
LATE = 20000  # us
NON_BLOCKING = 1
DEFAULT = 4  # cudaMemcpyDefault
LEGACY = 1  # as DLPack counts


def call(name, *arguments):
    assert getattr(cuda, name)(*arguments) == 0, name


def pointer(value=0):
    return ctypes.c_void_p(value)


class Stream:
    """A stream of a library."""

    def __init__(self, handle=None):
        self.native, self.made = pointer(handle or 0), handle is None
        if self.made:
            call("cudaStreamCreateWithFlags", ctypes.byref(self.native), NON_BLOCKING)
        self.handle = self.native.value or 0

    def be_late(self):
        call("cudaLaunchHostFunc", self.native, libc.usleep, pointer(LATE))

    def fill(self, at, value):
        call("cudaMemsetAsync", pointer(at), value, ctypes.c_size_t(SIZE), self.native)

    def read(self, at):
        """What the stream will read there."""
        found = pointer()
        call("cudaHostAlloc", ctypes.byref(found), ctypes.c_size_t(SIZE), 0)
        call("cudaMemcpyAsync", found, pointer(at), ctypes.c_size_t(SIZE), DEFAULT, self.native)
        return found

    def wait_for(self, other):
        event = pointer()
        call("cudaEventCreateWithFlags", ctypes.byref(event), 2)
        call("cudaEventRecord", event, other.native)
        call("cudaStreamWaitEvent", self.native, event, 0)
        call("cudaEventDestroy", event)

    def finish(self):
        call("cudaStreamSynchronize", self.native)
        if self.made:
            call("cudaStreamDestroy", self.native)


def value_of(found):
    """The byte that was read everywhere; None: there are several."""
    seen = set(ctypes.string_at(found, SIZE))
    call("cudaFreeHost", found)
    return seen.pop() if len(seen) == 1 else None


# --- the structs of DLPack that are used here ---


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("dimensions", ctypes.c_int), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("end", ctypes.c_void_p)]


api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.POINTER(Managed)
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def address_of(capsule):
    return api.PyCapsule_GetPointer(capsule, b"dltensor").contents.tensor.data


class Array:
    """An array of a library, whose stream fills it a while after the call."""

    def __init__(self, value):
        self.memory, self.stream, self.shape = pointer(), Stream(), (ctypes.c_int64 * 1)(SIZE)
        call("cudaMalloc", ctypes.byref(self.memory), ctypes.c_size_t(SIZE))
        self.stream.fill(self.memory.value, 0)
        self.stream.be_late()
        self.stream.fill(self.memory.value, value)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream):
        Stream(0 if stream == LEGACY else stream).wait_for(self.stream)
        tensor = Tensor(self.memory, (2, 0), 1, 1, 8, 1, self.shape, None, 0)
        self.managed = Managed(tensor, None, None)
        return api.PyCapsule_New(ctypes.addressof(self.managed), b"dltensor", None)

    def finish(self):
        self.stream.finish()
        call("cudaFree", self.memory)


# --- the graph: `write` emits, `read` looks, both on streams of their own ---

runs = {}


class Run:
    """What the operators of a test do, and what they saw."""

    def __init__(self, write, ticks=1):
        self.write, self.ticks, self.found, self.ends, self.stream = write, ticks, [], [], Stream()

    def values(self):
        self.stream.finish()
        for end in self.ends:
            end()
        return [value_of(found) for found in self.found]


@pytest.fixture
def run():
    """Makes the one Run of the test."""
    yield lambda *arguments, **options: runs.setdefault("run", Run(*arguments, **options))
    runs.clear()


@weir.operator
class Write:
    outputs = ["out"]

    def compute(self, ctx):
        runs["run"].write(ctx)
        if ctx.tick + 1 == runs["run"].ticks:
            ctx.finish()


def read_by_dlpack(message, stream, late):
    """A library that reads the message on its stream: at once, or behind work of its own."""
    capsule = message.__dlpack__(stream=stream.handle)
    if late:
        stream.be_late()
    return stream.read(address_of(capsule))


UNGATED = [weir.Port("in", device=True)]


@weir.operator
class Read:
    inputs = UNGATED
    parameters = {"late": False}

    def compute(self, ctx):
        runs["run"].found.append(read_by_dlpack(ctx.receive("in"), runs["run"].stream, self.late))


@weir.operator
class ReadShown:
    """Reads by __cuda_array_interface__, behind other work on the stream that this names."""

    inputs = UNGATED

    def compute(self, ctx):
        message = ctx.receive("in")
        shown = message.__cuda_array_interface__
        stream = Stream(0 if shown["stream"] == LEGACY else shown["stream"])
        stream.be_late()
        runs["run"].found.append(stream.read(shown["data"][0]))


def graph_of(*entities):
    return {"weir": 1, "entities": [dict(entity) for entity in entities],
            "connections": [[f"{a['name']}.out", f"{b['name']}.in"] for a, b in zip(entities, entities[1:])]}


WRITE = {"name": "write", "operator": "Write"}
READ = {"name": "read", "operator": "Read"}


def run_graph(graph):
    with weir.Graph(graph) as made:
        made.run(backend="cuda")


def write_late(ctx):
    """Memory of weir's that the entity's stream fills a while after the call."""
    array = ctx.empty([SIZE], "uint8")
    stream = Stream(ctx.stream.handle)
    at = address_of(array.__dlpack__(stream=stream.handle))
    stream.fill(at, 0)
    stream.be_late()
    stream.fill(at, ctx.tick + 1)
    ctx.emit("out", array)


def test_the_consumers_stream_is_behind_the_producer(run):
    made = run(write_late)
    run_graph(graph_of(WRITE, READ))
    assert made.values() == [1]


def test_memory_is_not_written_again_before_the_consumers_stream_has_read_it(run):
    made = run(write_late, ticks=4)
    late = {**READ, "parameters": {"late": True}, "ports": {"in": {"gate": True}}}  # so that no other memory is free
    run_graph(graph_of(WRITE, late))
    assert made.values() == [1, 2, 3, 4]


@pytest.mark.parametrize("ticks", [1, 4])
def test_what_is_shown_is_read_behind_the_producer_and_stays_until_then(run, ticks):
    made = run(write_late, ticks)
    run_graph(graph_of(WRITE, {"name": "read", "operator": "ReadShown", "ports": {"in": {"gate": True}}}))
    call("cudaDeviceSynchronize")
    assert made.values() == list(range(1, ticks + 1))


def test_the_entitys_stream_is_behind_the_array_that_is_emitted(run):
    def write(ctx):
        array = Array(7)
        runs["run"].ends.append(array.finish)
        ctx.emit("out", array)

    made = run(write)
    run_graph(graph_of(WRITE, READ))
    assert made.values() == [7]


def test_an_array_that_the_program_pushes_is_read_behind_its_writer(run):
    made, array = run(None), Array(9)
    with weir.Graph(graph_of(READ)) as graph:
        inlet = graph.inlet("read.in")
        graph.start(backend="cuda")
        inlet.push(array)
        inlet.close()
        graph.wait()
    array.finish()
    assert made.values() == [9]


def taken(graph):
    outlet = graph.outlet("write.out", early=True)
    graph.start(backend="cuda")
    return outlet.take(timeout=60)


@pytest.mark.parametrize("handle", [None, LEGACY])
def test_a_program_that_names_no_stream_reads_on_the_legacy_one(run, handle):
    made = run(write_late)
    with weir.Graph(graph_of(WRITE)) as graph:
        message = taken(graph)
        capsule = message.__dlpack__(stream=handle)
        made.found.append(Stream(0).read(address_of(capsule)))
        del capsule, message
        graph.wait()
    call("cudaDeviceSynchronize")
    assert made.values() == [1]
