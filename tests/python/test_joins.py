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
        self.got, self.ages = [], []

    def compute(self, ctx):
        left, right = ctx.receive("left"), ctx.receive("right")
        assert (left is None) == (ctx.count("left") == 0) and (right is None) == (ctx.receive_all("right") == [])
        self.ages.append(tuple(ctx.age(port) for port in ("left", "right")))
        self.got.append(tuple(None if message is None else int(np.asarray(message)[0]) for message in (left, right)))


def run(conditions, left, right):
    pairs = Pairs()
    with weir.Graph() as graph:
        sink = graph.add(pairs, name="pairs", conditions=conditions)
        for port, numbers in ("left", left), ("right", right):
            graph.connect(graph.add(numbers, name=f"of_{port}"), sink[port])
        assert graph.run(backend="host").finished
        counts = graph.counts()["queues"]
    return pairs, counts


def run_pairs(conditions, left, right):
    pairs, counts = run(conditions, left, right)
    return pairs.got, {each["to"]: each["unmatched"] for each in counts}


def test_any_of_ticks_for_each_input():
    got, _ = run_pairs([{"type": "any_of", "conditions": [{"type": "message_available", "port": port} for port in ("left", "right")]}],
                       Numbers(10), Numbers(3, 100))
    assert [left for left, _ in got if left] == list(range(1, 11)) and [right for _, right in got if right] == [1, 101, 201]


def test_aligned_inputs_belong_together():
    got, unmatched = run_pairs([{"type": "aligned", "ports": ["left", "right"], "by": "tag"}], Numbers(12), Numbers(4, 3))
    assert got == [(1, 1), (4, 4), (7, 7), (10, 10)]
    assert unmatched["pairs.left"] == 6 and unmatched["pairs.right"] == 0


def test_aligned_with_what_is_missing():
    got, unmatched = run_pairs([{"type": "aligned", "ports": ["left", "right"], "by": "tag", "missing": "empty"}], Numbers(6), Numbers(2, 3))
    assert got == [(1, 1), (2, None), (3, None), (4, 4), (5, None), (6, None)]
    assert not any(unmatched.values())


def test_aligned_with_what_was_there_before():
    pairs, counts = run([{"type": "aligned", "ports": ["left", "right"], "by": "tag", "missing": "reuse", "max_age_tags": 2}],
                        Numbers(8), Numbers(2, 3))
    assert pairs.got == [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (6, 4), (7, None), (8, None)]
    assert [left for left, _ in pairs.ages] == [None] * 8
    ages = [right for _, right in pairs.ages]
    assert [age is not None for age in ages] == [False, True, True, False, True, True, False, False]
    assert 0 <= ages[1] <= ages[2] and 0 <= ages[4] <= ages[5]
    assert {each["to"]: each["reused"] for each in counts} == {"pairs.left": 0, "pairs.right": 4}


def test_what_aligned_gives_again_is_read_only():
    class Writes:
        inputs = ["frame", "mark"]

        def compute(self, ctx):
            again = ctx.age("mark") is not None
            assert not ctx.receive("mark").unique(), again

    with weir.Graph() as graph:
        sink = graph.add(Writes(), conditions=[{"type": "aligned", "ports": ["frame", "mark"], "by": "tag", "missing": "reuse"}])
        graph.connect(graph.add(Numbers(6)), sink["frame"])
        graph.connect(graph.add(Numbers(2, 3)), sink["mark"])
        assert graph.run(backend="host").finished
