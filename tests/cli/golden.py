"""A folder of golden/ is a case: args, and the expected stdout, stderr (missing: empty) and exit (missing: 0).

PLUGIN in args is the plugin of scratch_plugin.c. The command runs in the case's folder, with the file stdin (missing: empty) as its standard input. Times and rates are replaced. GOLDEN_UPDATE=1 writes the actual
output; read the diff.
"""
import difflib
import os
import pathlib
import re
import shlex
import sys

import process

TIMES = re.compile(r"\b\d+(\.\d+)? (s|ms|us)\b")
RATE = re.compile(r"\b\d[\d,]*(\.\d+)? frames/s")


def plain(text):
    text = RATE.sub("<rate> frames/s", TIMES.sub("<time>", text))
    return re.sub(r" +<time>", " <time>", text)


def read(path):
    return path.read_text() if path.exists() else ""


def compare(case, said):
    faults = []
    for name, text in said.items():
        wanted = read(case / name)
        if os.environ.get("GOLDEN_UPDATE"):
            (case / name).write_text(text) if text else (case / name).unlink(missing_ok=True)
        elif wanted != text:
            lines = wanted.splitlines(), text.splitlines()
            faults.append("\n".join(difflib.unified_diff(*lines, f"{case.name}/{name}", "now", lineterm="")))
    return faults


def main(weir, plugin, only):
    faults = []
    folder = (pathlib.Path(__file__).parent / "golden").resolve()
    cases = sorted(path for path in folder.iterdir() if path.is_dir())
    cases = [case for case in cases if only in (None, case.name)]
    assert cases, "no such case"
    for case in cases:
        arguments = shlex.split((case / "args").read_text().replace("PLUGIN", plugin))
        ended = process.run(weir, *arguments, cwd=case, input=read(case / "stdin"))
        code = f"{ended.returncode}\n" if ended.returncode else ""
        faults += compare(case, {"stdout": plain(ended.stdout), "stderr": plain(ended.stderr), "exit": code})
    print("\n".join(faults) or f"{len(cases)} cases")
    sys.exit(bool(faults))


main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
