"""weir's log in Python's logging: every line once, whatever a handler does."""

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import graph_of
from test_operators import run_compute

import weir


class Keep(logging.Handler):
    def __init__(self, act=lambda record: None):
        super().__init__()
        self.records, self.act = [], act

    def emit(self, record):
        self.records.append(record)
        self.act(record)

    @property
    def texts(self):
        return [record.getMessage() for record in self.records]


@pytest.fixture
def keep():
    """Adds a handler to the logger "weir", which then has all levels."""
    logger, added = logging.getLogger("weir"), []

    def add(*arguments):
        added.append(Keep(*arguments))
        logger.addHandler(added[-1])
        return added[-1]

    logger.setLevel(logging.DEBUG)
    yield add
    logger.setLevel(logging.NOTSET)
    for handler in added:
        logger.removeHandler(handler)


def reader_of(descriptor):
    """The name of an operator that waits for the descriptor and says so soon."""

    class LogReader:
        outputs = ["out"]
        conditions = [{"type": "file_descriptor", "warn_after": "10ms"}]

        def start(self, ctx):
            ctx.watch(descriptor)

        def compute(self, ctx):
            ctx.finish()

    weir.operator(LogReader)
    return "LogReader"


def test_each_level_is_that_of_logging_and_the_entity_is_in_the_text(keep):
    seen, before = keep(), time.time()
    run_compute(lambda self, ctx: [ctx.log(f"100 %s {word}", word) for word in ("error", "warn", "info", "debug")])
    told = [record for record in seen.records if record.getMessage().startswith("once: ")]
    assert [(r.name, r.levelname, r.getMessage()) for r in told] == [
        ("weir", level, f"once: 100 %s {word}")
        for level, word in zip(("ERROR", "WARNING", "INFO", "DEBUG"), ("error", "warn", "info", "debug"))]
    assert all(before <= r.created <= time.time() and 0 <= r.msecs < 1000 for r in told)


def test_a_line_of_a_thread_of_weirs_comes_while_nothing_else_calls_weir(keep):
    come = threading.Event()
    seen = keep(lambda record: come.set() if "has waited" in record.getMessage() else None)
    read, write = os.pipe()

    with weir.Graph(graph_of(("a", reader_of(read)), ("end", "sink"))) as graph:
        graph.start(backend="host")
        assert come.wait(10)
        os.close(write)
        graph.wait(10)
    os.close(read)
    line = next(r for r in seen.records if "has waited" in r.getMessage())
    assert line.levelno == logging.WARNING and line.getMessage().startswith("a: has waited")


def test_no_line_is_lost_and_none_comes_twice_from_several_workers(keep):
    seen, names = keep(), [f"e{i}" for i in range(4)]

    @weir.operator
    class Chatty:
        outputs = ["out"]

        def compute(self, ctx):
            ctx.log(f"{ctx.tick}")
            ctx.emit("out", None)
            if ctx.tick == 499:
                ctx.finish()

    graph = weir.Graph({"weir": 1, "entities": [{"name": n, "operator": "Chatty"} for n in names] +
                        [{"name": f"s{n}", "operator": "sink"} for n in names],
                        "connections": [[f"{n}.out", f"s{n}.in"] for n in names]})
    graph.run(backend="host", workers=4)
    graph.close()
    for name in names:
        assert [t for t in seen.texts if t.startswith(f"{name}: ")] == [f"{name}: {i}" for i in range(500)]


def test_a_handler_that_raises_is_shown_and_ends_nothing(keep, capfd):
    def act(record):
        raise ValueError("of the handler")

    broken, behind = keep(act), keep()
    run_compute(lambda self, ctx: [ctx.log(f"line {i}", "warn") for i in range(3)])
    told = [text for text in broken.texts if text.startswith("once: ")]
    assert told == [f"once: line {i}" for i in range(3)]
    assert "ValueError: of the handler" in capfd.readouterr().err
    assert behind.texts == []  # logging itself stops at the first that raises


def logging_takes_lines_of_handlers():
    """Whether this interpreter's logging does: that of CPython 3.13.5 drops them."""
    logger = logging.Logger("alone")
    handler = Keep(lambda record: record.msg and logger.info(""))
    logger.addHandler(handler)
    logger.info("first")
    return len(handler.records) == 2


