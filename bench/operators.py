#!/usr/bin/env python3
"""The host forms of resize, normalize, convert, blur and sobel (bench/operators.c) beside one thread of OpenCV.

    operators.py [--build FOLDER] [--rounds N] [--calls N] [OPERATOR]

From the root, after `scripts/install-deps opencv` and a build; with the python3 of build/opencv. In each round each row is
measured as weir, OpenCV, weir, by the CPU time of one thread: the ratio is of the mean of the two to OpenCV's, and the two
against each other show how far the machine can be believed.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEIGHT, WIDTH = 480, 640
SKIPPED = 77

try:
    import cv2
    import numpy as np
except ImportError:
    print("skipped: no OpenCV: run scripts/install-deps opencv, then build/opencv/bin/python bench/operators.py")
    sys.exit(SKIPPED)


def pictures():
    """The same sizes as weir gets, of random bytes."""
    rgb = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    return {"rgb": rgb, "gray": cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), "rgba": cv2.cvtColor(rgb, cv2.COLOR_RGB2RGBA),
            "i420": cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420), "nv12": cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420)}


def resized(picture, width, height):
    out = cv2.resize(picture, (width, height))
    return lambda: cv2.resize(picture, (width, height), dst=out, interpolation=cv2.INTER_LINEAR)


def converted(picture, code):
    out = cv2.cvtColor(picture, code)
    return lambda: cv2.cvtColor(picture, code, dst=out)


def blurred(picture, radius):
    out, side = np.empty_like(picture), 2 * radius + 1
    return lambda: cv2.blur(picture, (side, side), dst=out, borderType=cv2.BORDER_REPLICATE)


def normalized(picture, by_table):
    """Planes, and of each floats: by a table, which gives weir's bits, or in float arithmetic, which gives others."""
    channels = picture.shape[2] if picture.ndim == 3 else 1
    planes = [np.empty((HEIGHT, WIDTH), np.uint8) for _ in range(channels)]
    out = np.empty((channels, HEIGHT, WIDTH), np.float32)
    tables = [((np.arange(256) / 255 - mean) / 0.225).astype(np.float32) for mean in (0.485, 0.456, 0.406)]

    def work():
        for plane, table, to in zip(cv2.split(picture, planes) if channels > 1 else [picture], tables, out):
            if by_table:
                cv2.LUT(plane, table, dst=to)
            else:
                cv2.addWeighted(plane, float(table[1] - table[0]), plane, 0, float(table[0]), dst=to, dtype=cv2.CV_32F)
    return work


def sobel(picture):
    """|x| + |y| of the luma, clamped."""
    gray = np.empty((HEIGHT, WIDTH), np.uint8)
    x, y = np.empty((HEIGHT, WIDTH), np.int16), np.empty((HEIGHT, WIDTH), np.int16)
    a, b, out = gray.copy(), gray.copy(), gray.copy()

    def work():
        luma = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY, dst=gray) if picture.ndim == 3 else picture
        cv2.Sobel(luma, cv2.CV_16S, 1, 0, dst=x)
        cv2.Sobel(luma, cv2.CV_16S, 0, 1, dst=y)
        cv2.add(cv2.convertScaleAbs(x, dst=a), cv2.convertScaleAbs(y, dst=b), dst=out)
    return work


CODES = {("rgb", "gray"): cv2.COLOR_RGB2GRAY, ("rgb", "bgr"): cv2.COLOR_RGB2BGR, ("rgb", "rgba"): cv2.COLOR_RGB2RGBA,
         ("rgba", "rgb"): cv2.COLOR_RGBA2RGB, ("rgba", "bgra"): cv2.COLOR_RGBA2BGRA, ("rgba", "gray"): cv2.COLOR_RGBA2GRAY,
         ("gray", "rgb"): cv2.COLOR_GRAY2RGB, ("gray", "rgba"): cv2.COLOR_GRAY2RGBA, ("rgb", "i420"): cv2.COLOR_RGB2YUV_I420,
         ("rgba", "i420"): cv2.COLOR_RGBA2YUV_I420, ("i420", "rgb"): cv2.COLOR_YUV2RGB_I420, ("nv12", "rgb"): cv2.COLOR_YUV2RGB_NV12,
         ("nv12", "bgra"): cv2.COLOR_YUV2BGRA_NV12}


def rows():
    """(name, operator, parameters, picture, OpenCV's work)"""
    of = pictures()
    for kind, width, height in (("rgb", 224, 224), ("rgb", 320, 240), ("rgb", 416, 416), ("rgb", 1280, 960), ("rgb", 100, 100),
                                ("gray", 224, 224), ("gray", 1280, 960), ("rgba", 300, 300)):
        yield (f"resize {kind} to {width} x {height}", "resize", f'{{"width": {width}, "height": {height}}}', of[kind],
               resized(of[kind], width, height))
    for kind, means in (("rgb", "[0.485, 0.456, 0.406]"), ("gray", "0.485")):
        for by_table in (True, False):
            yield (f"normalize {kind}, {'a table' if by_table else 'floats'}", "normalize", f'{{"mean": {means}, "std": 0.225}}', of[kind],
                   normalized(of[kind], by_table))
    for (kind, to), code in CODES.items():
        yield f"convert {kind} to {to}", "convert", f'{{"from": "{kind}", "to": "{to}"}}', of[kind], converted(of[kind], code)
    for kind, radius in (("rgb", 1), ("rgb", 2), ("rgb", 3), ("rgb", 15), ("gray", 3)):
        yield f"blur {kind}, radius {radius}", "blur", f'{{"radius": {radius}}}', of[kind], blurred(of[kind], radius)
    for kind in ("rgb", "gray"):
        yield f"sobel {kind}", "sobel", "{}", of[kind], sobel(of[kind])


def by_weir(program, operator, parameters, picture, calls):
    shape = [*picture.shape, 1][:3]
    ended = subprocess.run([program, operator, parameters, *map(str, shape), str(calls)], capture_output=True, text=True)
    if ended.returncode:
        sys.exit(ended.stderr)
    return float(ended.stdout)


def by_opencv(work, calls):
    taken = []
    for _ in range(calls + 3):
        begun = time.thread_time_ns()
        work()
        taken.append((time.thread_time_ns() - begun) / 1e3)
    return statistics.median(taken[3:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("operator", nargs="?")
    given = parser.parse_args()
    cv2.setNumThreads(1)
    chosen = [row for row in rows() if given.operator in (None, row[1])]
    taken = [[] for _ in chosen]
    for _ in range(given.rounds):
        for (_, *call, work), times in zip(chosen, taken):
            first = by_weir(given.build / "bench/operators", *call, given.calls)
            other = by_opencv(work, given.calls)
            times.append((first, other, by_weir(given.build / "bench/operators", *call, given.calls)))
    print(f"OpenCV {cv2.__version__}, pictures of {WIDTH} x {HEIGHT}, {given.rounds} rounds; µs: medians; A/A: middle half of weir by weir")
    print(f"{'':32}{'weir':>8}{'OpenCV':>8}{'ratio':>7}   A/A")
    for (name, *_), times in zip(chosen, taken):
        weir, other = statistics.median(a + b for a, _, b in times) / 2, statistics.median(peer for _, peer, _ in times)
        ratio = statistics.median((a + b) / 2 / peer for a, peer, b in times)
        spread = sorted(a / b for a, _, b in times)
        print(f"{name:32}{weir:8.1f}{other:8.1f}{ratio:7.2f}   {spread[len(spread) // 4]:.2f} to {spread[-1 - len(spread) // 4]:.2f}")


main()
