"""examples/python/network.py beside the same work by hand: one thread of torch, a stream and a CUDA graph for each frame in
flight. Both read the same pinned frames and give the scores of each frame; their bytes are compared.

Prints a line of JSON for each round: frames/s from the 50th frame to the last, how many scores differ; then one for each number
of workers, with where the host's time goes. --backend host runs
torch's CPU or NumPy on both sides, as a check of this program.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/python"))

import network  # noqa: E402
import weir  # noqa: E402

HEIGHT, WIDTH = 480, 640


class Slot:
    """One frame in flight of the loop by hand."""

    def __init__(self, torch, model, replay):
        self.torch, self.model = torch, model
        self.stream, self.done = torch.cuda.Stream(), torch.cuda.Event()
        self.scores = torch.empty(network.CLASSES).pin_memory()
        self.host = self.scores.numpy()
        self.frame = torch.zeros((HEIGHT, WIDTH, 3), dtype=torch.uint8, device="cuda")
        if replay:
            self.captured = network.Captured(torch, model, self.frame.shape)
            self.frame = self.captured.frame  # uploaded to where the graph reads
            self.model = self.replayed

    def replayed(self, _frame):
        self.captured.graph.replay()
        return self.captured.scores

    def begin(self, frame):
        with self.torch.cuda.stream(self.stream):
            self.frame.copy_(frame, non_blocking=True)
            self.scores.copy_(self.model(self.frame), non_blocking=True)
            self.done.record()

    def end(self):
        self.done.synchronize()
        return self.host


class HostSlot:
    """The same without a GPU."""

    def __init__(self, _torch, model, _replay):
        self.model = model

    def begin(self, frame):
        self.scores = np.asarray(self.model(frame))

    def end(self):
        return self.scores


class ByHand:
    def __init__(self, library, given, replay):
        model = library.model(HEIGHT, WIDTH, given.size)
        self.torch = getattr(library, "torch", None)
        self.slots = [(Slot if library.on_gpu else HostSlot)(self.torch, model, replay) for _ in range(given.in_flight)]
        self.ring = network.frames_of(library, HEIGHT, WIDTH)
        if self.torch:
            self.ring = [self.torch.from_numpy(frame) for frame in self.ring]
        if library.on_gpu:
            self.torch.cuda.synchronize()

    def run(self, count):
        """The class and the bytes of each frame's scores, and when each was there."""
        best, scores, times = [], [], []
        for i in range(count + len(self.slots)):
            slot = self.slots[i % len(self.slots)]
            if i >= len(self.slots):
                found = slot.end()
                best.append(int(found.argmax()))
                times.append(time.perf_counter_ns())
                scores.append(found.tobytes())
            if i < count:
                slot.begin(self.ring[i % len(self.ring)])
        return best, scores, times


class ByWeir:
    def __init__(self, library, given, replay, form):
        self.given, self.replay, self.form = given, replay, form
        self.workers, self.direct = int(form.removesuffix("d")), form.endswith("d")
        self.backend = "cuda" if library.on_gpu else "host"

    def run(self, count, **more):
        given = self.given
        shape = {"height": HEIGHT, "width": WIDTH, "size": given.size}
        options = {"workers": self.workers, "signal": given.signal, "worker_spin": given.spin_us / 1e6}
        description = network.graph_of(count, given.in_flight, self.replay, keep=True, **shape)
        with weir.Graph(network.direct_of(description) if self.direct else description) as graph:
            graph.run(backend=self.backend, **options, **more)
            if more:
                self.entities = graph.statistics()["entities"]
            top = graph["top"].instance
            return top.best, top.scores, top.times


def rate_of(times, warm):
    return (len(times) - 1 - warm) / ((times[-1] - times[warm]) / 1e9)


def times_of(side, count):
    """Median us from READY to compute and inside compute, of each entity, in a run that counts them."""
    side.run(count, statistics=True, gpu_time="off", skip=count // 4)
    times = {"times": side.form}
    for entity in side.entities:
        medians = [entity[name]["p50"] / 1e3 for name in ("ready_to_compute", "submit")]
        times[entity["name"]] = "{:.0f} + {:.0f}".format(*medians)
    return times


def compare(hand, ours, frames):
    warm = min(50, frames // 4)
    differ = sum(a != b for a, b in zip(hand[1], ours[1])) + abs(len(hand[1]) - len(ours[1]))
    found = {"hand": rate_of(hand[2], warm), "weir": rate_of(ours[2], warm), "differ": differ}
    return found | {"distinct": len(set(hand[1])), "frames": len(ours[1])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=["torch", "numpy"])
    parser.add_argument("--backend", choices=["cuda", "host"])
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--size", type=int, default=448)
    parser.add_argument("--workers", nargs="+", default=["1", "4", "1d", "2d", "4d"], help="d: with --direct")
    parser.add_argument("--signal", default="flag")
    parser.add_argument("--spin-us", type=int, default=1000)
    parser.add_argument("--replay", choices=["on", "off", "both"], default="both")
    given = parser.parse_args()
    network.library = library = network.choose(given.library, given.backend)
    forms = [replay for replay in (True, False) if given.replay in ("both", "on" if replay else "off")]
    hands = {replay: ByHand(library, given, replay) for replay in forms}
    for number in range(given.rounds):
        for replay, workers in [(replay, workers) for replay in forms for workers in given.workers]:
            count = given.frames if replay else max(20, given.frames // 4)  # launches take most of the time then
            hand = hands[replay].run(count)
            ours = ByWeir(library, given, replay, workers).run(count)
            line = {"round": number, "replay": replay, "workers": workers, **compare(hand, ours, count)}
            print(json.dumps(line), flush=True)
    for workers in given.workers:
        print(json.dumps(times_of(ByWeir(library, given, forms[0], workers), given.frames)), flush=True)


if __name__ == "__main__":
    main()
