"""
A function earns its name by being a step: how many static functions of a room are called once, beside how long its functions are,
so that neither is bought with the other. A bound may be lowered, not raised.

    once.py ROOT [ROOM]		with a room: lists those of at most 12 lines, to be judged

Counted are static functions of C files with one call, elsewhere than in themselves. Not those whose address is taken (in tables,
as callbacks), and not those that are kept out of their caller on purpose (noinline).
"""
import collections
import pathlib
import re
import sys

import source

SHORT = 12  # lines, from brace to brace
P90, LONGEST = 40, 80
# Room: the most, in % of all its functions, that are static and called once; that are of at most SHORT lines, too.
BOUNDS = {
    "base": (16, 9),
    "sim": (27, 22),
    "trace": (13, 8),
    "streams": (22, 8),
    "streams/cuda": (39, 19),
    "streams/host": (22, 15),
    "graphs": (40, 12),
    "conditions": (12, 8),
    "operators": (44, 24),
    "scheduler": (25, 8),
    "report": (54, 4),
    "cli": (36, 11),
}
HEAD = re.compile(r"^(?!typedef|struct \w+ \{|enum|union|extern|#)[A-Za-z_][^;{}#]*?\b(\w+)\([^;{}#]*\)\n\{", re.M)

Function = collections.namedtuple("Function", "name line lines once")


def functions(path):
    """Every function of a file; `once`: static, and called in one place alone."""
    text = source.code(path)
    found = []
    for head in HEAD.finditer(text):
        start, end = head.end() - 1, text.find("\n}", head.end() - 1)
        found.append((head, start, end if end > 0 else len(text)))
    for head, start, end in found:
        name, before = head[1], head[0].split("(")[0] if "__attribute__" not in head[0] else head[0]
        once = False
        if re.search(r"\bstatic\b", before) and "noinline" not in head[0]:
            uses = [use for use in re.finditer(rf"\b{name}\b", text) if not head.start() <= use.start() < end]
            uses = [use for use in uses if not declares(text, use)]
            calls = [use for use in uses if re.match(r"\s*\(", text[use.end() :])]
            once = len(uses) == len(calls) == 1
        yield Function(name, text.count("\n", 0, head.start(1)) + 1, text.count("\n", start, end + 1) + 1, once)


def declares(text, use):
    """A prototype: at the margin begins a line with static, which ends in a semicolon before a brace."""
    start = text.rfind("\n", 0, use.start()) + 1
    return text.startswith("static", start) and re.match(r"[^{};]*;", text[use.end() :]) is not None


def main(root, room=None):
    faults, lines = [], []
    for name in [room] if room else BOUNDS:
        found = [(path, f) for path in source.files(root, name) if path.suffix == ".c" for f in functions(path)]
        if not found:
            continue
        once = [(path, f) for path, f in found if f.once]
        short = [(path, f) for path, f in once if f.lines <= SHORT]
        lengths = sorted(f.lines for _, f in found)
        p90 = lengths[int(0.9 * (len(lengths) - 1))]
        shares = [100 * len(part) / len(found) for part in (once, short)]
        lines.append(f"{name}: {len(found)} functions, called once {len(once)} ({shares[0]:.1f} %), of them short {len(short)} ({shares[1]:.1f} %); 90th percentile {p90} lines, longest {lengths[-1]}")
        for what, share, most in zip(("are called once", f"have at most {SHORT} lines and are called once"), shares, BOUNDS.get(name, (100, 100))):
            if share > most:
                faults.append(f"{name}: {share:.1f} % of the functions {what}; {most} % is the most: what is no step with a name of its own goes back into its caller (once.py ROOT {name})")
        if p90 > P90:
            faults.append(f"{name}: the 90th percentile is {p90} lines; {P90} is the most")
        faults += [f"{path.relative_to(root)}:{f.line}: {f.name} has {f.lines} lines; {LONGEST} is the most" for path, f in found if f.lines > LONGEST]
        if room:
            lines += [f"{path.relative_to(root)}:{f.line}: {f.name} ({f.lines})" for path, f in short]
    source.verdict([*faults, *(lines if faults else [])], "\n".join(lines))


main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
