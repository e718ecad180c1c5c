"""plugins/gst: the bytes and times of GStreamer itself, nothing lost, and each failure in one line.

gst.py WEIR FOLDER PLUGIN: FOLDER is scratch.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/cli"))
import process

FOLDER = pathlib.Path(sys.argv[2])
PLUGIN = os.path.abspath(sys.argv[3])
del sys.argv[2:4]
# Names of weir, of GStreamer, bytes of a pixel; of planes 0.
FORMATS = (
    ("rgb", "RGB", 3),
    ("bgr", "BGR", 3),
    ("rgba", "RGBA", 4),
    ("bgra", "BGRA", 4),
    ("gray", "GRAY8", 1),
    ("gray16", "GRAY16_LE", 2),
    ("nv12", "NV12", 0),
    ("i420", "I420", 0),
)
BACKENDS = (["--workers", "1"], ["--workers", "4"], ["--backend", "sim", "--seed", "7"])


def launch(*words):
    """GStreamer's own command."""
    return subprocess.run(["gst-launch-1.0", *words], capture_output=True, text=True, timeout=process.LIMIT, check=True).stdout


def picture(count=20, width=320, height=240, caps="", more=""):
    return f"videotestsrc num-buffers={count} pattern=ball {more} ! video/x-raw,width={width},height={height},framerate=30/1{caps}"


def reader(pipeline, name="read", **parameters):
    return {"name": name, "operator": "gst_read", "parameters": {"pipeline": pipeline, **parameters}}


def writer(pipeline, name="write", **parameters):
    return {"name": name, "operator": "gst_write", "parameters": {"pipeline": pipeline, **parameters}}


def chain(*entities):
    names = [entity["name"] for entity in entities]
    return {
        "weir": 1,
        "entities": list(entities),
        "connections": [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])],
    }


def written(graph):
    (FOLDER / "graph.json").write_text(json.dumps(graph))
    return ["--plugin", PLUGIN, str(FOLDER / "graph.json")]


def run(weir, graph, *options):
    return process.run(weir, "run", "--backend", "host", *options, *written(graph))


def succeeds(weir, graph, *options):
    ended = run(weir, graph, *options)
    assert ended.returncode == 0 and not ended.stderr, ended
    return ended


def refused(ended, pattern):
    assert ended.returncode == 1, (pattern, ended)
    assert re.fullmatch(f"weir run: .*{pattern}.*\n", ended.stderr), (pattern, ended.stderr)


def counts(ended, name):
    """(received, emitted) of the summary."""
    return tuple(int(number) for number in re.search(rf"\n  {name} +\d+ +(\d+) +(\d+)", ended.stdout).groups())


SINK = {"name": "end", "operator": "sink"}


def without_gaps(data, width, height, pixel):
    """GStreamer's rows begin at multiples of 4 bytes."""
    row, stride = width * pixel, (width * pixel + 3) // 4 * 4
    assert len(data) % (stride * height) == 0, (len(data), stride, height)
    return b"".join(data[at : at + row] for at in range(0, len(data), stride))


def frames_are_those_of_gstreamer(weir):
    for name, video, pixel in FORMATS:
        for width, height in ((320, 240), (334, 78), (333, 77) if pixel else (18, 6)):
            source = picture(6, width, height, f",format={video}")
            launch(*source.split(), "!", "filesink", f"location={FOLDER / 'expected'}")
            expected = (FOLDER / "expected").read_bytes()
            raw = {"name": "raw", "operator": "frames_write", "parameters": {"path": str(FOLDER / "raw")}}
            succeeds(weir, chain(reader(source, format=name), raw), "--quiet")
            succeeds(weir, chain(reader(source, format=name), writer(f"filesink location={FOLDER / 'back'}", format=name)), "--quiet")
            found, back = (FOLDER / "raw").read_bytes(), (FOLDER / "back").read_bytes()
            if pixel:
                assert found == without_gaps(expected, width, height, pixel), (name, width)
                assert without_gaps(back, width, height, pixel) == found, (name, width)
            elif width == 320:
                assert found == expected == back, name
            else:
                assert len(found) == 6 * width * height * 3 // 2 and len(back) == len(expected), (name, width, len(found))


