"""
No function of the library is longer than 80 lines, no file of the tests than 600; prints the median and the 90th percentile.

A model is one program with its states, steps and mutants, and is read as a whole: it may be longer.
"""
import ast
import pathlib
import sys

import source

LONGEST = 80
LONGEST_PYTHON = 40  # in python/weir
LONGEST_TEST = 600
WHOLE = ("tests/models/", "tests/package/abi/")  # a model; kept copies of weir.h


def functions(path):
    """(first line, lines) of every function: from the opening to the closing brace at the margin."""
    start = None
    for number, line in enumerate(source.code(path).splitlines(), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start:
            yield start, number - start + 1
            start = None


def long_python(root):
    for path in sorted((pathlib.Path(root) / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = node.end_lineno - node.lineno + 1
                if length > LONGEST_PYTHON:
                    yield f"{path.relative_to(root)}:{node.lineno}: {node.name} has {length} lines; {LONGEST_PYTHON} are the most"


def long_tests(root):
    for path in sorted((pathlib.Path(root) / "tests").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in source.SUFFIXES | {".py", ".sh"} or name.startswith(WHOLE):
            continue
        count = len(path.read_text().splitlines())
        if count > LONGEST_TEST:
            yield f"{name}: {count} lines; {LONGEST_TEST} are the most: split it by topic"


def main(root):
    faults, lengths = [*long_tests(root), *long_python(root)], []
    for room in source.MAY_USE:
        for path in source.files(root, room):
            for line, length in functions(path):
                lengths.append(length)
                if length > LONGEST:
                    faults.append(f"{path.relative_to(root)}:{line}: a function of {length} lines; {LONGEST} is the most")
    lengths.sort()
    at = lambda share: lengths[int(share * (len(lengths) - 1))] if lengths else 0
    source.verdict(faults, f"{len(lengths)} functions: median {at(0.5)} lines, 90th percentile {at(0.9)}, longest {at(1)}")


main(sys.argv[1])
