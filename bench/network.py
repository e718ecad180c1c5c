#!/usr/bin/env python3
"""Frames/s of examples/onnx/video.json, beside a loop in Python that calls the same network with the same settings on frames that are
ready, so that what weir does around the network shows.

    network.py [--build FOLDER] [--frames N] [--rounds N] [--requests N] [--threads N] [--model FILE] [--quick]

From the root, after `scripts/install-deps onnx` and a build; with the python3 of build/onnx. Rounds alternate. A rate is that of N frames beyond
the first N / 5, so that the start of the process and of the network is not in it.
"""
import argparse
import glob
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples/onnx"))
import models
import reference

SIDE = reference.SIZE


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--frames", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="few frames; whether it runs at all")
    given = parser.parse_args()
    if given.quick:
        given.frames, given.rounds = 10, 1
    return given


def seconds_of_weir(given, model, pictures):
    command = [given.build / "cli/weir", "run", "--quiet", "--plugin", "onnx",
               "--set", f"network.model={model}", "--set", f"network.requests={given.requests}", "--set", f"network.threads={given.threads}",
               "--set", f"read.width={SIDE}", "--set", f"read.height={SIDE}", ROOT / "examples/onnx/video.json"]
    begun = time.monotonic()
    done = subprocess.run(list(map(str, command)), input=pictures.tobytes(), stdout=subprocess.PIPE, check=True)
    return time.monotonic() - begun, done.stdout


def session_of(given, model):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = given.threads, 3
    return onnxruntime.InferenceSession(model, settings)


def rate_of_weir(given, model, pictures, expected):
    rest = given.frames // 5
    short, _ = seconds_of_weir(given, model, pictures[:rest])
    long, found = seconds_of_weir(given, model, pictures)
    if found != expected:
        sys.exit("weir's results are others than the loop's")
    return given.frames / (long - short)


def rate_of_loop(session, frames, count):
    name, begun = session.get_inputs()[0].name, time.monotonic()
    for i in range(count):
        session.run(None, {name: frames[i % len(frames)]})
    return count / (time.monotonic() - begun)


def main():
    given = options()
    os.environ.setdefault("WEIR_ONNXRUNTIME", glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi"))[0])
    random = numpy.random.default_rng(1)
    pictures = random.integers(0, 256, (given.frames + given.frames // 5, SIDE, SIDE, 3), numpy.uint8)
    frames = [numpy.ascontiguousarray(reference.normalize(picture)) for picture in pictures]
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or pathlib.Path(folder, "squeezenet.onnx")
        if not given.model:
            onnx.save(models.with_weights(models.light("squeezenet")), model)
        session = session_of(given, model)
        name = session.get_inputs()[0].name
        expected = b"".join(session.run(None, {name: frame})[0].tobytes() for frame in frames)
        rows = []
        for i in range(given.rounds):
            rows.append((rate_of_weir(given, model, pictures, expected), rate_of_loop(session, frames, given.frames)))
            print(f"  round {i}: weir {rows[i][0]:.1f}, loop {rows[i][1]:.1f} frames/s, ratio {rows[i][0] / rows[i][1]:.3f}", flush=True)
    ratios = sorted(a / b for a, b in rows)
    print(f"  ratio: median {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}; the same bytes")


if __name__ == "__main__":
    main()
