"""Frames/s of requests.py, requests_onnx.py or requests_torch.py beside the library's own way, in turns, on the CPU:

    python3 examples/python/requests_measure.py [openvino|onnx|torch [FRAMES [TURNS]]]

The own way: OpenVINO's AsyncInferQueue, ONNX Runtime's run_async behind a semaphore, torch in a pool of threads. The results are compared.
"""

import importlib.util
import pathlib
import statistics
import sys
import threading
import time

import numpy as np
import weir


def load(name):
    spec = importlib.util.spec_from_file_location(f"weir_{name}", pathlib.Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # the name `requests` is that of another package
    return module


def openvino_queue(example):
    """OpenVINO's AsyncInferQueue: results come in any order, and are put in theirs."""
    import openvino

    compiled = openvino.compile_model(example.network(), "CPU", {"NUM_STREAMS": example.REQUESTS})

    def run(frames):
        results = [None] * len(frames)
        requests = openvino.AsyncInferQueue(compiled, example.REQUESTS)
        requests.set_callback(lambda request, i: results.__setitem__(i, request.get_output_tensor(0).data.copy()))
        for i, frame in enumerate(frames):
            requests.start_async({0: frame}, i, share_inputs=True)
        requests.wait_all()
        return results

    return run


def onnx_runs(example):
    """ONNX Runtime's asynchronous runs, of the example's own session."""
    operator = example.InferOnnx()
    operator.start(None)

    def run(frames):
        results, free = [None] * len(frames), threading.Semaphore(example.REQUESTS)

        def done(found, i, error):
            results[i] = found[0]
            free.release()

        for i, frame in enumerate(frames):
            free.acquire()
            operator.session.run_async(None, {"frame": frame}, done, i)
        for _ in range(example.REQUESTS):
            free.acquire()
        return results

    return run


def torch_pool(example):
    """torch in a pool of threads, which keep the order."""
    import torch

    operator = example.InferTorch()
    operator.start(None)
    return lambda frames: [result.numpy() for result in operator.pool.map(operator.model, map(torch.from_numpy, frames))]


LIBRARIES = {"openvino": ("requests", "Infer", openvino_queue), "onnx": ("requests_onnx", "InferOnnx", onnx_runs),
             "torch": ("requests_torch", "InferTorch", torch_pool)}


def through(graph, inlet, outlet, frames):
    """Results by weir, and the seconds they took; the start is not one of them, as it compiles the network."""
    graph.start()
    begun = time.perf_counter()

    def push():
        for frame in frames:
            inlet.push(frame)
        inlet.close()

    thread = threading.Thread(target=push)
    thread.start()
    results = [np.asarray(message) for message in outlet]
    thread.join()
    taken = time.perf_counter() - begun
    graph.wait()
    return results, taken


def main(library="openvino", count=200, turns=5):
    name, operator, other = LIBRARIES[library]
    example, count = load(name), int(count)
    random = np.random.default_rng(2)
    frames = [random.standard_normal((1, 3, 160, 160), np.float32) for _ in range(count)]
    run, rates = other(example), []
    with weir.Graph() as graph:
        infer = graph.add(operator, max_in_flight=example.REQUESTS)
        ends = graph.inlet(infer), graph.outlet(infer, capacity=2 * example.REQUESTS)
        for _ in range(int(turns)):
            begun = time.perf_counter()
            wanted = run(frames)
            own = time.perf_counter() - begun
            found, taken = through(graph, *ends, frames)
            assert len(found) == count and all(np.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(wanted, found))
            rates.append((count / own, count / taken, own / taken))
    own, weirs = (max(column) for column in list(zip(*rates))[:2])
    print(f"{library}'s own way {own:.0f} frames/s, weir {weirs:.0f}: {weirs / own:.3f}; in pairs {statistics.median(rate[2] for rate in rates):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
