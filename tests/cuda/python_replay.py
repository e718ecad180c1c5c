"""out = 2 * in + 1 by ctx.replay, with kernels of CuPy or torch and memory of weir's: the host checks each result.

    python_replay.py --library cupy|torch|numpy [--count N] [--devices A,B]

The numbers are made on device A (0) and doubled on device B (0); if that is another one, 'upload' copies them.
Prints a line of JSON: how many results were right, how often the work was replayed and captured.
"""

import argparse
import json

import numpy as np
import weir

ELEMENTS = 1 << 12
library = None  # cupy, torch or numpy


def view(message):
    return np.asarray(message) if library is np else library.from_dlpack(message)


@weir.operator
class Numbers:
    """Emits arrays that hold the number of the tick."""

    outputs = ["out"]
    parameters = {"count": 1}

    def compute(self, ctx):
        out = ctx.empty([ELEMENTS], "float32")
        with ctx.stream:
            view(out)[:] = ctx.tick
        ctx.emit("out", out)
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
class Twice:
    inputs, outputs = [weir.Port("in", dtype="float32")], ["out"]
    uses_stream = True

    def compute(self, ctx):
        message, out = ctx.receive("in"), ctx.empty([ELEMENTS], "float32")
        with ctx.stream:
            a, b = view(message), view(out)

            def enqueue(stream):
                library.multiply(a, 2, out=b)
                library.add(b, 1, out=b)

            if ctx.on_cuda:
                ctx.replay(f"{message.address} {out.address}".encode(), enqueue)
            else:
                enqueue(ctx.stream)  # a function of NumPy is no work of the device
        ctx.emit("out", out)


@weir.operator
class Check:
    inputs = ["in"]

    def start(self, ctx):
        self.right = 0

    def compute(self, ctx):
        self.right += bool((np.asarray(ctx.receive("in")) == 2 * ctx.tick + 1).all())


def graph_of(count, made_on, doubled_on):
    entities = [
        {"name": "numbers", "operator": "Numbers", "parameters": {"count": count}, "max_in_flight": 4},
        {"name": "across", "operator": "upload"},
        {"name": "twice", "operator": "Twice", "replay": {"keys": 256}},
        {"name": "download", "operator": "download"},
        {"name": "check", "operator": "Check"},
    ]
    if made_on == doubled_on:
        del entities[1]
    entities[0]["resources"] = ["making"]
    names = [entity["name"] for entity in entities]
    connections = [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])]
    making = {"type": "stream_pool", "max_size": 4, "device": made_on}
    pools = {"making": making, "doubling": {**making, "device": doubled_on, "default": True}}
    return {"weir": 1, "resources": pools, "entities": entities, "connections": connections}


def main():
    global library
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=["cupy", "torch", "numpy"], required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--devices", default="0,0")
    given = parser.parse_args()
    library = __import__(given.library)
    with weir.Graph(graph_of(given.count, *map(int, given.devices.split(",")))) as graph:
        graph.run(backend="host" if library is np else "cuda")
        replay = graph.counts()["entities"]["twice"]["replay"]
        print(json.dumps({"library": given.library, "right": graph["check"].instance.right, **replay}), flush=True)


if __name__ == "__main__":
    main()
