"""Every rule and fault that ids.txt claims has a test whose name contains its id: c04_..., s10_...,
f01_f03_...

ids.txt: one id per line with its title; a line that begins with '-' is not claimed, and its title gives the
reason. Its rules are those of docs/dev/rules.md (`- **C4** ...`).
"""
import pathlib
import re
import sys

import source

ID = r"(?:x[ab]\d\d|[cstgebr]\d\d|f\d{2,3})"
RULE = re.compile(r"^- \*\*([CSTGEBR]\d+)\*\*", re.M)
NAME = re.compile(rf"\b(?:test_)?((?:{ID}_)+)\w*", re.I)


def spelled(name):
    """The id as it appears in names: C4 of the design is c04, XB4 is xb04."""
    letters = name.rstrip("0123456789")
    return f"{letters.lower()}{int(name[len(letters):]):02d}"


def listed(path):
    claimed, open_ones = {}, {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, title = line.lstrip("-").strip().partition(" ")
            (open_ones if line.startswith("-") else claimed)[spelled(name)] = f"{name} {title.strip()}"
    return claimed, open_ones


def tested(tests):
    """Ids in the names of tests: functions, ctest names, golden folders."""
    found = set()
    for path in tests.rglob("*"):
        if "house" in path.relative_to(tests).parts or "__pycache__" in path.parts:
            continue
        names = NAME.findall(path.name)
        if path.suffix in {".c", ".cu"}:
            names += NAME.findall(source.code(path))
        elif path.suffix in {".py", ".sh", ".txt"}:
            names += NAME.findall(path.read_text(errors="replace"))
        for name in names:
            found.update(name.lower().rstrip("_").split("_"))
    return found


def unlike_the_rules(page, ids):
    rules = {spelled(name) for name in RULE.findall(page.read_text())}
    listed_rules = {name for name in ids if re.fullmatch(r"[cstgebr]\d\d", name)}
    for name in sorted(rules ^ listed_rules):
        yield f"{name}: docs/dev/rules.md has it, ids.txt does not" if name in rules else f"{name}: docs/dev/rules.md lacks it"


def main(tests):
    tests = pathlib.Path(tests)
    claimed, open_ones = listed(tests / "house" / "ids.txt")
    found = tested(tests)
    faults = [f"{title}: claimed, but no test carries {name}_" for name, title in claimed.items() if name not in found]
    faults += [f"{name}: a test carries it, ids.txt does not know it" for name in sorted(found - {*claimed, *open_ones})]
    faults += unlike_the_rules(tests.parent / "docs" / "dev" / "rules.md", {*claimed, *open_ones})
    for name, title in open_ones.items():
        print(f"{'tested, not claimed' if name in found else 'open'}: {title}")
    source.verdict(faults, f"{len(claimed)} ids have tests, {len(open_ones)} are not claimed")


main(sys.argv[1])
