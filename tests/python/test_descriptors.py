"""Operators that sleep on a descriptor: ctx.watch."""

import os
import re
import time

import pytest
from conftest import graph_of

import weir


@weir.operator
class Reader:
    """Sleeps until its pipe has something to read."""

    outputs = ["out"]
    conditions = [{"type": "file_descriptor"}]
    fd = -1

    def start(self, ctx):
        ctx.watch(Reader.fd)

    def compute(self, ctx):
        data = os.read(Reader.fd, 100)
        if data:
            ctx.emit("out", data)
        else:
            ctx.watch(-1)
            ctx.finish()


def test_an_operator_brings_its_condition_and_sleeps_on_a_descriptor():
    Reader.fd, end = os.pipe()
    with weir.Graph(graph_of(("a", "Reader"))) as graph:
        outlet = graph.outlet("a.out")
        graph.start(backend="host")
        for text in (b"one", b"two"):
            os.write(end, text)
            assert bytes(outlet.take(10)) == text
        os.close(end)
        assert list(outlet) == [] and graph.wait(10).status == weir.Status.OK
    os.close(Reader.fd)


def warning(after):
    text = graph_of(("a", "Reader", {}), ("end", "sink"))
    text["entities"][0]["conditions"] = [{"type": "file_descriptor", "warn_after": after}]
    return text


def test_a_wait_that_is_long_is_logged(capfd):
    Reader.fd, end = os.pipe()
    weir.log_to_stderr(2)
    try:
        with weir.Graph(warning("10ms")) as graph:
            graph.start(backend="host")
            said, until = "", time.monotonic() + 10
            while "has waited" not in said and time.monotonic() < until:
                time.sleep(0.01)
                said += capfd.readouterr().err
            os.close(end)
            graph.wait(10)
    finally:
        weir.log_to_stderr(0)
        os.close(Reader.fd)
    assert re.fullmatch(rf"weir: a: has waited [\d.]+ ms for descriptor {Reader.fd} \(readable\)\n", said), said


def test_a_negative_time_is_refused():
    with pytest.raises(weir.Error, match="warn_after"):
        weir.Graph(warning("-1s"))
