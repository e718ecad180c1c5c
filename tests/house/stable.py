"""python/ calls nothing of Python that the stable interface of 3.12 lacks: most builds are not for it, and would not tell.

    stable.py ROOT		the names are in tests/house/stable.txt
"""
import re
import sys

import source

NAME = re.compile(r"\b_?Py[A-Z_]\w+")
LIST = "tests/house/stable.txt"


def faults(root):
    files, allowed = source.files(root, "python"), root / LIST
    if not files:
        return
    known = {line for line in allowed.read_text().split("\n") if line and not line.startswith("#")}
    seen = {}
    for path in files:
        for number, line in enumerate(source.code(path).split("\n"), 1):
            for name in NAME.findall(line):
                seen.setdefault(name, f"{path.relative_to(root)}:{number}")
    for name, place in seen.items():
        if name not in known:
            yield f"{place}: {name} is not in {LIST}: see there"
    for name in sorted(known - seen.keys()):
        yield f"{LIST}: {name} is not used: delete it"


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), "Python's stable interface of 3.12 has what the module calls")
