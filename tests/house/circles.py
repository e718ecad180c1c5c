"""
No circle of files that call each other has more than a few files, so that most files can be read on top of those below them.
What calls each other in truth does so by name: no pointer with one target hides a circle, and the number is what it is.

An edge leads from a file that uses a symbol to the file that defines it, as nm finds them in the objects of the
library. The tables of conditions and operators do not count: their edges are the calls upward that the design has.
"""
import pathlib
import subprocess
import sys

MOST = 4
# The system is the device that all else calls, and all that is made from it: a lost device ends signals, which call the device.
# What a run does goes round: a tick delivers, a delivery pokes, a poke leads to a review, and that to a tick.
# Some ticks are those of dealers and joiners, which forward as an operator does.
MOST_OF = {"streams": 7, "scheduler": 21}
TABLES = {"conditions/table.c", "operators/table.c"}


def symbols(objects, root, nm):
    """Per source file of the tree: the symbols that it defines and those that it uses."""
    home = {path: path.relative_to(objects).as_posix().removesuffix(".o") for path in pathlib.Path(objects).rglob("*.o")}
    home = {str(path): source for path, source in home.items() if (root / source).exists()}  # others: removed since
    defined, used = ({source: set() for source in home.values()} for _ in range(2))
    told = subprocess.run([nm, "-A", *home], capture_output=True, text=True, check=True).stdout
    for path, _, row in (line.partition(":") for line in told.splitlines()):
        *_, kind, symbol = row.split()
        if kind in "TDBRVW":
            defined[home[path]].add(symbol)
        elif kind == "U":
            used[home[path]].add(symbol)
    return defined, used


def edges(defined, used):
    home = {symbol: source for source, symbols in defined.items() for symbol in symbols}
    return {source: {home[s] for s in symbols if s in home} - TABLES - {source} for source, symbols in used.items()}


def circles(graph):
    """The strongly connected sets of more than one file (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in graph[file]:
            if other not in number:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], number[other])
        if low[file] == number[file]:
            at = stack.index(file)
            found.append(set(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for file in sorted(graph):
        if file not in number:
            visit(file)
    return [circle for circle in found if len(circle) > 1]


def main(root, objects, nm="nm"):
    graph = edges(*symbols(objects, pathlib.Path(root), nm))
    found = sorted(circles(graph), key=len, reverse=True)
    wrong = [c for c in found if len(c) > MOST_OF.get(min(c).split("/")[0], MOST)]
    for circle in wrong:
        print(f"circle of {len(circle)} files: {' '.join(sorted(circle))}")
    if wrong or not graph:
        sys.exit(f"{len(wrong)} circles too large among {len(graph)} files")
    largest = f"the largest circle: {' '.join(sorted(found[0]))}" if found else "no circle"
    print(f"{len(graph)} files, {largest}")


main(*sys.argv[1:])