def a_file_comes_back_as_it_was_written(weir):
    """Through planes in Matroska: bytes, and the times of the frames."""
    for options in BACKENDS:
        file = FOLDER / "clip.mkv"
        source = picture(50, more="pattern=snow", caps=",format=I420").replace("pattern=ball ", "")
        raw = {"name": "raw", "operator": "frames_write", "parameters": {"path": str(FOLDER / "first")}}
        graph = chain(reader(source, format="i420"), writer(f"matroskamux ! filesink location={file}", format="i420", fps="30"))
        graph["entities"].append(raw)
        graph["connections"].append(["read.out", "raw.in"])
        succeeds(weir, graph, "--quiet", *options)
        raw = {"name": "raw", "operator": "frames_write", "parameters": {"path": str(FOLDER / "second")}}
        succeeds(weir, chain(reader(f"filesrc location={file} ! matroskademux", format="i420"), raw), "--quiet", *options)
        first, second = (FOLDER / "first").read_bytes(), (FOLDER / "second").read_bytes()
        assert len(first) == 50 * 320 * 240 * 3 // 2 and first == second, (len(first), len(second))
        assert times(file) == [f"0:00:{at / 1000:012.9f}" for at in (round(i * 1000 / 30) for i in range(50))], times(file)


def times(file):
    shown = launch("-v", "filesrc", f"location={file}", "!", "matroskademux", "!", "fakesink", "silent=false", "sync=false")
    return re.findall(r"pts: (\S+),", shown)


def frames_without_stamps_are_as_far_apart_as_fps_says(weir):
    raw = FOLDER / "zeros"
    raw.write_bytes(bytes(320 * 240 * 3 * 4))
    read = {"name": "read", "operator": "frames_read", "parameters": {"path": str(raw), "width": 320, "height": 240}}
    file = FOLDER / "clip.mkv"
    write = writer(f"videoconvert ! video/x-raw,format=I420 ! matroskamux ! filesink location={file}", fps="25", times="fps")
    succeeds(weir, chain(read, write), "--quiet")
    assert times(file) == [f"0:00:00.{at:03}000000" for at in (0, 40, 80, 120)], times(file)


def a_pipeline_that_cannot_be_is_refused_in_one_line(weir):
    for pipeline, parameters, pattern in (
        (picture(caps=",format=YUY2"), {}, "the pipeline gives 'video/x-raw.*YUY2.*', but format is rgb: append ! videoconvert"),
        ("nosuchelement ! videoconvert", {}, "no element 'nosuchelement': correct its name"),
        ("videotestsrc ! nosuch_x265 ! avdec_nothing", {}, "GStreamer has no element 'nosuch_x265'"),
        ("avdec_nothing", {}, r"no element 'avdec_nothing': install .*Debian: gstreamer1.0-libav"),
        ("videotestsrc ! fakesink", {}, r"the pipeline ends in the sink 'fakesink\d': leave it out"),
        ("videotestsrc ! tee name=t t. ! fakesink t. ! fakesink", {}, r"the pipeline ends in the sink 'fakesink\d+': leave it out"),
        ("audiotestsrc videotestsrc", {}, "the output of 'audiotestsrc.*' is open"),
        ("videoconvert", {}, "the input of 'videoconvert.*' is open"),
        ("audiotestsrc num-buffers=3", {}, "gives 'audio/x-raw.*gst_read takes video/x-raw"),
        ("videotestsrc ! jpegenc", {}, "gives 'image/jpeg.*append a decoder, as ! decodebin ! videoconvert"),
        ("videotestsrc !", {}, "pipeline: syntax error"),
        ("", {}, "pipeline: syntax error"),
        ("videotestsrc nonsense=3", {}, 'no property "nonsense" in element "videotestsrc"'),
        ("filesrc location=/nonexistent ! decodebin ! videoconvert", {}, 'read: filesrc0: .*No such file "/nonexistent"'),
        ("filesrc location=/etc/passwd ! decodebin ! videoconvert", {}, "'read': decodebin0: This appears to be a text file"),
        ("rtspsrc location=rtsp://127.0.0.1:9/x ! decodebin ! videoconvert", {}, "'read': rtspsrc0: Could not open resource"),
        ("v4l2src device=/dev/null ! videoconvert", {}, "read: v4l2src0: Error getting capabilities for device '/dev/null'"),
        (picture() + " ! identity error-after=3", {}, "input/output failed in 'read': identity0: Failed after iterations"),
        (picture(3, 333, 77), {"format": "nv12"}, "frames of 333 x 77: nv12 needs an even width and height"),
        ("concat name=c ! videoconvert " + picture(3) + " ! c. " + picture(3, 64, 48) + " ! c. c.", {}, "pipeline: could not link c to weir_sink, which is gst_read"),
        (picture(3) + " ! concat name=c " + picture(3, 64, 48) + " ! c. c.", {}, "change from 320 x 240 to 64 x 48: append ! videoscale"),
    ):
        refused(run(weir, chain(reader(pipeline, **parameters), SINK), "--quiet"), pattern)


