"""examples/network: the same bytes as OpenVINO one by one, nothing lost, and each failure in one line.

network.py WEIR FOLDER PLUGIN...: FOLDER is scratch; the plugins are those of examples/network and tensors.c.
"""
import json
import os
import pathlib
import re
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "examples/network")]
try:
    import numpy
    import onnx
    import openvino
except ImportError as missing:
    print(f"skipped: {missing}: run scripts/install-deps network")
    sys.exit(77)
import made
import models
import process
import reference

FOLDER = pathlib.Path(sys.argv[2])
PLUGINS = [option for path in sys.argv[3:] for option in ("--plugin", os.path.abspath(path))]
del sys.argv[2:]
FRAMES = 7
PICTURE = (1, 3, 224, 224)


def frames(shape, count=FRAMES):
    """Of different brightness, so that each gives a result of its own."""
    numbers = numpy.random.default_rng(5).random((count, *shape[1:]), dtype=numpy.float32)
    return numbers * numpy.linspace(0.1, 3, count, dtype=numpy.float32).reshape(-1, *[1] * (len(shape) - 1))


def write_frames(name, array):
    array.tofile(FOLDER / name)
    return {"path": str(FOLDER / name), "shape": ",".join(str(size) for size in (1, *array.shape[1:])), "count": len(array)}


def one_by_one(model, array, rows=1):
    """The reference: the Python package of OpenVINO, one request that is waited for, on frames as they come."""
    network = openvino.Core().read_model(model)
    network.reshape([rows, *array.shape[1:]])
    request = openvino.Core().compile_model(network, "CPU").create_infer_request()
    filled = numpy.concatenate([array, numpy.zeros((-len(array) % rows, *array.shape[1:]), array.dtype)])
    results = [list(request.infer(filled[i : i + rows]).values())[0].copy() for i in range(0, len(filled), rows)]
    return numpy.concatenate(results)[: len(array)]


def describe(read, model, ports=None, scheduler=None, **parameters):
    """read -> network -> write, as JSON."""
    network = {"name": "network", "operator": "network", "parameters": {"model": str(model), **parameters}}
    batch = parameters.get("batch", 1)
    network["ports"] = ports or {"in": {"take": batch, "capacity": 2 * batch}, "out": {"max_emits": batch}}
    writer = {"name": "write", "operator": "tensor_write", "parameters": {"path": str(FOLDER / "results")}}
    writer["ports"] = {"in": {"capacity": 2 * batch}}
    reader = {"name": "read", "operator": "tensor_read", "parameters": read}
    return {
        "weir": 1,
        "scheduler": scheduler or {},
        "entities": [reader, network, writer],
        "connections": [["read.out", "network.in"], ["network.out", "write.in"]],
    }


def written(graph):
    (FOLDER / "graph.json").write_text(json.dumps(graph))
    return ["--backend", "host", *PLUGINS, str(FOLDER / "graph.json")]


def run(weir, graph, *options):
    return process.run(weir, "run", "--quiet", *options, *written(graph))


def results(like):
    """What tensor_write wrote; it has checked that results come in the order of the frames, by their tags."""
    return numpy.fromfile(FOLDER / "results", numpy.float32).reshape(-1, *like.shape[1:])


