"""`weir --plugin` finds a C++ or CUDA C++ plugin that uses WEIR_PLUGIN, also with hidden symbols. Arguments:
the command, nvcc or nothing. Compilers that are missing are skipped, except that g++ or c++ must exist.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = """
#include <weir.h>
static weir_status compute(weir_context *, void *) { return WEIR_OK; }
static weir_operator one;
static weir_status add(weir_registry *registry)
{
	one.size = sizeof one;
	one.name = "from_%s";
	one.help = "nothing";
	one.compute = compute;
	return weir_registry_add_operator(registry, &one);
}
WEIR_PLUGIN(add);
"""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared"]


def commands(nvcc):
    for compiler in filter(shutil.which, ("c++", "g++", "clang++")):
        for standard in ("c++11", "c++17", "c++20"):
            yield "cpp", [compiler, f"-std={standard}", *STRICT]
    if nvcc and not nvcc.endswith("NOTFOUND"):
        yield "cu", [nvcc, "-arch=sm_90", "-shared", "-Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra"]


def main(weir, nvcc):
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for suffix, command in commands(nvcc):
            source, plugin = pathlib.Path(folder) / f"one.{suffix}", pathlib.Path(folder) / f"one{tried}.so"
            source.write_text(SOURCE % suffix)
            subprocess.run([*command, f"-I{ROOT / 'include'}", source, "-o", plugin], check=True)
            told = subprocess.run([weir, "operators", "--plugin", plugin], capture_output=True, text=True)
            assert told.returncode == 0 and f"from_{suffix} " in told.stdout, (command, told)
            tried += 1
    assert tried, "no C++ compiler"
    print(f"{tried} plugins were found")


main(*sys.argv[1:])
