#!/usr/bin/env python3
"""Batches before a network under the Server scenario of MLPerf's LoadGen: queries of one sample come at random times (Poisson), and the
99th percentile of their latency counts.

    loadgen.py [--library numpy|torch] [--backend host|cuda] [--batch N] [--delay MS] [--seconds S] [--width N] [--layers N] [--quick]

LoadGen (PyPI: mlcommons-loadgen) is a client: its thread pushes each query into an inlet, a thread takes answers from an outlet and
completes them. Between them is one entity, a perceptron whose condition `expiring_message_available` gathers up to --batch queries for at
most --delay. Printed: how long a batch of one and a full one take by themselves; at half of the rate that full batches would reach, the 99th
percentile beside twice the service of a full batch + 6 ms; and the highest rate that keeps that bound, with batches and with one at a time.
Exit code 77: no LoadGen.
"""
import argparse
import array
import collections
import importlib
import os
import pathlib
import re
import sys
import tempfile
import threading
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import numpy as np  # noqa: E402

import weir  # noqa: E402

try:
    import mlperf_loadgen as loadgen
except ImportError:
    print("skipped: no mlcommons-loadgen")
    sys.exit(77)

SAMPLES = 256  # different ones
WARM = 2**64 - 1  # the number of a query before the test
MORE = 6e-3  # s beside twice the service of a full batch: the pace of both threads, and the first query's wait


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=["numpy", "torch"], default="numpy")
    parser.add_argument("--backend", choices=["host", "cuda"], default="host")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--delay", type=float, default=2, help="ms from the push of the oldest query")
    parser.add_argument("--in-flight", type=int, default=1, help="batches that the device has at a time: each adds its service to a latency")
    parser.add_argument("--seconds", type=float, default=3, help="of each test")
    parser.add_argument("--width", type=int, default=1024, help="numbers of a sample, and units of a layer")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="whether it runs at all")
    given = parser.parse_args()
    if given.quick:
        given.seconds, given.width, given.layers, given.batch = 0.2, 64, 2, 4
    return given


class Numpy:
    def __init__(self, weights, samples):
        self.weights, self.samples = weights, samples

    def answer(self, indices, out):
        rows = self.samples[indices]
        for weight in self.weights:
            rows = np.maximum(rows @ weight, 0)
        np.asarray(out)[:] = rows[:, :8]

    def finish(self):
        pass


