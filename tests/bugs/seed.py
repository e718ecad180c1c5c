"""Copies the source for the seam build, changed as bugs.txt says.

    seed.py BUGS ROOT OUT file...		files: relative to ROOT; a copy that would not change is not written

Spaces and line breaks of the text that is looked for do not matter.
"""
import pathlib
import re
import sys

HOOK = '#include "tests/bugs/bug.h"\n'


def changes(path):
    """(old, new) of every block of lines that begin with - and then +."""
    for block in path.read_text().split("\n\n"):
        old, new = ("\n".join(line[1:] for line in block.splitlines() if line.startswith(sign)) for sign in "-+")
        if old:
            yield old, new.strip()


def places(texts, old):
    """(file, match) of every place where the text is."""
    pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
    return [(name, found) for name, text in texts.items() for found in pattern.finditer(text)]


def seed(texts, bugs):
    """Returns the names of the changed files, and what went wrong."""
    changed, faults = set(), []
    for old, new in changes(bugs):
        found = places(texts, old)
        if len(found) != 1:
            where = ", ".join(name for name, _ in found) or "not there"
            faults.append(f"{bugs}: must be in the source exactly once, is {where}:\n{old}\n(if the code was changed, change {bugs.name}, too)")
            continue
        name, at = found[0]
        texts[name] = texts[name][: at.start()] + new + texts[name][at.end() :]
        changed.add(name)
    return changed, faults


def main(bugs, root, out, *names):
    bugs, root, out = map(pathlib.Path, (bugs, root, out))
    texts = {name: (root / name).read_text() for name in names}
    changed, faults = seed(texts, bugs)
    if faults:
        sys.exit("\n\n".join(faults))
    for name, text in texts.items():
        copy = out / name
        text = f'{HOOK if name in changed else ""}#line 1 "{(root / name).as_posix()}"\n{text}'
        if not copy.exists() or copy.read_text() != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
