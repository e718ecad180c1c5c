"""Copies on a stream and the replay of work, on the host: without NumPy in the operators."""

import collections

import pytest
from conftest import graph_of

import weir

COUNT = 200


@weir.operator
class Fills:
    """Emits pooled arrays that hold the number of their tick; their addresses come back."""

    outputs = ["out"]

    def compute(self, ctx):
        out = ctx.empty((16,), "uint8")
        memoryview(out)[:] = bytes([ctx.tick % 251] * 16)
        ctx.emit("out", out)
        if ctx.tick + 1 == COUNT:
            ctx.finish()


@weir.operator
class Copies:
    """Copies its input twice by work that is replayed. `meddle(self, ctx, stream)` is called in enqueue."""

    inputs, outputs = ["in"], ["out"]
    uses_stream = True
    meddle = None

    def start(self, ctx):
        self.calls = 0

    def compute(self, ctx):
        of, to = ctx.receive("in"), ctx.empty((16,), "uint8")
        middle = ctx.empty((16,), "uint8")

        def enqueue(stream):
            self.calls += 1
            if Copies.meddle:
                Copies.meddle(self, ctx, stream)
            stream.copy(middle, of)
            stream.copy(to, middle)

        self.key = f"{of.address} {middle.address} {to.address}".encode()
        ctx.replay(self.key, enqueue)
        ctx.emit("out", to)


@weir.operator
class Reads:
    inputs = ["in"]

    def start(self, ctx):
        self.seen = []

    def compute(self, ctx):
        self.seen.append(bytes(ctx.receive("in")))


def run(meddle=None, replay=None):
    """The values that came out are right; returns the counts of replay, and how often enqueue was called."""
    Copies.meddle = meddle
    described = graph_of(("fill", "Fills"), ("copy", "Copies"), ("read", "Reads"))
    described["scheduler"] = {"max_in_flight": 2}
    if replay is not None:
        described["entities"][1]["replay"] = replay
    try:
        with weir.Graph(described) as graph:
            graph.run(backend="host", workers=2)
            assert graph["read"].instance.seen == [bytes([i % 251] * 16) for i in range(COUNT)]
            return graph.counts()["entities"]["copy"]["replay"], graph["copy"].instance.calls
    finally:
        Copies.meddle = None


def test_work_is_captured_once_for_each_key_and_launched_again():
    counts, calls = run(replay={"keys": 256})
    assert counts["captures"] > 0 and counts["hits"] > 0 and not counts["failures"] and not counts["evictions"]
    assert calls == COUNT - counts["hits"]
    counts, calls = run(replay=False)
    assert not counts["hits"] and not counts["captures"] and not counts["failures"] and calls == COUNT


def test_an_exception_in_enqueue_ends_the_run_with_entity_and_traceback():
    def meddle(self, ctx, stream):
        if ctx.tick == 0:
            raise ValueError("no such kernel")

    with pytest.raises(weir.Error) as caught:
        run(meddle)
    assert str(caught.value).startswith("'copy': ValueError: no such kernel (test_replay.py:")
    assert caught.value.entity == "copy" and isinstance(caught.value.__cause__, ValueError)
    assert "in meddle" in caught.value.traceback and "in compute" in caught.value.traceback


def test_work_that_cannot_be_captured_is_enqueued_as_usual():
    refused = []

    def meddle(self, ctx, stream):
        try:
            ctx.empty((1,), "uint8")
        except weir.Error as error:
            refused.append(str(error))
            raise

    counts, calls = run(meddle, replay={"keys": 256})
    assert counts["failures"] > 0 and counts["hits"] == counts["captures"] == 0
    assert calls == COUNT + len(refused) == COUNT + counts["failures"]
    assert "a tensor was made in enqueue" in refused[0]


def test_an_exception_in_a_capture_alone_fails_the_key_and_nothing_else():
    called = collections.Counter()

    def meddle(self, ctx, stream):
        """The second call for a key is its capture, the third the same tick without one."""
        called[self.key] += 1
        if called[self.key] == 2:
            raise RuntimeError("captured")

    counts, calls = run(meddle, replay={"keys": 256})
    assert counts["failures"] > 0 and calls == COUNT + counts["failures"]


def once(compute, ticks=1, **attributes):
    """compute of an operator without ports, called so many times; returns what the last call gave."""
    given = []
    body = {"compute": lambda self, ctx: given.append(compute(self, ctx)), "uses_stream": True, **attributes}
    weir.operator(type("Once", (), body), name="ReplayOnce")
    entity = {"name": "once", "operator": "ReplayOnce", "conditions": [{"type": "count", "count": ticks}]}
    with weir.Graph({"weir": 1, "entities": [entity]}) as graph:
        graph.run(backend="host")
    return given[-1]


def nothing(stream):
    pass


@pytest.mark.parametrize("call, error, text", [
    (lambda ctx: ctx.replay("text", nothing), TypeError, "the key is bytes"),
    (lambda ctx: ctx.replay(b"key", 7), TypeError, "enqueue is a function of a stream"),
    (lambda ctx: ctx.replay(b"", nothing), weir.Error, "a key of 0 bytes: give 1 to 256"),
    (lambda ctx: ctx.replay(bytes(257), nothing), weir.Error, "a key of 257 bytes: give 1 to 256"),
    (lambda ctx: [ctx.replay(b"key", nothing) for _ in range(2)], weir.Error, "this key was replayed in this tick already"),
    (lambda ctx: ctx.replay(b"key", lambda stream: ctx.replay(b"other", nothing)), weir.Error, "within enqueue"),
])
def test_wrong_replays_are_refused(call, error, text):
    def compute(self, ctx):
        with pytest.raises(error) as caught:
            call(ctx)
        return str(caught.value)

    assert text in once(compute)