def an_output_that_cannot_be_is_refused_in_one_line(weir):
    for pipeline, parameters, pattern in (
        ("filesink location=/nonexistent/x", {}, 'write: filesink0: Could not open file "/nonexistent/x"'),
        ("videoconvert", {}, r"the output of 'videoconvert\d*' is open: link it, or end it in a sink"),
        ("videotestsrc ! fakesink", {}, r"the pipeline begins with the source 'videotestsrc\d*': leave it out"),
        ("nosuch ! fakesink", {}, "no element 'nosuch'"),
        ("video/x-raw,format=I420 ! fakesink", {}, "takes 'video/x-raw.*I420.*', but the frames are RGB: begin it with videoconvert !"),
        ("filesink location=/dev/full buffer-mode=2", {}, "'write': filesink0: No space left"),
        ("videoconvert ! matroskamux ! filesink location=/dev/full", {}, "'write': filesink0: No space left"),
        ("identity error-after=4 ! fakesink", {}, "'write': identity0: Failed after iterations"),
        ("fakesink", {"fps": "abc"}, "fps 'abc': write a number or a fraction"),
        ("fakesink", {"fps": "30/0"}, "fps '30/0': write a number or a fraction"),
        ("fakesink", {"times": "fps"}, "times is fps: set fps"),
        ("fakesink", {"format": "gray"}, r"input 'in' is uint8 \[240, 320, 3\], which is not gray: see 'format'"),
        ("valve drop=true drop-mode=drop-all ! fakesink", {"finish": "100ms"}, "has not finished 100 ms after the last frame: see 'finish'"),
    ):
        refused(run(weir, chain(reader(picture()), writer(pipeline, **parameters)), "--quiet"), pattern)


def the_end_of_a_file_that_cannot_be_written_fails_the_run(weir):
    """An index that is written at the end of the stream."""
    ended = process.run(
        weir, "run", "--quiet", *written(chain(reader(picture(5)), writer(f"videoconvert ! jpegenc ! avimux ! filesink buffer-mode=full buffer-size=10000000 location={FOLDER / 'x.avi'}", fps="30"))),
        **process.small_files(20000),
    )
    refused(ended, "failed in 'write': filesink0: ")


def frames_of_the_device_need_a_download(weir):
    read = reader(picture(3))
    upload = {"name": "upload", "operator": "upload"}
    ended = run(weir, chain(read, upload, writer("fakesink")), "--quiet")
    assert ended.returncode == 3 and "download" in ended.stderr, ended
    download = {"name": "download", "operator": "download"}
    blur = {"name": "blur", "operator": "blur"}
    for options in BACKENDS:
        succeeds(weir, chain(read, upload, blur, download, writer("fakesink")), "--quiet", *options)


