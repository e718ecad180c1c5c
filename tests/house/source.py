"""The tree as the checks see it: rooms, their files, and C text without comments or strings."""
import pathlib
import re
import sys

# A room uses only the rooms that stand before it in its line; `weir.h` is everybody's.
MAY_USE = {
    "base": [],
    "trace": ["base"],
    "streams": ["base", "trace"],
    "graphs": ["base", "trace", "streams"],
    "conditions": [],
    "operators": [],
    "scheduler": ["base", "trace", "streams", "graphs"],
    "cli": [],
    "examples": [],
    "bench": [],
}
LIBRARY = ["base", "trace", "streams", "graphs", "conditions", "operators", "scheduler"]
SUFFIXES = {".c", ".h", ".cu", ".cuh"}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')", re.S)
STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")


def files(root, room):
    """The C, header and CUDA files of a room, sorted."""
    return sorted(p for p in (pathlib.Path(root) / room).rglob("*") if p.suffix in SUFFIXES)


def without_comments(text):
    """Comments become blanks, so that line numbers stay."""
    return COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), text)


def code(path):
    """The text of a file without comments and without what stands in quotes."""
    return STRING.sub('""', without_comments(path.read_text()))


def includes(path):
    """(line, '"' or '<', name) of every #include."""
    text = without_comments(path.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if found:
            yield number, found.group(1), found.group(2)


def verdict(faults, good):
    """Ends the program: every fault on a line of its own, or one line that says what held."""
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(good)