def test_a_replay_in_start_is_refused():
    with pytest.raises(weir.Error, match="once: replay is for compute only"):
        once(lambda self, ctx: None, start=lambda self, ctx: ctx.replay(b"key", nothing))


def test_pinned_memory_is_copied_to_an_array_of_another_shape():
    def compute(self, ctx):
        pinned, to = ctx.empty((16,), "uint8", on_host=True), ctx.empty((4,), "float32")
        memoryview(pinned)[:] = bytes(range(16))
        ctx.stream.copy(to, pinned)
        return to

    assert bytes(memoryview(once(compute)).cast("B")) == bytes(range(16))


def test_a_message_that_is_kept_may_be_copied_from_and_dropped():
    """Its memory waits for the copy."""

    def compute(self, ctx):
        if ctx.tick == 0:
            self.kept = ctx.empty((1 << 20,), "uint8")
            memoryview(self.kept)[:] = bytes([7]) * (1 << 20)
            return None
        to = ctx.empty((1 << 20,), "uint8")
        ctx.stream.copy(to, self.kept)
        self.kept = None
        memoryview(ctx.empty((1 << 20,), "uint8"))[:] = bytes(1 << 20)  # would come into memory that is free
        return to

    to = once(compute, ticks=2)
    assert bytes(memoryview(to)) == bytes([7]) * (1 << 20)


@pytest.mark.parametrize("target, source, text", [
    (lambda ctx: ctx.empty((4,), "uint8"), lambda ctx: ctx.empty((5,), "uint8"), "a copy of 5 bytes to 4"),
    (lambda ctx: ctx.empty((4,), "uint8"), lambda ctx: ELSEWHERE[0], "the source belongs to another graph"),
    (lambda ctx: ELSEWHERE[0], lambda ctx: ctx.empty((4,), "uint8"), "the target belongs to another graph"),
])
def test_wrong_copies_are_refused(target, source, text):
    ELSEWHERE[:] = [once(lambda self, ctx: ctx.empty((4,), "uint8"))]

    def compute(self, ctx):
        with pytest.raises(weir.Error) as caught:
            ctx.stream.copy(target(ctx), source(ctx))
        return str(caught.value)

    assert text in once(compute)


ELSEWHERE = []


def test_a_target_that_may_not_be_written_is_refused():
    seen = []

    def meddle(self, ctx, stream):
        with pytest.raises(weir.Error, match="from ctx.empty of this tick, or one"):
            stream.copy(ctx.receive("in"), ctx.receive("in"))
        seen.append(ctx.tick)

    run(meddle, replay=False)
    assert len(seen) == COUNT


def test_which_arrays_may_be_targets():
    """Those of ctx.empty of this tick, also when they were emitted; not what was received, unless nothing else has it."""
    seen = []

    @weir.operator
    class Targets:
        inputs, outputs = ["in"], [weir.Port("out", optional=True)]
        uses_stream = True

        def allows(self, ctx, target):
            try:
                ctx.stream.copy(target, self.source)
            except weir.Error:
                return False
            return True

        def compute(self, ctx):
            received, made = ctx.receive("in"), ctx.empty((16,), "uint8")
            if ctx.tick:
                seen.append(("of an earlier tick, emitted", self.allows(ctx, self.emitted)))
                seen.append(("of an earlier tick, not emitted", self.allows(ctx, self.kept)))
            self.source, self.kept, self.emitted = ctx.empty((16,), "uint8"), ctx.empty((16,), "uint8"), made
            seen.append(("received", self.allows(ctx, received)))
            seen.append(("received, unique", received.unique() and self.allows(ctx, received)))
            seen.append(("made", self.allows(ctx, made)))
            ctx.emit("out", made)
            seen.append(("made, emitted", self.allows(ctx, made)))
            if ctx.tick:
                ctx.finish()

    graph = graph_of(("fills", "Fills"), ("targets", "Targets"))
    with weir.Graph(graph) as graph:
        graph.run(backend="host")
    assert dict(seen) == {
        "received": False, "received, unique": True, "made": True, "made, emitted": True,
        "of an earlier tick, emitted": False, "of an earlier tick, not emitted": True,
    } and len(seen) == 10


def test_enqueue_is_called_inside_the_block_of_its_stream(monkeypatch):
    log = []

    @weir.operator
    class Blocks:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.replay(b"key", lambda stream: log.append("enqueue"))
            if ctx.tick == 3:
                ctx.finish()

    monkeypatch.setattr(weir.Stream, "__enter__", lambda self: log.append("enter"))
    monkeypatch.setattr(weir.Stream, "__exit__", lambda self, *exception: log.append("exit"))
    with weir.Graph(graph_of(("blocks", "Blocks"), ("sink", "sink"))) as graph:
        graph.run(backend="host")
    assert len(log) >= 6 and log == len(log) // 3 * ["enter", "enqueue", "exit"]
