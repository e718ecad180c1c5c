"""`weir run --python FILE` and `python3 -m weir`."""

import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from conftest import graph_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
        "weir run: graph.json: operator failed in 'steps': ValueError: failed on purpose (operators.py:10)"


@pytest.mark.parametrize("command", both())
def test_xa07_no_control_character_of_an_exception_reaches_the_terminal(files, command):
    strange = "\x1b[2J\x9b31m\u202e\ufeff"
    (files / "loading.py").write_text(f"raise ValueError({strange!a})  # {strange}\n")
    (files / "running.py").write_text(OPERATORS.replace('"failed on purpose"', f"{strange!a}") + f"# {strange}\n")
    for words in (["--python", "loading.py"], ["--python", "running.py", "--set", "steps.fail=true"], ["--python", "operators.py", f"--{strange}"]):
        found = weir(files, "run", "graph.json", *words, command=command)
        assert found.returncode and not set(found.stderr) & set(strange.replace("[2J", "").replace("31m", "")), found.stderr
        assert "\\u001b[2J\\u009b31m\\u202e\\ufeff" in found.stderr or words[-1].startswith("--"), found.stderr


@pytest.mark.parametrize("command", both())
def test_check_and_show_know_the_operators(files, command):
    assert weir(files, "check", "--python", "operators.py", "graph.json", command=command).stdout == \
        "graph.json: no errors\n"
    shown = weir(files, "show", "--json", "--python", "operators.py", "graph.json", command=command).stdout
    assert json.loads(shown)["entities"][0]["parameters"]["count"] == 5


@pytest.mark.parametrize("command", both())
def test_operators_of_a_file_are_listed(files, command):
    (files / "operators.py").write_text(OPERATORS.replace("class Steps:", 'class Steps:\n    """Emits eight bytes a tick."""', 1))
    all_ = weir(files, "operators", "--python", "operators.py", command=command)
    assert (all_.returncode, all_.stderr) == (0, "")
    lines = [line.split(maxsplit=1) for line in all_.stdout.splitlines()]
    assert ["Steps", "Emits eight bytes a tick."] in lines and "frames_read" in dict(lines)
    one = weir(files, "operators", "Steps", "--python", "operators.py", command=command)
    assert one.returncode == 0 and one.stdout == (
        "Steps: Emits eight bytes a tick.\n\nparameters\n  count: integer; default 5\n"
        "  fail: true or false; default false\n\noutputs\n  out: any message; at most 1 a tick\n")
    wrong = weir(files, "operators", "Step", "--python", "operators.py", command=command)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "weir operators: no operator 'Step' (did you mean 'Steps'?)\n"


POOLED = {"weir": 1, "resources": {"frames": {"type": "memory_pool", "blocks": 2, "block_size": 64}, "idle": {"type": "stream_pool"}},
          "entities": [{"name": "read", "operator": "frames_read", "parameters": {"bytes": 8}, "resources": ["frames"]},
                       {"name": "end", "operator": "sink"}], "connections": [["read.out", "end.in"]]}


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
@pytest.mark.parametrize("words", [
    ["check", "--max-file", "100", "edges.json"], ["show", "--max-file", "10", "edges.json"], ["run", "--max-file", "100", "edges.json"],
    ["operators", "frames_read"], ["operators", "--plugin", "nowhere.so"],
    ["check", "edges.json"], ["check", "-"], ["check", "pooled.json"], ["check", "nowhere.json"],
    ["check", "--set", "blur.radus=3", "edges.json"], ["check", "--set", "nope", "edges.json"],
    ["run", "--set", "blur.radus=3", "edges.json"], ["run", "--set", "nope", "edges.json"], ["run", "nowhere.json"],
    ["show", "--json", "--set", "blur.radius=3", "edges.json"], ["show", "--dot", "edges.json"], ["show", "pooled.json"],
])
def test_what_is_said_before_a_run_is_that_of_the_command_without_python(files, words):
    (files / "edges.json").write_text((ROOT / "examples/edges.json").read_text())
    (files / "pooled.json").write_text(json.dumps(POOLED))
    ended = [weir(files, *words, *python, stdin=open(files / "edges.json")) for python in ([], ["--python", "operators.py"])]
    without, with_python = [(one.returncode, one.stdout, one.stderr) for one in ended]
    assert with_python == without and any(without[1:])


