"""What the lists of seeded bugs and mutants change is in the source exactly once: most builds use one list, or none, and would not tell.

    seeded.py ROOT		the lists are in tests/bugs and tests/fake
"""
import sys

import source

sys.path.insert(0, str(source.pathlib.Path(__file__).resolve().parent.parent / "bugs"))
import seed  # noqa: E402

LISTS = ["tests/bugs/bugs.txt", "tests/bugs/mutants.txt", "tests/fake/bugs.txt"]  # in the order of the builds that use several


def faults(root):
    texts = {p.relative_to(root).as_posix(): p.read_text() for room in source.MAY_USE for p in source.files(root, room)}
    for path in filter(source.pathlib.Path.exists, (root / name for name in LISTS)):
        yield from seed.seed(texts, path)[1]


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), "seeded bugs and mutants are of this source")
