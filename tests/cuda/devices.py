"""Entities on two GPUs: streams of one wait for fences of the other, copies go across, pools and replay work on
each, and the bytes are those of one device.

Skipped with one GPU, unless WEIR_REQUIRE_DEVICES=2. With --backend host or sim it uses two simulated
devices.
"""
import hashlib
import os
import pathlib
import shutil
import tempfile

import acceptance

TWO = acceptance.ROOT / "examples" / "two_gpus.json"
REPEAT = 3  # of the photographs
SMALL = ("basn2c08.png", "basn2c16.png", "basn3p08.png")  # 32 x 32: the host form of the network is slow


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
    for signal in ("auto", "callback", "callback_inline", "flag"):
        two = pictures(given, TWO, given.backend, signal)
        differ = sorted(name for name in {*one, *two} if one.get(name) != two.get(name))
        assert not differ, f"{signal}: {differ} differ from what one device made"
    acceptance.report(f"devices: {len(one)} PNGs of two devices ({given.backend}) agree with one, with every signal")


def across(graph):
    """The second half of upscale.json on the second device; few keys, so that some frames are replayed."""
    pools, entities = graph["resources"], {entity["name"]: entity for entity in graph["entities"]}
    pools["across"] = {**pools["frames"], "device": 1}
    pools["upscaled"]["device"] = 1
    for pool in "across", "upscaled":
        pools[pool]["blocks"] = 2
    pools["first"] = {"type": "stream_pool", "device": 0}
    pools["second"] = {"type": "stream_pool", "device": 1}
    for name, pool in {"upload": "first", "letterbox": "first", "upscale": "second", "download": "second"}.items():
        entities[name]["resources"].append(pool)
    graph["entities"].append({"name": "across", "operator": "upload", "resources": ["across", "second"]})
    graph["connections"].remove(["letterbox.out", "upscale.in"])
    graph["connections"] += [["letterbox.out", "across.in"], ["across.out", "upscale.in"]]


def upscaled(given, backend, signal, change):
    """({name: digest of a picture}, how many frames were replayed)"""
    with tempfile.TemporaryDirectory(prefix="weir-devices-") as folder:
        for name in SMALL:
            shutil.copy(acceptance.ROOT / "tests/operators/pngsuite" / name, folder)
        settings = [f"read.path={folder}", "read.repeat=4", "letterbox.width=40", "letterbox.height=32", f"write.directory={folder}/out"]
        settings.append("write.every=1")
        options = ["--backend", backend, "--signal", signal, *(word for each in settings for word in ("--set", each))]
        output = acceptance.run_changed(given, "upscale", "upscale/upscale.json", folder, change, *options)
        found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(folder, "out").iterdir()}
    hits = acceptance.REPLAYED.search(output)
    return found, int(hits[1]) if hits else 0


def f70_t13_pools_scratch_and_replay_on_the_second_device(given):
    one, _ = upscaled(given, "host", "callback", lambda graph: None)
    assert (len(one), len(set(one.values()))) == (12, len(SMALL)), one
    for signal in ("auto", "callback", "callback_inline", "flag"):
        two, hits = upscaled(given, given.backend, signal, across)
        assert two == one, f"{signal}: {sorted(name for name in {*one, *two} if one.get(name) != two.get(name))} differ"
        assert hits, f"{signal}: nothing was replayed"
    acceptance.report(f"devices: {len(one)} pictures replayed on the second device ({given.backend}), with every signal")


def need_two(given):
    with tempfile.TemporaryDirectory(prefix="weir-devices-") as folder:
        ended = run(given, TWO, given.backend, "callback", folder)
    if ended.returncode and "device 1" in ended.stderr and os.environ.get("WEIR_REQUIRE_DEVICES", "1") in ("", "1"):
        os.environ["WEIR_REQUIRE_CUDA"] = "0"
        acceptance.skip(ended.stderr.strip())


given = acceptance.arguments(examples=".")
acceptance.need_device(given)
need_two(given)
acceptance.main([f70_two_devices_give_the_bytes_of_one, f70_t13_pools_scratch_and_replay_on_the_second_device], given)
