"""The examples, and what docs/python.md shows."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("WEIR_COMMAND")
STREAMS = ROOT / "examples/python/streams.py"


def python(*words, **others):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, **others)


@pytest.mark.parametrize("options", [[], ["--default-stream"]], ids=["streams", "default stream"])
def test_the_application_with_streams_runs_on_the_host(options):
    found = python(STREAMS, "--library", "numpy", "--count", "50", *options)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "numpy on host: 50 results, 4.0 to 151.0\n"


@pytest.mark.parametrize("options", [[], ["--direct"]], ids=["copies", "direct"])
def test_the_network_runs_on_the_host(options):
    options = ["--library", "numpy", "--frames", "20", "--size", "32", *options]
    found = python(ROOT / "examples/python/network.py", *options)
    assert (found.returncode, found.stderr) == (0, "")
    assert re.fullmatch(r"numpy on host: 20 frames, \d+ frames/s; classes \[.*\] \.\.\.\n", found.stdout)


def test_the_network_gives_the_bytes_of_a_loop_by_hand():
    options = ["--library", "numpy", "--frames", "20", "--size", "32", "--rounds", "1", "--replay", "off", "--workers", "2"]
    found = python(ROOT / "tests/cuda/python_network.py", *options)
    assert (found.returncode, found.stderr) == (0, "")
    line, times = map(json.loads, found.stdout.splitlines())
    assert set(times) == {"times", "frames", "upload", "classify", "download", "top"}
    assert (line["differ"], line["distinct"], line["frames"]) == (0, 16, 20)


def test_lines_of_two_libraries_count_what_they_read():
    found = python(ROOT / "tests/cuda/python_finished.py", "--backend", "host", "--count", "160", "--lines", "16")
    assert found.returncode == 0 and found.stderr.endswith("s: the run has ended\n"), found.stderr
    line = json.loads(found.stdout)
    assert (line["seen"], line["wrong_in_numpy"]) == (160, 0)


def test_the_measurement_runs():
    found = python(ROOT / "bench/python.py", "--quick")
    assert (found.returncode, found.stderr) == (0, "") and "beside the Python chain" in found.stdout


def test_the_program_of_the_manual_runs(tmp_path):
    text = (ROOT / "docs/python.md").read_text()
    section = text[text.index("## Two minutes") : text.index("## Installation")]
    program = "\n".join(line[1:] for line in section.splitlines() if line.startswith("\t") or not line)
    program = program[program.index("import") :]
    (tmp_path / "program.py").write_text(textwrap.dedent(program) + "\nassert len(means) == 10 == camera.counts['emitted']\n")
    found = python(tmp_path / "program.py")
    assert (found.returncode, found.stderr) == (0, "") and "ticks=40" in found.stdout


def test_the_program_of_the_readme_runs(tmp_path):
    block = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    (tmp_path / "program.py").write_text(block)
    found = python(tmp_path / "program.py")
    assert (found.returncode, found.stderr, len(found.stdout.splitlines())) == (0, "", 3)


def program_of(title, tmp_path):
    """The first block of that section of the manual, as a file."""
    section = (ROOT / "docs/python.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    block = re.search(r"(?:^(?:\t.*)?\n)+", section[section.index("\n\t") + 1 :], re.M).group()
    (tmp_path / "program.py").write_text(textwrap.dedent(block))
    return tmp_path / "program.py"


def test_the_log_of_the_manual_is_said(tmp_path):
    found = python(program_of("The log", tmp_path))
    assert found.returncode == 0 and "INFO weir: greet: good morning\n" in found.stderr, found.stderr


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_the_shell_line_of_the_manual_runs(tmp_path):
    """Its file and its graph, with frames of 8 x 4 pixels from here."""
    text = (ROOT / "docs/python.md").read_text()
    section = text[text.index("An operator that turns gray pictures") : text.index("In the shell:")]
    file, graph = section.split("and a graph that names it")
    indented = ["\n".join(line[1:] for line in part.splitlines() if line.startswith("\t") or not line) for part in (file, graph)]
    (tmp_path / "operators.py").write_text(textwrap.dedent(indented[0]))
    (tmp_path / "graph.json").write_text(indented[1])
    sets = [word for pair in ("read.width=8", "read.height=4", "threshold.level=80") for word in ("--set", pair)]
    words = [COMMAND, "run", "--python", "operators.py", "graph.json", *sets]
    found = subprocess.run(words, cwd=tmp_path, input=bytes(range(64, 96)) * 2, capture_output=True, timeout=60)
    assert (found.returncode, found.stdout) == (0, (bytes(16) + bytes([255]) * 16) * 2), found.stderr


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_the_first_pipeline_runs_with_its_python_part():
    words = [ROOT / "tests/cli/quoted.py", COMMAND, "the_first_pipeline_is_whole"]
    found = subprocess.run([sys.executable, "-B", *words], env={**os.environ, "LESSON": shutil.which("cc")}, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_names_of_the_manual_exist():
    import weir

    text = (ROOT / "docs/python.md").read_text()
    sink = weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "sink"}]})
    for name in set(re.findall(r"`graph\.(?!json)(\w+)", text)):
        assert name in dir(sink), name
    for name in set(re.findall(r"`ctx\.(\w+)", text)):
        assert hasattr(weir.Context, name), name
    for name in set(re.findall(r"`weir\.(\w+)", text)):
        assert hasattr(weir, name), name
    assert set(re.findall(r"`message\.(\w+)", text)) <= set(dir(weir.Message))


STAND_IN = {"__init__.py": """
import threading, types
import numpy as np

