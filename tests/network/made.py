"""Small networks, most of them wrong in one way, for the tests of examples/network."""
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8


def save(path, nodes, inputs, outputs, constants=()):
    """inputs, outputs: {name: (type, shape)}; constants: {name: array}."""
    ports = [[helper.make_tensor_value_info(name, *port) for name, port in side.items()] for side in (inputs, outputs)]
    constants = [numpy_helper.from_array(numpy.asarray(array), name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "made", *ports, constants)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)


def relu(path, shape_in, shape_out=None):
    save(path, [helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, shape_in)}, {"y": (FLOAT, shape_out or shape_in)})


def two_inputs(path):
    save(path, [helper.make_node("Add", ["x", "z"], ["y"])], {"x": (FLOAT, [1, 4]), "z": (FLOAT, [1, 4])}, {"y": (FLOAT, [1, 4])})


def one_row(path):
    """Whatever the batch, one row comes out."""
    save(path, [helper.make_node("ReduceMean", ["x"], ["y"], axes=[0])], {"x": (FLOAT, [1, 4])}, {"y": (FLOAT, [1, 4])})


def bytes_in(path):
    save(path, [helper.make_node("Cast", ["x"], ["y"], to=FLOAT)], {"x": (UINT8, [1, 4])}, {"y": (FLOAT, [1, 4])})


def fails(path):
    """Fails in the inference if the numbers of a frame do not add up to 4: the shapes of a sum do not fit then."""
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["whole"], keepdims=0),
        helper.make_node("Range", ["zero", "whole", "one"], ["range"]),
        helper.make_node("Add", ["x", "range"], ["sum"]),
        helper.make_node("ReduceSum", ["sum"], ["total"], keepdims=0),
        helper.make_node("Reshape", ["total", "row"], ["y"]),
    ]
    constants = {"zero": numpy.float32(0), "one": numpy.float32(1), "row": [1, 1]}
    save(path, nodes, {"x": (FLOAT, [1, 4])}, {"y": (FLOAT, [1, 1])}, constants)


def slow(path, layers=25, channels=256, side=64):
    """Computes for a third of a second on one core."""
    weights = numpy.random.default_rng(1).standard_normal((channels, channels, 3, 3)).astype(numpy.float32) * 0.04
    names = ["x"] + [f"layer{i}" for i in range(layers - 1)] + ["y"]
    nodes = [
        helper.make_node("Conv", [names[i], "weights"], [names[i + 1]], pads=[1, 1, 1, 1]) for i in range(layers)
    ]
    shape = [1, channels, side, side]
    save(path, nodes, {"x": (FLOAT, shape)}, {"y": (FLOAT, shape)}, {"weights": weights})
