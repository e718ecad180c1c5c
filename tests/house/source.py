"""The tree as the checks use it: rooms, their files, and C text without comments or strings."""
import pathlib
import re
import sys

# A room may use the rooms, or headers, in its line; every room may use `weir.h`.
MAY_USE = {
    "base": [],
    "sim": ["base"],
    "trace": ["base"],
    "streams": ["base", "sim", "trace"],
    "streams/cuda": ["base", "streams"],
    "streams/host": ["base", "sim", "streams"],
    "graphs": ["base", "trace", "streams"],
    "conditions": ["scheduler/view.h"],
    "operators": [],
    "scheduler": ["base", "sim", "trace", "streams", "graphs"],
    "report": ["base", "trace", "streams", "graphs", "scheduler"],
    "cli": ["base/files.h", "base/nearest.h", "base/output.h", "base/units.h", "base/words.h", "remote/address.h"],
    "plugins/onnx": [],
    "remote": [],
    "python": ["cli/cli.h", "base/units.h", "base/words.h"],
    "plugins": [],
    "examples": [],
    "bench": [],
}
LIBRARY = ["base", "sim", "trace", "streams", "streams/cuda", "streams/host", "graphs", "conditions", "operators", "scheduler", "report"]
SUFFIXES = {".c", ".h", ".cu", ".cuh"}
MODULE = "python/module.h"  # nanobind's door; the C++ of the project is in that room

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')", re.S)
STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")


def room_of(name):
    """The innermost room of a file, whose path is relative to the root; None if there is none."""
    return max((room for room in MAY_USE if name.startswith(room + "/")), key=len, default=None)


def files(root, room):
    """The C, header and CUDA files of a room, without those of rooms inside it, sorted; of python the C++ file."""
    suffixes = {".cpp", ".cc", ".h"} if room == "python" else SUFFIXES
    found = (p for p in (pathlib.Path(root) / room).rglob("*") if p.suffix in suffixes)
    return sorted(p for p in found if room_of(p.relative_to(root).as_posix()) == room)


def without_comments(text):
    """Replaces comments by blanks, so that line numbers stay."""
    return COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), text)


def code(path):
    """The text of a file without comments and string contents."""
    return STRING.sub('""', without_comments(path.read_text()))


def includes(path):
    """(line, '"' or '<', name) of every #include."""
    text = without_comments(path.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if found:
            yield number, found.group(1), found.group(2)


def verdict(faults, good):
    """Ends the program: prints every fault on a line, or one line with the result."""
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(good)
