"""Input ports with the policy `latest`: the newest message again and again, and its age."""

import numpy as np
import pytest

import weir
from conftest import Count

class Pair:
    """Emits what a tick received, and how old it was."""

    inputs, outputs = ["frame", weir.Port("boxes", policy="latest")], ["out"]

    def start(self, ctx):
        assert ctx.age("boxes") is None

    def compute(self, ctx):
        frame, boxes = ctx.receive("frame"), ctx.receive("boxes")
        assert ctx.count("boxes") == 1 and not boxes.unique() and ctx.age("frame") is None
        ctx.emit("out", np.array([frame.object, boxes.object, ctx.age("boxes"), ctx.age(1)]))


def fed_by_the_program(graph):
    """(a function that pushes a frame and returns what its tick emitted; the inlet of the boxes)"""
    pair = graph.add(Pair)
    frames, boxes, outlet = graph.inlet(pair["frame"]), graph.inlet(pair["boxes"]), graph.outlet(pair)

    def show(frame):
        frames.push(frame)
        return np.array(outlet.take(10)).tolist()

    return show, boxes


def test_each_tick_receives_the_newest_message_again():
    with weir.Graph() as graph:
        show, boxes = fed_by_the_program(graph)
        with graph.start(backend="host"):
            boxes.push(10)
            seen = [show(frame)[:2] for frame in range(3)]
            boxes.push(20)
            seen += [show(3)[:2], show(4)[:2]]
            boxes.close()
            seen.append(show(5)[:2])
        counts = {queue["to"]: queue for queue in graph.counts()["queues"]}["pair.boxes"]
    assert seen == [[0, 10], [1, 10], [2, 10], [3, 20], [4, 20], [5, 20]]
    assert counts["pushed"] == counts["delivered"] == 2


def test_the_age_is_in_nanoseconds_since_the_push():
    with weir.Graph() as graph:
        show, boxes = fed_by_the_program(graph)
        with graph.start(backend="host"):
            before = graph.now
            boxes.push(10)
            after, last = graph.now, 0
            for frame in range(3):
                begun = graph.now
                _, _, by_name, by_number = show(frame)
                assert max(begun - after, last) <= by_name <= by_number <= graph.now - before
                last = by_number


def test_a_slow_stream_beside_a_fast_one():
    every = [[{"type": "periodic", "period": period}] for period in ("1ms", "9ms")]
    graph = weir.Graph()
    both = graph.add(lambda frame, boxes: np.array([frame[0], boxes[0]]), name="both")
    graph.add(Count, count=30, conditions=every[0]) >> both["frame"]
    graph.connect(graph.add(Count, count=3, conditions=every[1]), both["boxes"], policy="latest")
    outlet = graph.outlet(both)
    with graph, graph.start(backend="host"):
        seen = [np.array(message).tolist() for message in outlet]
    assert [frame for frame, _ in seen] == list(range(30))
    assert [boxes for _, boxes in seen] == sorted(boxes for _, boxes in seen)


def test_a_sender_that_is_faster_is_not_held_back():
    with weir.Graph() as graph:
        show, boxes = fed_by_the_program(graph)
        with graph.start(backend="host"):
            for number in range(50):
                boxes.push(number, timeout=0)
            assert show(0)[:2] == [0, 49]
        counts = {queue["to"]: queue for queue in graph.counts()["queues"]}["pair.boxes"]
    assert counts["pushed"] == 50 and counts["delivered"] + counts["dropped"] == 50


def test_an_async_compute_has_the_age_of_its_tick():
    class Ask:
        inputs, outputs = ["frame", weir.Port("boxes", policy="latest")], ["out"]

        async def compute(self, ctx):
            return np.array([ctx.age("frame") is None, ctx.age("boxes") >= 0])

    graph = weir.Graph()
    ask = graph.add(Ask)
    graph.add(Count, count=5) >> ask["frame"]
    graph.add(Count, count=1) >> ask["boxes"]
    outlet = graph.outlet(ask)
    with graph, graph.start(backend="host"):
        assert [np.asarray(message).tolist() for message in outlet] == [[True, True]] * 5


def test_an_unknown_port_has_no_age():
    class Wrong:
        inputs = ["frame", "boxes"]

        def compute(self, ctx):
            ctx.age("picture")

    graph = weir.Graph()
    wrong = graph.add(Wrong)
    graph.add(Count) >> wrong["frame"]
    graph.add(Count) >> wrong["boxes"]
    with graph, pytest.raises(weir.Error, match="has no input 'picture'; its inputs are 'frame', 'boxes'"):
        graph.run(backend="host")


@pytest.mark.parametrize("settings, text", [
    ({"capacity": 2}, '"latest" has places of its own: remove "capacity"'),
    ({"take": 1}, '"latest" gives one message: remove "take"'),
    ({"gate": False}, '"latest" gives finished messages only: remove "gate"'),
])
def test_what_latest_has_no_use_for_is_refused_by_connect(settings, text):
    graph = weir.Graph()
    source, end = graph.add(Count), graph.add("sink")
    with pytest.raises(weir.Error) as raised:
        graph.connect(source, end, policy="latest", **settings)
    assert text in str(raised.value) and [d.number for d in raised.value.diagnostics] == [56]


def test_an_entity_that_nothing_paces_is_warned_of():
    def numbers_of(*conditions):
        graph = weir.Graph()
        end = graph.add(lambda picture: None, conditions=list(conditions), name="end")
        graph.connect(graph.add(Count), end["picture"], policy="latest")
        return [diagnostic.number for diagnostic in weir.check(graph)]

    assert numbers_of() == [57] and numbers_of({"type": "periodic", "period": "10ms"}) == []