def test_a_handler_may_log_itself_and_call_weir(keep):
    logger, graph = logging.getLogger("weir"), weir.Graph(graph_of(("b", "Count", {"count": 2}), ("end", "sink")))

    def act(record):
        if record.getMessage() == "once: first":
            logger.info("of the handler")
            graph.run(backend="host")
            weir.log_to_stderr(0)

    seen = keep(act)
    run_compute(lambda self, ctx: [ctx.log("first"), ctx.log("second")])
    graph.close()
    told = [text for text in seen.texts if text in ("once: first", "of the handler", "once: second")]
    assert told == ["once: first", *["of the handler"] * logging_takes_lines_of_handlers(), "once: second"]


def test_a_lock_that_the_waiting_thread_holds_does_not_hold_up_the_end(keep):
    """A handler wants a lock that the thread in wait has: the run ends all the same, and so does the wait."""
    lock, read, write = threading.Lock(), *os.pipe()
    entered = threading.Event()

    def act(record):
        if "has waited" in record.getMessage():
            entered.set()
            with lock:
                pass

    keep(act)
    with lock, weir.Graph(graph_of(("a", reader_of(read)), ("end", "sink"))) as graph:
        graph.start(backend="host")
        assert entered.wait(10)
        os.close(write)
        assert graph.wait(10).status == weir.Status.OK
    os.close(read)


PROGRAM = """
    import logging, sys, weir
    @weir.operator
    class Says:
        def compute(self, ctx):
            for level in ("error", "warn", "info", "debug"):
                ctx.log(level, level)
            ctx.finish()
    graph = {"weir": 1, "entities": [{"name": "a", "operator": "Says"}]}
"""


def run(tmp_path, rest, *words):
    (tmp_path / "says.py").write_text(textwrap.dedent(PROGRAM) + textwrap.dedent(rest))
    return subprocess.run([sys.executable, *(words or ["says.py"])], cwd=tmp_path, capture_output=True, text=True, timeout=20)


def test_who_configures_nothing_gets_warnings_and_errors_on_stderr(tmp_path):
    found = run(tmp_path, 'weir.Graph(graph).run(backend="host")')
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "a: error\na: warn\n")


def test_basic_config_gets_all_and_log_to_stderr_takes_the_lines(tmp_path):
    found = run(tmp_path, """
        logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(levelname)s %(name)s: %(message)s")
        g = weir.Graph(graph)
        g.run(backend="host")
        weir.log_to_stderr(1)
        g.run()
    """)
    lines = [line for line in found.stdout.splitlines() if " weir: a: " in line]
    assert lines == ["ERROR weir: a: error", "WARNING weir: a: warn", "INFO weir: a: info", "DEBUG weir: a: debug"]
    assert (found.returncode, found.stderr) == (0, "weir: a: error\n")


def test_the_command_prints_the_log_itself(tmp_path):
    (tmp_path / "graph.json").write_text('{"weir": 1, "entities": [{"name": "a", "operator": "Says"}]}')
    found = run(tmp_path, "logging.basicConfig(level=logging.DEBUG)", "-m", "weir", "run", "--python", "says.py", "--quiet",
                "--backend", "host", "graph.json")
    assert (found.returncode, found.stderr) == (0, "weir run: a: error\n")


def test_lines_of_a_run_that_the_exit_ends_come_before_the_handlers_are_closed(tmp_path):
    found = run(tmp_path, """
        class Stops:
            outputs = ["out"]
            def compute(self, ctx): ctx.emit("out", None)
            def stop(self, ctx): ctx.log("the end", "warn")
        weir.operator(Stops)
        g = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Stops"}, {"name": "s", "operator": "sink"}],
                        "connections": [["a.out", "s.in"]]})
        g.start(backend="host")
    """)
    assert (found.returncode, found.stderr) == (0, "a: the end\n")


def test_a_handler_that_never_returns_does_not_hold_up_the_exit(tmp_path):
    found = run(tmp_path, """
        import os, threading
        read, write = os.pipe()
        entered = threading.Event()
        class Sleeps(logging.Handler):
            def handle(self, record):  # without the lock, for which logging itself waits at the exit
                entered.set()
                threading.Event().wait()
        logging.getLogger("weir").addHandler(Sleeps())
        @weir.operator
        class Waits:
            conditions = [{"type": "file_descriptor", "warn_after": "10ms"}]
            def start(self, ctx): ctx.watch(read)
            def compute(self, ctx): ctx.finish()
        g = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Waits"}]})
        g.start(backend="host")
        entered.wait(10)
        os.close(write)
        print(g.wait(10).status.name, flush=True)
    """)
    assert (found.returncode, found.stdout) == (0, "OK\n"), found.stderr
