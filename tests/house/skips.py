"""Only the listed tests were skipped.

skips.py LIST PRESET RESULTS: RESULTS is what ctest --output-junit wrote. What LIST allows at home is refused where the environment
has CI.
"""
import fnmatch
import os
import pathlib
import sys
import xml.etree.ElementTree

WHERE = ("anywhere", "home")


def rows(path):
    """(pattern, presets, where, why) of each line."""
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        row = [part.strip() for part in line.split("|")]
        if len(row) != 4 or row[2] not in WHERE or not row[3]:
            sys.exit(f"{path}:{number}: not 'PATTERN | PRESETS | {' or '.join(WHERE)} | WHY': {line}")
        yield row


def is_allowed(name, preset, row):
    pattern, presets, where, _ = row
    return (fnmatch.fnmatchcase(name, pattern) and any(fnmatch.fnmatchcase(preset, one) for one in presets.split())
            and (where == "anywhere" or not os.environ.get("CI")))


def main(path, preset, results):
    tests = xml.etree.ElementTree.parse(results).getroot().findall("testcase")
    skipped = [test.get("name") for test in tests if test.find("skipped") is not None]
    allowed = list(rows(path))
    wrong = [name for name in skipped if not any(is_allowed(name, preset, row) for row in allowed)]
    for name in wrong:
        print(f"{name} was skipped, which {path} does not allow in preset {preset}{' on CI' if os.environ.get('CI') else ''}")
    if not tests:
        print(f"{results}: no tests")
    return 1 if wrong or not tests else 0


sys.exit(main(*sys.argv[1:]))
