"""Each external package is used by one file, or by the few files of its backend."""
import re
import sys

import source

DOORS = [
    (re.compile(r"nanobind|Python\.h$"), "nanobind", re.compile(re.escape(source.MODULE) + "$")),
    (re.compile(r"event2/|event\.h$|evutil"), "libevent", re.compile(r"(scheduler/loop|cli/metrics)\.c$")),
    (re.compile(r"jansson"), "jansson", re.compile(r"graphs/json\.c$")),
    (re.compile(r"onnxruntime"), "ONNX Runtime", re.compile(r"plugins/onnx/runtime\.h$")),
    (re.compile(r"uc[pst]/"), "UCX", re.compile(r"remote/ucx\.c$")),
    (re.compile(r"png(conf)?\.h$"), "libpng", re.compile(r"operators/png\.c$")),
    (re.compile(r"sanitizer/"), "the sanitizers' interface", re.compile(r"sim/coroutine\.c$")),
    (re.compile(r"nvtx"), "NVTX", re.compile(r"trace/nvtx\.c$")),
    (re.compile(r"(^|/)(cu|cuda|driver_types|device_)[\w/]*\.h$"), "CUDA", re.compile(r"(streams/cuda/\w+\.[ch]|operators/\w+\.cuh?)$")),
]
STANDARD = re.compile(r"^(sys|netinet|arpa|linux|bits)/\w+\.h$|^\w+\.h$")
OF_CPP = re.compile(r"^[a-z_]+$")  # <vector>


def faults(root):
    root = source.pathlib.Path(root)
    for room in [*source.LIBRARY, "cli"]:
        for path in sorted((root / room).glob("*.c[pc]*")):
            yield f"{path.relative_to(root)}: the C++ of the library is in python/"
    for room in [*source.LIBRARY, "cli", "plugins/onnx", "remote", "python"]:
        for path in source.files(root, room):
            for line, kind, name in source.includes(path):
                place = path.relative_to(root)
                door = next((d for d in DOORS if d[0].search(name)), None) if kind == "<" else None
                if door and not door[2].search(place.as_posix()):
                    yield f"{place}:{line}: <{name}>: {door[1]} enters by {door[2].pattern.rstrip('$')} alone"
                elif kind == "<" and not door and not STANDARD.match(name) and not (room == "python" and OF_CPP.match(name)):
                    yield f"{place}:{line}: <{name}>: a package without a door in tests/house/doors.py"


source.verdict(list(faults(sys.argv[1])), "each package enters by its one file")
