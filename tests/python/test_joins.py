"""Inputs of several ports in Python: any_of, aligned."""

import numpy as np

import weir


class Numbers:
    """Numbers with a step, as stamps, too."""

    outputs = ["out"]

    def __init__(self, count, step=1):
        self.count, self.step = count, step

    def compute(self, ctx):
        number = ctx.tick * self.step + 1
        ctx.emit("out", np.array([number]), stamp=(0, number))
        if ctx.tick == self.count - 1:
            ctx.finish()


class Pairs:
    inputs = [weir.Port("left", capacity=4), weir.Port("right", capacity=4)]

    def __init__(self):
        self.got = []

    def compute(self, ctx):
        left, right = ctx.receive("left"), ctx.receive("right")
        assert (left is None) == (ctx.count("left") == 0) and (right is None) == (ctx.receive_all("right") == [])
        self.got.append(tuple(None if message is None else int(np.asarray(message)[0]) for message in (left, right)))


def run(conditions, left, right):
    pairs = Pairs()
    with weir.Graph() as graph:
        sink = graph.add(pairs, name="pairs", conditions=conditions)
        for port, numbers in ("left", left), ("right", right):
            graph.connect(graph.add(numbers, name=f"of_{port}"), sink[port])
        assert graph.run(backend="host").finished
        counts = graph.counts()["queues"]
    return pairs.got, {each["to"]: each["unmatched"] for each in counts}


def test_any_of_ticks_for_each_input():
    got, _ = run([{"type": "any_of", "conditions": [{"type": "message_available", "port": port} for port in ("left", "right")]}],
                 Numbers(10), Numbers(3, 100))
    assert [left for left, _ in got if left] == list(range(1, 11)) and [right for _, right in got if right] == [1, 101, 201]


def test_aligned_inputs_belong_together():
    got, unmatched = run([{"type": "aligned", "ports": ["left", "right"], "by": "tag"}], Numbers(12), Numbers(4, 3))
    assert got == [(1, 1), (4, 4), (7, 7), (10, 10)]
    assert unmatched["pairs.left"] == 6 and unmatched["pairs.right"] == 0


def test_aligned_with_what_is_missing():
    got, unmatched = run([{"type": "aligned", "ports": ["left", "right"], "by": "tag", "missing": "empty"}], Numbers(6), Numbers(2, 3))
    assert got == [(1, 1), (2, None), (3, None), (4, 4), (5, None), (6, None)]
    assert not any(unmatched.values())
