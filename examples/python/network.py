"""Frames in pinned memory, a convolutional network on the GPU, the best class of each frame on the host.

    python3 examples/python/network.py [--library torch|numpy] [--backend cuda|host] [--frames N] [--in-flight N] [--no-replay]

    frames -> upload -> classify -> download -> top         or, with --direct,         frames -> classify -> top
       ^------------------ credit --------------'                                         ^------ credit -----'

`top` sends an empty message back for each frame that is done, and `frames` begins with as many of them as frames may be in
flight. `classify` is torch: each frame in flight has a stream of its own and, with replay, a CUDA graph that was captured
before the first frame. With --direct it copies to the device and back itself, which takes fewer ticks. Without a GPU the same graph runs on `host`, with torch's CPU or NumPy.
"""

import argparse
import importlib.util
import time
from typing import Any

import numpy as np
import weir
from squeezenet import CLASSES, NumpyLayers, SqueezeNet, TorchLayers

RING = 16  # different frames


class Numpy:
    name, on_gpu = "numpy", False

    def model(self, *sizes: int) -> SqueezeNet:
        return SqueezeNet(NumpyLayers(), *sizes)

    def pinned(self, array: Any) -> Any:
        return array

    def of(self, message: weir.Message) -> Any:
        return np.asarray(message)

    def write(self, message: weir.Message, array: Any) -> None:
        np.asarray(message)[:] = array

    def upload(self, array: Any) -> Any:
        return array


class Torch:
    name = "torch"

    def __init__(self, backend: str | None):
        self.torch: Any = importlib.import_module("torch")
        self.on_gpu: bool = backend != "host" and self.torch.cuda.is_available()

    def model(self, *sizes: int) -> SqueezeNet:
        return SqueezeNet(TorchLayers("cuda" if self.on_gpu else "cpu"), *sizes)

    def pinned(self, array: Any) -> Any:
        if not self.on_gpu:
            return array
        return self.torch.from_numpy(array).pin_memory().numpy()  # the view keeps the memory

    def of(self, message: weir.Message) -> Any:
        return self.torch.from_dlpack(message)

    def write(self, message: weir.Message, array: Any) -> None:
        self.torch.from_dlpack(message).copy_(array, non_blocking=True)

    def upload(self, array: Any) -> Any:
        return array.to("cuda", non_blocking=True) if self.on_gpu else array


def choose(name: str | None = None, backend: str | None = None) -> Numpy | Torch:
    """The library of that name, or torch if it is installed; on the GPU if there is one."""
    name = name or ("torch" if importlib.util.find_spec("torch") else "numpy")
    chosen = Torch(backend) if name == "torch" else Numpy()
    if backend == "cuda" and not chosen.on_gpu:
        raise SystemExit(f"{name} sees no GPU")
    return chosen


