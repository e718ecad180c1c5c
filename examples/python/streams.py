"""Two sources on streams of their own, an operator that works on both, a copy to the host, and a sink there.

    python3 examples/python/streams.py [--library cupy|torch|numpy] [--default-stream] [--count N]
"""

import argparse
import importlib
import json
import pathlib
from typing import Any

import numpy as np
import weir

GRAPH = pathlib.Path(__file__).with_name("streams.json")
SHAPE = (512, 256)


class Cupy:
    """Arrays of CuPy: on the current device and stream."""

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.cupy.cuda.runtime.getDeviceCount()  # raises without a GPU

    def full(self, value: float) -> Any:
        return self.cupy.full(SHAPE, value, dtype="float32")

    def of(self, message: weir.Message) -> Any:
        return self.cupy.from_dlpack(message)


class Torch:
    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU")

    def full(self, value: float) -> Any:
        return self.torch.full(SHAPE, value, dtype=self.torch.float32, device="cuda")

    def of(self, message: weir.Message) -> Any:
        return self.torch.from_dlpack(message)


class Numpy:
    def full(self, value: float) -> Any:
        return np.full(SHAPE, value, dtype="float32")

    def of(self, message: weir.Message) -> Any:
        return np.asarray(message)


LIBRARIES: dict[str, Any] = {"cupy": Cupy, "torch": Torch, "numpy": Numpy}
arrays: Any = None  # one of them, made by choose()


def choose(name: str | None = None) -> str:
    """Takes the library of that name, or the first that works here."""
    global arrays
    for candidate in [name] if name else ["cupy", "numpy"]:
        try:
            arrays = LIBRARIES[candidate]()
            return candidate
        except Exception as error:
            if name:
                raise SystemExit(f"{name} cannot be used here: {error}") from None
    raise SystemExit("neither CuPy with a GPU nor NumPy can be used here")


@weir.operator
class ArraySource:
    """Emits arrays of one value, made on a named stream of the entity's pool."""

    outputs = ["out"]
    value = weir.parameter(1.0)
    stream = weir.parameter("", "the name of one of the entity's pool")
    count = weir.parameter(10)

    def compute(self, ctx: weir.Context) -> None:
        stream = ctx.allocate_stream(self.stream) if self.stream else ctx.stream
        if self.stream:
            ctx.set_stream("out", stream)  # the stream that the message carries
        with stream:
            ctx.emit("out", arrays.full(self.value + ctx.tick))
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
class ArrayProcess:
    """out = 2 * in1 + in2, on the entity's own stream, which is ordered behind those of both inputs."""

    inputs = [weir.Port("in1", dtype="float32", device=True), weir.Port("in2", dtype="float32", device=True)]
    outputs = ["out"]

    def compute(self, ctx: weir.Context) -> None:
        out = ctx.empty(SHAPE, "float32")  # memory of weir's, of the device
        with ctx.stream:
            arrays.of(out)[:] = 2 * arrays.of(ctx.receive("in1")) + arrays.of(ctx.receive("in2"))
        ctx.emit("out", out)


@weir.operator
class ArraySink:
    """Reads each result on the host. Its gate waits for the copy, so there is no synchronization in compute."""

    inputs = ["in"]

    def start(self, ctx: weir.Context) -> None:
        self.means: list[float] = []

    def compute(self, ctx: weir.Context) -> None:
        self.means.append(float(np.asarray(ctx.receive("in")).mean()))


def graph_of(default_stream: bool, count: int) -> dict[str, Any]:
    graph: dict[str, Any] = json.loads(GRAPH.read_text())
    for entity in graph["entities"][:2]:
        entity["parameters"]["count"] = count
        if default_stream:
            entity["parameters"]["stream"] = ""
    if default_stream:
        del graph["resources"]
        graph["use_default_stream"] = True
    return graph


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=LIBRARIES)
    parser.add_argument("--default-stream", action="store_true")
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    library = choose(options.library)
    with weir.Graph(graph_of(options.default_stream, options.count)) as graph:
        graph.run(backend="host" if library == "numpy" else "cuda")
        means = graph["sink"].instance.means
        print(f"{library} on {graph.where}: {len(means)} results, {means[0]} to {means[-1]}")
        wrong = [(i, mean) for i, mean in enumerate(means) if mean != 2 * (1 + i) + (2 + i)]
        if wrong or len(means) != options.count:
            raise SystemExit(f"wrong results (tick, mean): {wrong[:5]}")


if __name__ == "__main__":
    main()
else:
    choose()