@pytest.mark.parametrize("command", both())
def test_sigint_while_the_graph_is_read_ends_the_process(files, command):
    reader, writer = os.pipe()
    os.write(writer, b"{")
    process = subprocess.Popen([*command, "run", "--python", "operators.py", "-"], cwd=files, stdin=reader, stderr=subprocess.PIPE)
    while process.poll() is None and struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0]:
        time.sleep(0.01)  # it was not read yet
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    os.close(reader), os.close(writer)
    assert (process.returncode, said) == (130, b"weir run: stopped before the run began\n")


@pytest.mark.parametrize("command", both())
def test_a_full_disk_behind_the_summary_is_one_line(files, command):
    with open("/dev/full", "w") as full:
        found = subprocess.run([*command, "run", "--python", "operators.py", "graph.json"], cwd=files, stdout=full,
                               stderr=subprocess.PIPE, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (1, "weir run: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize("command", both())
@pytest.mark.parametrize("quiet", [False, True])
def test_a_warning_of_the_library_is_a_line_of_the_command(files, command, quiet):
    entities = [{"name": "read", "operator": "frames_read", "parameters": {"bytes": 8},
                 "conditions": [{"type": "file_descriptor", "warn_after": "20ms"}]},
                {"name": "end", "operator": "sink"}]
    (files / "graph.json").write_text(json.dumps({"weir": 1, "entities": entities, "connections": [["read.out", "end.in"]]}))
    words = ["run", "--python", "operators.py", "graph.json", "--backend", "sim", "--duration", "100ms", *["--quiet"] * quiet]
    reader, writer = os.pipe()
    found = weir(files, *words, command=command, stdin=reader)
    os.close(reader), os.close(writer)
    line = "weir run: warning: read: has waited 20 ms for descriptor 0 (readable): nothing comes from standard input: 0 frames came\n"
    assert (found.returncode, found.stderr) == (0, "" if quiet else line)


@pytest.mark.parametrize("words, code, said", [
    (["--help"], 0, "  report      RUN.json [TRACE.json]"), (["run", "--help"], 0, "  --strict "), (["conditions"], 0, "cuda_stream"),
    (["run", "--pyhton", "operators.py", "graph.json"], 2, "weir run: unknown option '--pyhton' (did you mean '--python'?)"),
    (["run", "--python", "operators.py", "graph.json", "--workers", "0"], 2, "weir run: --workers '0': expected a number from 1 to 64"),
    (["run", "--python", "operators.py", "graph.json", "--backend", "sim"], 1,
     "weir run: graph.json: 'steps': operators in Python do not run on the backend 'sim': use 'host'"),
    (["run", "--python", "operators.py", "graph.json", "--backend", "host", "--seed", "1"], 0, "weir run: warning: --seed has no effect without --backend sim"),
])
def test_the_module_is_the_command(files, words, code, said):
    ended = [weir(files, *words, command=command.values[0]) for command in both()]
    for one in ended:
        assert one.returncode == code and said in one.stdout + one.stderr, one
    assert len({re.sub(r"[\d.,]+ (?:[num]?s|frames/s)|  +", "", one.stdout) for one in ended}) == 1


def test_the_module_reports_on_a_run(files):
    command = (sys.executable, "-m", "weir")
    assert weir(files, "run", "--python", "operators.py", "graph.json", "--stats-file", "run.json", command=command).returncode == 0
    report = weir(files, "report", "--json", "run.json", command=command)
    assert report.returncode == 0 and json.loads(report.stdout), report


@pytest.mark.parametrize("command", both())
def test_sigint_while_a_file_is_loaded_ends_the_process(files, command):
    (files / "slow.py").write_text("import time\nopen('begun', 'w').close()\nwhile True:\n    time.sleep(0.01)\n")
    process = subprocess.Popen([*command, "run", "--python", "slow.py", "graph.json"], cwd=files, stderr=subprocess.PIPE)
    while not (files / "begun").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert (process.communicate(timeout=20)[1], process.returncode) == (b"weir run: stopped before the run began\n", 130)


@pytest.mark.parametrize("command", both())
def test_what_operators_print_goes_before_the_summary(files, command):
    (files / "operators.py").write_text(OPERATORS.replace("        if self.fail", "        print('tick', ctx.tick)\n        if self.fail"))
    found = weir(files, "run", "--python", "operators.py", "graph.json", command=command)
    assert found.stdout.splitlines()[:6] == [f"tick {i}" for i in range(5)] + [found.stdout.splitlines()[5]]
    assert found.returncode == 0 and found.stdout.splitlines()[5].startswith("graph.json: finished after ")


@pytest.mark.parametrize("command", both())
def test_what_operators_print_on_a_full_disk_is_one_line(files, command):
    (files / "operators.py").write_text(OPERATORS.replace("        if self.fail", "        print('tick', ctx.tick)\n        if self.fail"))
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        found = subprocess.run([*command, "run", "--quiet", "--python", "operators.py", "graph.json"], cwd=files, stdout=full,
                               stderr=subprocess.PIPE, text=True, timeout=60, env=buffered)
    assert (found.returncode, found.stderr) == (1, "weir run: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize("command", both())
def test_handlers_of_signals_in_python_run_during_the_run(files, command):
    (files / "operators.py").write_text(OPERATORS + "import signal\nsignal.signal(signal.SIGUSR2, lambda *_: open('handled', 'w').close())\n")
    process = subprocess.Popen([*command, "run", "--quiet", "--python", "operators.py", "graph.json", "--set", "steps.count=-1"], cwd=files)
    while not (files / "begun").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGUSR2)
    while not (files / "handled").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130 and (files / "handled").exists()


def test_a_wrong_graph_is_refused_with_its_place(files):
    (files / "graph.json").write_text('{"weir": 1, "entities": [{"name": "a", "operator": "Stops"}]}')
    found = weir(files, "run", "--python", "operators.py", "graph.json", command=(sys.executable, "-m", "weir"))
    assert found.returncode == 3 and found.stderr.startswith("graph.json:1:52: error W016:")


def test_a_file_that_is_not_there_is_one_line_at_the_end(files):
    found = weir(files, "run", "--python", "nowhere.py", "graph.json", command=(sys.executable, "-m", "weir"))
    assert found.returncode == 3
    assert found.stderr == "weir run: --python nowhere.py: no such Python file\n"


@pytest.mark.parametrize("text, line", [
    ("import weir\n\n@weir.operator\nclass Wrong:\n    inputs = []\n",
     "TypeError: class Wrong: it has no method compute(self, ctx) (wrong.py:3)"),
    ("def (\n", "SyntaxError: invalid syntax (wrong.py, line 1)"),
    ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name' (wrong.py:1)"),
])
def test_what_is_wrong_in_a_file_is_named_with_its_place(files, text, line):
    (files / "wrong.py").write_text(text)
    found = weir(files, "run", "--python", "wrong.py", "graph.json", command=(sys.executable, "-m", "weir"))
    assert found.returncode == 3 and found.stderr.splitlines()[-1] == f"weir run: --python wrong.py: {line}"
    assert "importlib" not in found.stderr and "operators.py" not in found.stderr.splitlines()[-1]


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
    while not (files / "begun").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name}" in out and "stopping when the work in flight is done" in errors


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
@pytest.mark.parametrize("options", [["--stats"], ["--stats", "--stats-skip", "3", "--gpu-time", "all"], ["--quiet"]])
@pytest.mark.parametrize("graph, sets", [("edges.json", ["--set", "read.repeat=4"]), ("slow.json", [])])
def test_the_tables_are_those_of_the_command_without_python(tmp_path, graph, sets, options):
    """On sim, where two runs take the same time."""
    shutil.copytree(ROOT / "examples/images", tmp_path / "examples/images")
    (tmp_path / graph).write_text((ROOT / "examples" / graph).read_text())
    (tmp_path / "none.py").write_text("")
    words = [graph, "--backend", "sim", "--seed", "7", *sets, *options]
    with_python = weir(tmp_path, "run", "--python", "none.py", *words)
    without = weir(tmp_path, "run", *words)
    assert (with_python.returncode, with_python.stderr) == (0, without.stderr)
    assert with_python.stdout == without.stdout and ("p99" in without.stdout) == ("--stats" in options)


@pytest.mark.parametrize("command", both())
def test_statistics_and_the_trace_are_written(files, command):
    words = ["--python", "operators.py", "graph.json", "--quiet", "--backend", "host"]
    found = weir(files, "run", *words, "--stats-file", "run.json", "--trace", "trace.json", command=command)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    ticks = {e["name"]: e["ticks"] for e in json.loads((files / "run.json").read_text())["entities"]}
    assert ticks == {"steps": 5, "end": 5}
    events = json.loads((files / "trace.json").read_text())["traceEvents"]
    assert sum(e.get("ph") == "B" and e.get("name") == "steps" for e in events) == 5
    if command == (COMMAND,):
        report = weir(files, "report", "--json", "run.json")
        assert report.returncode == 0 and json.loads(report.stdout)


@pytest.mark.parametrize("command", both())
def test_statistics_of_a_run_that_failed_are_written(files, command):
    words = ["--python", "operators.py", "graph.json", "--set", "steps.fail=true", "--stats-file", "run.json"]
    found = weir(files, "run", *words, command=command)
    assert found.returncode == 1 and json.loads((files / "run.json").read_text())["ending"] == "operator failed"
    assert found.stdout.startswith("graph.json: operator failed after ")


@pytest.mark.parametrize("option", ["stats-file", "trace"])
def test_a_path_that_cannot_be_written_is_one_line_before_the_run(files, option):
    words = ["--python", "operators.py", "graph.json", "--trace", "b.json", f"--{option}", "nowhere/a.json"]
    found = weir(files, "run", *words, command=(sys.executable, "-m", "weir"))
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == f"weir run: --{option} 'nowhere/a.json': No such file or directory\n"
    assert not (files / "b.json").exists()


@pytest.mark.parametrize("option, path, text", [
    ("--stats-file", "/dev/full", "/dev/full: No space left on device"), ("--trace", "/dev/full", "No space left"),
])
def test_a_file_that_cannot_be_written_whole_is_one_line_and_the_code_of_the_run(files, option, path, text):
    words = ["--python", "operators.py", "graph.json", "--quiet", option, path]
    found = weir(files, "run", *words, command=(sys.executable, "-m", "weir"))
    assert found.returncode == 0 and found.stderr.startswith("weir run: ") and text in found.stderr
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", both())
def test_an_old_file_stays_if_the_new_one_cannot_be_written_whole(files, command):
    (files / "run.json").write_text("old")
    words = ["--python", "operators.py", "graph.json", "--quiet", "--stats-file", "run.json", "--trace", "trace.json"]
    found = weir(files, "run", *words, command=command, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)))
    assert found.returncode == 0 and sorted(line.split(": ")[-1] for line in found.stderr.splitlines()) == ["File too large"] * 2
    assert (files / "run.json").read_text() == "old" and not (files / "trace.json").exists()
    assert not list(files.glob(".weir-*"))


