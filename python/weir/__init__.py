"""weir: an event-driven scheduler for GPU pipelines. docs/python.md is the manual."""

from weir import log as _log  # weir's log goes to logging
from weir import arrays as _arrays  # what NumPy's users expect of Message and ctx
from weir import streams as _streams  # gives Stream its context manager
from weir._weir import Context, Fence, Message, Object, Stream, log_to_stderr
from weir._weir import version as _version
from weir.errors import Closed, Diagnostic, Error, Status, Timeout
from weir.ends import Inlet, Outlet
from weir.entity import End, Entity
from weir.ended import Outcome
from weir.graph import Graph, Unmet, check, show
from weir.operators import Parameter, Port, duration, operator, operators, parameter, size
from weir.findings import Finding, Report, report
from weir.paths import get_include, get_library_dir
from weir import testing  # isort: skip

__version__ = _version()
__all__ = [
    "Closed",
    "Context",
    "Diagnostic",
    "End",
    "Entity",
    "Error",
    "Fence",
    "Finding",
    "Graph",
    "Inlet",
    "Message",
    "Object",
    "Outcome",
    "Outlet",
    "Parameter",
    "Port",
    "Report",
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
    "parameter",
    "report",
    "show",
    "size",
    "testing",
]
del _arrays, _log, _streams, _version
