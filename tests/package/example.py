"""examples/ctypes prints a line for each picture, and a failure as text. Arguments: libweir.so."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, where=ROOT):
    command = [sys.executable, "-B", str(ROOT / "examples" / "ctypes" / "edges.py"), *arguments]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=50)


def main(library):
    right = run(library, "host")
    assert right.returncode == 0 and not right.stderr, right
    assert re.fullmatch(r"(\d+x\d+x1: 2\d\.\d % edges\n){3}", right.stdout), right.stdout
    wrong = run(library, "nonsense")
    assert wrong.returncode == 1 and "nonsense" in wrong.stderr and not wrong.stdout, wrong
    absent = run(library, "host", where=ROOT / "docs")
    assert absent.returncode == 1 and "examples/ctypes/edges.json" in absent.stderr, absent
    print(right.stdout, end="")


main(*sys.argv[1:])
