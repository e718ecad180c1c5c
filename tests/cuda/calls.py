"""Calls of CUDA that recorder.c recorded, the ticks among them, and the calls that a steady run must not make."""
import glob
import os
import re

FORBIDDEN = re.compile(
    r"""
    .*Synchronize                                   # of device, stream, event, context
    |cuda(Memcpy|Memset)(?!.*Async).*               # synchronous copies
    |cu(Memcpy|MemsetD)(?!.*Async).*
    |cuda(Malloc|Free|Host(Alloc|Register|Unregister)).*
    |cuMem(Alloc|Free|Host(Alloc|Register|Unregister)|Create|Map).*
    |(cuda|cu)(Event|Stream)Create.*
    |(cuda|cu)Graph(Create|Clone|Instantiate|Destroy|Exec(Destroy|Update)).*
    """,
    re.X,
)


def cupti():
    """libcupti of a toolkit, or of a Python package that contains one."""
    places = [os.environ.get("CUDA_PATH", ""), os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    inside = ["lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"]
    patterns = [f"{place}/{folder}/libcupti.so*" for place in places if place for folder in inside]
    patterns += ["/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcupti.so*"]
    patterns += ["/usr/l*/python3*/*-packages/nvidia/*/lib/libcupti.so*", "/usr/lib/*-linux-gnu/libcupti.so*"]
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            return os.path.realpath(path)
    return None


def read_events(path):
    """(ns, thread, kind, name), ordered by time."""
    with open(path) as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    assert not any(row[2] == "lost" for row in rows), "the record is full"
    return sorted((int(at), int(thread), kind, name) for at, thread, kind, name in rows)


def ticks(events):
    """(entity, begin, end) of every tick: NVTX ranges nest per thread."""
    found, open_ones = [], {}
    for at, thread, kind, name in events:
        if kind == "push":
            open_ones.setdefault(thread, []).append((name, at))
        elif kind == "pop" and open_ones.get(thread):
            name, begin = open_ones[thread].pop()
            found.append((name, begin, at))
    return found
