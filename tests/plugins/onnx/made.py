"""Small networks, some of them wrong in one way, for the tests of plugins/onnx."""
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, UINT8, INT64, STRING = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT64, TensorProto.STRING


def save(path, nodes, inputs, outputs, constants=()):
    """inputs, outputs: {name: (type, shape)}; constants: {name: array}."""
    ports = [[helper.make_tensor_value_info(name, *port) for name, port in side.items()] for side in (inputs, outputs)]
    constants = [numpy_helper.from_array(numpy.asarray(array), name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "made", *ports, constants)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)


def relu(path, shape):
    save(path, [helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, shape)}, {"y": (FLOAT, shape)})


def two_inputs(path):
    """The names of both inputs say one size; one output is not connected in the tests, and has a name that weir has not."""
    nodes = [helper.make_node("Add", ["x", "z"], ["y"]), helper.make_node("Sub", ["x", "z"], ["less:0"])]
    shape = (FLOAT, ["n", 4])
    save(path, nodes, {"x": shape, "z": shape}, {"y": shape, "less:0": shape})


def one_row(path):
    """Whatever the batch, one row comes out."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[0])]
    save(path, nodes, {"x": (FLOAT, ["n", 4])}, {"y": (FLOAT, [1, 4])})


def bytes_in(path):
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=FLOAT)]
    save(path, nodes, {"x": (UINT8, [1, 4])}, {"y": (FLOAT, [1, 4])})


def texts(path):
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    save(path, nodes, {"x": (STRING, [1])}, {"y": (STRING, [1])})


def open_output(path):
    """How much comes out only a run tells: those that are above 1."""
    nodes = [
        helper.make_node("Greater", ["x", "one"], ["mask"]),
        helper.make_node("Compress", ["x", "flat"], ["y"], axis=0),
        helper.make_node("Reshape", ["mask", "whole"], ["flat"]),
    ]
    nodes = [nodes[0], nodes[2], nodes[1]]
    save(path, nodes, {"x": (FLOAT, [4])}, {"y": (FLOAT, ["some"])}, {"one": numpy.float32(1), "whole": [4]})


def outside_weights(path):
    """The weights lie in another file, which the runtime would open by itself."""
    weights = numpy.ones((1, 4), numpy.float32)
    save(path, [helper.make_node("Add", ["x", "w"], ["y"])], {"x": (FLOAT, [1, 4])}, {"y": (FLOAT, [1, 4])}, {"w": weights})
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)


def fails(path):
    """Fails in the run if the numbers of a frame do not add up to 4: the shapes of a sum do not fit then."""
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["whole"], keepdims=0),
        helper.make_node("Range", ["zero", "whole", "one"], ["range"]),
        helper.make_node("Add", ["x", "range"], ["sum"]),
        helper.make_node("ReduceSum", ["sum"], ["total"], keepdims=0),
        helper.make_node("Reshape", ["total", "row"], ["y"]),
    ]
    constants = {"zero": numpy.float32(0), "one": numpy.float32(1), "row": [1, 1]}
    save(path, nodes, {"x": (FLOAT, [1, 4])}, {"y": (FLOAT, [1, 1])}, constants)


def convolutions(path, layers, channels=256, side=64, rows=1):
    """Each layer computes for 20 ms or more on one core."""
    weights = numpy.random.default_rng(1).standard_normal((channels, channels, 3, 3)).astype(numpy.float32) * 0.04
    names = ["x"] + [f"layer{i}" for i in range(layers - 1)] + ["y"]
    nodes = [helper.make_node("Conv", [names[i], "weights"], [names[i + 1]], pads=[1, 1, 1, 1]) for i in range(layers)]
    shape = (FLOAT, [rows, channels, side, side])
    save(path, nodes, {"x": shape}, {"y": shape}, {"weights": weights})