def frames_of_another_shape_fail_the_run(weir):
    read = {"name": "read", "operator": "png_read", "parameters": {"path": str(FOLDER / "pngs")}}
    (FOLDER / "pngs").mkdir(exist_ok=True)
    for i, width in enumerate((64, 48)):
        launch("videotestsrc", "num-buffers=1", "!", f"video/x-raw,width={width},height=32,format=RGB", "!", "pngenc", "!", "filesink", f"location={FOLDER / 'pngs' / f'{i}.png'}")
    refused(run(weir, chain(read, writer("fakesink", fps="30")), "--quiet"), r"change from uint8 \[32, 64, 3\] to uint8 \[32, 48, 3\]: .*put a 'resize' before it")


def a_pipeline_that_takes_no_more_drains_the_run(weir):
    ended = run(weir, chain(reader(picture(1000)), writer("fakesink num-buffers=4")), "--quiet")
    assert ended.returncode == 0 and "drained: write: the pipeline takes no more frames" in ended.stderr, ended


def a_pipeline_without_frames_ends_well(weir):
    succeeds(weir, chain(reader(picture(5) + " ! identity drop-probability=1"), writer("videoconvert ! vp8enc ! webmmux ! fakesink")), "--quiet")


def a_root_refuses_pipelines(weir):
    refused(run(weir, chain(reader(picture()), SINK), "--quiet", "--root", str(FOLDER)), "may open any file, which --root cannot prevent")


def a_file_waits_for_a_slow_receiver_and_a_camera_drops(weir):
    slow = {"name": "slow", "operator": "pass", "conditions": [{"type": "periodic", "period": "10ms"}]}
    waits = run(weir, chain(reader(picture(40), queue=2), slow, SINK))
    assert waits.returncode == 0 and counts(waits, "end")[0] == 40 and not waits.stderr, waits
    live = "videotestsrc is-live=true num-buffers=120 ! video/x-raw,width=64,height=48,framerate=400/1"
    drops = run(weir, chain(reader(live, queue=2), slow, SINK))
    assert drops.returncode == 0, drops
    said = re.search(r"(\d+) of (\d+) frames were dropped", drops.stderr)
    assert said, drops
    dropped, total = said.groups()
    assert counts(drops, "end")[0] == 120 - int(dropped) and total == "120" and int(dropped) > 0, drops
    keeps = run(weir, chain(reader(live, queue=2, full="wait"), slow, SINK))
    assert keeps.returncode == 0 and counts(keeps, "end")[0] == 120 and not keeps.stderr, keeps


def a_slow_pipeline_holds_the_senders_back(weir):
    """One frame a second: `queue` frames wait for the pipeline, one is in it, one more on its way."""
    graph = chain(reader(picture(1000)), writer("identity sleep-time=1000000 ! fakesink", queue=2, finish="10ms"))
    graph["scheduler"] = {"drain": "10ms"}
    for seconds in (0.3, 2, 10):  # a busy machine may take longer until the first frame
        ended = run(weir, graph, "--duration", f"{seconds}s")
        if ended.returncode == 5:
            break
    assert ended.returncode == 5 and 0 < counts(ended, "write")[0] <= 4 + int(seconds), ended
    ended = run(weir, chain(reader(picture(60)), writer("identity sleep-time=5000 ! fakesink", queue=2)))
    assert ended.returncode == 0 and counts(ended, "write")[0] == 60, ended


def started(weir, graph, file):
    """A run that has written something."""
    file.unlink(missing_ok=True)
    child = process.start(weir, "run", *written(graph))
    deadline = time.monotonic() + process.LIMIT
    while not file.exists() or file.stat().st_size < 4096:
        assert time.monotonic() < deadline and child.poll() is None, "nothing is written"
        time.sleep(0.01)
    return child


LIVE = "videotestsrc is-live=true pattern=snow ! video/x-raw,width=320,height=240,framerate=60/1"


def whole_frames(file):
    return len(times(file))


