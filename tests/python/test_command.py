"""`weir run --python FILE` and `python3 -m weir`."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import graph_of

COMMAND = os.environ.get("WEIR_COMMAND")
OPERATORS = """
import time, weir

@weir.operator
class Steps:
    outputs = ["out"]
    parameters = {"count": 5, "fail": False}
    def compute(self, ctx):
        if self.fail:
            raise ValueError("failed on purpose")
        ctx.emit("out", bytes(8))
        if ctx.tick + 1 == self.count:
            ctx.finish()
        if self.count < 0:
            open("begun", "w").close()
            time.sleep(0.005)
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "operators.py").write_text(OPERATORS)
    (tmp_path / "graph.json").write_text(json.dumps(graph_of(("steps", "Steps"), ("end", "sink"))))
    return tmp_path


def weir(files, *words, command=(COMMAND,), **others):
    return subprocess.run([*command, *words], cwd=files, capture_output=True, text=True, timeout=60, **others)


def both():
    """The command, and the module that it becomes."""
    module = pytest.param((sys.executable, "-m", "weir"), id="module")
    return [module, pytest.param((COMMAND,), id="command")] if COMMAND else [module]


@pytest.mark.parametrize("command", both())
def test_a_graph_runs_with_operators_of_a_file(files, command):
    found = weir(files, "run", "--python", "operators.py", "graph.json", "--backend", "host", command=command)
    assert found.returncode == 0 and found.stderr == ""
    assert found.stdout.startswith("graph.json: finished after ") and "steps" in found.stdout


@pytest.mark.parametrize("command", both())
def test_an_exception_is_printed_with_its_traceback_and_one_line(files, command):
    found = weir(files, "run", "graph.json", "--python", "operators.py", "--set", "steps.fail=true", command=command)
    assert found.returncode == 1 and "Traceback" in found.stderr
    assert found.stderr.splitlines()[-1] == \
        "weir run: graph.json: 'steps': ValueError: failed on purpose (operators.py:10)"


@pytest.mark.parametrize("command", both())
def test_check_and_show_know_the_operators(files, command):
    assert weir(files, "check", "--python", "operators.py", "graph.json", command=command).stdout == \
        "graph.json: no errors\n"
    shown = weir(files, "show", "--json", "--python", "operators.py", "graph.json", command=command).stdout
    assert json.loads(shown)["entities"][0]["parameters"]["count"] == 5


def test_a_wrong_graph_is_refused_with_its_place(files):
    (files / "graph.json").write_text('{"weir": 1, "entities": [{"name": "a", "operator": "Stops"}]}')
    found = weir(files, "run", "--python", "operators.py", "graph.json", command=(sys.executable, "-m", "weir"))
    assert found.returncode == 3 and found.stderr.startswith("graph.json:1:52: error W016:")


def test_a_file_that_is_not_there_is_one_line_at_the_end(files):
    found = weir(files, "run", "--python", "nowhere.py", "graph.json", command=(sys.executable, "-m", "weir"))
    assert found.returncode == 3
    assert found.stderr.splitlines()[-1] == "weir run: --python nowhere.py: no such Python file"


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_python_without_the_package_is_one_line(files):
    (files / "weir").mkdir()  # a folder of the same name is not the package
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    found = weir(files, "run", "--python", "operators.py", "graph.json", env=environment)
    assert found.returncode == 1 and len(found.stderr.splitlines()) == 1
    assert found.stderr.startswith("weir run: --python needs the Python package weir-gpu, which ")


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_no_python_is_one_line(files):
    found = weir(files, "run", "--python", "operators.py", "graph.json", env={"PATH": str(files)})
    assert found.returncode == 1 and len(found.stderr.splitlines()) == 1
    assert "cannot start python3: No such file" in found.stderr


@pytest.mark.parametrize("command", both())
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_the_run(files, command, number):
    words = [*command, "run", "--python", "operators.py", "graph.json", "--set", "steps.count=-1"]
    process = subprocess.Popen(words, cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (files / "begun").exists():
        time.sleep(0.01)
    process.send_signal(number)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name}" in out and "stopping: work in flight" in errors
