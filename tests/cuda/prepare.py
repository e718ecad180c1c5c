"""What prepares pictures for a network gives the same bytes on every backend: chains of operators in one graph, each
from the photographs to a line of print, which has the shape, the first bytes and a checksum."""
import json
import pathlib
import re
import tempfile

import acceptance

SIZES = [(1, 1), (1, 7), (5, 1), (3, 2), (64, 31), (255, 257), (640, 360), (224, 224), (1031, 769)]
MEAN = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


def resizes():
    for width, height in SIZES:
        for letterbox in (False, True):
            yield "resize", {"width": width, "height": height, "letterbox": letterbox, "fill": [114, 7, 255]}


def normalizes():
    for kind in ("float32", "float16", "bfloat16"):
        yield "normalize", {"type": kind}
        yield "normalize", {"type": kind, **MEAN}
        yield "normalize", {"type": kind, "range": 1, "std": 0.0038}
        yield "normalize", {"type": kind, "range": 3e6, "mean": 1e-6}


def conversions():
    """Lists of conversions that begin with rgb: through each format, for nv12 and i420 with both matrices."""
    for to in ("bgr", "rgba", "bgra", "gray"):
        yield [("convert", {"to": to}), ("convert", {"from": to, "to": "rgb"})]
    yield [("convert", {"to": "gray", "matrix": "bt709"})]
    for matrix in ("bt601", "bt709"):
        for name, other in (("nv12", "i420"), ("i420", "nv12")):
            yuv = ("convert", {"to": name, "matrix": matrix})
            yield [yuv]
            for to in ("rgb", "bgra", "gray", other):
                yield [yuv, ("convert", {"from": name, "to": to, "matrix": matrix})]


def chains():
    """Lists of (operator, parameters) between upload and download."""
    for number, resize in enumerate(resizes()):
        yield [resize]
        if number % 5 == 0:
            yield from ([resize, normalize] for normalize in normalizes())
    for conversion in conversions():
        yield [("resize", {"width": 258, "height": 130}), *conversion]
        if conversion[0][1]["to"] not in ("nv12", "i420"):  # that needs even sizes
            yield conversion
            yield [("resize", {"width": 129, "height": 67}), *conversion]


def graph():
    entities = [
        {"name": "read", "operator": "png_read", "parameters": {"path": str(acceptance.ROOT / "examples" / "images")}},
        {"name": "upload", "operator": "upload"},
    ]
    connections = [["read.out", "upload.in"]]
    for number, chain in enumerate(chains()):
        before = "upload"
        for place, (kind, parameters) in enumerate([*chain, ("download", {}), ("print", {})]):
            name = f"{kind}_{number}_{place}"
            entities.append({"name": name, "operator": kind, "parameters": parameters})
            connections.append([f"{before}.out", f"{name}.in"])
            before = name
    return {"weir": 1, "entities": entities, "connections": connections}


def lines(given, path, backend):
    ended = acceptance.run([given.weir, "run", path, "--backend", backend, "--signal", given.signal])
    assert ended.returncode == 0 and not re.search("error|warning", ended.stderr), (backend, ended.stderr)
    return sorted(re.sub(r", time .*", "", line) for line in ended.stdout.splitlines() if ": tick " in line)


def the_same_bytes_as_on_host(given):
    with tempfile.TemporaryDirectory(prefix="weir-prepare-") as folder:
        path = pathlib.Path(folder) / "graph.json"
        path.write_text(json.dumps(graph()))
        wanted = lines(given, path, "host")
        found = lines(given, path, given.backend)
    photographs = len(list((acceptance.ROOT / "examples" / "images").glob("*.png")))
    assert len(wanted) == photographs * len(list(chains())), len(wanted)
    differ = [f"{one} / {two}" for one, two in zip(wanted, found) if one != two]
    assert len(found) == len(wanted) and not differ, (len(differ), differ[:5])
    acceptance.report(f"prepare: {len(wanted)} results of {len(list(chains()))} chains agree ({given.backend})")


if __name__ == "__main__":
    acceptance.main([the_same_bytes_as_on_host], acceptance.arguments())