def agrees(weir, model, array, rows=1, **parameters):
    expected = one_by_one(model, array, rows)
    ended = run(weir, describe(write_frames("frames", array), model, batch=rows, **parameters))
    assert ended.returncode == 0, ended
    found = results(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.tobytes() == expected.tobytes(), (model, parameters)
    return expected


def results_are_those_of_openvino_one_by_one(weir):
    for requests in (1, 3):
        expected = agrees(weir, FOLDER / "squeezenet.onnx", frames(PICTURE), requests=requests)
        assert len({row.tobytes() for row in expected}) == FRAMES, "frames that give the same result show nothing"
    for name in ("squeezenet", "resnet50"):
        agrees(weir, models.light(name), frames(PICTURE, 3), requests=2)


def pictures(count=12, height=120, width=160):
    """Gradients and noise, red, green and blue."""
    random = numpy.random.default_rng(7)
    ramp = numpy.linspace(0, 1, width)[None, :, None] * random.random((count, 1, 1, 3)) * numpy.arange(1, count + 1).reshape(-1, 1, 1, 1)
    return ((ramp[:, None, 0] + random.random((count, height, width, 3)) / 3) * 255 / count).clip(0, 255).astype(numpy.uint8)


def classify_graph(array, model):
    """examples/network/classify.json, with frames of a file."""
    graph = json.loads((ROOT / "examples/network/classify.json").read_text())
    described = describe(write_pictures("pictures", array), model)
    graph["entities"][0] = described["entities"][0]
    for entity in graph["entities"]:
        if entity["name"] == "network":
            entity["parameters"]["model"] = str(model)
    return graph, described["entities"][-1]


def write_pictures(name, array):
    array.tofile(FOLDER / name)
    shape = ",".join(str(size) for size in array.shape[1:])
    return {"path": str(FOLDER / name), "shape": shape, "count": len(array), "code": 1, "bits": 8}


def classify_gives_the_bytes_and_classes_of_the_reference(weir):
    model, array = FOLDER / "squeezenet.onnx", pictures()
    infer = reference.network(model)
    expected = numpy.concatenate([reference.classify(infer, picture).copy() for picture in array])
    assert len({row.tobytes() for row in expected}) == len(array)
    graph, writer = classify_graph(array, model)
    ended = run(weir, graph)
    assert ended.returncode == 0, ended
    lines = [line.strip() for line in ended.stdout.splitlines() if not line.startswith("print:")]
    assert lines == [f"{index} {value:.4g}" for row in expected for index, value in reference.best(row)], lines
    graph["entities"][-2:] = [writer]
    graph["connections"][-2:] = [["network.out", "write.in"]]
    ended = run(weir, graph)
    assert ended.returncode == 0, ended
    assert results(expected).tobytes() == expected.tobytes()


def a_thousand_frames_through_a_pipe(weir):
    """examples/network/video.json: as many results, in order, each of the same bytes as the reference's."""
    model, array = FOLDER / "squeezenet.onnx", pictures()
    infer = reference.network(model)
    expected = b"".join(reference.classify(infer, picture).tobytes() for picture in array)
    rounds, frame = 1000 // len(array) + 1, array[0].size
    size = ["--set", f"read.width={array.shape[2]}", "--set", f"read.height={array.shape[1]}"]
    command = [*PLUGINS, *size, "--set", f"network.model={model}", str(ROOT / "examples/network/video.json")]
    ended = process.run(weir, "run", "--quiet", *command, text=False, input=array.tobytes() * rounds)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == expected * rounds, (len(ended.stdout), len(expected) * rounds)
    cut = process.run(weir, "run", "--quiet", *command, text=False, input=array.tobytes()[: 2 * frame + 7])
    assert cut.returncode == 1 and b"'read': standard input ends in the middle of frame 2: 7 of" in cut.stderr, cut.stderr


def the_classes_stand_on_the_frames(weir):
    """examples/network/screen.json: every frame comes out, in order, and only the lines of text differ."""
    array = pictures()
    size = ["--set", f"read.width={array.shape[2]}", "--set", f"read.height={array.shape[1]}"]
    model = ["--set", f"network.model={FOLDER / 'squeezenet.onnx'}"]
    command = [*PLUGINS, *size, *model, str(ROOT / "examples/network/screen.json")]
    ended = process.run(weir, "run", "--quiet", *command, text=False, input=array.tobytes())
    assert ended.returncode == 0, ended.stderr
    shown = numpy.frombuffer(ended.stdout, numpy.uint8).reshape(array.shape)
    for before, after in zip(array, shown):
        rows, columns = numpy.nonzero((before != after).any(axis=2))
        assert len(rows) > 100 and rows.max() < array.shape[1] // 2 and columns.max() < array.shape[2] * 2 // 3


def a_batch_is_one_inference_and_a_rest_is_run(weir):
    expected = agrees(weir, FOLDER / "squeezenet.onnx", frames(PICTURE), rows=3, requests=2)
    assert numpy.allclose(expected, one_by_one(FOLDER / "squeezenet.onnx", frames(PICTURE)), atol=1e-6)
    agrees(weir, FOLDER / "relu.onnx", frames((1, 4), 2), rows=3, requests=2)


def many_small_frames_on_all_backends(weir):
    """Tells and ticks in all orders: 5,000 inferences that end at once, by few and by many workers."""
    array = frames((1, 4), 5000)
    read = write_frames("frames", array)
    for options in (["--workers", "1"], ["--workers", "4"], ["--workers", "2", "--backend", "sim"]):
        for parameters in ({"requests": 1}, {"requests": 4}, {"requests": 3, "batch": 8}):
            graph = describe(read, FOLDER / "relu.onnx", **parameters)
            ended = process.run(weir, "run", "--quiet", *written(graph), *options)
            assert ended.returncode == 0, (options, parameters, ended)
            assert results(array).tobytes() == array.tobytes(), (options, parameters)


def no_worker_waits_for_an_inference(weir):
    """One worker; `beat` ticks each millisecond while inferences of a third of a second each are in flight."""
    graph = describe(write_frames("frames", frames((1, 256, 64, 64), 2)), FOLDER / "slow.onnx")
    beat = {"name": "beat", "operator": "ping", "conditions": [{"type": "periodic", "period": "1ms"}]}
    end = {"name": "end", "operator": "sink"}
    graph["entities"] += [beat, end]
    graph["connections"].append(["beat.out", "end.in"])
    ended = process.run(weir, "run", "--workers", "1", "--duration", "600ms", *written(graph))
    assert ended.returncode == 0, ended
    ticks = int(re.search(r"\n  beat +(\d+)", ended.stdout).group(1))
    assert ticks > 200, ended.stdout
    assert re.search(r"\n  write +2 ", ended.stdout), ended.stdout


def a_drain_finishes_what_is_in_flight(weir):
    read = write_frames("frames", frames((1, 256, 64, 64), 2))
    (FOLDER / "results").unlink(missing_ok=True)
    child = process.start(weir, "run", *written(describe({**read, "count": 0}, FOLDER / "slow.onnx", requests=2)))
    deadline = time.monotonic() + 20
    while not (FOLDER / "results").exists() or not (FOLDER / "results").stat().st_size:
        assert time.monotonic() < deadline and child.poll() is None, "no result comes"
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 130, (child.returncode, err)
    received, emitted = re.search(r"\n  network +\d+ +(\d+) +(\d+)", out).groups()
    assert received == emitted and int(emitted) > 0, out


def what_is_in_flight_is_cancelled_when_a_run_is_cut_short(weir):
    """An inference that takes four seconds on an idle core ends within one."""
    read = write_frames("frames", frames((1, 256, 64, 64), 2))
    graph = describe({**read, "count": 0}, FOLDER / "slower.onnx", requests=2, scheduler={"drain": "10ms"})
    ended = process.run(weir, "run", "--duration", "300ms", *written(graph))
    assert ended.returncode == 5 and "network" in ended.stderr, ended
    assert ended.stderr.count("\n") == 1, ended
    received, emitted = re.search(r"\n  network +\d+ +(\d+) +(\d+)", ended.stdout).groups()
    assert int(received) == int(emitted) + 2, ended.stdout
    duration, unit = re.search(r" after ([\d.]+) (m?s) on host", ended.stdout).groups()
    assert unit == "ms" or float(duration) < 2, ended.stdout


def an_inference_that_fails_ends_the_run(weir):
    array = numpy.ones((9, 4), numpy.float32)
    array[4] = 0.75
    read = write_frames("frames", array)
    ended = run(weir, describe(read, FOLDER / "fails.onnx", requests=4))
    assert ended.returncode == 1, ended
    refused(ended, "operator failed in 'network': the network failed: .*dim index: 0 mismatch")
    assert len(results(array[:, :1])) <= 4


def refused(ended, pattern):
    assert ended.returncode == 1, ended
    assert re.fullmatch(f"weir run: .*{pattern}.*\n", ended.stderr), (pattern, ended.stderr)


def wrong_files_are_refused_in_one_line(weir):
    read = write_frames("frames", frames((1, 4)))
    (FOLDER / "text.onnx").write_text("this is no network\n")
    (FOLDER / "empty.onnx").write_text("")
    for name, batch, pattern in (
        ("missing.onnx", 1, "network: cannot read the network '.*missing.onnx': No such file or directory"),
        ("text.onnx", 1, "network: '.*text.onnx' is no network that OpenVINO reads: Unable to read the model"),
        ("empty.onnx", 1, "network: '.*empty.onnx' is no network: it is no file, or empty"),
        (".", 1, "is no network: it is no file, or empty"),
        ("two.onnx", 1, "'.*two.onnx' has 2 inputs and 1 outputs: one of each can be used"),
        ("wide.onnx", 1, r"'.*wide.onnx' has the input \{1,\?\}: each dimension but the first must be fixed"),
        ("row.onnx", 4, r"'.*row.onnx' has the output float32 \[1, 4\], and so no row for each of 4 frames"),
    ):
        refused(run(weir, describe(read, FOLDER / name, batch=batch)), pattern)
    outside = run(weir, describe(read, FOLDER / "relu.onnx"), "--root", str(ROOT / "examples"))
    refused(outside, "cannot read the network '.*relu.onnx': it is outside of the root")


def wrong_frames_are_refused_in_one_line(weir):
    read = write_frames("frames", frames((1, 4)))
    wanted = r"the network takes dense float32 \[1, 4\] in host memory"
    for name, change, pattern in (
        ("relu.onnx", {"shape": "1,5"}, rf"'in' received float32 \[1, 5\], and {wanted}"),
        ("relu.onnx", {"shape": "2,4"}, rf"'in' received float32 \[2, 4\], and {wanted}"),
        ("relu.onnx", {"bits": 16}, rf"'in' received float16 \[1, 4\], and {wanted}"),
        ("bytes.onnx", {}, r"'in' received float32 \[1, 4\], and the network takes dense uint8 \[1, 4\]"),
    ):
        refused(run(weir, describe({**read, **change}, FOLDER / name)), "operator failed in 'network': input " + pattern)
    graph = describe(read, FOLDER / "relu.onnx", ports={"in": {"take": 2, "capacity": 2}})
    refused(run(weir, graph), "a tick received 2 frames, and 'batch' is 1: \"take\" of 'in' must not be larger")
    assert run(weir, describe({**read, "shape": "4"}, FOLDER / "relu.onnx")).returncode == 0


def wrong_settings_are_refused_in_one_line(weir):
    read = write_frames("frames", frames((1, 4)))
    for parameters, pattern in (
        ({"device": "NONE"}, "device 'NONE' refuses the property NUM_STREAMS=2: .*not registered"),
        ({"properties": "NONE=3"}, "does not run on device 'CPU': .*Unsupported property NONE by CPU plugin"),
        ({"properties": "NONE"}, "property 'NONE' is not KEY=VALUE"),
    ):
        refused(run(weir, describe(read, FOLDER / "relu.onnx", **parameters)), pattern)
    agrees(weir, FOLDER / "relu.onnx", frames((1, 4)), properties="NUM_STREAMS=1 INFERENCE_NUM_THREADS=1")


def make_models():
    FOLDER.mkdir(parents=True, exist_ok=True)
    onnx.save(models.with_weights(models.light("squeezenet")), FOLDER / "squeezenet.onnx")
    made.relu(FOLDER / "relu.onnx", ["n", 4])
    made.relu(FOLDER / "wide.onnx", [1, "w"])
    made.two_inputs(FOLDER / "two.onnx")
    made.one_row(FOLDER / "row.onnx")
    made.bytes_in(FOLDER / "bytes.onnx")
    made.fails(FOLDER / "fails.onnx")
    made.slow(FOLDER / "slow.onnx", layers=25)
    made.slow(FOLDER / "slower.onnx", layers=300)


if __name__ == "__main__":
    make_models()
    process.main(
        [
            results_are_those_of_openvino_one_by_one,
            classify_gives_the_bytes_and_classes_of_the_reference,
            a_thousand_frames_through_a_pipe,
            the_classes_stand_on_the_frames,
            a_batch_is_one_inference_and_a_rest_is_run,
            many_small_frames_on_all_backends,
            no_worker_waits_for_an_inference,
            a_drain_finishes_what_is_in_flight,
            what_is_in_flight_is_cancelled_when_a_run_is_cut_short,
            an_inference_that_fails_ends_the_run,
            wrong_files_are_refused_in_one_line,
            wrong_frames_are_refused_in_one_line,
            wrong_settings_are_refused_in_one_line,
        ]
    )
