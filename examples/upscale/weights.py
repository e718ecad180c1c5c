#!/usr/bin/env python3
"""
Makes weights.h: trains the network of upscale.h on photographs and prints its weights, in integers. Needs
numpy and Pillow. The same versions of both give the same file.

    python3 examples/upscale/weights.py examples/images/*.png > examples/upscale/weights.h

Each photograph is halved (mean of 2 x 2 pixels); the network learns what linear interpolation of the half
lacks. Training works on floats and on the inside of the picture only, so no edge has to be made up.
"""
import sys

import numpy as np
from PIL import Image

LAYERS = ((5, 3, 16), (3, 16, 16), (3, 16, 12))  # side, channels in, channels out
STEPS, PATCH, BATCH, RATE = 3000, 40, 8, 2e-3
MARGIN = sum(side // 2 for side, _, _ in LAYERS)


def halved(picture):
    sums = picture.astype(np.int32)
    sums = sums[0::2] + sums[1::2]
    sums = sums[:, 0::2] + sums[:, 1::2]
    return ((sums + 2) >> 2).astype(np.uint8)


def interpolated(half):
    """The linear interpolation of upscale.h, in integers; the edge is repeated."""
    p = np.pad(half.astype(np.int32), ((1, 1), (1, 1), (0, 0)), "edge")
    height, width = half.shape[:2]
    out = np.empty((2 * height, 2 * width, 3), np.int32)
    for dy in (0, 1):
        for dx in (0, 1):
            near = p[1:-1, 1:-1]
            across = p[1:-1, 2 * dx:2 * dx + width]
            down = p[2 * dy:2 * dy + height, 1:-1]
            far = p[2 * dy:2 * dy + height, 2 * dx:2 * dx + width]
            out[dy::2, dx::2] = (9 * near + 3 * across + 3 * down + far + 8) >> 4
    return out


def columns(x, side):
    """[batch, y, x, c] -> [batch, y', x', side * side * c], the inside only."""
    height, width = x.shape[1] - side + 1, x.shape[2] - side + 1
    return np.concatenate([x[:, i:i + height, j:j + width] for i in range(side) for j in range(side)], axis=3)


def forward(x, weights):
    """The activations before each layer, as columns, and the last layer's output."""
    kept = []
    for index, ((side, _, _), (w, b)) in enumerate(zip(LAYERS, weights)):
        cols = columns(x, side)
        y = cols @ w + b
        kept.append((cols, y))
        x = np.clip(y, 0, 1) if index < len(LAYERS) - 1 else y
    return kept, x


def backward(kept, gradient, weights):
    gradients = [None] * len(LAYERS)
    for index in reversed(range(len(LAYERS))):
        side, inside, _ = LAYERS[index]
        cols, y = kept[index]
        if index < len(LAYERS) - 1:
            gradient = gradient * ((y > 0) & (y < 1))
        flat = gradient.reshape(-1, gradient.shape[3])
        gradients[index] = (cols.reshape(flat.shape[0], -1).T @ flat, flat.sum(axis=0))
        if index:
            back = gradient @ weights[index][0].T
            batch, height, width = back.shape[:3]
            out = np.zeros((batch, height + side - 1, width + side - 1, inside))
            for k in range(side * side):
                i, j = divmod(k, side)
                out[:, i:i + height, j:j + width] += back[..., k * inside:(k + 1) * inside]
            gradient = out
    return gradients


def patches(samples, random):
    """BATCH patches of the halves, and what interpolation lacks in their inside: 12 numbers a pixel."""
    xs, ys = [], []
    for _ in range(BATCH):
        half, lacks = samples[random.integers(len(samples))]
        y, x = (random.integers(half.shape[i] - PATCH) for i in (0, 1))
        xs.append(half[y:y + PATCH, x:x + PATCH])
        ys.append(lacks[y + MARGIN:y + PATCH - MARGIN, x + MARGIN:x + PATCH - MARGIN])
    x, y = np.stack(xs), np.stack(ys)
    if random.integers(2):
        x, y = x[:, :, ::-1], mirrored(y[:, :, ::-1])
    return x, y


def mirrored(y):
    """Left and right of each pixel's four change places."""
    return y.reshape(*y.shape[:3], 3, 2, 2)[..., ::-1].reshape(y.shape)


def four(picture):
    """[2h, 2w, 3] -> [h, w, 12]: colour, then row, then column within the pixel."""
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    return picture.reshape(height, 2, width, 2, 3).transpose(0, 2, 4, 1, 3).reshape(height, width, 12)


def train(samples):
    random = np.random.default_rng(1)
    weights = [[random.normal(0, 1 / np.sqrt(side * side * a), (side * side * a, b)), np.full(b, 0.05)]
               for side, a, b in LAYERS]
    weights[-1][0] *= 0.1
    weights[-1][1] *= 0
    moments = [[[np.zeros_like(p), np.zeros_like(p)] for p in layer] for layer in weights]
    for step in range(1, STEPS + 1):
        x, wanted = patches(samples, random)
        kept, got = forward(x, weights)
        gradients = backward(kept, 2 * (got - wanted) / got.shape[0] / got.shape[1] / got.shape[2], weights)
        rate = RATE * min(1, 2 * (1 - step / (STEPS + 1)))
        for layer, gradient, moment in zip(weights, gradients, moments):
            for p, g, m in zip(layer, gradient, moment):
                m[0] = 0.9 * m[0] + 0.1 * g
                m[1] = 0.999 * m[1] + 0.001 * g * g
                p -= rate * (m[0] / (1 - 0.9 ** step)) / (np.sqrt(m[1] / (1 - 0.999 ** step)) + 1e-8)
                np.clip(p, -1.9, 1.9, out=p)
    return weights


def quantized(weights):
    """int8 weights, int32 biases and a shift per layer; upscale.h says what is computed with them."""
    before, after, result = 128, 127, []
    for index, (w, b) in enumerate(weights):
        if index == len(weights) - 1:
            after = 255
        shift = 0
        while np.abs(w).max() * after * 2 ** (shift + 1) / before <= 127:
            shift += 1
        scale = after * 2 ** shift / before
        result.append((np.rint(w * scale).astype(np.int32), np.rint(b * scale * before).astype(np.int32), shift))
        before = after
    return result


def upscaled(half, layers):
    """The network as upscale.h computes it."""
    x = half.astype(np.int32)[None] - 128
    for index, ((side, _, _), (w, b, shift)) in enumerate(zip(LAYERS, layers)):
        reach = side // 2
        x = np.pad(x, ((0, 0), (reach, reach), (reach, reach), (0, 0)), "edge")
        x = (columns(x, side) @ w + b + (1 << shift >> 1)) >> shift
        if index < len(LAYERS) - 1:
            x = np.clip(x, 0, 127)
    height, width = half.shape[:2]
    lacks = x[0].reshape(height, width, 3, 2, 2).transpose(0, 3, 1, 4, 2).reshape(2 * height, 2 * width, 3)
    return np.clip(interpolated(half) + lacks, 0, 255)


def decibels(picture, other):
    return 10 * np.log10(255 ** 2 / np.mean((picture.astype(float) - other) ** 2))


def print_weights(layers):
    print("/* Made by weights.py from examples/images; the names are explained in upscale.h. */")
    print("/* clang-format off */")
    for number, ((side, inside, outside), (w, b, shift)) in enumerate(zip(LAYERS, layers), 1):
        padded = np.zeros((side * side, -(-inside // 4) * 4, outside), np.int32)
        padded[:, :inside] = w.reshape(side * side, inside, outside)
        rows = padded.transpose(0, 2, 1)  # [tap][out][in]: four inputs of one output are one 32-bit word
        print(f"enum {{ SHIFT_{number} = {shift} }};")
        print(f"WEIGHTS int32_t bias_{number}[{outside}] = {{" + ", ".join(map(str, b)) + "};")
        print(f"WEIGHTS int8_t weights_{number}[{side * side}][{outside}][{padded.shape[1]}] = {{")
        for tap in rows:
            print("\t{" + ", ".join("{" + ", ".join(map(str, out)) + "}" for out in tap) + "},")
        print("};")


def main():
    samples, originals = [], []
    for path in sys.argv[1:]:
        picture = np.asarray(Image.open(path).convert("RGB"))
        picture = picture[:picture.shape[0] // 2 * 2, :picture.shape[1] // 2 * 2]
        half = halved(picture)
        lacks = four(picture.astype(np.int32) - interpolated(half))
        samples.append(((half.astype(float) - 128) / 128, lacks / 255))
        originals.append((path, picture, half))
    layers = quantized(train(samples))
    for path, picture, half in originals:
        print(f"{path}: {decibels(interpolated(half), picture):.2f} dB interpolated, "
              f"{decibels(upscaled(half, layers), picture):.2f} dB by the network", file=sys.stderr)
    print_weights(layers)


main()