def test_a_run_that_does_not_start_leaves_no_file(files):
    (files / "operators.py").write_text(OPERATORS.replace("def compute", "def start(self, ctx):\n        raise OSError('no camera')\n    def compute"))
    words = ["--python", "operators.py", "graph.json", "--stats-file", "run.json", "--trace", "trace.json"]
    found = weir(files, "run", *words, command=(sys.executable, "-m", "weir"))
    assert found.returncode == 1 and "no camera" in found.stderr.splitlines()[-1]
    assert sorted(path.name for path in files.iterdir() if path.suffix == ".json") == ["graph.json"]


@pytest.mark.parametrize("words", [["--gpu-time", "sample:0"], ["--trace-events", "0"], ["--stats-skip", "-1"]])
def test_wrong_values_are_refused(files, words):
    found = weir(files, "run", "--python", "operators.py", "graph.json", *words, command=(sys.executable, "-m", "weir"))
    assert found.returncode == 2 and words[0] in found.stderr.splitlines()[-1]


FRAMES = """
import weir

@weir.operator
class Inverts:
    inputs, outputs = ["in"], ["out"]
    def compute(self, ctx):
        message = ctx.receive("in")
        made = ctx.empty(message.shape, "uint8", on_host=True)
        view = memoryview(made).cast("B")
        view[:] = bytes(255 - value for value in memoryview(message).cast("B"))
        ctx.emit("out", made)
"""


