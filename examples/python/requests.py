"""Frames through a network by OpenVINO's asynchronous requests, several under way at once, in order: pip install openvino"""
import queue
from concurrent.futures import Future
import numpy as np
import openvino
import weir
from openvino import opset13 as layers

REQUESTS = 4


def network(size: int = 160, seed: int = 1) -> openvino.Model:
    """Three convolutions with weights from a seed, and the mean of each channel."""
    random, frame = np.random.default_rng(seed), layers.parameter([1, 3, size, size], np.float32)
    x = frame
    for inputs, outputs in (3, 32), (32, 64), (64, 64):
        kernel = random.standard_normal((outputs, inputs, 3, 3), np.float32) / np.float32(np.sqrt(9 * inputs))
        x = layers.relu(layers.convolution(x, kernel, [1, 1], [1, 1], [1, 1], [1, 1]))
    return openvino.Model([layers.reduce_mean(x, np.array([2, 3]), False)], [frame])


@weir.operator
class Infer:
    inputs, outputs = [weir.Port("in", capacity=2 * REQUESTS)], ["out"]

    def start(self, ctx: weir.Context) -> None:
        compiled, self.free = openvino.compile_model(network(), "CPU", {"NUM_STREAMS": REQUESTS}), queue.SimpleQueue[openvino.InferRequest]()
        for _ in range(REQUESTS):  # as many as max_in_flight, so that one is always free
            self.free.put(compiled.create_infer_request())

    def compute(self, ctx: weir.Context) -> None:
        request, future = self.free.get(), Future[np.ndarray]()
        request.set_callback(lambda _: self.done(request, future), None)  # on a thread of OpenVINO's
        request.start_async({0: np.asarray(ctx.receive("in"))}, share_inputs=True)
        ctx.emit("out", future)

    def done(self, request: openvino.InferRequest, future: Future[np.ndarray]) -> None:
        result = request.get_output_tensor(0).data.copy()
        self.free.put(request)
        future.set_result(result)
