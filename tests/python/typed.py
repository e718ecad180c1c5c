"""What type checkers know of the package: check_types.py runs them on this file, and nothing executes it.

A line with `type: ignore` is one that mypy must refuse: with --strict an ignore that is not needed is an error.
"""

from typing import Any, assert_type

import numpy as np

import weir


@weir.operator
class Noise:
    outputs = ["out"]
    width = weir.parameter(640, "of the picture", min=1)
    gain = weir.parameter(1.0)
    mode = weir.parameter("fast", choices=["fast", "good"])
    count = weir.parameter(int)

    def compute(self, ctx: weir.Context) -> None:
        assert_type(self.width, int)
        assert_type(self.gain, float)
        assert_type(self.mode, str)
        assert_type(self.count, int)
        assert_type(ctx.tick, int)
        assert_type(ctx.stream, weir.Stream)
        assert_type(ctx.reserve(2), int)
        ctx.emit("out", np.zeros((480, self.width)), stamp=(ctx.now, ctx.tick))
        ctx.emit("out", 1, giv=True)  # type: ignore[call-arg]
        ctx.emitt("out", 1)  # type: ignore[attr-defined]
        ctx.finish()


@weir.operator
def threshold(picture: Any, level: int = 100) -> Any:
    return np.where(picture < level, 0, 255)


@weir.operator(name="look", inputs=[weir.Port("picture", dtype="uint8")], effects=True)
def look(picture: weir.Message, ctx: weir.Context) -> None:
    assert_type(picture.shape, tuple[int, ...])
    assert_type(picture.stamp, tuple[int, int])
    print(np.asarray(picture).mean(), len(bytes(picture)), [part for part in picture])


def program() -> None:
    graph = weir.Graph()
    noise = graph.add(Noise(), name="noise", conditions=["boolean", {"type": "count", "count": 3}])
    assert_type(noise, weir.Entity)
    assert_type(noise.out, weir.End)
    assert_type(noise >> graph.add(threshold, level=3) >> graph.add(look), weir.Entity)
    graph.connect(noise.out, "look.picture", capacity=4, policy="pop")
    graph.connect(noise, "look.picture", policy="drop")  # type: ignore[arg-type]
    graph.add("blur", radius=3, max_in_flight="two")  # type: ignore[arg-type]
    noise >> 3  # type: ignore[operator]
    outlet = graph.outlet(noise)
    assert_type(graph.run(workers=1, backend="host", drain=0.5), weir.Outcome)
    graph.run(worker=1)  # type: ignore[call-arg]
    graph.run(backend="gpu")  # type: ignore[arg-type]
    with graph.start(trace=True) as running:
        assert_type(running, weir.Graph)
        for message in outlet:
            assert_type(message, weir.Message)
    threshold(np.zeros(3), levl=2)  # type: ignore[call-arg]
    assert_type(weir.check(graph), list[weir.Diagnostic])
    try:
        graph.wait(timeout=3)
    except weir.Error as error:
        assert_type(error.cause, str | None)
        assert_type(error.outcome, weir.Outcome | None)


async def asynchronous(graph: weir.Graph) -> None:
    await graph.inlet("a.in").push_async(1)
    async with graph.start():
        async for message in graph.outlet("a.out"):
            assert_type(message, weir.Message)
        assert_type(await graph.outlet("a.out").take_async(), weir.Message)