@pytest.fixture
def frames(tmp_path):
    """frames_read from standard input -> an operator in Python -> frames_write to standard output"""
    reader = {"name": "read", "operator": "frames_read", "parameters": {"width": 4, "height": 2, "channels": 3}}
    entities = [reader, {"name": "invert", "operator": "Inverts"}, {"name": "write", "operator": "frames_write"}]
    described = {"weir": 1, "entities": entities, "connections": [["read.out", "invert.in"], ["invert.out", "write.in"]]}
    (tmp_path / "operators.py").write_text(FRAMES)
    (tmp_path / "graph.json").write_text(json.dumps(described))
    return tmp_path


@pytest.mark.parametrize("command", both())
def test_frames_go_through_an_operator_in_python_and_nothing_follows_them(frames, command):
    words = [*command, "run", "--python", "operators.py", "graph.json", "--stats"]
    found = subprocess.run(words, cwd=frames, input=bytes(range(24)) * 3, capture_output=True, timeout=60)
    assert found.returncode == 0 and found.stdout == bytes(255 - i for i in range(24)) * 3
    assert b"finished after" in found.stderr and b"p99" in found.stderr


@pytest.mark.parametrize("command", both())
def test_a_graph_on_standard_input_leaves_no_frames_there(frames, command):
    words, described = ("run", "--python", "operators.py", "-"), (frames / "graph.json").read_text()
    found = weir(frames, *words, command=command, input=described)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (1, "", 1)
    assert "/entities/0/parameters/path: standard input is also read as the graph, and what one takes the other lacks" in found.stderr
    (frames / "frames.rgb").write_bytes(bytes(24))
    found = weir(frames, *words, "--set", "read.path=frames.rgb", "--set", "write.path=out.rgb", command=command, input=described)
    assert found.returncode == 0 and (frames / "out.rgb").read_bytes() == bytes([255] * 24)


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
@pytest.mark.parametrize("command", both())
def test_the_files_of_the_command_line_are_in_the_table(frames, command):
    (frames / "frames.rgb").write_bytes(bytes(24))
    options = ("run", "--quiet", "--python", "operators.py", "graph.json", "--set", "read.path=frames.rgb")
    for words, said in ((("--stats-file", "graph.json"), "--stats-file: 'graph.json' is also read as the graph: name another one"),
                        (("--trace", "./operators.py"), "--trace: './operators.py' is the same as 'operators.py', which is read as --python"),
                        (("--set", "write.path=operators.py"), "'operators.py' is also written by 'write' (/entities/2/parameters/path)"),
                        (("--set", "write.path=frames.rgb"), "'frames.rgb' is also read by 'read' (/entities/0/parameters/path)")):
        found = weir(frames, *options, *words, command=command)
        assert found.returncode == 1 and said in found.stderr and found.stderr.count("\n") == 1, found.stderr
    assert (frames / "frames.rgb").read_bytes() == bytes(24) and "Inverts" in (frames / "operators.py").read_text()


