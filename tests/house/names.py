"""Names in comments and papers exist: functions, fields, macros and files that a comment of a C file or a Markdown page
names are in the tree.

    names.py ROOT

In comments: every word with an underscore, every `word` between backquotes, every word(). In papers: every weir_, wr_,
WEIR_, WR_ word and every `word_with_underscores`. In both: every file and folder of this tree. A name that ends in `_`
(weir_message_...) stands for all that begin so; a file may be named without its suffix, a public function without
`weir_`. Placeholders have NAME or ROOM in them. Names of other projects are in OTHERS.

docs/dev/design.md lists the files of a room under the heading `### ROOM/`, by their names without suffix in the first column
of a table: it lists every .c file, and no other name.
"""
import fnmatch
import pathlib
import re
import sys

import source
import words

PLACEHOLDER = re.compile(r"NAME|ROOM")
HOLOSCAN = r"disable_tick|(receive|set)_cuda_stream|cuda_(stream|green_context)_pool|cuda_green_context|add_(arg|default_\w+)"
OTHERS = re.compile(
    HOLOSCAN + r"|"
    r"cmocka\.h|(fetch|pthread|sched|epoll|event|evutil|json|png|memory_order|clock|sigev|malloc|dl|setjmp|aio|io_uring|nvtx|thread"
    r"|address|undefined|compute|sanitizer)_\w*|(cuda|cu|nvtx|CU|NVTX|png|json)[A-Z]\w*|\w+_t"
)
TOKEN = re.compile(r"[A-Za-z_]\w*")
CODE = {".c", ".h", ".cu", ".cuh", ".cpp", ".in", ".map", ".pml"}
TEXTS = {".py", ".txt", ".cmake", ".json", ".sh", ""}  # with their comments
OWN = re.compile(r"\b(?:weir|wr|WEIR|WR)_\w+")
NAMED = re.compile(r"`([A-Za-z_]\w*)(?:\(\))?`|\b([a-z]\w*)\(\)|\b([a-z][a-z0-9]*(?:_[a-z0-9]+)+_?)\b|" + OWN.pattern)
QUOTED = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+_?)(?:\(\))?`|" + OWN.pattern)
FILE = re.compile(r"(?<![\w./~<-])((?:[\w*-]+/)*[\w*-]+\.(?:c|h|cu|cuh|py|md|cmake))\b(?!>)")
PLACE = re.compile(r"(?<![\w./~<@-])((?:[\w*-]+/)+[\w.*-]*)")


class Tree:
    """What exists: files, folders, words of code."""

    def __init__(self, root):
        self.files, self.words, self.tops = set(), set(), set()
        for top in sorted(root.iterdir()):
            if top.name.startswith((".", "build")) or top.name in ("out", "shared"):
                continue
            self.tops.add(top.name)
            self.files.add(top.name)
            for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                self.files.add(path.relative_to(root).as_posix())
                if path.is_file():
                    self.read(path)
        self.files |= {str(pathlib.PurePath(name).with_suffix("")) for name in self.files}
        self.names = {pathlib.PurePath(name).name for name in self.files}
        self.words |= {pathlib.PurePath(name).stem for name in self.files}
        for prefix in ("weir_", "context_", "view_"):
            self.words |= {word[len(prefix) :] for word in self.words if word.startswith(prefix)}

    def read(self, path):
        if path.suffix in CODE:
            self.words.update(TOKEN.findall(source.without_comments(path.read_text())))
        elif path.suffix in TEXTS:
            self.words.update(TOKEN.findall(path.read_text(errors="replace")))

    def has_word(self, name):
        if name in self.words or OTHERS.fullmatch(name) or PLACEHOLDER.search(name):
            return True
        return name.endswith("_") and any(word.startswith(name) for word in self.words)

    def has_file(self, name, folder):
        """`name` is a file or folder seen from the root, or from the folder; a name without `/` is anywhere."""
        if PLACEHOLDER.search(name) or OTHERS.fullmatch(name):
            return True
        if "/" not in name:
            return name in self.names or any(fnmatch.fnmatch(known, name) for known in self.names)
        places = (name.rstrip("/"), f"{folder}/{name.rstrip('/')}")
        return any(place in self.files or fnmatch.filter(self.files, place) for place in places)


def missing(tree, line, folder, paper):
    for found in (QUOTED if paper else NAMED).finditer(line):
        name = next((group for group in found.groups() if group), found[0])
        if not tree.has_word(name):
            yield name
    for found in FILE.finditer(line):
        if ("/" in found[1] or not paper) and not tree.has_file(found[1], folder):
            yield found[1]
    for found in PLACE.finditer(line):
        ours = found[1].split("/")[0] in tree.tops and not FILE.match(line, found.start())
        if ours and not tree.has_file(found[1].rstrip("."), folder):
            yield found[1]


def faults(root):
    tree = Tree(root)
    papers = {*words.papers(root)}
    for pattern in ("bench/*.md", "examples/**/*.md", "tests/models/*.md"):
        papers.update(root.glob(pattern))
    for path in sorted({root / name for name in tree.files if pathlib.PurePath(name).suffix in CODE} | papers):
        place = path.relative_to(root)
        for number, line in words.comments(path):
            for name in missing(tree, line, place.parent.as_posix(), path.suffix == ".md"):
                yield f"{place}:{number}: {name}: there is no such name"


def unlisted(root):
    page = root / "docs" / "dev" / "design.md"
    for section in re.split(r"^### ", page.read_text() if page.exists() else "", flags=re.M)[1:]:
        room = re.match(r"([\w/]+)/\n", section)
        if not room:
            continue
        listed = {name for cell in re.findall(r"^\|([^|]*)\|", section, re.M) for name in re.findall(r"`(\w+)`", cell)}
        files = [path for path in (root / room[1]).glob("*.*") if path.suffix in {".c", ".h", ".cpp"}]
        for name in sorted(listed - {path.stem for path in files}):
            yield f"docs/dev/design.md: {room[1]}/{name}: there is no such file"
        for path in sorted(path for path in files if path.suffix != ".h" and path.stem not in listed):
            yield f"docs/dev/design.md: {path.relative_to(root)} is not listed"


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    source.verdict([*faults(root), *unlisted(root)], "the names in comments and papers exist")
