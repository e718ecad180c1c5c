"""What the docs quote is what the command prints: runs every block of Markdown marked `console`.

A line `$ COMMAND` of a block, with the lines `> ...` that follow it, is run in a folder that has the examples, without a
GPU; the lines up to the next one are what it prints on stdout and stderr. A quoted line `...` stands for any lines. Figures with a
unit, the most ticks in flight and the number of blanks may differ. Arguments: the command.
"""
import os
import pathlib
import re
import subprocess
import tempfile

import process

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPERS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
FIGURE = re.compile(r"\b\d[\d,]*(\.\d+)? (ns|us|ms|s|min|frames/s)\b")
IN_FLIGHT = re.compile(r"^( \S+( \d+){3} #) \d+$")  # the last column of a row of the summary


def without_figures(line):
    return IN_FLIGHT.sub(r"\1 #", re.sub(r"\s+", " ", FIGURE.sub("#", line.rstrip())))


def sessions(text):
    """(line, command, quoted lines) of every command in the text."""
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start()) + 2
        found = None
        for number, line in enumerate(block.group(1).splitlines(), first):
            if line.startswith("$ "):
                if found:
                    yield found
                found = (number, line[2:], [])
            elif line.startswith("> ") and found and not found[2]:
                found = (found[0], f"{found[1]}\n{line[2:]}", [])
            else:
                assert found, f"line {number}: a console block begins with `$ COMMAND`"
                found[2].append(line)
        yield found


def matches(quoted, printed):
    """Whether the lines are the same, `...` standing for any."""
    if not quoted:
        return not printed
    if quoted[0] == "...":
        return any(matches(quoted[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and without_figures(quoted[0]) == without_figures(printed[0]) and matches(quoted[1:], printed[1:])


def run(weir, command):
    with tempfile.TemporaryDirectory(prefix="weir-quoted-") as folder:
        os.symlink(ROOT / "examples", pathlib.Path(folder) / "examples")
        path = f"{pathlib.Path(weir).parent}:{os.environ['PATH']}"
        ended = subprocess.run(
            ["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
            timeout=3 * process.LIMIT, env={**process.environment(), "PATH": path, "CUDA_VISIBLE_DEVICES": ""},
        )
    return ended.stdout.splitlines()


def what_is_quoted_is_printed(weir):
    count = 0
    for paper in sorted(PAPERS):
        for line, command, quoted in sessions(paper.read_text()):
            printed = run(weir, command)
            place = f"{paper.relative_to(ROOT)}:{line}: `{command}` prints:"
            assert matches(quoted, printed), "\n".join([place, *printed])
            count += 1
    assert count > 5, f"only {count} commands are quoted"


def another_text_is_noticed(_weir):
    assert matches(["a 3.2 s", "...", "z"], ["a   411 ms", "b", "z"])
    assert matches(["  read  60  0  60  255 ms  8"], ["  read  60  0  60  1.2 s  0"])
    for quoted, printed in (["a"], ["a", "b"]), (["a", "b"], ["a"]), (["..."], []), (["a 3 s"], ["a 3 frames"]), (["60  1 s"], ["61  1 s"]):
        assert matches(quoted, printed) == (quoted == ["..."]), (quoted, printed)


process.main([what_is_quoted_is_printed, another_text_is_noticed])
