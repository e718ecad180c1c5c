"""Copies the source with seeded bugs in, as the lists of this folder say.

    seed.py ROOT OUT --names LIST... --seed LIST... --files FILE...

FILE is relative to ROOT. OUT gets a copy of each, with the changes of the lists after --seed, and bug_names.h with the names of the
lists after --names. What would not change is not written.
"""
import argparse
import collections
import pathlib
import re
import sys

HOOK = '#include "tests/bugs/bug.h"\n'
Bug = collections.namedtuple("Bug", "name says unseen changes")  # unseen: why no test sees it; changes: (old, new)


def changes(text):
    """(old, new) of every block of lines that begin with - and then +."""
    for block in text.split("\n\n"):
        old, new = ("\n".join(line[1:] for line in block.splitlines() if line.startswith(sign)) for sign in "-+")
        if old:
            yield old, new.strip()


def bugs_of(path):
    """The bugs of a list. Headings that follow each other share the changes below them."""
    for section in re.split(r"\n\n(?=## )", path.read_text())[1:]:
        unseen = " ".join(re.findall(r"^unseen: (.*)", section, re.M))
        for name, says in re.findall(r"^## (\w+): (.*)", section, re.M):
            yield Bug(name, says, unseen, list(changes(section)))


def places(texts, old):
    """(file, match) of every place where the text is. Spaces and line breaks do not matter."""
    pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
    return [(name, found) for name, text in texts.items() for found in pattern.finditer(text)]


def seed(texts, bugs):
    """Returns the names of the changed files, and what went wrong."""
    changed, faults = set(), []
    for old, new in changes(bugs.read_text()):
        found = places(texts, old)
        if len(found) != 1:
            where = ", ".join(name for name, _ in found) or "not there"
            faults.append(f"{bugs}: must be in the source exactly once, is {where}:\n{old}\n(if the code was changed, change {bugs.name}, too)")
            continue
        name, at = found[0]
        texts[name] = texts[name][: at.start()] + new + texts[name][at.end() :]
        changed.add(name)
    return changed, faults


def names_header(lists):
    """The macro that bug.h and bug.c make their enum and their table of."""
    names = [bug.name for path in lists for bug in bugs_of(path)]
    return "".join(["#define WR_BUGS(BUG)", *(f" \\\n\tBUG({name.upper()}, \"{name}\")" for name in names), "\n"])


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    for option in ("--names", "--seed"):
        parser.add_argument(option, nargs="*", type=pathlib.Path, default=[])
    parser.add_argument("--files", nargs="+")
    given = parser.parse_args()
    texts = {name: (given.root / name).read_text() for name in given.files}
    changed, faults = set(), []
    for bugs in given.seed:
        more, wrong = seed(texts, bugs)
        changed |= more
        faults += wrong
    if faults:
        sys.exit("\n\n".join(faults))
    for name, text in texts.items():
        write(given.out / name, f'{HOOK if name in changed else ""}#line 1 "{(given.root / name).as_posix()}"\n{text}')
    write(given.out / "bug_names.h", names_header(given.names))


if __name__ == "__main__":
    main()
