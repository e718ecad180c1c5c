"""A plugin built against the kept header of this ABI loads and runs, and falls back where this weir lacks a function.
One built against the header of an older ABI is refused by one line, which has both numbers.

    kept.py WEIR PLUGIN [ITS-ABI ABI]
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main(weir, plugin, *refused):
    ended = subprocess.run([weir, "run", "--backend", "host", "--plugin", plugin, HERE / "kept.json"],
                           capture_output=True, text=True, timeout=50)
    if refused:
        line = f"plugin '{plugin}' was built for ABI {refused[0]} of weir, this is {refused[1]}: rebuild it"
        assert ended.returncode == 3 and not ended.stdout, ended
        assert ended.stderr.count("\n") == 1 and line in ended.stderr, ended.stderr
        print(ended.stderr, end="")
        return
    assert ended.returncode == 0 and not ended.stderr, ended
    ticks = dict(re.findall(r"^  (\w+) +(\d+) ", ended.stdout, re.M))
    assert ticks == {"first": "7", "last": "7"}, ended.stdout
    print(ended.stdout, end="")


main(*sys.argv[1:])
