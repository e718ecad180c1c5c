"""Where the package keeps what plugins and programs in C are built with."""

import pathlib

FOLDER = pathlib.Path(__file__).parent


def folder_of(name: str, what: str) -> str:
    if not (FOLDER / name).is_dir():
        raise FileNotFoundError(f"{FOLDER} has no {what}: this weir was not installed by pip, but built against a libweir elsewhere")
    return str(FOLDER / name)


def get_include() -> str:
    """The folder of `weir.h` and `weir.hpp`, for the compiler's `-I`."""
    return folder_of("include", "header")


def get_library_dir() -> str:
    """The folder of `libweir.so`, for `-L`; `pkgconfig` and `cmake/weir` are in it."""
    return folder_of("lib", "library")
