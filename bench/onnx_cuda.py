#!/usr/bin/env python3
"""Frames/s of the operator `onnx` on CUDA, beside a loop in Python that calls the same network by the same runtime on a stream of torch's,
with as many frames under way; the results are compared.

    onnx_cuda.py [--build FOLDER] [--frames N] [--rounds N] [--in-flight N] [--model FILE] [--graph]

From the root, on a machine with a GPU, with a python3 that has numpy, torch with CUDA, onnxruntime-gpu and, without --model, onnx; and with a C compiler.
--graph: the runtime's CUDA graph on both sides. Rounds alternate. A rate is that of N frames beyond the first N / 5, so that the start is not in it.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
RING = 16  # different frames


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--graph", action="store_true")
    return parser.parse_args()


class Loop:
    """One thread; each frame in flight has pinned memory of its own."""

    def __init__(self, given, model, frames):
        self.stream = torch.cuda.Stream()
        provider = {"user_compute_stream": str(self.stream.cuda_stream), "enable_cuda_graph": str(int(given.graph))}
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, settings, [("CUDAExecutionProvider", provider), "CPUExecutionProvider"])
        self.run_options = onnxruntime.RunOptions()
        self.run_options.add_run_config_entry("disable_synchronize_execution_providers", "1")
        self.frames = [torch.from_numpy(frame).pin_memory() for frame in frames]
        shape = self.session.get_outputs()[0].shape
        self.input, self.output = torch.empty(frames[0].shape, device="cuda"), torch.empty(shape, device="cuda")
        self.results = [torch.empty(shape).pin_memory() for _ in range(given.in_flight)]
        self.ends = [torch.cuda.Event() for _ in range(given.in_flight)]
        self.binding = self.session.io_binding()
        for bind, port, tensor in ((self.binding.bind_input, self.session.get_inputs()[0], self.input),
                                   (self.binding.bind_output, self.session.get_outputs()[0], self.output)):
            bind(port.name, "cuda", 0, numpy.float32, list(tensor.shape), tensor.data_ptr())

    def run(self, count):
        """Returns the results of the first RING frames."""
        found, places = [], len(self.ends)
        for i in range(count + places):
            place = i % places
            if i >= places:
                self.ends[place].synchronize()
                if i - places < RING:
                    found.append(self.results[place].numpy().copy())
            if i >= count:
                continue
            with torch.cuda.stream(self.stream):
                self.input.copy_(self.frames[i % RING], non_blocking=True)
                self.session.run_with_iobinding(self.binding, self.run_options)
                self.results[place].copy_(self.output, non_blocking=True)
                self.ends[place].record()
        return numpy.stack(found)

    def rate(self, count):
        self.run(count // 5)
        begun = time.monotonic()
        self.run(count)
        return count / (time.monotonic() - begun)


def describe(given, model, folder, shape):
    entities = [
        {"name": "read", "operator": "tensor_read",
         "parameters": {"path": f"{folder}/frames", "shape": ",".join(map(str, shape)), "code": 2, "bits": 32, "count": 1}},
        {"name": "upload", "operator": "upload"},
        {"name": "network", "operator": "onnx", "parameters": {"model": str(model), "provider": "cuda", "cuda_graph": given.graph}},
        {"name": "download", "operator": "download"},
        {"name": "write", "operator": "tensor_write", "parameters": {"path": f"{folder}/results"}},
    ]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ports = [port.name for port in (session.get_inputs()[0], session.get_outputs()[0])]
    return {"weir": 1, "entities": entities,
            "connections": [["read.out", "upload.in"], ["upload.out", f"network.{ports[0]}"], [f"network.{ports[1]}", "download.in"],
                            ["download.out", "write.in"]]}


class Weir:
    def __init__(self, given, model, folder, frames):
        numpy.stack(frames).tofile(f"{folder}/frames")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{ROOT}/include", ROOT / "tests/plugins/onnx/tensors.c", "-o",
                        f"{folder}/tensors.so"], check=True)
        pathlib.Path(folder, "graph.json").write_text(json.dumps(describe(given, model, folder, frames[0].shape)))
        self.folder, self.command = folder, [
            given.build / "cli/weir", "run", "--quiet", "--backend", "cuda", "--plugin", "onnx", "--plugin", f"{folder}/tensors.so",
            "--max-in-flight", given.in_flight, f"{folder}/graph.json"]

    def seconds(self, count):
        begun = time.monotonic()
        pathlib.Path(self.folder, "results").unlink(missing_ok=True)
        subprocess.run([*map(str, self.command), "--set", f"read.count={count}"], check=True, timeout=120)
        return time.monotonic() - begun

    def results(self, shape):
        self.seconds(RING)
        return numpy.fromfile(f"{self.folder}/results", numpy.float32).reshape((RING, *shape))

    def rate(self, count):
        short = self.seconds(count // 5)
        return count / (self.seconds(count + count // 5) - short)


def main():
    given = options()
    os.environ.setdefault("WEIR_ONNXRUNTIME", os.path.join(os.path.dirname(onnxruntime.__file__), "capi"))
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or pathlib.Path(folder, "squeezenet.onnx")
        if not given.model:
            subprocess.run([sys.executable, ROOT / "examples/onnx/models.py", folder], check=True)
        random = numpy.random.default_rng(1)
        frames = [random.standard_normal((1, 3, 224, 224), numpy.float32) for _ in range(RING)]
        loop, weir = Loop(given, model, frames), Weir(given, model, folder, frames)
        expected = loop.run(RING)
        found = weir.results(expected.shape[1:])
        apart = float(numpy.abs(found - expected).max())
        print(f"  the results of {RING} frames differ by {apart:.2g} at most, of {float(numpy.abs(expected).max()):.2g}", flush=True)
        if not numpy.allclose(found, expected, rtol=1e-2, atol=1e-5) or numpy.allclose(expected[0], expected[1], rtol=1e-2, atol=1e-5):
            sys.exit("weir's results are others than the loop's")
        rows = []
        for i in range(given.rounds):
            rows.append((weir.rate(given.frames), loop.rate(given.frames)))
            print(f"  round {i}: weir {rows[i][0]:.1f}, loop {rows[i][1]:.1f} frames/s, ratio {rows[i][0] / rows[i][1]:.3f}", flush=True)
    ratios = sorted(a / b for a, b in rows)
    print(f"  ratio: median {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}; {given.in_flight} in flight"
          f"{', by CUDA graphs' if given.graph else ''}")


if __name__ == "__main__":
    main()
