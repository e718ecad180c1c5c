"""python3 -m weir: the command weir in this interpreter, so that --python FILE may register operators."""

import os
import signal
import sys
import traceback
from typing import Any

from weir import _weir
from weir.errors import line_of
from weir.operators import handles, load_file


def shown(text: Any) -> str:
    """Text of files and exceptions as it may reach a terminal: escaped, line by line."""
    lines = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0").split("\n")
    return "\n".join(map(_weir.escape, lines))


def show_exception(error: Any, trace: Any) -> None:
    flush()
    print(shown("".join(traceback.format_exception(type(error), error, trace))), end="", file=sys.stderr)


def failed(error: Any) -> bool:
    show_exception(error, error.__traceback__)
    return True


def load(path: Any) -> bool:
    """Runs a file of --python. A failure ends in one line; one within the file is printed with its traceback."""
    path = os.fsdecode(path)
    if not os.path.isfile(path):
        _weir.say(shown(f"--python {path}: no such Python file"))
        return False
    folder = os.path.dirname(os.path.realpath(path))
    if folder not in sys.path[:1] and not sys.flags.safe_path:
        sys.path.insert(0, folder)  # as `python3 FILE` does
    try:
        load_file(path)
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        show_exception(error, trace)
        _weir.say(shown(f"--python {path}: {line_of(error)}"))
        return False
    return True


def flush() -> bool:
    """What Python code has printed goes before what the command prints. A reader that has gone is no failure."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        if not isinstance(error, BrokenPipeError):
            _weir.say(f"cannot write to stdout: {error.strerror}")
            return False
    return True


def main(words: Any = None) -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command has its own handling
    words = sys.argv[1:] if words is None else words
    return _weir.command([b"weir", *map(os.fsencode, words)], load, failed, flush, handles)


if __name__ == "__main__":
    sys.exit(main())