def slow_file(file):
    """Frames wait in front of an element that takes 30 ms for each."""
    return writer(f"identity sleep-time=30000 ! videoconvert ! jpegenc ! matroskamux ! filesink location={file}")


def a_drain_finishes_the_file(weir):
    file = FOLDER / "live.mkv"
    child = started(weir, chain(reader(LIVE), slow_file(file)), file)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=process.LIMIT)
    assert child.returncode == 130, (child.returncode, err)
    received = int(re.search(r"\n  write +\d+ +(\d+)", out).group(1))
    assert whole_frames(file) == received > 0, (whole_frames(file), received, err)


def a_failure_elsewhere_finishes_the_file(weir):
    file = FOLDER / "failed.mkv"
    graph = chain(reader(LIVE), slow_file(file))
    other = chain(reader(LIVE, "other"), writer("identity error-after=60 ! fakesink", "fails"))
    graph["entities"] += other["entities"]
    graph["connections"] += other["connections"]
    ended = run(weir, graph)
    assert ended.returncode == 1 and re.search(r"'fails': identity\d: Failed", ended.stderr), ended
    assert whole_frames(file) == counts(ended, "write")[0] > 0, (whole_frames(file), ended)


def two_readers_and_two_writers_in_one_graph(weir):
    a, b = FOLDER / "a.raw", FOLDER / "b.raw"
    graph = chain(reader(picture(30), "one"), writer(f"filesink location={a}", "first"))
    other = chain(reader(picture(30), "two"), writer(f"filesink location={b}", "second"))
    graph["entities"] += other["entities"]
    graph["connections"] += other["connections"]
    for options in BACKENDS:
        succeeds(weir, graph, "--quiet", *options)
        assert a.read_bytes() == b.read_bytes() and a.stat().st_size == 30 * 320 * 240 * 3


def what_writes_in_place_does_not_change_what_others_see(weir):
    """A tee gives one buffer to two branches: `draw`, which writes in place if it may, gets the one that is lent."""
    raw, words = FOLDER / "seen.raw", FOLDER / "words"
    words.write_bytes(b"ABCDEFGH" * 50)
    # The other branch reads the buffers late, when weir has drawn.
    late = f"queue ! identity sleep-time=20000 ! filesink location={raw}"
    source = picture(10, caps=",format=RGB") + f" ! tee name=t t. ! {late} t. ! queue"
    text = {"name": "text", "operator": "frames_read", "parameters": {"path": str(words), "bytes": 8}}
    drawn = {"name": "raw", "operator": "frames_write", "parameters": {"path": str(FOLDER / "drawn.raw")}}
    graph = chain(reader(source), {"name": "draw", "operator": "draw"}, drawn)
    graph["entities"].append(text)
    graph["connections"].append(["text.out", "draw.text"])
    launch(*picture(10, caps=",format=RGB").split(), "!", "filesink", f"location={FOLDER / 'expected'}")
    succeeds(weir, graph, "--quiet")
    assert raw.read_bytes() == (FOLDER / "expected").read_bytes() != (FOLDER / "drawn.raw").read_bytes()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    process.main(
        [
            frames_are_those_of_gstreamer,
            a_file_comes_back_as_it_was_written,
            frames_without_stamps_are_as_far_apart_as_fps_says,
            a_pipeline_that_cannot_be_is_refused_in_one_line,
            an_output_that_cannot_be_is_refused_in_one_line,
            the_end_of_a_file_that_cannot_be_written_fails_the_run,
            frames_of_the_device_need_a_download,
            frames_of_another_shape_fail_the_run,
            a_pipeline_that_takes_no_more_drains_the_run,
            a_pipeline_without_frames_ends_well,
            a_root_refuses_pipelines,
            a_file_waits_for_a_slow_receiver_and_a_camera_drops,
            a_slow_pipeline_holds_the_senders_back,
            a_drain_finishes_the_file,
            a_failure_elsewhere_finishes_the_file,
            two_readers_and_two_writers_in_one_graph,
            what_writes_in_place_does_not_change_what_others_see,
        ]
    )
