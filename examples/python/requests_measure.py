"""Frames/s of requests.py beside OpenVINO's own queue, in turns: python3 examples/python/requests_measure.py [FRAMES [TURNS]]"""

import importlib.util
import pathlib
import sys
import threading
import time

import numpy as np
import openvino
import weir

spec = importlib.util.spec_from_file_location("weir_requests", pathlib.Path(__file__).with_name("requests.py"))
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)  # the name `requests` is that of another package

GRAPH = {
    "weir": 1,
    "entities": [{"name": "infer", "operator": "Infer", "max_in_flight": example.REQUESTS}],
    "inlets": ["infer.in"],
    "outlets": [{"port": "infer.out", "capacity": 2 * example.REQUESTS}],
}


def by_queue(frames):
    """OpenVINO's AsyncInferQueue: results come in any order, and are put in theirs."""
    results, begun = [None] * len(frames), time.perf_counter()
    requests = openvino.AsyncInferQueue(by_queue.compiled, example.REQUESTS)
    requests.set_callback(lambda request, i: results.__setitem__(i, request.get_output_tensor(0).data.copy()))
    for i, frame in enumerate(frames):
        requests.start_async({0: frame}, i, share_inputs=True)
    requests.wait_all()
    return results, time.perf_counter() - begun


def by_weir(frames):
    by_weir.graph.start()  # which compiles the network
    begun = time.perf_counter()

    def push():
        for frame in frames:
            by_weir.inlet.push(frame)
        by_weir.inlet.close()

    thread = threading.Thread(target=push)
    thread.start()
    results = [np.asarray(message) for message in by_weir.outlet]
    thread.join()
    taken = time.perf_counter() - begun
    by_weir.graph.wait()
    return results, taken


def main(count=200, turns=5):
    random = np.random.default_rng(2)
    frames = [random.standard_normal((1, 3, 160, 160), np.float32) for _ in range(count)]
    by_queue.compiled = openvino.compile_model(example.network(), "CPU", {"NUM_STREAMS": example.REQUESTS})
    by_weir.graph = weir.Graph(GRAPH)
    by_weir.inlet, by_weir.outlet = by_weir.graph.inlet("infer.in"), by_weir.graph.outlet("infer.out")
    best = {}
    for _ in range(turns):
        results = {}
        for way in by_queue, by_weir:
            results[way], taken = way(frames)
            best[way] = max(count / taken, best.get(way, 0))
        assert len(results[by_weir]) == count
        assert all(np.allclose(a, b, rtol=1e-4) for a, b in zip(results[by_queue], results[by_weir]))
    by_weir.graph.close()
    print(f"OpenVINO's queue {best[by_queue]:.0f} frames/s, weir {best[by_weir]:.0f}: {best[by_weir] / best[by_queue]:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