WRITES = """
import weir

@weir.operator
class Writes:
    parameters = {"to": weir.Parameter("write_file", "out.txt"), "fd": weir.Parameter("write_descriptor", -1)}
    inputs = ["in"]
    def compute(self, ctx):
        ctx.receive("in")

@weir.operator
class Breaks:
    parameters = {"path": weir.Parameter("read_file", "in.txt")}
    outputs = ["out"]
    def compute(self, ctx):
        ctx.emit("out", None)
        if ctx.tick == 2:
            ctx.fail_after_drain("the third is broken")
"""


@pytest.mark.parametrize("command", both())
def test_operators_in_python_say_which_files_they_use_and_fail_after_the_drain(tmp_path, command):
    (tmp_path / "operators.py").write_text(WRITES)
    entities = [{"name": "a", "operator": "Breaks"}, {"name": "p", "operator": "print"}, {"name": "b", "operator": "Writes"}]
    described = {"weir": 1, "entities": entities, "connections": [{"from": "a.out", "to": ["p.in", "b.in"]}]}
    (tmp_path / "graph.json").write_text(json.dumps(described))
    found = weir(tmp_path, "check", "--python", "operators.py", "graph.json", "--set", "b.to=./in.txt", command=command)
    assert found.returncode == 3 and "W050: /entities/2/parameters/to: './in.txt' is the same as 'in.txt', which is read by 'a'" in found.stderr
    assert "fd: descriptor that is written; default -1" in weir(tmp_path, "operators", "Writes", "--python", "operators.py", command=command).stdout
    found = weir(tmp_path, "run", "--quiet", "--python", "operators.py", "graph.json", command=command)
    assert found.returncode == 1 and found.stdout.count("p: tick") == 3, found
    assert found.stderr == "weir run: graph.json: operator failed in 'a': the third is broken\n"


