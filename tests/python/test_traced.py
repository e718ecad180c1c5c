"""Profilers, coverage and debuggers see compute on weir's workers."""

import subprocess
import sys
import threading

import pytest
from conftest import graph_of

import weir


@weir.operator
class Traced:
    outputs = ["out"]

    def compute(self, ctx):
        self.work(ctx)
        if ctx.tick == 9:
            ctx.finish()

    def work(self, ctx):
        ctx.emit("out", ctx.tick)


def called_in_a_run(workers):
    graph = weir.Graph(graph_of(("a", "Traced"), ("end", "sink")))
    graph.run(backend="host", workers=workers)
    return graph


@pytest.mark.parametrize("kind", ["settrace", "setprofile"])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_function_of_threading_sees_every_tick_also_in_a_second_run(kind, workers):
    seen = []

    def look(frame, event, arg):
        if event == "call":
            seen.append((frame.f_code.co_name, threading.get_ident()))

    graph = called_in_a_run(workers)
    getattr(threading, kind)(look)
    try:
        graph.run()
    finally:
        getattr(threading, kind)(None)
    assert [name for name, _ in seen].count("work") == 10 and [name for name, _ in seen].count("compute") == 10
    assert threading.get_ident() not in {thread for name, thread in seen if name == "work"}
    seen.clear()
    graph.run()
    assert seen == []
    graph.close()


def test_a_trace_function_that_raises_is_that_of_python_alone():
    def look(frame, event, arg):
        if frame.f_code.co_name == "work":
            raise ValueError("of the trace function")

    threading.settrace(look)
    try:
        with pytest.raises(weir.Error, match="ValueError: of the trace function"):
            called_in_a_run(1)
    finally:
        threading.settrace(None)


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="cProfile needs the GIL")
def test_cprofile_is_begun_on_each_worker_by_threadings_function(tmp_path):
    """What docs/python.md shows; an interpreter of 3.12 or newer profiles all threads anyway. Without the
    GIL cProfile crashes or hangs beside any threads, those of threading too."""
    from test_examples import program_of

    program = program_of("Profilers, coverage, debuggers", tmp_path)
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    [line] = [line for line in found.stdout.splitlines() if line.endswith("(work)")]
    assert line.split()[0] == "100"
