"""What the tests share: graphs of a source and a sink in Python, registered once; and which of them may be skipped."""

import os

import numpy as np
import pytest

import weir

SKIPS = ("run.py --long", "the sanitizer's allocator", "no openvino", "no onnx", "no torch", "no mlcommons-loadgen", "this interpreter frees no class",
         "cProfile needs the GIL")
# Any other skip is a failure where the environment has CI.


def pytest_sessionfinish(session):
    """Fails the run if a test was skipped that may not be."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skips = [f"{report.nodeid}: {report.longrepr}" for report in reporter.stats.get("skipped", [])]
    wrong = [skip for skip in skips if not any(allowed in skip for allowed in SKIPS)]
    if wrong and os.environ.get("CI"):
        print("\nskipped, which conftest.py does not allow:", *wrong, sep="\n")
        session.exitstatus = 1


@weir.operator
class Count:
    """Emits arrays that hold the number of their tick."""

    outputs = ["out"]
    parameters = {"count": 10, "shape": 4}

    def compute(self, ctx):
        ctx.emit("out", np.full(self.shape, ctx.tick, dtype=np.float32))
        if ctx.tick + 1 == self.count:
            ctx.finish()


@weir.operator
class Collect:
    """Keeps what it received, copied."""

    inputs = ["in"]

    def start(self, ctx):
        self.seen = []

    def compute(self, ctx):
        message = ctx.receive("in")
        kinds = {"tensor": np.array, "object": lambda m: m.object, "bytes": bytes, "empty": lambda m: None}
        take = kinds.get(message.kind, lambda m: {name: np.array(part) for name, part in m.parts.items()})
        self.seen.append(take(message))


def graph_of(*entities, **others):
    """graph_of(("a", "Count", {"count": 3}), ("b", "Collect")): a chain, out to in."""
    listed = [{"name": e[0], "operator": e[1], "parameters": e[2] if len(e) > 2 else {}} for e in entities]
    pairs = zip(listed, listed[1:])
    return {"weir": 1, "entities": listed, "connections": [[f"{a['name']}.out", f"{b['name']}.in"] for a, b in pairs],
            **others}


@pytest.fixture
def chain():
    """Makes a chain and closes it after the test."""
    made = []

    def make(*entities, **others):
        made.append(weir.Graph(graph_of(*entities, **others)))
        return made[-1]

    yield make
    for graph in made:
        graph.close()
