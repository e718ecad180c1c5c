"""Pictures prepared for a network by CV-CUDA on weir's streams: resized, as float32 of 0 to 1, channels first.

    python3 examples/python/cv_cuda.py [--frames N] [--size N]

    frames -> upload -> prepare -> download -> compare

Needs a GPU, and `pip install cvcuda-cu13 numpy`. The calls of CV-CUDA take the entity's stream and only enqueue: no worker waits for
the device. `compare` runs when the device has finished, behind its gate, and computes the same by NumPy.
"""

import argparse
import ctypes
import time
from typing import Any

import cvcuda
import numpy as np
import weir

RING = 16  # different frames


@weir.operator
class Frames:
    outputs = ["out"]
    count = weir.parameter(100)

    def start(self, ctx: weir.Context) -> None:
        random = np.random.default_rng(2)
        self.ring = [np.kron(random.integers(0, 256, (12, 16, 3), np.uint8), np.ones((40, 40, 1), np.uint8)) for _ in range(RING)]

    def compute(self, ctx: weir.Context) -> None:
        ctx.emit("out", self.ring[ctx.tick % RING])
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
class Prepare:
    inputs = [weir.Port("in", dtype="uint8", shape="[H, W, 3]", device=True)]
    outputs = ["out"]
    size = weir.parameter(224)

    def compute(self, ctx: weir.Context) -> None:
        stream = cvcuda.as_stream(ctypes.c_void_p(ctx.stream.handle))
        small = cvcuda.as_tensor(ctx.empty([self.size, self.size, 3], "uint8"), "HWC")
        values = cvcuda.as_tensor(ctx.empty([self.size, self.size, 3], "float32"), "HWC")
        out = ctx.empty([3, self.size, self.size], "float32")
        cvcuda.resize_into(small, cvcuda.as_tensor(ctx.receive("in"), "HWC"), cvcuda.Interp.LINEAR, stream=stream)
        cvcuda.convertto_into(values, small, 1 / 255, stream=stream)
        cvcuda.reformat_into(cvcuda.as_tensor(out, "CHW"), values, stream=stream)
        ctx.emit("out", out)


def prepared(frame: Any, size: int) -> Any:
    """The same by NumPy: linear between the centres of pixels."""

    def places(length: int) -> tuple[Any, Any, Any]:
        at = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
        first = np.floor(at).astype(int)
        return first, np.minimum(first + 1, length - 1), (at - first).astype(np.float32)

    top, bottom, down = places(frame.shape[0])
    left, right, across = places(frame.shape[1])
    rows = frame[top] * (1 - down)[:, None, None] + frame[bottom] * down[:, None, None]
    found = rows[:, left] * (1 - across)[:, None] + rows[:, right] * across[:, None]
    return (np.round(found) / 255).transpose(2, 0, 1)


@weir.operator
class Compare:
    inputs = ["in", "frame"]

    def start(self, ctx: weir.Context) -> None:
        self.worst, self.frames, self.first = 0.0, 0, 0

    def compute(self, ctx: weir.Context) -> None:
        found, frame = np.asarray(ctx.receive("in")), np.asarray(ctx.receive("frame"))
        self.first = self.first or time.perf_counter_ns()
        self.frames += 1
        if ctx.tick < RING:
            self.worst = max(self.worst, float(np.abs(found - prepared(frame, found.shape[1])).max()))
        self.last = time.perf_counter_ns()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--size", type=int, default=224)
    options = parser.parse_args()
    graph = {
        "weir": 1,
        "name": "cv_cuda",
        "entities": [
            {"name": "frames", "operator": "Frames", "parameters": {"count": options.frames}},
            {"name": "upload", "operator": "upload"},
            {"name": "prepare", "operator": "Prepare", "parameters": {"size": options.size}},
            {"name": "download", "operator": "download"},
            {"name": "compare", "operator": "Compare", "ports": {"frame": {"capacity": 16}}},
        ],
        "connections": [
            ["frames.out", "upload.in"],
            ["upload.out", "prepare.in"],
            ["prepare.out", "download.in"],
            ["download.out", "compare.in"],
            ["frames.out", "compare.frame"],
        ],
    }
    with weir.Graph(graph) as running:
        running.run(backend="cuda")
        seen = running["compare"].instance
        rate = (seen.frames - 1) / ((seen.last - seen.first) / 1e9) if seen.frames > 1 else 0
        print(f"CV-CUDA on {running.where}: {seen.frames} frames, {rate:.0f} frames/s, {seen.worst * 255:.2f} of 255 apart at most")
        # Half a step of the bytes in between, rounded the other way.
        assert seen.worst * 255 <= 1.01 and seen.frames == options.frames


if __name__ == "__main__":
    main()
