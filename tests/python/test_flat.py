"""The memory of a run does not grow with its messages."""

import os
import pathlib
import subprocess
import sys

COUNT = "1000000" if os.environ.get("WEIR_LONG") else "20000"


def test_memory_is_flat():
    words = [sys.executable, pathlib.Path(__file__).with_name("flat.py"), COUNT]
    found = subprocess.run(words, capture_output=True, text=True, timeout=600)
    print(found.stdout)
    assert (found.returncode, found.stderr, len(found.stdout.splitlines())) == (0, "", 4), found.stdout
