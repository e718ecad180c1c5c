"""Entities on two GPUs: streams of one wait for fences of the other, copies go across, and the bytes are those
of one device.

Skipped with one GPU, unless WEIR_REQUIRE_DEVICES=2. With --backend host or sim it uses two simulated
devices.
"""
import hashlib
import os
import pathlib
import tempfile

import acceptance

TWO = acceptance.ROOT / "examples" / "two_gpus.json"
REPEAT = 3  # of the photographs


def run(given, graph, backend, signal, folder, limit=acceptance.LIMIT):
    return acceptance.run(
        [given.weir, "run", graph, "--quiet", "--backend", backend, "--signal", signal, "--set", f"read.repeat={REPEAT}"]
        + ["--set", f"write.directory={folder}", "--set", "write.every=1"],
        limit,
    )


def pictures(given, graph, backend, signal):
    with tempfile.TemporaryDirectory(prefix="weir-devices-") as folder:
        ended = run(given, graph, backend, signal, folder)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), (graph, backend, signal, ended)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(folder).iterdir()}


def f70_two_devices_give_the_bytes_of_one(given):
    one = pictures(given, acceptance.EDGES, "host", "callback")
    assert one
    for signal in ("callback", "callback_inline", "flag"):
        two = pictures(given, TWO, given.backend, signal)
        differ = sorted(name for name in {*one, *two} if one.get(name) != two.get(name))
        assert not differ, f"{signal}: {differ} differ from what one device made"
    acceptance.report(f"devices: {len(one)} PNGs of two devices ({given.backend}) agree with one, with three signals")


def need_two(given):
    with tempfile.TemporaryDirectory(prefix="weir-devices-") as folder:
        ended = run(given, TWO, given.backend, "callback", folder)
    if ended.returncode and "device 1" in ended.stderr and os.environ.get("WEIR_REQUIRE_DEVICES", "1") in ("", "1"):
        os.environ["WEIR_REQUIRE_CUDA"] = "0"
        acceptance.skip(ended.stderr.strip())


given = acceptance.arguments()
acceptance.need_device(given)
need_two(given)
acceptance.main([f70_two_devices_give_the_bytes_of_one], given)
