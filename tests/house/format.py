"""Every C file is as .clang-format says. Versions of clang-format differ: without Debian 12's it is skipped (77).

    format.py ROOT
"""
import pathlib
import shutil
import subprocess
import sys

import source

VERSION = 14
FOLDERS = [*source.MAY_USE, "include", "tests"]
NOT = ["tests/models"]  # models are read beside their paper, in its own layout


def files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if (path.suffix in source.SUFFIXES or name.startswith("python/") and path.suffix == ".cpp") and not any(name.startswith(n + "/") for n in NOT):
                yield path


def has_formatter():
    if not shutil.which("clang-format"):
        return False
    told = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    return f"version {VERSION}." in told


def main(root):
    root = pathlib.Path(root)
    if not has_formatter():
        print(f"skipped: no clang-format {VERSION} here")
        sys.exit(77)
    paths = sorted(set(files(root)))
    told = subprocess.run(["clang-format", "--dry-run", *paths], capture_output=True, text=True, cwd=root).stderr
    faults = [line.replace(f"{root}/", "") for line in told.splitlines() if "[-Wclang-format-violations]" in line]
    source.verdict(faults, f"{len(paths)} files are as .clang-format says")


main(sys.argv[1])
