"""Lines of two operators whose libraries differ: one spins on the device and then fills an array with the number of its
tick, the other counts on the device, without any wait of its own, elements that are not that number.

    python_finished.py [--count N] [--lines N] [--spin-us N] [--signal NAME] [--unordered] [--limit S]

Half of the lines are CuPy -> torch, half torch -> CuPy. Of each kind half of the consumers work on ctx.stream and half on a
stream of their library, which only __dlpack__(stream=...) orders. In half of all lines the producer writes memory of weir's,
on a stream that it keeps from start, and the consumer reads each array one tick late, behind a spin of its own: so its
memory must not be used again meanwhile. Two consumers read by __cuda_array_interface__ instead of DLPack. --unordered passes -1 to __dlpack__, for no order: then wrong elements must be seen.
Prints a line of JSON; on stderr how far it is. After --limit seconds it says where each thread is, and exits. --backend host runs the lines in NumPy, as a check of this program.
"""

import argparse
import contextlib
import faulthandler
import json
import sys
import time

import numpy as np
import weir

BEGIN = time.perf_counter()
ELEMENTS = 1 << 14
CYCLES_PER_US = 1980  # at a GPU's highest clock, so that the spin is never shorter
SPIN = r"""
extern "C" __global__ void spin(unsigned long long ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - begin < ns);
}
"""


class Cupy:
    def __init__(self):
        import cupy

        self.cupy = cupy
        self.kernel = cupy.RawKernel(SPIN, "spin")

    def spin(self, us):
        self.kernel((1,), (1,), (np.uint64(us * 1000),))

    def full(self, value):
        array = self.cupy.empty(ELEMENTS, np.float32)
        array.fill(value)
        return array

    def zeros(self):
        return self.cupy.zeros((), np.int64)

    def of(self, exporter):
        return self.cupy.from_dlpack(exporter)

    def shown(self, message):
        return self.cupy.asarray(message)

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def warm(self):
        self.spin(1)
        counter = self.zeros()
        counter += (self.full(1) != 2).sum()
        self.cupy.cuda.Device().synchronize()


class Torch:
    def __init__(self):
        import torch

        self.torch = torch

    def spin(self, us):
        self.torch.cuda._sleep(us * CYCLES_PER_US)

    def full(self, value):
        return self.torch.full((ELEMENTS,), value, dtype=self.torch.float32, device="cuda")

    def zeros(self):
        return self.torch.zeros((), dtype=self.torch.int64, device="cuda")

    def of(self, exporter):
        return self.torch.from_dlpack(exporter)

    def stream(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def warm(self):
        self.spin(1)
        counter = self.zeros()
        counter += (self.full(1) != 2).sum()
        self.torch.cuda.synchronize()


class Numpy:
    def spin(self, us):
        pass

    def full(self, value):
        return np.full(ELEMENTS, value, np.float32)

    def zeros(self):
        return np.zeros((), np.int64)

    def of(self, message):
        return np.asarray(message)

    shown = of

    def stream(self):
        return contextlib.nullcontext()

    def warm(self):
        pass


libraries = {}


@weir.operator
class Fill:
    """Spins, then fills an array with the number of the tick."""

    outputs = ["out"]
    parameters = {"library": "", "count": 1, "spin_us": 1000, "kept": False}

    def start(self, ctx):
        self.stream = ctx.stream if self.kept else None

    def compute(self, ctx):
        library = libraries[self.library]
        if self.kept:
            out = ctx.empty([ELEMENTS], "float32")
            with self.stream:
                library.spin(self.spin_us)
                library.of(out)[:] = ctx.tick + 1
            ctx.emit("out", out)
        else:
            with ctx.stream:
                library.spin(self.spin_us)
                ctx.emit("out", library.full(ctx.tick + 1))
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
class Count:
    """Counts wrong elements on the device, in order of the stream alone."""

    inputs = [weir.Port("in", dtype="float32", device=True)]
    parameters = {"library": "", "own": False, "late": False, "shown": False, "unordered": False, "spin_us": 1000}

    def start(self, ctx):
        self.array = libraries[self.library]
        self.stream = self.array.stream() if self.own else None
        self.wrong, self.seen, self.previous = None, 0, None

    def compute(self, ctx):
        message, value = ctx.receive("in"), ctx.tick + 1
        if self.late:
            message, self.previous, value = self.previous, message, value - 1
        if message is not None:
            if self.unordered:
                message = message.__dlpack__(stream=-1, max_version=(1, 0))
            self.read(ctx, message, value)
        self.seen += 1

    def read(self, ctx, message, value):
        with self.stream or ctx.stream:
            if self.wrong is None:
                self.wrong = self.array.zeros()
            if self.late:
                self.array.spin(self.spin_us)
            array = self.array.shown(message) if self.shown else self.array.of(message)
            self.wrong += (array != value).sum()


def line_of(i, given):
    """Entities and connection of a line."""
    names = ("numpy", "numpy") if given.backend == "host" else ("cupy", "torch")[:: 1 - 2 * (i % 2)]
    count = given.count // given.lines
    own, kept = given.unordered or i // 2 % 2 == 1, not given.unordered and i // 4 % 2 == 1
    shown = names[1] != "torch" and not own and i // 8 % 2 == 1  # torch takes no read-only interface
    consumer = {"library": names[1], "own": own, "late": kept, "shown": shown, "unordered": given.unordered,
                "spin_us": given.spin_us}
    fill = {"library": names[0], "count": count, "spin_us": given.spin_us, "kept": kept}
    return [
        {"name": f"fill{i}", "operator": "Fill", "parameters": fill},
        {"name": f"count{i}", "operator": "Count", "parameters": consumer, "ports": {"in": {"capacity": 4}}},
    ], [f"fill{i}.out", f"count{i}.in"]


def graph_of(given):
    lines = [line_of(i, given) for i in range(given.lines)]
    return {
        "weir": 1,
        "resources": {"streams": {"type": "stream_pool", "max_size": 2 * given.lines, "default": True}},
        "entities": [entity for entities, _ in lines for entity in entities],
        "connections": [connection for _, connection in lines],
    }


def finish():
    """Waits for all streams of the device."""
    if "torch" in libraries:
        libraries["torch"].torch.cuda.synchronize()


def say(what):
    print(f"{time.perf_counter() - BEGIN:.1f} s: {what}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--count", type=int, default=100000, help="messages of all lines together")
    parser.add_argument("--lines", type=int, default=16)
    parser.add_argument("--spin-us", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--signal", default="callback")
    parser.add_argument("--unordered", action="store_true")
    parser.add_argument("--limit", type=float, default=0)
    given = parser.parse_args()
    if given.limit:
        faulthandler.dump_traceback_later(given.limit, exit=True)
    libraries.update({"numpy": Numpy()} if given.backend == "host" else {"cupy": Cupy(), "torch": Torch()})
    for library in libraries.values():
        library.warm()
    say("kernels are loaded")
    with weir.Graph(graph_of(given)) as graph:
        begin = time.perf_counter()
        graph.run(backend=given.backend, workers=given.workers, signal=given.signal)
        say("the run has ended")
        finish()
        seconds = time.perf_counter() - begin
        counters = [graph[f"count{i}"].instance for i in range(given.lines)]
        found = {"seen": sum(c.seen for c in counters), "seconds": seconds, "lines": given.lines}
        for name in libraries:
            of = [c for c in counters if c.library == name]
            found[f"wrong_in_{name}"] = sum(int(c.wrong) for c in of)
            found[f"lines_wrong_in_{name}"] = sum(int(c.wrong) > 0 for c in of)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