SAYS = """
import weir

@weir.operator
class Says:
    outputs = ["out"]
    def compute(self, ctx):
        for level in ("error", "warn", "info", "debug"):
            ctx.log(f"{level} of tick {ctx.tick}", level)
        ctx.finish()
"""


@pytest.mark.parametrize("words, setting, said", [
    ([], {}, ["weir run: a: error of tick 0", "weir run: warning: a: warn of tick 0"]),
    (["--quiet"], {}, ["weir run: a: error of tick 0"]),
    ([], {"WEIR_LOG": "debug"}, [f"weir TIME {level}: a: {level} of tick 0" for level in ("error", "warn", "info", "debug")]),
    ([], {"WEIR_LOG": "off"}, []),
])
@pytest.mark.parametrize("command", both())
def test_what_operators_log_are_lines_of_the_command(tmp_path, command, words, setting, said):
    (tmp_path / "operators.py").write_text(SAYS)
    (tmp_path / "graph.json").write_text(json.dumps(graph_of(("a", "Says"), ("end", "sink"))))
    found = weir(tmp_path, "run", *words, "--backend", "host", "--python", "operators.py", "graph.json", command=command,
                 env={**os.environ, **setting})
    lines = [re.sub(r"^weir \d+\.\d+ ", "weir TIME ", line) for line in found.stderr.splitlines()]
    assert found.returncode == 0 and [line for line in lines if "of tick" in line] == said, found
    assert lines == said or setting, found


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_a_plugin_comes_beside_a_python_file(files):
    page = (ROOT / "docs/writing-conditions.md").read_text()
    (files / "batch.c").write_text(page.split("```c example\n")[1].split("```")[0])
    compile_ = ["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", files / "libbatch.so", files / "batch.c"]
    subprocess.run(compile_, check=True)
    graph = graph_of(("steps", "Steps"), ("end", "sink"))
    graph["entities"][1] |= {"ports": {"in": {"capacity": 8, "take": "all"}},
                             "conditions": [{"type": "batch", "port": "in", "size": 5}]}
    (files / "graph.json").write_text(json.dumps(graph))
    found = weir(files, "run", "--plugin", "./libbatch.so", "--python", "operators.py", "graph.json", "--backend", "host")
    assert found.returncode == 0 and "  end              1           5" in found.stdout, found


@pytest.mark.parametrize("words", [[COMMAND], [sys.executable, "-m", "weir"]], ids=["weir", "python -m weir"])
def test_a_file_imports_what_lies_beside_it(words, tmp_path):
    """Two files, each with a module of its own beside it; the second by a link to the file."""
    if not words[0]:
        pytest.skip("the command was not built")
    operator = "import weir, beside_{0}\n@weir.operator(name='{0}')\nclass C:\n" \
               "    def compute(self, ctx): print(beside_{0}.said + chr(10), end=''); ctx.finish()\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"beside_{name}.py").write_text(f"said = 'of {name}'\n")
        (tmp_path / name / "ops.py").write_text(operator.format(name))
    (tmp_path / "link.py").symlink_to("two/ops.py")
    (tmp_path / "graph.json").write_text('{"weir": 1, "entities": [{"name": "a", "operator": "one"}, {"name": "b", "operator": "two"}]}')
    found = subprocess.run([*words, "run", "--quiet", "--workers", "1", "--backend", "host", "--python", "one/ops.py", "--python", "link.py", "graph.json"],
                           cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr, sorted(found.stdout.split("\n"))) == (0, "", ["", "of one", "of two"])