def frames_of(library: Numpy | Torch, height: int, width: int) -> list[Any]:
    """The ring of frames: what a camera's driver would fill."""
    random, tile = np.random.default_rng(2), (height // 4, width // 4, 1)
    return [library.pinned(np.kron(random.integers(0, 256, (4, 4, 3), np.uint8), np.ones(tile, np.uint8))) for _ in range(RING)]


class Captured:
    """A model's work as a CUDA graph. The current stream of each call must be the same."""

    def __init__(self, torch: Any, model: Any, shape: tuple[int, ...]):
        self.model = model  # the graph reads its weights
        self.frame = torch.zeros(shape, dtype=torch.uint8, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # what libraries make at their first calls is not for the graph
                model(self.frame)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.scores = model(self.frame)

    def __call__(self, frame: Any) -> Any:
        self.frame.copy_(frame, non_blocking=True)
        self.graph.replay()
        return self.scores  # until the next call


library: Any = None  # set by main


@weir.operator
class Frames:
    """Emits a ring of frames in pinned memory, one for each credit."""

    inputs = [weir.Port("credit", kinds="empty")]
    outputs = ["out"]
    count = weir.parameter(100)
    height = weir.parameter(480)
    width = weir.parameter(640)

    def start(self, ctx: weir.Context) -> None:
        self.ring = frames_of(library, self.height, self.width)

    def compute(self, ctx: weir.Context) -> None:
        ctx.emit("out", self.ring[ctx.tick % RING])
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
class Classify:
    """The scores of frames. Successive frames are on different streams, so the device works on several at once."""

    inputs = [weir.Port("in", dtype="uint8", device=True)]
    outputs: list[str | weir.Port] = ["out"]
    height = weir.parameter(480)
    width = weir.parameter(640)
    size = weir.parameter(224, "of the picture that the network sees")
    streams = weir.parameter(4)
    replay = weir.parameter(True)
    direct = False

    def start(self, ctx: weir.Context) -> None:
        model = library.model(self.height, self.width, self.size)
        self.models: list[Any] = [(lambda frame: model(library.upload(frame))) if self.direct else model] * self.streams
        if self.replay and ctx.on_cuda:  # the device may be waited for here, before the first tick
            shape = (self.height, self.width, 3)
            self.models = [Captured(library.torch, model, shape) for _ in self.models]
            library.torch.cuda.synchronize()

    def compute(self, ctx: weir.Context) -> None:
        lane = ctx.tick % self.streams
        stream = ctx.allocate_stream(f"frame{lane}") if ctx.on_cuda else ctx.stream
        ctx.set_stream("out", stream)
        out = ctx.empty([CLASSES], "float32", on_host=self.direct)
        with stream:  # DLPack orders it behind the upload
            library.write(out, self.models[lane](library.of(ctx.receive("in"))))
        ctx.emit("out", out)


@weir.operator
class ClassifyDirect(Classify):
    """As Classify, for frames in pinned memory; the scores are copied to pinned memory, too."""

    inputs = [weir.Port("in", dtype="uint8", place="host")]
    outputs = [weir.Port("out", host=True)]
    direct = True


@weir.operator
class Top:
    """Reads the scores on the host, behind its gate, and gives the credit back."""

    inputs = ["in"]
    outputs = ["credit"]
    effects = True  # it goes on when `frames` takes no more credits
    keep = weir.parameter(False)

    def start(self, ctx: weir.Context) -> None:
        self.best: list[int] = []
        self.scores: list[bytes] = []
        self.times: list[int] = []

    def compute(self, ctx: weir.Context) -> None:
        scores = np.asarray(ctx.receive("in"))
        self.best.append(int(scores.argmax()))
        self.times.append(time.perf_counter_ns())
        if self.keep:
            self.scores.append(scores.tobytes())
        ctx.emit("credit", None)


def direct_of(graph: dict[str, Any]) -> dict[str, Any]:
    """The graph without `upload` and `download`."""
    graph["entities"] = [entity for entity in graph["entities"] if entity["name"] not in ("upload", "download")]
    graph["entities"][1]["operator"] = "ClassifyDirect"
    graph["connections"] = [["frames.out", "classify.in"], ["classify.out", "top.in"], graph["connections"][-1]]
    return graph


def graph_of(count: int, in_flight: int, replay: bool = True, height: int = 480, width: int = 640, size: int = 224,
             keep: bool = False) -> dict[str, Any]:
    """The graph; `in_flight` is also the number of streams of `classify`."""
    shape = {"height": height, "width": width}
    return {
        "weir": 1,
        "name": "network",
        "resources": {"streams": {"type": "stream_pool", "max_size": in_flight + 4, "default": True}},
        "entities": [
            {"name": "frames", "operator": "Frames", "parameters": {"count": count, **shape},
             "ports": {"credit": {"capacity": in_flight}}},
            {"name": "upload", "operator": "upload"},
            {"name": "classify", "operator": "Classify",
             "parameters": {**shape, "size": size, "streams": in_flight, "replay": replay},
             "ports": {"in": {"capacity": in_flight}}},
            {"name": "download", "operator": "download", "ports": {"in": {"capacity": in_flight}}},
            {"name": "top", "operator": "Top", "parameters": {"keep": keep}, "ports": {"in": {"capacity": in_flight}}},
        ],
        "connections": [
            ["frames.out", "upload.in"],
            ["upload.out", "classify.in"],
            ["classify.out", "download.in"],
            ["download.out", "top.in"],
            {"from": "top.credit", "to": "frames.credit", "initial_messages": in_flight},
        ],
    }


def main() -> None:
    global library
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=["torch", "numpy"])
    parser.add_argument("--backend", choices=["cuda", "host"])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--size", type=int, default=224, help="of the picture that the network sees")
    parser.add_argument("--no-replay", action="store_true", help="launch each kernel, no CUDA graphs")
    parser.add_argument("--direct", action="store_true", help="the operator of the network copies, too")
    options = parser.parse_args()
    library = choose(options.library, options.backend)
    description = graph_of(options.frames, options.in_flight, not options.no_replay, size=options.size)
    with weir.Graph(direct_of(description) if options.direct else description) as graph:
        graph.run(backend="cuda" if library.on_gpu else "host")
        top = graph["top"].instance
        seconds = (top.times[-1] - top.times[0]) / 1e9
        rate = f", {(len(top.times) - 1) / seconds:.0f} frames/s" if seconds else ""
        print(f"{library.name} on {graph.where}: {len(top.best)} frames{rate}; classes {top.best[:4]} ...")
        # The same frame has the same class each time.
        assert top.best == [top.best[i % RING] for i in range(len(top.best))]


if __name__ == "__main__":
    main()
