"""A plugin that is named, not given by a path, is that beside the libweir that the process has loaded, wherever that is. Where
that was loaded by a relative path, which may mean another file by now, no name is found.

    named.py WEIR LIBWEIR PLUGIN
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def operators(weir, libraries, folder, name="moved"):
    return subprocess.run([weir, "operators", "--plugin", name], capture_output=True, text=True, timeout=50, cwd=folder,
                          env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})


def main(weir, libweir, plugin):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        own = folder / "lib/weir"
        own.mkdir(parents=True)
        shutil.copy(libweir, folder / "lib" / os.path.basename(libweir))
        shutil.copy(plugin, own / "libweir_moved.so")

        found = operators(weir, folder / "lib", HERE)
        assert found.returncode == 0 and not found.stderr and "count_up" in found.stdout, found
        for libraries, name, why in ((folder / "lib", "other", f"'{own}' has no file libweir_other.so: install the plugin, or name its file by a path"),
                                     ("lib", "moved", "a relative path): name the plugin's file by its path")):
            refused = operators(weir, libraries, folder, name)
            assert refused.returncode == 3 and refused.stderr.count("\n") == 1, refused
            assert f"plugin '{name}' is not found: " in refused.stderr and why in refused.stderr, refused
            print(refused.stderr, end="")


main(*sys.argv[1:])
