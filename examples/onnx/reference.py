#!/usr/bin/env python3
"""The steps of classify.json without weir: NumPy and ONNX Runtime's Python package, one frame after the other.

    reference.py MODEL WIDTH HEIGHT <FRAMES >RESULTS

FRAMES: raw pictures, red, green and blue bytes (ffmpeg's rgb24). RESULTS: the output of the network for each,
as it is in memory. The five best classes of each go to stderr. tests/plugins/onnx compares RESULTS with weir's,
which are the same bytes.
"""
import sys

import numpy
import onnxruntime

SIZE = 224  # of the pictures that the network takes
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def taps(size, source):
    """For each of `size` places: two places in the source, and the part of the second in 2048ths (docs/operators.md)."""
    places = ((2 * numpy.arange(size) + 1) * source - size) * 2048 + size
    places = numpy.minimum(numpy.maximum(places, 0) // (2 * size), 2048 * (source - 1))
    first = places // 2048
    return first, numpy.minimum(first + 1, source - 1), places % 2048


def resize(picture, height, width):
    picture = picture.astype(numpy.int64)
    above, below, part = taps(height, picture.shape[0])
    part = part[:, None, None]
    mixed = ((2048 - part) * picture[above] + part * picture[below] + 8) // 16
    left, right, part = taps(width, picture.shape[1])
    part = part[:, None]
    return ((2048 - part) * mixed[:, left] + part * mixed[:, right] + 131072) // 262144


def normalize(picture):
    """As docs/operators.md has it: doubles, rounded once."""
    return ((picture.astype("f8") / 255 - MEAN) / STD).astype("f4").transpose(2, 0, 1)[None]


def network(model):
    """A function from frames [1, 3, SIZE, SIZE] to results."""
    session = onnxruntime.InferenceSession(model)
    return lambda frame: session.run(None, {session.get_inputs()[0].name: frame})[0]


def classify(run, picture):
    return run(numpy.ascontiguousarray(normalize(resize(picture, SIZE, SIZE))))


def best(result, count=5):
    """(class, value) of the largest values; of equal ones the first class comes first."""
    values = result.ravel()
    return [(int(index), values[index]) for index in numpy.argsort(-values, kind="stable")[:count]]


def main(model, width, height):
    run, bytes_of_frame = network(model), width * height * 3
    while frame := sys.stdin.buffer.read(bytes_of_frame):
        result = classify(run, numpy.frombuffer(frame, numpy.uint8).reshape(height, width, 3))
        sys.stdout.buffer.write(result.tobytes())
        print(*(f"{index} {value:.4g}" for index, value in best(result)), sep="\n", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: reference.py MODEL WIDTH HEIGHT <FRAMES >RESULTS")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
