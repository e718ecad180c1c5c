"""Who may write an array: what the program may still hold is lent, what it gives away is the graph's."""

import asyncio
import time

import numpy as np
import pytest
from conftest import graph_of

import weir


def sent(*emits, **options):
    """The messages of emits of one tick, (array, give), as their receiver has them, all in flight together."""
    graph = weir.Graph(graph_of(("a", "Emits")), **options)
    outlet = graph.outlet("a.out", capacity=8)
    Emits.emits = emits
    with graph:
        with graph.start(backend="host"):
            return list(outlet)


@pytest.fixture(autouse=True)
def forget():
    yield
    Emits.emits = ()


def picture():
    return np.zeros((60, 200, 3), np.uint8)


@pytest.mark.parametrize("make", [picture, lambda: picture()[::2], lambda: {"a": picture(), "b": b"x"}], ids=["array", "slice", "parts"])
def test_an_array_is_lent_unless_it_is_given(make):
    (message,) = sent((make(), False))
    assert not message.unique()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(message["a"] if message.kind == "parts" else message)[0] = 1
    (message,) = sent((make(), True))
    assert message.unique()


def test_bytes_and_new_memory_are_the_graphs_own():
    (message,) = sent((b"abc", False))
    assert message.unique()
    (message,) = sent(("empty", False))
    assert message.unique()


async def becomes_unique(message, seconds):
    """The tick that passed it on may not have dropped its reference yet: it does so after it has delivered."""
    until = time.monotonic() + seconds
    while not message.unique() and time.monotonic() < until:
        await asyncio.sleep(0.002)
    return message.unique()


@pytest.mark.parametrize("give", [False, True])
def test_pushed_arrays_are_lent_or_given(give):
    async def pushed(graph, inlet, outlet):
        inlet.push(picture(), give=give)
        await inlet.push_async(picture(), give=give)
        return [await becomes_unique(await outlet.take_async(), 20 if give else 0.2) for _ in range(2)]

    graph = weir.Graph({"weir": 1, "entities": [{"name": "p", "operator": "Passes", "ports": {"in": {"capacity": 2}}}]})
    ends = graph.inlet("p.in"), graph.outlet("p.out", capacity=2)
    with graph, graph.start(backend="host"):
        assert asyncio.run(pushed(graph, *ends)) == [give, give]


@pytest.mark.parametrize("give", [False, True])
def test_draw_copies_what_is_lent_and_draws_on_what_is_given(give):
    graph = weir.Graph({"weir": 1, "entities": [{"name": "s", "operator": "Same", "parameters": {"give": give}}, {"name": "draw", "operator": "draw"},
                                                {"name": "k", "operator": "Keeps"}],
                        "connections": [["s.out", "draw.in"], ["s.text", "draw.text"], ["draw.out", "k.in"]]})
    graph.run(backend="host")
    source, keeps = graph["s"].instance, graph["k"].instance
    drawn, plain = keeps.sums[0], keeps.sums[1]
    assert drawn > 0 and plain == 0
    assert source.first.any() == give
    graph.close()


def test_one_memory_in_two_messages_is_not_alone():
    array = np.arange(6.0)
    assert [m.unique() for m in sent((array, False), (array, False))] == [False, False]
    assert [m.unique() for m in sent((array, False), (array[2:], True))] == [False, False]
    assert [m.unique() for m in sent((array[:2], True), (array[4:], True))] == [True, True]


@pytest.mark.parametrize("again", [True, False])
def test_what_was_given_away_is_not_the_programs_to_send(again):
    array = np.arange(6.0)
    with pytest.raises(weir.Error, match="'a': the array was given away, and the graph still has it: emit a copy"):
        sent((array, True), (array[1:2], again))
    assert sent((array, True))[0].unique()  # the messages are gone


def test_a_view_of_a_message_may_be_sent_on():
    """The message that was given, and an array of it: neither is alone."""
    graph = weir.Graph(graph_of(("a", "Emits"), ("v", "Views"), outlets=["v.out"]))
    outlet = graph.outlet("v.out", capacity=2)
    Emits.emits = ((np.arange(6.0), True),)
    with graph, graph.start(backend="host"):
        message = outlet.take()
        assert np.asarray(message).tolist() == [2, 3] and not message.unique()


# ---- check_writes


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[::2, 1:5], lambda a: a[:, :, 0]], ids=["whole", "strided", "channel"])
@pytest.mark.parametrize("check", [True, False])
def test_check_writes_finds_a_write_after_the_emit(check, view):
    graph = weir.Graph(graph_of(("ring", "Writes"), ("sink", "sink")), check_writes=check)
    Writes.view = staticmethod(view)
    with graph:
        if not check:
            assert graph.run(backend="host").finished
            return
        for _ in range(2):
            with pytest.raises(weir.Error, match="'ring': output 'out': the program wrote into an array after it had emitted it") as error:
                graph.run(backend="host")
            assert error.value.entity == "ring" and error.value.status == weir.Status.INVALID and error.value.outcome


