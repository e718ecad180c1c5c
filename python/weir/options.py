"""Options of a run, and how long a call waits: checked here, as C takes them."""

import inspect
import numbers
import os
import re
from collections.abc import Callable
from typing import Any, Literal, TypedDict, TypeVar

SECONDS = ("drain", "deadlock_grace", "max_duration", "worker_spin")
FLAGS = ("statistics", "trace", "strict")
TEXTS = ("backend", "signal")
NUMBERS = {"workers": 2**32, "seed": 2**64, "max_in_flight": 2**31, "skip": 2**64, "trace_events": 2**64}  # below
GPU_TIME = re.compile("off|all|sample:([1-9][0-9]{0,5}|1000000)")
Method = TypeVar("Method", bound=Callable[..., Any])
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Options(TypedDict, total=False):
    """Options of run and start: weir_scheduler_options of weir.h, times in seconds. None: not given."""

    workers: int | None
    backend: Literal["auto", "cuda", "host", "sim"] | None
    signal: str | None
    seed: int | None
    max_in_flight: int | None
    root: Path | None
    statistics: bool | None
    skip: int | None
    trace: bool | None
    trace_events: int | None
    gpu_time: str | None
    strict: bool | None
    drain: float | None
    deadlock_grace: float | None
    max_duration: float | None
    worker_spin: float | None


def with_options(method: Method) -> Method:
    """Of a method with **options: the signature that help() shows has their names."""
    shown = inspect.signature(method)
    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in Options.__annotations__.items()]
    parameters = [*list(shown.parameters.values())[:1], *keywords]
    method.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
    return method


def text_of(name: str, value: Any) -> Any:
    """A text or a path, as C takes it."""
    text = os.fspath(value)
    if isinstance(text, str) and "\0" in text:
        raise ValueError(f"{name} has a NUL character: {text!r}")
    return text


def is_number(value: Any, kind: type = numbers.Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _option(name: str, value: Any) -> Any:
    """What the module takes for it."""
    if name in SECONDS:
        if not is_number(value) or value != value:
            raise TypeError(f"{name} is a number of seconds, not {value!r}")
        if value < 0:
            return 2**63 - 1 if name == "deadlock_grace" else -1  # for ever; WEIR_NONE
        return int(min(value * 1e9, 2.0**63 - 1024))
    if name in NUMBERS:
        least = 1 - NUMBERS[name] if name == "max_in_flight" else 0
        if not is_number(value, numbers.Integral) or not least <= value < NUMBERS[name]:
            raise TypeError(f"{name} is a whole number from {least} to {NUMBERS[name] - 1}, not {value!r}")
        return int(value)
    if name in FLAGS and not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    if name in TEXTS and not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r}")
    if name == "gpu_time":
        return _sampling(value)
    if name == "strict":
        return 1 if value else -1  # WEIR_NONE
    return text_of(name, value) if name in (*TEXTS, "root") else value


def _sampling(text: Any) -> int:
    """weir_scheduler_options.gpu_time of "off", "all" or "sample:N"."""
    found = GPU_TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"gpu_time is 'off', 'all' or 'sample:N' with N from 1 to 1000000, not {text!r}")
    return {"off": -1, "all": 1}.get(text) or int(found[1])


def options_of(options: Any) -> dict[str, Any]:
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise TypeError(f"there is no option '{unknown[0]}'; there are {', '.join(Options.__annotations__)}")
    return {name: _option(name, value) for name, value in options.items() if value is not None}


def check_timeout(timeout: Any) -> None:
    if timeout is not None and not is_number(timeout):
        raise TypeError(f"a timeout is a number of seconds, or None, not {timeout!r}")
