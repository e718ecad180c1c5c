"""Frames through a network by ONNX Runtime's asynchronous runs, several under way at once, in order: pip install onnxruntime onnx"""
from concurrent.futures import Future
import numpy as np
import onnx
import onnxruntime
import weir
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

REQUESTS = 4


def network(size: int = 160, seed: int = 1) -> onnx.ModelProto:
    """Three convolutions with weights from a seed, and the mean of each channel."""
    random, nodes, weights, at = np.random.default_rng(seed), [], [], "frame"
    for i, (inputs, outputs) in enumerate([(3, 32), (32, 64), (64, 64)]):
        kernel = random.standard_normal((outputs, inputs, 3, 3), np.float32) / np.float32(np.sqrt(9 * inputs))
        weights.append(onnx.numpy_helper.from_array(kernel, f"kernel{i}"))
        nodes += [make_node("Conv", [at, f"kernel{i}"], [f"sum{i}"], pads=[1] * 4), make_node("Relu", [f"sum{i}"], [at := f"layer{i}"])]
    nodes += [make_node("GlobalAveragePool", [at], ["mean"]), make_node("Flatten", ["mean"], ["means"])]
    ends = [make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in [("frame", [1, 3, size, size]), ("means", [1, 64])]]
    return make_model(make_graph(nodes, "network", ends[:1], ends[1:], weights), opset_imports=[make_opsetid("", 17)], ir_version=8)


@weir.operator
class InferOnnx:
    inputs, outputs = [weir.Port("in", capacity=2 * REQUESTS)], ["out"]

    def start(self, ctx: weir.Context) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = REQUESTS + 1  # an asynchronous run takes one of them
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # these threads do not keep a core busy while they wait
        self.session = onnxruntime.InferenceSession(network().SerializeToString(), options, ["CPUExecutionProvider"])

    def compute(self, ctx: weir.Context) -> None:
        frame, future = np.asarray(ctx.receive("in")), Future[np.ndarray]()
        self.session.run_async(None, {"frame": frame}, self.done, (future, frame))  # the frame stays as long as the run
        ctx.emit("out", future)

    def done(self, results: list[np.ndarray], given: tuple[Future[np.ndarray], np.ndarray], error: str) -> None:  # on a thread of ONNX Runtime's
        given[0].set_exception(RuntimeError(error)) if error else given[0].set_result(results[0])