def test_check_writes_finds_a_write_after_the_push():
    graph = weir.Graph(graph_of(("k", "Passes"), ("d", "sink")), check_writes=True)
    inlet, array = graph.inlet("k.in"), picture()
    with pytest.raises(weir.Error, match="inlet of k.in: the program wrote into an array after it had pushed it") as error:
        graph.start(backend="host")
        graph["k"].instance.stop_here.acquire()
        inlet.push(array)
        array[0, 0] = 1
        graph["k"].instance.stop_here.release()
        inlet.close()
        graph.wait()
    assert error.value.entity is None
    graph.close()


@pytest.mark.parametrize("way", ["again", "view", "end"])
def test_check_writes_finds_a_write_after_the_end_of_the_message(way):
    """No reader has met it, this time."""
    class Late:
        outputs = [weir.Port("out", optional=True)]  # the message ends with the tick

        def compute(self, ctx):
            if ctx.tick == 0:
                self.array = picture()
                ctx.emit("out", self.array[2:] if way == "view" else self.array)
            elif ctx.tick == 3:
                self.array[3, 0] = 1
            elif ctx.tick == 5 and way != "end":
                ctx.emit("out", self.array[2:] if way == "view" else self.array)
            elif ctx.tick == 7 and way != "end":
                self.array[3, 0] = 0  # as it was
            elif ctx.tick == 9:
                ctx.finish()

    graph = weir.Graph(check_writes=True)
    graph.add(Late())
    for _ in range(2):
        with pytest.raises(weir.Error, match="'late': output 'out': the program wrote into an array after it had emitted it"):
            graph.run(backend="host")


def test_check_writes_forgets_arrays_that_are_gone():
    class Many:
        outputs = [weir.Port("out", optional=True)]

        def compute(self, ctx):
            ctx.emit("out", np.full((3, 4, 2), ctx.tick))
            if ctx.tick == 3000:
                ctx.finish()

    graph = weir.Graph(check_writes=True)
    graph.add(Many())
    assert graph.run(backend="host").finished


def test_check_writes_says_nothing_of_an_array_that_a_future_fills():
    class Fills:
        outputs = [weir.Port("out", optional=True)]

        def compute(self, ctx):
            self.array = picture()
            ctx.emit("out", self.array, at=self.fill(self.array))
            if ctx.tick == 3:
                ctx.finish()

        async def fill(self, array):
            array[0, 0] = 7

    graph = weir.Graph(check_writes=True)
    graph.add(Fills())
    assert graph.run(backend="host").finished


def test_check_writes_says_nothing_of_what_may_be_written():
    """The same array each tick, in-place work on what was given, on new memory, and on a copy."""
    graph = weir.Graph({"weir": 1, "entities": [{"name": "s", "operator": "Same", "parameters": {"give": True}}, {"name": "draw", "operator": "draw"},
                                                {"name": "k", "operator": "Keeps"}],
                        "connections": [["s.out", "draw.in"], ["s.text", "draw.text"], ["draw.out", "k.in"]]}, check_writes=True)
    with graph:
        assert graph.run(backend="host").finished
    array = picture()
    assert len(sent((array, False), (array, False), ("empty", False), check_writes=True)) == 3


@weir.operator
class Emits:
    outputs = [weir.Port("out", max_emits=3)]
    emits = ()

    def compute(self, ctx):
        for array, give in self.emits:
            ctx.emit("out", ctx.empty(3, "uint8", on_host=True) if isinstance(array, str) else array, give=give)
        ctx.finish()


@weir.operator
class Passes:
    inputs, outputs = ["in"], ["out"]

    def start(self, ctx):
        import threading

        self.stop_here = threading.Semaphore(1)

    def compute(self, ctx):
        with self.stop_here:
            ctx.emit("out", ctx.receive("in"))


@weir.operator
class Views:
    inputs, outputs = [weir.Port("in", capacity=3)], ["out"]

    def compute(self, ctx):
        message = ctx.receive("in")
        self.unique = message.unique()
        ctx.emit("out", np.asarray(message)[2:4])


@weir.operator
class Same:
    outputs = ["out", "text"]
    parameters = {"give": False}

    def start(self, ctx):
        self.first = None

    def compute(self, ctx):
        array = picture() if self.give or self.first is None else self.first
        self.first = array if self.first is None else self.first
        ctx.emit("out", array, give=self.give)
        ctx.emit("text", b"frame" if ctx.tick % 2 == 0 else b"")
        if ctx.tick == 3:
            ctx.finish()


@weir.operator
class Keeps:
    inputs = ["in"]

    def start(self, ctx):
        self.sums = []

    def compute(self, ctx):
        self.sums.append(int(np.asarray(ctx.receive("in")).sum()))


@weir.operator
class Writes:
    outputs = ["out"]

    def start(self, ctx):
        self.array = picture()

    def compute(self, ctx):
        ctx.emit("out", self.view(self.array))
        if ctx.tick == 5:
            self.array[0, 2, 0] = 1
            ctx.finish()
