"""Only streams/system.c calls through the backend's table, so a lost device is noticed whatever the caller does."""
import re
import sys

import source

DOOR = "streams/system.c"
FIELD = re.compile(r"\(\*(\w+)\)\(void")  # a function of struct wr_backend
TABLE = re.compile(r"struct wr_backend\s*\*?\s*(?:const\s*)?(\w+)")  # a variable


def calls(text, fields):
    """(line, function) of each call through a variable that is a table, or is called backend."""
    tables = {"backend", *TABLE.findall(text)}
    pattern = rf"\b({'|'.join(sorted(tables))}|wr_backend_\w+)\s*(?:->|\.)\s*({'|'.join(sorted(fields))})\s*\)*\s*\("
    for found in re.finditer(pattern, text):
        yield text.count("\n", 0, found.start()) + 1, found.group(2)


def faults(root):
    header = root / "streams/backend.h"
    fields = set(FIELD.findall(source.code(header))) if header.exists() else set()
    if not fields:
        yield "streams/backend.h: no table of functions was found"
        return
    for room in source.LIBRARY:
        for path in source.files(root, room):
            place = path.relative_to(root).as_posix()
            for line, name in calls(source.code(path), fields) if place != DOOR else ():
                yield f"{place}:{line}: calls the backend's {name}: use streams/system.h, which looks at the result"


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), "one file calls through the backend's table")