class Request:
    def set_callback(self, callback, arg):
        self.call, self.arg = callback, arg
    def start_async(self, inputs, arg=None, share_inputs=False):
        self.mean = inputs[0].mean(axis=(2, 3))
        threading.Timer(0.001 * (int(inputs[0].flat[0] * 100) % 3), lambda: self.call(self.arg)).start()
    def get_output_tensor(self, i):
        return types.SimpleNamespace(data=self.mean)

InferRequest = Request

def compile_model(*words):
    return types.SimpleNamespace(create_infer_request=Request)

def Model(*words):
    pass
""", "opset13.py": "def __getattr__(name):\n    return lambda *words: None\n"}


def test_asynchronous_requests_give_results_in_order(tmp_path):
    """With a stand-in for OpenVINO that answers in any order."""
    (tmp_path / "openvino").mkdir()
    for name, text in STAND_IN.items():
        (tmp_path / "openvino" / name).write_text(text)
    program = tmp_path / "program.py"
    program.write_text(f"""
import sys, threading
sys.path[:0] = [{str(tmp_path)!r}]
import importlib.util
import numpy as np, weir
spec = importlib.util.spec_from_file_location("of_weir", {str(ROOT / "examples/python/requests.py")!r})
spec.loader.exec_module(importlib.util.module_from_spec(spec))
with weir.Graph({{"weir": 1, "entities": [{{"name": "infer", "operator": "Infer", "max_in_flight": 4}}]}}) as graph:
    inlet, outlet = graph.inlet("infer.in"), graph.outlet("infer.out", capacity=8)
    graph.start()
    def push():
        for i in range(40):
            inlet.push(np.full((1, 3, 2, 2), i, np.float32))
        inlet.close()
    threading.Thread(target=push).start()
    assert [float(np.asarray(m)[0, 0]) for m in outlet] == list(range(40))
    graph.wait()
""")
    found = python(program)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("library, modules", [("openvino", ["openvino"]), ("onnx", ["onnx", "onnxruntime"]), ("torch", ["torch"])])
def test_requests_of_a_library_give_what_its_own_way_gives(library, modules):
    for module in modules:
        if not importlib.util.find_spec(module):
            pytest.skip(f"no {module}")
    found = python(ROOT / "examples/python/requests_measure.py", library, "12", "1")
    assert found.returncode == 0 and re.fullmatch(rf"{library}'s own way \d+ frames/s, weir \d+: .*\n", found.stdout), found.stderr


def test_the_recogniser_of_text_reads_what_the_loop_of_its_package_reads(tmp_path):
    """Boxes, texts and scores of a page of two batches, one without text, one on its head, and one of a line."""
    own = ROOT / "build/text"  # of this interpreter's version, or the module weir is not for it
    if not (own / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/rapidocr_onnxruntime").exists():
        pytest.skip("no rapidocr_onnxruntime: scripts/install-deps text")
    command = [own / "bin/python", "-B", ROOT / "tests/python/text_pages.py", tmp_path]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    pages = json.loads(found.stdout)
    for name, page in pages.items():
        assert page["graph"] == page["loop"], name
    words = {name: [text for _, text, _ in page["graph"] or []] for name, page in pages.items()}
    assert len(words["upright"]) == 8 and {"Monday", "Window", "Paper"} <= set(words["upright"]), words
    assert words["turned"] == words["upright"][2::-1] and words["blank"] == [] and len(words["last"]) == 1, words


@pytest.mark.parametrize("name", ["requests", "requests_onnx", "requests_torch"])
def test_an_operator_on_requests_is_short(name):
    assert len((ROOT / f"examples/python/{name}.py").read_text().splitlines()) <= 40


def test_batches_answer_the_queries_of_loadgen():
    if not importlib.util.find_spec("mlperf_loadgen"):
        pytest.skip("no mlcommons-loadgen")
    found = python("-B", ROOT / "bench/loadgen.py", "--quick")
    assert (found.returncode, found.stderr) == (0, "") and len(found.stdout.splitlines()) == 2, found.stdout + found.stderr