class Torch:
    """On the current stream of torch; samples lie in pinned memory, as a driver would leave them."""

    def __init__(self, weights, samples, cuda):
        self.torch = importlib.import_module("torch")
        self.device = "cuda" if cuda else "cpu"
        self.weights = [self.torch.from_numpy(weight).to(self.device) for weight in weights]
        self.samples = self.torch.from_numpy(samples)
        self.stages = self.torch.empty((SAMPLES, 64, samples.shape[1]), pin_memory=cuda)  # used again after so many batches
        self.at = 0

    def answer(self, indices, out):
        self.at = (self.at + 1) % SAMPLES
        stage = self.stages[self.at, : len(indices)]
        self.torch.index_select(self.samples, 0, self.torch.tensor(indices), out=stage)
        rows = stage.to(self.device, non_blocking=True)
        for weight in self.weights:
            rows = self.torch.relu(rows @ weight)
        self.torch.from_dlpack(out).copy_(rows[:, :8], non_blocking=True)

    def finish(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()


class Network:
    """Answers all queries that a tick receives; the numbers of these queries go beside the array, in the same order."""

    inputs, outputs = ["in"], ["out"]

    def __init__(self, model, sent, sizes):
        self.model, self.sent, self.sizes = model, sent, sizes

    def compute(self, ctx):
        queries = [np.asarray(message).tolist() for message in ctx.receive_all("in")]
        indices = [index for _, index in queries]
        out = ctx.empty((len(queries), 8), np.float32, on_host=True)
        with ctx.stream:  # torch's current one, too
            self.model.answer(indices, out)
        self.sizes[len(queries)] += 1
        self.sent.append(queries)
        ctx.emit("out", out)


def complete(outlet, sent, right, warmed):
    """Runs on a thread of its own until the outlet is closed. right: the answers to compare with, or None. warmed: is released for each query
    of the warm-up."""
    for message in outlet:
        answers, queries = np.array(message), sent.popleft()
        if right is not None and not np.allclose(answers, right[[index for _, index in queries]], rtol=1e-4, atol=1e-5):
            print("loadgen.py: a wrong answer", file=sys.stderr, flush=True)
            os._exit(1)  # LoadGen would wait for ever for the others
        responses, kept = [], []
        for (number, _), row in zip(queries, answers):
            if number == WARM:
                warmed.release()
                continue
            kept.append(array.array("B", row.tobytes()))
            address, count = kept[-1].buffer_info()
            responses.append(loadgen.QuerySampleResponse(number, address, count))
        if responses:
            loadgen.QuerySamplesComplete(responses)


def settings_for(rate, bound, seconds):
    settings = loadgen.TestSettings()
    settings.scenario, settings.mode = loadgen.TestScenario.Server, loadgen.TestMode.PerformanceOnly
    settings.server_target_qps, settings.server_target_latency_ns = rate, int(bound * 1e9)
    settings.min_duration_ms, settings.min_query_count = int(seconds * 1e3), 10
    return settings


def log_settings(folder):
    output, settings = loadgen.LogOutputSettings(), loadgen.LogSettings()
    output.outdir, output.copy_summary_to_stdout = folder, False
    settings.log_output, settings.enable_trace = output, False
    return settings


class Server:
    """One model in graphs with batches of at most `batch`."""

    def __init__(self, given, model):
        self.given, self.model, self.right = given, model, np.empty((SAMPLES, 8), np.float32)
        for i in range(0, SAMPLES, 64):
            model.answer(list(range(i, i + 64)), self.right[i : i + 64])
        model.finish()

    def service(self, batch):
        """Seconds that a batch takes by itself, the median of some."""
        out, indices, found = np.empty((batch, 8), np.float32), list(range(batch)), []
        for _ in range(3 if self.given.quick else 30):
            begun = time.perf_counter()
            self.model.answer(indices, out)
            self.model.finish()
            found.append(time.perf_counter() - begun)
        return sorted(found)[len(found) // 2]

    def graph(self, batch, sent, sizes):
        graph = weir.Graph()
        delay = f"{int(self.given.delay * 1e6)}ns"
        network = graph.add(Network(self.model, sent, sizes), name="network", ports={"in": {"capacity": 2048, "take": batch}}, max_in_flight=self.given.in_flight,
                            conditions=[{"type": "expiring_message_available", "port": "in", "max_batch": batch, "max_delay": delay}])
        return graph, graph.inlet(network["in"]), graph.outlet(network["out"], capacity=64)

    def warm(self, batch, inlet, warmed):
        for i in range(4 * batch):
            inlet.push(np.array([WARM, i % SAMPLES], np.uint64), give=True)
        for _ in range(4 * batch):
            if not warmed.acquire(timeout=60):
                sys.exit("loadgen.py: no answer within 60 s before the test")

    def p99(self, batch, rate, bound):
        """(seconds, mean size of the batches) under that rate; infinity if LoadGen could not send it."""
        sent, sizes, warmed = collections.deque(), collections.Counter(), threading.Semaphore(0)
        graph, inlet, outlet = self.graph(batch, sent, sizes)
        with graph, tempfile.TemporaryDirectory(prefix="weir-loadgen-") as folder:
            graph.start(backend=self.given.backend, workers=2)
            thread = threading.Thread(target=complete, args=(outlet, sent, self.right if self.given.quick else None, warmed))
            thread.start()
            for _ in range(2 if self.given.quick else 8):  # the library makes its handles and loads its kernels for a new thread or stream
                self.warm(batch, inlet, warmed)
            sizes.clear()

            def issue(queries):
                for query in queries:
                    inlet.push(np.array([query.id, query.index], np.uint64), give=True)

            sut = loadgen.ConstructSUT(issue, lambda: None)
            library = loadgen.ConstructQSL(SAMPLES, SAMPLES, lambda _: None, lambda _: None)
            loadgen.StartTestWithLogSettings(sut, library, settings_for(rate, bound, self.given.seconds), log_settings(folder))
            loadgen.DestroyQSL(library)
            loadgen.DestroySUT(sut)
            inlet.close()
            graph.wait()
            thread.join()
            summary = pathlib.Path(folder, "mlperf_log_summary.txt").read_text()
        found = re.search(r"99.00 percentile latency \(ns\)\s*: (\d+)", summary)
        ticks = sum(sizes.values())
        return int(found[1]) / 1e9, sum(size * count for size, count in sizes.items()) / max(ticks, 1)

    def highest(self, batch, bound, least, most):
        """The highest rate whose 99th percentile is within the bound, within 5 %, by bisection."""
        while most > 1.05 * least:
            rate = (least * most) ** 0.5
            if self.p99(batch, rate, bound)[0] <= bound:
                least = rate
            else:
                most = rate
        return least


def main():
    given = options()
    random = np.random.default_rng(1)
    weights = [(random.standard_normal((given.width, given.width)) / given.width**0.5).astype(np.float32) for _ in range(given.layers)]
    samples = random.standard_normal((SAMPLES, given.width)).astype(np.float32)
    model = Numpy(weights, samples) if given.library == "numpy" else Torch(weights, samples, given.backend == "cuda")
    server = Server(given, model)
    one, full = server.service(1), server.service(given.batch)
    capacity, bound = given.batch / full, 2 * full + MORE
    print(f"service: a batch of 1 {one * 1e3:.2f} ms, of {given.batch} {full * 1e3:.2f} ms: {one * given.batch / full:.1f} x; full batches: {capacity:,.0f} queries/s")
    rate = min(capacity / 2, 1000) if given.quick else capacity / 2
    p99, mean = server.p99(given.batch, rate, bound)
    print(f"at {rate:,.0f} queries/s, half of that: p99 {p99 * 1e3:.2f} ms, wanted <= {bound * 1e3:.2f} ms: {'yes' if p99 <= bound else 'NO'}; batches of {mean:.1f}")
    if given.quick:
        return
    alone = server.highest(1, bound, 0.02 / one, 1.2 / one)
    batched = server.highest(given.batch, bound, alone, 1.2 * capacity)
    ratio = batched / alone
    print(f"p99 <= {bound * 1e3:.2f} ms: up to {batched:,.0f} queries/s with batches, {alone:,.0f} one at a time: {ratio:.1f} x, wanted >= 2: {'yes' if ratio >= 2 else 'NO'}")


if __name__ == "__main__":
    main()
