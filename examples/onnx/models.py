#!/usr/bin/env python3
"""Writes squeezenet.onnx: the network that the package `onnx` ships without weights, with seeded random ones.

    models.py FOLDER

With weights that are all alike, as shipped, each picture gives the same result. With random ones results mean
nothing either, but each picture has its own, so that a wrong byte or a swapped frame is seen.
"""
import os
import sys

import numpy
import onnx
from onnx import numpy_helper


def light(name):
    """The path of a network that the package ships."""
    return os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/light", f"light_{name}.onnx")


def random_weights(shape, random):
    """Of a layer: scaled so that values neither vanish nor explode from layer to layer."""
    inputs = numpy.prod(shape[1:]) if len(shape) > 1 else 1
    scale = numpy.sqrt(2 / inputs) if len(shape) > 1 else 0.1
    return (random.standard_normal(shape) * scale).astype(numpy.float32)


def with_weights(path, seed=1):
    """The network with a random constant in place of each one that is filled with a single number."""
    model, random = onnx.load(path), numpy.random.default_rng(seed)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            weights = random_weights(tuple(shapes[node.input[0]]), random)
            model.graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
        else:
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: models.py FOLDER")
    os.makedirs(sys.argv[1], exist_ok=True)
    onnx.save(with_weights(light("squeezenet")), os.path.join(sys.argv[1], "squeezenet.onnx"))
