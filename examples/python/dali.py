"""Pictures that DALI reads, decodes and resizes, on weir's streams; a second pipeline of DALI's, in mid-graph, mirrors them.

    python3 examples/python/dali.py [--frames N] [--files FOLDER] [--backend cuda|host]

    load -> mirror -> download -> compare

Needs `pip install nvidia-dali-cuda130 numpy`, and with `--backend host` no GPU: DALI works on the CPU then. `load` is DALI as a source, whose
threads decode some batches ahead. `mirror` gives DALI what weir has. Both pass DALI the entity's stream, on which the results are ready.
"""

import argparse
import pathlib
import tempfile
import time
from typing import Any

import numpy as np
import weir
from nvidia.dali import fn, pipeline_def, types

HEIGHT, WIDTH, PICTURES, BATCH = 480, 640, 16, 4


def picture(i: int) -> Any:
    """Random blocks."""
    random = np.random.default_rng(i)
    return np.kron(random.integers(0, 256, (12, 16, 3), np.uint8), np.ones((40, 40, 1), np.uint8))


def make_files(folder: str) -> list[str]:
    paths = [f"{folder}/{i:03}.ppm" for i in range(PICTURES)]
    for i, path in enumerate(paths):
        pathlib.Path(path).write_bytes(f"P6 {WIDTH} {HEIGHT} 255\n".encode() + picture(i).tobytes())
    return paths


def loading(files: list[str], on_cuda: bool) -> Any:
    encoded, _ = fn.readers.file(files=files)
    pictures = fn.decoders.image(encoded, device="mixed" if on_cuda else "cpu", output_type=types.RGB)
    small = fn.resize(pictures, resize_x=WIDTH // 2, resize_y=HEIGHT // 2, antialias=False)
    return fn.crop_mirror_normalize(small, dtype=types.FLOAT, std=255.0, output_layout="CHW")


def mirroring(on_cuda: bool) -> Any:
    pictures = fn.external_source(name="pictures", device="gpu" if on_cuda else "cpu", layout="CHW", batch=False)
    return fn.flip(pictures, horizontal=1)


def build(ctx: weir.Context, pipeline: Any, **arguments: Any) -> Any:
    """On the entity's device."""
    device = ctx.device if ctx.on_cuda else None
    built = pipeline_def(pipeline)(on_cuda=ctx.on_cuda, device_id=device, batch_size=BATCH, exec_dynamic=True, **arguments)
    built.build()
    return built


def run(ctx: weir.Context, pipeline: Any) -> Any:
    """One batch as one array, in the order of the entity's stream. Its memory goes back to DALI with the last reference."""
    (batch,) = pipeline.run(ctx.stream.handle if ctx.on_cuda else None)
    return batch.as_tensor()


@weir.operator
class Load:
    outputs = [weir.Port("out", dtype="float32", shape="[N, 3, H, W]")]
    uses_stream = True
    folder = weir.parameter(str)
    count = weir.parameter(100)

    def start(self, ctx: weir.Context) -> None:
        files = sorted(map(str, pathlib.Path(self.folder).iterdir()))
        self.pipeline = build(ctx, loading, files=files, num_threads=2, prefetch_queue_depth=3)

    def compute(self, ctx: weir.Context) -> None:
        ctx.emit("out", run(ctx, self.pipeline))
        if ctx.tick + 1 == self.count:
            ctx.finish()

    def stop(self, ctx: weir.Context) -> None:
        del self.pipeline


@weir.operator
class Mirror:
    inputs = [weir.Port("in", dtype="float32", shape="[N, 3, H, W]", device=True)]
    outputs = ["out"]

    def start(self, ctx: weir.Context) -> None:
        self.pipeline = build(ctx, mirroring, num_threads=1, prefetch_queue_depth=1)

    def compute(self, ctx: weir.Context) -> None:
        stream = ctx.stream.handle if ctx.on_cuda else None
        self.pipeline.feed_input("pictures", ctx.receive("in"), cuda_stream=stream)  # copied on that stream
        ctx.emit("out", run(ctx, self.pipeline))

    def stop(self, ctx: weir.Context) -> None:
        del self.pipeline


def expected(i: int) -> Any:
    """The same by NumPy: means of 2 x 2, mirrored, of 0 to 1, channels first."""
    small = picture(i % PICTURES).reshape(HEIGHT // 2, 2, WIDTH // 2, 2, 3).mean((1, 3), np.float32) / 255
    return small[:, ::-1].transpose(2, 0, 1)


@weir.operator
class Compare:
    inputs = ["in"]
    made = weir.parameter(True, "the files are those of make_files")

    def start(self, ctx: weir.Context) -> None:
        self.worst, self.batches, self.first = 0.0, 0, 0
        self.expected = [expected(i) for i in range(PICTURES)]

    def compute(self, ctx: weir.Context) -> None:
        found = np.asarray(ctx.receive("in"))
        self.first = self.first or time.perf_counter_ns()
        for k in range(BATCH if self.made else 0):
            wanted = self.expected[(self.batches * BATCH + k) % PICTURES]
            self.worst = max(self.worst, float(np.abs(found[k] - wanted).max()))
        self.batches += 1
        self.last = time.perf_counter_ns()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=400, help=f"in batches of {BATCH}")
    parser.add_argument("--files", help="a folder of pictures that DALI decodes")
    parser.add_argument("--backend", default="cuda", choices=["cuda", "host"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not options.files:
            make_files(folder)
        graph = {
            "weir": 1,
            "name": "dali",
            "entities": [
                {"name": "load", "operator": "Load", "parameters": {"folder": options.files or folder, "count": options.frames // BATCH}},
                {"name": "mirror", "operator": "Mirror"},
                {"name": "download", "operator": "download" if options.backend == "cuda" else "pass"},
                {"name": "compare", "operator": "Compare", "parameters": {"made": not options.files}},
            ],
            "connections": [["load.out", "mirror.in"], ["mirror.out", "download.in"], ["download.out", "compare.in"]],
        }
        with weir.Graph(graph) as running:
            running.run(backend=options.backend)
            seen = running["compare"].instance
            rate = BATCH * (seen.batches - 1) / ((seen.last - seen.first) / 1e9) if seen.batches > 1 else 0
            print(f"DALI on {running.where}: {BATCH * seen.batches} pictures, {rate:.0f} a second, {seen.worst * 255:.4f} of 255 apart at most")
            assert seen.worst * 255 < 0.01 and seen.batches == options.frames // BATCH


if __name__ == "__main__":
    main()
