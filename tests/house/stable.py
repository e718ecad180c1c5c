"""python/module.cpp calls nothing of Python that the stable interface of 3.12 lacks: most builds are not for it, and would not tell.

    stable.py ROOT		the names are in tests/house/stable.txt
"""
import re
import sys

import source

NAME = re.compile(r"\b_?Py[A-Z_]\w+")
MODULE, LIST = "python/module.cpp", "tests/house/stable.txt"


def faults(root):
    module, allowed = root / MODULE, root / LIST
    if not module.exists():
        return
    known = {line for line in allowed.read_text().split("\n") if line and not line.startswith("#")}
    seen = {}
    for number, line in enumerate(source.code(module).split("\n"), 1):
        for name in NAME.findall(line):
            seen.setdefault(name, number)
    for name, number in seen.items():
        if name not in known:
            yield f"{MODULE}:{number}: {name} is not in {LIST}: see there"
    for name in sorted(known - seen.keys()):
        yield f"{LIST}: {name} is not used: delete it"


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), "Python's stable interface of 3.12 has what the module calls")
