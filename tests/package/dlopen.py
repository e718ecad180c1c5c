"""weir loaded by ctypes with no static TLS left: a graph's results are taken with the example's own code."""
import ctypes
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "ctypes"))
import edges  # noqa: E402


def use_up_static_tls(library):
    with tempfile.TemporaryDirectory() as folder:
        for count in range(1000):
            copy = shutil.copy(library, pathlib.Path(folder) / f"{count}.so")
            try:
                ctypes.CDLL(copy)  # stays loaded
            except OSError as error:
                assert "static TLS" in str(error), error
                return count
    raise AssertionError("static TLS has no end")


def main(library, static_tls):
    copies = use_up_static_tls(static_tls)
    weir = edges.declare(library)
    print(f"weir {weir.weir_version().decode()}, loaded after {copies} libraries had used up static TLS")


main(*sys.argv[1:])
