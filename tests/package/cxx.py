"""weir.hpp in a program, in a plugin, and as README shows it, by each compiler that is here, as C++17 and C++20 without a warning;
README's operator in C as C11 and C17, and as C++20 but for the fields that it leaves out.
Arguments: libweir, the command.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fvisibility=hidden", f"-I{ROOT / 'include'}"]
SQUARES = "".join(f"{n * n}\n" for n in range(1, 11)) + "operator failed: square: the square does not fit in 64 bits\n"
GRAPH = """{"weir": 1, "entities": [
    {"name": "a", "operator": "ping", "conditions": [{"type": "count", "count": 6}]}, {"name": "half", "operator": "half"},
    {"name": "p", "operator": "print"}], "connections": [["a.out", "half.in"], ["half.out", "p.in"]]}"""


def readme(language):
    text = (ROOT / "README.md").read_text()
    return re.search(rf"^```{language} example\n(.*?)^```$", text[text.index("## An operator of your own"):], re.M | re.S)[1]


def program(compile_command, source, library, folder, linked):
    out = folder / "program"
    subprocess.run([*compile_command, source, "-o", out, library, f"-Wl,-rpath,{library.parent}"], check=True)
    told = subprocess.run([out], capture_output=True, text=True, cwd=folder)
    assert told.returncode == 0 and told.stdout == linked, (compile_command, source, told)


def plugin(compile_command, weir, folder):
    (folder / "half.cpp").write_text(readme("cpp"))
    (folder / "half.json").write_text(GRAPH)
    subprocess.run([*compile_command, "-fPIC", "-shared", folder / "half.cpp", "-o", folder / "half.so"], check=True)
    told = subprocess.run([weir, "run", "--plugin", folder / "half.so", folder / "half.json"], capture_output=True, text=True)
    assert told.returncode == 0 and re.search(r"^ +half +6 +6 +3 ", told.stderr + told.stdout, re.M), told


def c_operator(folder):
    (folder / "half.c").write_text(readme("c"))
    for compiler, language in (("gcc", "c"), ("clang", "c"), ("g++", "c++"), ("clang++", "c++")):
        for standard in ("c11", "c17") if language == "c" else ("c++20",):
            left_out = [] if language == "c" else ["-Wno-missing-field-initializers"]
            if shutil.which(compiler):
                subprocess.run([compiler, f"-std={standard}", *STRICT, *left_out, "-fsyntax-only", "-x", language, folder / "half.c"],
                               check=True)


def main(library, weir):
    tried, library = 0, pathlib.Path(library).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        c_operator(folder)
        for compiler in filter(shutil.which, ("g++", "clang++")):
            for standard in ("c++17", "c++20"):
                command = [compiler, f"-std={standard}", *STRICT]
                program(command, ROOT / "examples/cxx/squares.cpp", library, folder, SQUARES)
                program(command, ROOT / "tests/package/cxx.cpp", library, folder, "")
                plugin(command, weir, folder)
                tried += 1
    assert tried, "no C++ compiler"
    print(f"weir.hpp: {tried} compilers and standards")


main(*sys.argv[1:])
