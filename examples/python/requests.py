"""Frames through a network by OpenVINO's asynchronous requests, several under way at once, in order: pip install openvino"""
import concurrent.futures
import queue
import numpy as np
import openvino
import weir
from openvino import opset13 as layers

REQUESTS = 4


def network(size=160, seed=1):
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

    def start(self, ctx):
        compiled, self.free = openvino.compile_model(network(), "CPU", {"NUM_STREAMS": REQUESTS}), queue.SimpleQueue()
        for _ in range(REQUESTS):  # as many as max_in_flight, so that one is always free
            self.free.put(compiled.create_infer_request())

    def compute(self, ctx):
        request, future = self.free.get(), concurrent.futures.Future()
        request.set_callback(lambda _: self.done(request, future), None)  # on a thread of OpenVINO's
        request.start_async({0: np.asarray(ctx.receive("in"))}, share_inputs=True)
        ctx.emit("out", future)

    def done(self, request, future):
        result = request.get_output_tensor(0).data.copy()
        self.free.put(request)
        future.set_result(result)
