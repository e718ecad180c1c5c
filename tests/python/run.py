"""Builds the Python package against a built libweir and runs its tests.

    run.py LIBWEIR FOLDER [--long] [--examples] [--sanitize] [--libraries FOLDER] [--program FILE] [arguments of pytest or the program]

FOLDER gets a virtual environment with pytest, NumPy, ml_dtypes and nanobind, the module, and the package. Exit code 77,
which ctest takes as skipped: the packages cannot be had here. --long also runs the tests that take minutes. --sanitize is for
the libweir.so of the preset asan.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = ["pytest", "numpy", "ml_dtypes", "nanobind>=3.1,<4"]
EXAMPLES = ["onnxruntime", "onnx", "mlcommons-loadgen"]  # what examples/python and bench use, besides torch and OpenVINO, which are large
SKIPPED = 77
OLDEST = (3, 11)
SANITIZE = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O1 -g -fsanitize=address,undefined -fno-sanitize=vptr"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def find_python():
    """The interpreter for the environment: this one, or a newer one beside it."""
    if sys.version_info >= OLDEST:
        return sys.executable
    return next((path for minor in (13, 12, 11) if (path := shutil.which(f"python3.{minor}"))), None)


def environment(folder):
    """The environment's python; its packages are installed once."""
    python, made = folder / "venv/bin/python", folder / "venv/packages.txt"
    wanted = "\n".join(PACKAGES)
    if made.exists() and made.read_text() == wanted:
        return python
    base = find_python()
    if not base:
        skip(f"no Python of {'.'.join(map(str, OLDEST))} or newer")
    result = subprocess.run([base, "-m", "venv", "--clear", folder / "venv"], capture_output=True, text=True)
    if result.returncode:
        skip(f"no virtual environment (Debian: python3-venv): {last_line(result)}")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1",
               "--prefer-binary", *PACKAGES]  # an interpreter for which the newest release has no wheel gets an older one, not a compiler
    result = subprocess.run(install, capture_output=True, text=True)
    if result.returncode:
        skip(f"pip cannot install {', '.join(PACKAGES)}: {last_line(result)}")
    made.write_text(wanted)
    return python


def install_for_examples(folder, python):
    """Tried once. Where the packages cannot be had, as for a new interpreter, the tests of these examples are skipped."""
    tried = folder / "venv/examples.txt"
    if tried.exists() and tried.read_text() == "\n".join(EXAMPLES):
        return
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", "--only-binary", ":all:", *EXAMPLES]
    subprocess.run(install, capture_output=True)
    tried.write_text("\n".join(EXAMPLES))


def last_line(result):
    lines = (result.stdout + result.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit code {result.returncode}"


def build(python, folder, library, flags):
    """Configures and builds the module; the package then lies in FOLDER/package/weir."""
    module, package = folder / "module", folder / "package/weir"
    headers = subprocess.run(
        [python, "-c", "import sysconfig, os; print(os.path.exists(sysconfig.get_path('include') + '/Python.h'))"],
        capture_output=True, text=True).stdout
    if headers.strip() != "True":
        skip("no headers of Python (Debian: python3-dev)")
    configure = ["cmake", "-S", ROOT / "python", "-B", module, f"-DWEIR_LIBRARY={library}",
                 f"-DPython_EXECUTABLE={python}", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", *flags, "--log-level=WARNING"]
    if shutil.which("ccache"):
        configure.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    for command in (configure, ["cmake", "--build", module, "--parallel", "2"]):
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{result.stdout}{result.stderr}")
    package.mkdir(parents=True, exist_ok=True)
    for path in [*(ROOT / "python/weir").glob("*.py*"), ROOT / "python/weir/py.typed", *module.glob("_weir*.so")]:
        shutil.copy2(path, package)


def preloads():
    """An interpreter without sanitizers needs their libraries first."""
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    return " ".join(subprocess.check_output(["c++", f"-print-file-name={name}"], text=True).strip() for name in names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--command", default="", help="the command weir, for `weir run --python`")
    parser.add_argument("--failing-malloc", default="", help="tests/cli/failing_malloc.c as a library")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--cmake", action="append", default=[], help="another argument of cmake")
    parser.add_argument("--examples", action="store_true", help="also installs what the examples use")
    parser.add_argument("--libraries", type=pathlib.Path, help="a folder whose libweir.so is used instead: tests/fake of the build")
    parser.add_argument("--program", type=pathlib.Path, help="runs this program with the other arguments, instead of the tests")
    parser.add_argument("--sanitize", action="store_true", help="the module, too, has AddressSanitizer and UBSan")
    own, others = parser.parse_known_args()
    folder = own.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder)
    if own.examples:
        install_for_examples(folder, python)
    build(python, folder, own.library.resolve(), own.cmake + SANITIZE * own.sanitize)
    settings = {"PYTHONPATH": str(folder / "package"), "WEIR_COMMAND": own.command and os.path.abspath(own.command), "WEIR_LONG": "1" * own.long,
                "WEIR_FAILING_MALLOC": own.failing_malloc and os.path.abspath(own.failing_malloc),
                "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{folder}/venv/bin:{os.environ['PATH']}"}
    if own.libraries:
        settings["LD_LIBRARY_PATH"] = str(own.libraries.resolve())
    if own.sanitize:
        settings |= {"LD_PRELOAD": preloads(), "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", HERE, *(others or [HERE])]
    if own.program:
        command = [python, "-B", own.program.resolve(), *others]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and tests send it
    sys.exit(subprocess.run(list(map(str, command)), env={**os.environ, **settings}, cwd=ROOT).returncode)


main()
