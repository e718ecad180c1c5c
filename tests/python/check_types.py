"""Type checkers accept the package, examples/python, the Python of the tutorial and typed.py, and refuse what typed.py says.

    check_types.py TOOLS WORK     TOOLS: the environment of `scripts/install-deps types`; WORK: a folder for what is made

mypy --strict and pyright, for the oldest Python. Exit code 77, which ctest takes as skipped: there are no tools.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDEST = "3.11"
LESSON = ROOT / "docs/first-pipeline.md"
BLOCK = re.compile(r"^```python file (\S+)\n(.*?)^```$", re.M | re.S)


def lesson(folder):
    """The Python files of the tutorial, the later versions of one name in folders of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, content) in enumerate(BLOCK.findall(LESSON.read_text())):
        path = folder / f"{pathlib.Path(name).stem}_{number}.py"
        path.write_text(content)
        yield path


def runs(*command):
    ended = subprocess.run(list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode:
        print("$", *command, f"\n{ended.stdout}")
    return not ended.returncode


def main(tools, work):
    tools, work = pathlib.Path(tools).resolve(), pathlib.Path(work).resolve()
    if not (tools / "bin/mypy").exists():
        print("skipped: no mypy and pyright: scripts/install-deps types")
        return 77
    lessons = list(lesson(work / "lesson"))
    assert lessons, LESSON
    # Measurements are no examples, and the libraries of the examples need not be installed.
    checked = [ROOT / "python/weir", *(path for path in sorted((ROOT / "examples/python").glob("*.py")) if not path.stem.endswith("_measure")), *lessons, ROOT / "tests/python/typed.py"]
    settings = {"include": list(map(str, checked)), "typeCheckingMode": "standard", "pythonVersion": OLDEST, "venvPath": str(tools.parent),
                "venv": tools.name, "extraPaths": [str(ROOT / "python"), str(ROOT / "examples/python")],
                "reportMissingModuleSource": "none", "reportMissingImports": "none", "reportUnnecessaryTypeIgnoreComment": "none"}
    (work / "pyrightconfig.json").write_text(json.dumps(settings))
    (work / "mypy.ini").write_text(f"[mypy]\nstrict = True\npython_version = {OLDEST}\ncache_dir = {work}/mypy\n"
                                   f"mypy_path = {ROOT}/python:{ROOT}/examples/python\n"
                                   "[mypy-cvcuda.*,nvidia.*,openvino.*,onnx.*,onnxruntime.*,torch.*,ml_dtypes.*]\nignore_missing_imports = True\n")
    right = [runs(tools / "bin/mypy", "--config-file", work / "mypy.ini", *checked),
             runs(tools / "bin/basedpyright", "-p", work / "pyrightconfig.json")]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
