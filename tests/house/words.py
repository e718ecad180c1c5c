"""Comments and papers speak of threads, entities and streams as things: hardly a word for a person in any room.

    words.py ROOT [--list]		--list: also each line that has one
"""
import pathlib
import re
import sys

import source

PERSON = re.compile(
    r"\b(who|whoever|whom|somebody|someone|anybody|anyone|nobody|everybody|everyone|he|him|his|himself|she|her)\b", re.I
)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S)
MOST = 1  # in 1,000 words of a room
FEW = 1000  # words: a room that has fewer may have one
PAPERS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs"]


def comments(path):
    """(line number, line) of every line of comment, or of a paper."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    for found in COMMENT.finditer(text):
        if found[0].startswith("/"):
            first = text.count("\n", 0, found.start()) + 1
            yield from enumerate(found[0].splitlines(), first)


def papers(root):
    for name in PAPERS:
        path = root / name
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path] if path.exists() else []


def look(root, paths):
    """Words, and the lines with persons."""
    words, persons = 0, []
    for path in paths:
        for number, line in comments(path):
            words += len(WORD.findall(line))
            persons += [f"{path.relative_to(root)}:{number}: {line.strip()}"] * len(PERSON.findall(line))
    return words, persons


def main(root, listed):
    root, faults, told = pathlib.Path(root), [], []
    rooms = {room: list(source.files(root, room)) for room in source.MAY_USE}
    rooms["papers"] = list(papers(root))
    for room, paths in rooms.items():
        words, persons = look(root, paths)
        told.append(f"{room} {len(persons)} of {words}")
        if listed:
            print("\n".join(persons))
        if len(persons) * 1000 > MOST * max(words, FEW):
            faults.append(f"{room}: {len(persons)} words for persons in {words}; {MOST} in 1,000 is the most: {persons[0]}")
    source.verdict(faults, "words for persons: " + ", ".join(told))


if __name__ == "__main__":
    main(sys.argv[1], "--list" in sys.argv)
