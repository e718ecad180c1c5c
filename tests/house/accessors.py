"""In python/ what takes the type or the length of a Python object for granted says why that is so: a check stands on its line or within
the five before, or a comment `checked: ...`. Without one, a value of a user, such as an empty tuple, is read beyond its end.
"""
import re
import sys

import source

UNCHECKED = re.compile(
    r"\b(nb::inst_ptr<|nb::borrow<(?!nb::object)|nb::steal<(?!nb::object)|Py\w+_GET_(?:ITEM|SIZE)|PyTuple_GetItem|PyList_GetItem"
    r"|PyBytes_AsString|PyByteArray_AsString|static_cast<nb::|reinterpret_cast<Py)"
)
CHECK = re.compile(r"\bPy\w+_Check(?:Exact)?\(|\bPyTuple_Size\(|\bPyList_Size\(|nb::isinstance|nb::try_cast|nb::inst_check|checked: \w")
BEFORE = 5


def faults(root):
    for path in sorted([*root.glob("python/*.cpp"), *root.glob("python/*.h")]):
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            found = UNCHECKED.search(line)
            if found and not any(CHECK.search(near) for near in lines[max(0, i - BEFORE) : i + 1]):
                yield (f"{path.relative_to(root)}:{i + 1}: {found.group(1)} without a check of the object's type or length before it: "
                       "check it, or say why it is right, /* checked: ... */")


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), "what python/ takes of an object was checked")
