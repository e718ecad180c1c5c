#!/usr/bin/env python3
"""The rows of README's table beside Holoscan: weir and PyPI's holoscan-cu13 in turns, on one machine, each in a process of its own.

    beside_holoscan.py [--rounds N] [--rows frame,memory,signal]

    frame    time of one empty message through two operators, source and sink, queues of 1, one worker (weir: ping and sink; Holoscan: PingTxOp and PingRxOp,
             which prints a line a message, here to nothing), by Holoscan's event-based and greedy schedulers
    memory   of one operator more: peak of 500 such pairs less that of 50
    signal   end of a kernel to the receiver's compute, both in Python, on a GPU: the time from launch to compute less that from launch to the end that a
             loop sees which asks for an event; one kernel after the other, and one each 8 ms

With a python3 that has holoscan-cu13, numpy and weir (PYTHONPATH: build/python/package), for `signal` torch with CUDA, too. A time of `frame` is that
of N messages more, so that starts are not in it.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
warnings.simplefilter("ignore")
MESSAGES, KERNEL_US, LAUNCHES = 40000, 500, 400


# --- one measurement, in a process of its own; prints a number ---


def holoscan_app(count, pairs, scheduler):
    from holoscan.conditions import CountCondition
    from holoscan.core import Application
    from holoscan.operators import PingRxOp, PingTxOp
    from holoscan.schedulers import EventBasedScheduler, GreedyScheduler

    class Pings(Application):
        def compose(self):
            for i in range(pairs):
                self.add_flow(PingTxOp(self, CountCondition(self, count), name=f"send{i}"), PingRxOp(self, name=f"receive{i}"))

    app = Pings()
    app.scheduler(EventBasedScheduler(app, worker_thread_number=1, name="scheduler") if scheduler == "event"
                  else GreedyScheduler(app, name="scheduler"))
    return app


def weir_graph(count, pairs):
    entities, connections = [], []
    for i in range(pairs):
        entities += [{"name": f"send{i}", "operator": "ping", "conditions": [{"type": "count", "count": count}]},
                     {"name": f"receive{i}", "operator": "sink"}]
        connections.append([f"send{i}.out", f"receive{i}.in"])
    return {"weir": 1, "name": "pings", "entities": entities, "connections": connections}


def run_pings(which, count, pairs):
    if which == "weir":
        import weir

        with weir.Graph(weir_graph(count, pairs)) as graph:
            begun = time.perf_counter()
            graph.run(backend="host", workers=1)
            return time.perf_counter() - begun
    app = holoscan_app(count, pairs, which)
    begun = time.perf_counter()
    app.run()
    return time.perf_counter() - begun


class Kernel:
    """Launched on a stream, with the times at which it was and at which the receiver runs."""

    def __init__(self):
        import torch

        self.torch, self.launched, self.seen = torch, [], []
        self.cycles, self.result = 1, torch.zeros(16, device="cuda")
        for _ in range(5):  # clocks of the device differ
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            torch.cuda._sleep(1_000_000)
            end.record()
            end.synchronize()
            self.cycles = int(KERNEL_US * 1e3 * 1_000_000 / (begin.elapsed_time(end) * 1e6))

    def launch(self, handle):
        stream = self.torch.cuda.ExternalStream(handle)
        with self.torch.cuda.stream(stream):
            self.launched.append(time.perf_counter_ns())
            self.torch.cuda._sleep(self.cycles)

    def late(self):
        """us from the end of the kernel; the end is that of a loop that asks."""
        stream, event, bare = self.torch.cuda.Stream(), self.torch.cuda.Event(), []
        for _ in range(LAUNCHES):
            with self.torch.cuda.stream(stream):
                begun = time.perf_counter_ns()
                self.torch.cuda._sleep(self.cycles)
                event.record()
            while not event.query():
                pass
            bare.append(time.perf_counter_ns() - begun)
        rest = LAUNCHES // 8
        found = [seen - launched for launched, seen in zip(self.launched, self.seen)][rest:]
        return (statistics.median(found) - statistics.median(bare)) / 1e3


def weir_signal(period, signal):
    import weir

    kernel = Kernel()

    @weir.operator
    class Launch:
        outputs, uses_stream = ["out"], True

        def compute(self, ctx):
            out = ctx.empty([16], "float32")
            kernel.launch(ctx.stream.handle)
            ctx.emit("out", out)

    @weir.operator
    class Note:
        inputs = ["in"]

        def compute(self, ctx):
            kernel.seen.append(time.perf_counter_ns())
            ctx.receive("in")

    conditions = [{"type": "count", "count": LAUNCHES}] + ([{"type": "periodic", "period": f"{period}ms"}] if period else [])
    graph = {"weir": 1, "name": "signal", "connections": [["launch.out", "note.in"]],
             "entities": [{"name": "launch", "operator": "Launch", "conditions": conditions, "max_in_flight": 1},
                          {"name": "note", "operator": "Note", "conditions": [{"type": "cuda_stream", "port": "in"}]}]}
    with weir.Graph(graph) as running:
        running.run(backend="cuda", workers=2, signal=signal)
    return kernel.late()


def holoscan_signal(period):
    from holoscan.conditions import CountCondition, CudaStreamCondition, PeriodicCondition
    from holoscan.core import Application, Operator
    from holoscan.resources import CudaStreamPool
    from holoscan.schedulers import EventBasedScheduler

    kernel = Kernel()

    class Launch(Operator):
        def setup(self, spec):
            spec.output("out")

        def compute(self, op_input, op_output, context):
            stream = context.allocate_cuda_stream("work")
            kernel.launch(stream)
            op_output.set_cuda_stream(stream, "out")
            op_output.emit({"": kernel.result}, "out")

    class Note(Operator):
        def setup(self, spec):
            spec.input("in")

        def compute(self, op_input, op_output, context):
            kernel.seen.append(time.perf_counter_ns())
            op_input.receive("in")

    class Signal(Application):
        def compose(self):
            pool = CudaStreamPool(self, name="pool", stream_flags=1, reserved_size=1, max_size=4)
            conditions = [CountCondition(self, LAUNCHES)] + ([PeriodicCondition(self, period * 1_000_000)] if period else [])
            self.add_flow(Launch(self, pool, *conditions, name="launch"),
                          Note(self, CudaStreamCondition(self, receivers="in"), name="note"))

    app = Signal()
    app.scheduler(EventBasedScheduler(app, worker_thread_number=2, name="scheduler"))
    app.run()
    return kernel.late()


def measure(row, which, *numbers):
    numbers = [int(number) for number in numbers]
    if row == "signal":
        return holoscan_signal(*numbers) if which == "event" else weir_signal(*numbers, which)
    seconds = run_pings(which, *numbers)
    return seconds if row == "frame" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# --- the rows ---


def child(*arguments):
    """The number that another process measures."""
    environment = {**os.environ, "HOLOSCAN_LOG_LEVEL": "ERROR", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as found:
        done = subprocess.run([sys.executable, __file__, "--measure", *map(str, arguments), "--to", str(found.fileno())], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=environment, pass_fds=[found.fileno()], timeout=120)
        found.seek(0)
        text = found.read()
    if done.returncode or not text:
        sys.exit(f"{arguments}: {done.stderr[-800:]}")
    return float(text)


def row(name, unit, rounds, forms):
    """Forms in turns; each is a function of no arguments."""
    found = {form: [] for form in forms}
    for _ in range(rounds):
        for form, function in forms.items():
            found[form].append(function())
    for form, numbers in found.items():
        numbers.sort()
        print(f"  {name:28} {form:24} median {statistics.median(numbers):9.2f} {unit}, {numbers[0]:.2f} to {numbers[-1]:.2f}", flush=True)


def frame(which):
    few, many = 2000, MESSAGES * (50 if which == "weir" else 1)
    return (child("frame", which, many + few, 1) - child("frame", which, few, 1)) / many * 1e6


def memory(which):
    return (child("memory", which, 1, 500) - child("memory", which, 1, 50)) / 900


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="frame,memory")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--to", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        number = measure(*given.measure)
        os.write(given.to, json.dumps(number).encode())
        os._exit(0)  # not all of Holoscan's ends are quiet
    rows = given.rows.split(",")
    pings = {"weir": "weir", "Holoscan, event-based": "event", "Holoscan, greedy": "greedy"}
    if "frame" in rows:
        row("frame", "us", given.rounds, {form: lambda which=which: frame(which) for form, which in pings.items()})
    if "memory" in rows:
        row("memory of an operator", "kB", min(given.rounds, 3), {form: lambda which=which: memory(which) for form, which in list(pings.items())[:2]})
    for period in (0, 8) if "signal" in rows else ():
        forms = {"weir, auto": "auto", "weir, callback": "callback", "Holoscan": "event"}
        row(f"signal, {'each ' + str(period) + ' ms' if period else 'one after the other'}", "us", given.rounds,
            {form: lambda which=which: child("signal", which, period) for form, which in forms.items()})


if __name__ == "__main__":
    main()
