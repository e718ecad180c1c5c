"""What an operator says: lines in the log, and a failure that comes after the drain."""

import pytest
from conftest import graph_of
from test_operators import run_compute

import weir


@pytest.fixture
def log(capfd):
    """Gives a function: the lines that the library's log has had since, of that level (1: errors, to 4) and those above it."""
    def lines_of(level, call):
        weir.log_to_stderr(level)
        try:
            call()
        finally:
            weir.log_to_stderr(0)
        return [line for line in capfd.readouterr().err.splitlines() if line.startswith("weir: once: ")]

    return lines_of


LEVELS = ["error", "warn", "info", "debug"]


def test_a_line_of_each_level_reaches_the_log_under_the_entitys_name(log):
    def say(self, ctx):
        for level in LEVELS:
            ctx.log(f"{level} at {ctx.tick}", level)

    for i, _ in enumerate(LEVELS, 1):
        assert log(i, lambda: run_compute(say)) == [f"weir: once: {level} at 0" for level in LEVELS[:i]]


def test_a_line_without_a_level_is_information_and_start_may_say_one_too(log):
    def run():
        run_compute(lambda self, ctx: ctx.log("in compute"), start=lambda self, ctx: ctx.log(text="in start", level="info"))

    assert log(3, run) == ["weir: once: in start", "weir: once: in compute"]
    assert log(2, run) == []


def test_a_line_is_escaped_and_no_format(log):
    assert log(3, lambda: run_compute(lambda self, ctx: ctx.log("100 %s %n\x1b[2J\nweir: forged"))) == \
        [r"weir: once: 100 %s %n\u001b[2J\nweir: forged"]


@pytest.mark.parametrize("level", ["warning", "INFO", ""])
def test_a_level_that_is_none_ends_the_run_and_says_which_there_are(level):
    with pytest.raises(weir.Error, match=f"ValueError: a level is error, warn, info or debug, not '{level}'") as caught:
        run_compute(lambda self, ctx: ctx.log("text", level))
    assert caught.value.entity == "once" and isinstance(caught.value.__cause__, ValueError)


@weir.operator
class Breaks:
    outputs = ["out"]

    def compute(self, ctx):
        if ctx.tick == 4:
            ctx.fail_after_drain("the fifth is broken")
        ctx.emit("out", ctx.tick)


def test_a_failure_after_the_drain_comes_when_all_that_was_emitted_has_arrived():
    with weir.Graph(graph_of(("a", "Breaks"), ("b", "Collect"))) as graph:
        with pytest.raises(weir.Error) as caught:
            graph.run(backend="host", workers=2)
        error = caught.value
        assert (error.status, error.entity, error.said) == (weir.Status.FAILED, "a", "the fifth is broken")
        assert error.__cause__ is None and error.outcome.leftover == 0
        assert graph["b"].instance.seen == [0, 1, 2, 3, 4]


def test_a_failure_after_the_drain_is_said_in_compute_alone():
    with pytest.raises(weir.Error, match="once: .*compute"):
        run_compute(lambda self, ctx: None, start=lambda self, ctx: ctx.fail_after_drain("too early"))
