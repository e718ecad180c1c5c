"""Blocks of runs that are left by an exception: what operators hear, and so other processes that remote connections join."""

import asyncio
import ctypes
import pathlib
import re
import subprocess

import pytest

import weir

ROOT = pathlib.Path(__file__).resolve().parents[2]
BY_PROGRAM = r"the program failed: ValueError: the third\\nis broken \(test_blocks\.py:\d+\)"


@pytest.fixture
def hearing(tmp_path):
    """A graph whose run goes on, and what its operator has heard."""
    plugin = tmp_path / "libhears.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", plugin, ROOT / "tests/python/hears_plugin.c"], check=True)
    graph = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "hears"}]}, plugins=[plugin])
    heard = (ctypes.c_char * 1024).in_dll(ctypes.CDLL(plugin), "heard")
    heard.value = b""
    yield graph, lambda: heard.value.decode()
    graph.close()


def break_third():
    raise ValueError("the third\nis broken")


def test_an_exception_that_leaves_a_block_fails_the_run_by_its_text(hearing):
    graph, heard = hearing
    with pytest.raises(ValueError), graph.start(backend="host"):
        break_third()
    assert re.fullmatch(BY_PROGRAM, heard()), heard()


def test_also_one_that_leaves_the_block_of_the_graph(hearing):
    graph, heard = hearing
    with pytest.raises(ValueError), graph:
        graph.start(backend="host")
        break_third()
    assert re.fullmatch(BY_PROGRAM, heard()), heard()


def test_also_in_asyncio(hearing):
    async def work():
        async with hearing[0].start(backend="host"):
            break_third()

    with pytest.raises(ValueError):
        asyncio.run(work())
    assert re.fullmatch(BY_PROGRAM, hearing[1]()), hearing[1]()


@pytest.mark.parametrize("leaves", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_only_ends_the_program_stops_the_run(hearing, leaves):
    graph, heard = hearing
    with pytest.raises(leaves), graph.start(backend="host"):
        raise leaves()
    assert heard() == "it was stopped"


def test_a_run_that_was_over_does_not_fail(hearing):
    graph, heard = hearing
    with pytest.raises(ValueError), graph.start(backend="host"):
        graph.stop()
        assert graph.wait().stopped
        break_third()
    assert heard() == "it was stopped"


def test_what_an_operator_failed_by_before_is_kept(hearing, tmp_path):
    graph, heard = hearing

    @weir.operator
    class Bad:
        def compute(self, ctx):
            raise OSError("no camera")

    graph.add(Bad(), name="bad")
    with pytest.raises(ValueError), graph.start(backend="host"):
        while graph.running:
            pass
        break_third()
    assert heard().startswith("bad: OSError: no camera")
