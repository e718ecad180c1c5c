"""docs/distributed.md: its command of mpirun runs the pair of examples/remote. Skipped with a line where there is no mpirun.

launchers.py WEIR FOLDER PLUGIN: FOLDER is scratch.
"""
import re
import shutil
import sys

import processes
from processes import ROOT, address


def r06_mpirun_starts_both_sides_as_the_page_says(weir):
    page = (ROOT / "docs/distributed.md").read_text()
    to, folder = address(), processes.FOLDER / "mpi"
    shutil.rmtree(folder, ignore_errors=True)
    options = {
        "edges.json": ["--backend", "host", "--set", f"receive.listen={to}", "--set", f"write.directory={folder}"],
        "frames.json": ["--backend", "host", "--set", f"send.to={to}"],
    }
    words = ["--allow-run-as-root", "--oversubscribe"]
    for word in re.search("^\tmpirun (.*)$", page, re.M)[1].split():
        if word in options:
            words += options[word] + [str(ROOT / "examples/remote" / word)]
        else:
            words.append(weir if word == "weir" else word)
    ended = processes.process.run("mpirun", *words, cwd=ROOT)
    assert ended.returncode == 0, ended
    assert ended.stdout.count("finished after") == 2, ended
    assert list(folder.glob("*.png")), ended


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        print("skipped: no mpirun: run scripts/install-deps mpi")
        sys.exit(77)
    processes.process.main([r06_mpirun_starts_both_sides_as_the_page_says])
