"""Checks the Markdown files: links and anchors exist, C blocks marked `c example` or `c file NAME` compile, those marked
`cpp example` as C++17 and C++20 (by g++, if it is here), and each
paragraph of a block marked `c from FILE` is in that file.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import source

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
STRICT = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"]


def papers(root):
    """The Markdown files of the tree, except those in build folders."""
    found = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md"), *root.glob("tests/**/*.md")]
    return sorted(found)


def anchors(path):
    """The anchors that GitHub makes from the headings."""
    for heading in re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text()), re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_link(path, link):
    name, _, anchor = link.partition("#")
    to = (path.parent / name) if name else path
    if re.match(r"\w+:", link):
        return None
    if not to.exists():
        return f"{link}: there is no such file"
    if anchor and anchor not in anchors(to):
        return f"{link}: there is no such heading"
    return None


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def broken_links(root, path):
    text = BLOCK.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), path.read_text())
    for found in LINK.finditer(text):
        why = broken_link(path, found.group(1))
        if why:
            yield f"{path.relative_to(root)}:{line_of(text, found.start())}: {why}"


def broken_examples(root, path, compiler, flags):
    text = path.read_text()
    for found in BLOCK.finditer(text):
        kind = found.group(1).strip()
        commands = []
        if kind == "c example" or kind.startswith("c file "):
            commands = [[compiler, *STRICT, "-x", "c"]]
        elif kind == "cpp example" and shutil.which("g++"):
            commands = [["g++", f"-std={standard}", *STRICT[2:], "-x", "c++"] for standard in ("c++17", "c++20")]
        place = f'#line {line_of(text, found.start()) + 1} "{path.relative_to(root)}"\n'
        for command in commands:
            result = subprocess.run([*command, *flags, "-"], input=place + found.group(2), capture_output=True, text=True)
            if result.returncode:
                yield result.stderr.rstrip()
                break


def stale_cuts(root, path):
    text = path.read_text()
    for found in BLOCK.finditer(text):
        if not found.group(1).startswith("c from "):
            continue
        whole = (path.parent / found.group(1).removeprefix("c from ").strip()).read_text()
        for paragraph in found.group(2).strip().split("\n\n"):
            if paragraph not in whole:
                place = line_of(text, found.start())
                yield f"{path.relative_to(root)}:{place}: not in {found.group(1)[7:]}: {paragraph.splitlines()[0]}"


def faults(root, compiler, *flags):
    for path in papers(root):
        yield from broken_links(root, path)
        yield from broken_examples(root, path, compiler, flags or ("-I", root / "include"))
        yield from stale_cuts(root, path)


source.verdict(list(faults(pathlib.Path(sys.argv[1]), *sys.argv[2:])), "links lead somewhere, examples compile")
