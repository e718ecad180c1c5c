"""A plugin built against the kept header of its ABI loads and runs, and falls back where this weir lacks a function.

    kept.py WEIR PLUGIN
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main(weir, plugin):
    header = (HERE.parents[1] / "include/weir.h").read_text()
    number = re.search(r"#define WEIR_ABI\s+(\d+)u", header)[1]
    assert (HERE / f"abi/weir-{number}.h").exists(), f"keep include/weir.h as tests/package/abi/weir-{number}.h"
    ended = subprocess.run([weir, "run", "--backend", "host", "--plugin", plugin, HERE / "kept.json"],
                           capture_output=True, text=True, timeout=50)
    assert ended.returncode == 0 and not ended.stderr, ended
    ticks = dict(re.findall(r"^  (\w+) +(\d+) ", ended.stdout, re.M))
    assert ticks == {"first": "7", "last": "7"}, ended.stdout
    print(ended.stdout, end="")


main(*sys.argv[1:])
