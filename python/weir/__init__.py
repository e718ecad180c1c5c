"""weir: an event-driven scheduler for GPU pipelines. docs/python.md is the manual."""

from weir import log as _log  # weir's log goes to logging
from weir import arrays as _arrays  # what NumPy's users expect of Message and ctx
from weir import streams as _streams  # gives Stream its context manager
from weir._weir import Context, Fence, Message, Object, Stream, log_to_stderr
from weir._weir import version as _version
from weir.errors import Closed, Diagnostic, Error, Status, Timeout
from weir.graph import Graph, Inlet, Outcome, Outlet, Unmet, check, show
from weir.operators import Parameter, Port, duration, operator, operators, size
from weir.paths import get_include, get_library_dir

__version__ = _version()
__all__ = [
    "Closed",
    "Context",
    "Diagnostic",
    "Error",
    "Fence",
    "Graph",
    "Inlet",
    "Message",
    "Object",
    "Outcome",
    "Outlet",
    "Parameter",
    "Port",
    "Status",
    "Stream",
    "Timeout",
    "Unmet",
    "check",
    "duration",
    "get_include",
    "get_library_dir",
    "log_to_stderr",
    "operator",
    "operators",
    "show",
    "size",
]
del _arrays, _log, _streams, _version
