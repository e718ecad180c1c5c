"""A wheel of scripts/wheel is all that is needed: installed into a new environment whose PATH has no compiler, it imports, has
the command, loads a plugin that was compiled against its header, and lets a program in C be linked with its library. With PyPI's
onnxruntime beside it a graph runs a network. Exit code 77: pip cannot download that.

    wheel.py WHEEL PYTHON [--root FOLDER]

PYTHON makes the environment. FOLDER: a system of its own, in which the wheel is installed and run (chroot); what is compiled
is compiled here.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NEWEST = (2, 35)  # the glibc of Ubuntu 22.04
INSIDE = {"LICENSE", "libevent", "jansson", "libpng1.6", "zlib", "nanobind", "robin_map"}  # whose licences are told
PICTURES = """{"weir": 1, "entities": [
    {"name": "read", "operator": "frames_read", "parameters": {"path": "/dev/urandom", "width": 8, "height": 8},
     "conditions": [{"type": "count", "count": 3}]},
    {"name": "write", "operator": "png_write", "parameters": {"directory": "out"}},
    {"name": "twice", "operator": "Twice"}],
  "connections": [["read.out", "write.in"], ["read.out", "twice.in"]]}"""
TWICE = """import weir

@weir.operator
class Twice:
    inputs = ["in"]

    def compute(self, ctx):
        assert len(memoryview(ctx.receive("in"))) == 8
"""
USE = """import sys
import weir

outcome = weir.Graph.read(sys.argv[1], plugins=[sys.argv[2]]).run(backend="host")
assert outcome.finished and outcome.ticks == 14, outcome
print(weir.__version__, weir.get_include(), weir.get_library_dir(), sep="\\n")
"""


PLUGGED = """import weir

graph = weir.Graph.read("examples/onnx/classify.json", plugins=["onnx"])
outcome = graph.run(backend="host")
assert outcome.finished, outcome
"""


class System:
    """Where the wheel is installed: `folder` as seen here, `inside` as seen there."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.inside = pathlib.Path("/", folder.relative_to(root)) if root else folder
        self.settings = {"PATH": f"{self.inside}/venv/bin", "HOME": str(self.inside)}

    def run(self, program, *words, code=0, **settings):
        """Runs a program there. No compiler and no tool of a package is on its PATH."""
        there = [shutil.which("chroot"), self.root, "/usr/bin/env", "-C", self.inside] if self.root else []
        words = [*there, program, *words]
        ended = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120, env={**self.settings, **settings},
                               cwd=self.folder)
        assert ended.returncode == code, f"{words}: {ended}"
        return ended.stdout + ended.stderr

    def ours(self, path):
        return self.folder / pathlib.Path(path).relative_to(self.inside)


def check_name(wheel):
    tags = re.findall(r"manylinux_(\d+)_(\d+)_", wheel.name)
    assert tags and all((int(major), int(minor)) <= NEWEST for major, minor in tags), wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    told = {name.split("/licenses/")[1].split("_2")[0].split("_1")[0].removesuffix(".txt") for name in names if "/licenses/" in name}
    assert INSIDE <= told, told
    assert not [name for name in names if ".libs/" in name], "a library is beside libweir, not inside"
    plugins = {pathlib.PurePath(name).name for name in names if "/libweir_" in name}
    assert plugins - {"libweir_ucx.so"} == {"libweir_onnx.so"}, names  # ucx: if its header was there


def compile_plugin(system, include):
    subprocess.run(["cc", "-shared", "-fPIC", "-DKEPT=<weir.h>", f"-I{include}", HERE / "kept.c", "-o", system.folder / "plugin.so"], check=True)


