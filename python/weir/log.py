"""weir's log as records of the logger "weir"."""

import logging
import threading
from typing import Any

from weir import _weir

LOGGER = logging.getLogger("weir")
LEVELS = (logging.NOTSET, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)  # by weir_log_level
_FALLBACK = logging.NullHandler()


def deliver() -> None:
    """Gives the lines that wait to the logger, unless another thread does so: called by the module."""
    interrupt = None
    while _weir.begin_delivery():
        try:
            for line in _weir.take_lines():
                interrupt = _give(*line) or interrupt
        finally:
            _weir.end_delivery()
    if interrupt:
        raise interrupt


def _give(level: Any, created: Any, thread: Any, name: Any, text: Any) -> BaseException | None:
    """A handler's exception is shown as logging shows those of its own, and ends nothing. Returns a Ctrl-C."""
    record = None
    try:
        if LOGGER.isEnabledFor(LEVELS[level]):
            record = LOGGER.makeRecord(LOGGER.name, LEVELS[level], "(unknown file)", 0, text, (), None)
            record.relativeCreated += (created - record.created) * 1000
            record.created, record.msecs = created, created % 1 * 1000 // 1
            record.thread, record.threadName = thread, name
            LOGGER.handle(record)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            return error
        _FALLBACK.handleError(record or logging.makeLogRecord({"msg": text}))
    return None