def compile_program(system, libraries):
    """By pkg-config, as a user would, and by CMake."""
    found = {**os.environ, "PKG_CONFIG_PATH": f"{libraries}/pkgconfig"}
    flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", "weir"], env=found, text=True).split()
    subprocess.run(["cc", HERE / "program.c", "-o", system.folder / "program", *flags], check=True)
    project = system.folder / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES C)\nfind_package(weir REQUIRED)\n"
        "find_package(weir QUIET COMPONENTS static)\nif(weir_FOUND)\nmessage(FATAL_ERROR static)\nendif()\n"
        f"add_executable(p {HERE}/program.c)\ntarget_link_libraries(p weir::weir)\n")
    for words in (["-S", project, "-B", project / "build", f"-Dweir_DIR={libraries}/cmake/weir"], ["--build", project / "build"]):
        subprocess.run(["cmake", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def check_network(system, own):
    """The example, without a word about where plugin and runtime are."""
    assert "onnx " in system.run(own / "weir", "operators", "--plugin", "onnx")
    version = system.run(own / "python", "-c", "import sys; print(*sys.version_info[:2], sep='.')").strip()
    wheels = system.folder / "wheels"
    got = subprocess.run(["pip", "download", "-q", "--require-hashes", "--only-binary", ":all:", "--python-version", version,
                          "-r", ROOT / "scripts/onnx-requirements.txt", "-d", wheels])
    if got.returncode:
        print("skipped: pip cannot download ONNX Runtime")
        sys.exit(77)
    system.run(own / "pip", "install", "-q", "--no-index", "--no-compile", *(system.inside / "wheels" / name.name for name in wheels.iterdir()))
    for part in ("onnx", "images"):
        shutil.copytree(ROOT / "examples" / part, system.folder / "examples" / part)
    system.run(own / "python", "examples/onnx/models.py", "out/onnx")
    (system.folder / "plugged.py").write_text(PLUGGED)
    for command in ([own / "weir", "run", "--quiet", "--backend", "host", "--plugin", "onnx", "examples/onnx/classify.json"],
                    [own / "python", "plugged.py"]):
        told = system.run(*command)
        assert told.count("print: tick ") == len(list((ROOT / "examples/images").glob("*.png"))), told
    print(told, end="")


def check(system, wheel, python):
    shutil.copy(wheel, system.folder)
    for name, text in (("pictures.json", PICTURES), ("twice.py", TWICE), ("use.py", USE)):
        (system.folder / name).write_text(text)
    shutil.copy(HERE / "kept.json", system.folder)
    system.run(python, "-m", "venv", system.inside / "venv", PATH="/usr/bin:/bin")
    own = system.inside / "venv/bin"
    system.run(own / "pip", "install", "-q", "--no-index", "--disable-pip-version-check", system.inside / wheel.name)

    version = system.run(own / "weir", "--version")
    include, libraries = map(system.ours, system.run(own / "python", "-c",
                             "import weir; print(weir.get_include(), weir.get_library_dir())").split())
    compile_plugin(system, include)
    compile_program(system, libraries)

    graph, plugin = system.inside / "kept.json", system.inside / "plugin.so"
    for command in ([own / "weir"], [own / "python", "-m", "weir"]):
        assert " on host" in system.run(*command, "run", "--backend", "host", "--plugin", plugin, graph)
    assert " on sim" in system.run(own / "weir", "run", "--backend", "sim", "--plugin", plugin, graph)
    system.run(own / "python", system.inside / "use.py", graph, plugin)
    if not os.path.exists("/dev/nvidiactl"):
        refused = system.run(own / "weir", "run", "--backend", "cuda", "--plugin", plugin, graph, code=1)
        assert refused.count("\n") == 1 and "cuda" in refused, refused

    # An older libweir that is installed is in the way of a program that is linked with it, not of the package.
    other = system.folder / "other"
    other.mkdir()
    for name in libraries.glob("libweir.so.*"):
        (other / name.name).write_bytes(b"no library")
    told = system.run(own / "weir", "run", "--python", system.inside / "twice.py", system.inside / "pictures.json", LD_LIBRARY_PATH=str(system.inside / "other"))
    assert " 3 " in told and len(list((system.folder / "out").iterdir())) == 3, told
    place = pathlib.Path("/", libraries.relative_to(system.root)) if system.root else libraries
    told = system.run(system.inside / "program", LD_LIBRARY_PATH=str(place))
    assert told == f"{version.strip()}: ok\n", (told, version)
    check_network(system, own)
    print(f"{wheel.name}: {version.strip()}, by {system.run(own / 'python', '-VV').strip()}")


def main(wheel, python, *others):
    root = pathlib.Path(others[1]).resolve() if others else None
    wheel = pathlib.Path(wheel).resolve()
    check_name(wheel)
    with tempfile.TemporaryDirectory(dir=root / "tmp" if root else None) as folder:
        check(System(root, pathlib.Path(folder)), wheel, python)


main(*sys.argv[1:])
