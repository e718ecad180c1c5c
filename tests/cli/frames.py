"""frames_read and frames_write: raw video and Y4M through pipes, files, FIFOs and descriptors.

frames.py WEIR FOLDER: FOLDER is scratch.
"""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import process

FOLDER = pathlib.Path(sys.argv[2]) / "frames"
del sys.argv[2]
WIDTH, HEIGHT, FRAMES = 64, 48, 1000
FRAME = WIDTH * HEIGHT * 3


def clip(frames=FRAMES, frame=FRAME):
    """Frames that differ from each other."""
    step = bytes(range(256)) * (frame // 256 + 2)
    return b"".join(step[i % 251 : i % 251 + frame] for i in range(frames))


def graph(read=None, write=None, between=(), name="graph.json"):
    """warn_after of `read` and `write` is that of the condition, not a parameter of the operator."""
    size = {"width": WIDTH, "height": HEIGHT}
    entities = [{"name": "read", "operator": "frames_read", "parameters": {**size, **(read or {})}}]
    entities += [{"name": kind, "operator": kind} for kind in between]
    entities += [{"name": "write", "operator": "frames_write", "parameters": write or {}}]
    for entity in entities:
        if after := entity.get("parameters", {}).pop("warn_after", None):
            entity["conditions"] = [{"type": "file_descriptor", "warn_after": after}]
    names = [entity["name"] for entity in entities]
    pairs = [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / name
    path.write_text(json.dumps({"weir": 1, "entities": entities, "connections": pairs}))
    return str(path)


def run(weir, data, read=None, write=None, *options, between=()):
    options = options or ("--backend", "host")
    return process.run(weir, "run", *options, graph(read, write, between), input=data, text=False, cwd=FOLDER)


def said(ended, *parts):
    text = ended.stderr.decode()
    assert all(part in text for part in parts), (parts, text)
    lines = [line for line in text.splitlines() if line.startswith("weir run: ")]
    assert len(lines) == 1, text


def thousand_frames_come_out_as_they_went_in(weir):
    data = clip()
    for options in (("--backend", "host"), ("--backend", "host", "--workers", "1", "--quiet")):
        ended = run(weir, data, None, None, *options)
        assert ended.returncode == 0 and ended.stdout == data, ended.stderr
        assert ("finished" in ended.stderr.decode()) == ("--quiet" not in options), "the summary is on stderr"
    ended = run(weir, clip(50), None, None, "--backend", "sim", "--seed", "3")
    assert ended.returncode == 0 and ended.stdout == clip(50), ended.stderr


def a_chain_of_processes_works(weir):
    data = clip(200)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "in.rgb").write_bytes(data)
    line = f"cat in.rgb | {weir} run --quiet {graph()} | cat | {weir} run --quiet {graph()} > out.rgb"
    subprocess.run(["sh", "-c", line], cwd=FOLDER, check=True, timeout=process.LIMIT, env=process.environment())
    assert (FOLDER / "out.rgb").read_bytes() == data


def files_fifos_and_descriptors_serve_too(weir):
    data = clip(20)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "in.rgb").write_bytes(data)
    ended = run(weir, b"", {"path": "in.rgb"}, {"path": "out.rgb"})
    assert ended.returncode == 0 and (FOLDER / "out.rgb").read_bytes() == data, ended
    assert b"finished" in ended.stdout, "the summary is on stdout, as frames are not"
    for name in ("a.fifo", "b.fifo"):
        (FOLDER / name).unlink(missing_ok=True)
        os.mkfifo(FOLDER / name)
    reader = subprocess.Popen("cat b.fifo > copied.rgb", shell=True, cwd=FOLDER)
    held = os.open(FOLDER / "b.fifo", os.O_WRONLY)  # the reader is there; it sees the end when both have closed
    child = process.start(weir, "run", "--quiet", graph({"path": "a.fifo"}, {"path": "b.fifo"}), cwd=FOLDER)
    (FOLDER / "a.fifo").write_bytes(data)
    assert child.wait(process.LIMIT) == 0, child.stderr.read()
    os.close(held)
    assert reader.wait(process.LIMIT) == 0 and (FOLDER / "copied.rgb").read_bytes() == data
    with open(FOLDER / "in.rgb", "rb") as source, open(FOLDER / "out2.rgb", "wb") as target:
        path = graph({"descriptor": source.fileno()}, {"descriptor": target.fileno()})
        ended = process.run(weir, "run", path, pass_fds=(source.fileno(), target.fileno()))
    assert ended.returncode == 0 and (FOLDER / "out2.rgb").read_bytes() == data, ended


def types_and_records_have_their_sizes(weir):
    data = clip(6, 24 * 10)
    for read in ({"width": 5, "height": 4, "channels": 3, "type": "float32"}, {"width": 0, "height": 0, "bytes": 80},
                 {"width": 10, "height": 4, "channels": 1, "type": "uint16"},
                 {"width": 10, "height": 4, "channels": 1, "type": "bfloat16"}):
        ended = run(weir, data, read)
        assert ended.returncode == 0 and ended.stdout == data, ended.stderr


def the_end_in_mid_frame_is_one_line(weir):
    data = clip(3) + b"x" * 100
    ended = run(weir, data)
    said(ended, "input/output failed in 'read'", f"standard input ends in the middle of frame 3: 100 of {FRAME} bytes")
    assert ended.returncode == 1 and data.startswith(ended.stdout), ended
    ended = run(weir, data, {"partial": "drop"})
    assert ended.returncode == 0 and ended.stdout == clip(3), ended
    (FOLDER / "short.rgb").write_bytes(data)
    ended = run(weir, b"", {"path": "short.rgb"})
    said(ended, "read: 'short.rgb' has 27748 bytes, no multiple of a frame of 9216: correct the size")
    assert ended.returncode == 1 and not ended.stdout
    assert run(weir, b"").returncode == 0, "no frame is no error"


def a_reader_that_leaves_drains_the_run(weir):
    child = process.start(weir, "run", "--backend", "host", graph({"path": "/dev/zero"}), text=False)
    child.stdout.read(10 * FRAME)
    child.stdout.close()
    errors = child.stderr.read().decode()
    assert child.wait(process.LIMIT) == 0, errors
    assert errors.count("drained: write: standard output has no reader any more") == 1, errors


def processor_s(child):
    with open(f"/proc/{child.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def unread(pipe):
    """Bytes in it."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def a_silent_writer_and_a_stalled_reader_cost_nothing(weir):
    data = clip(6)  # fits into a pipe: this test writes before it reads
    child = process.start(weir, "run", "--backend", "host", "--workers", "1", graph(), stdin=subprocess.PIPE, text=False)
    child.stdin.write(data[: FRAME + 7])
    child.stdin.flush()
    assert child.stdout.read(FRAME) == data[:FRAME]  # from here on it waits in mid-frame
    before = processor_s(child)
    time.sleep(0.2)
    assert processor_s(child) - before <= 0.02, "a silent input costs processor time"
    child.stdin.write(data[FRAME + 7 :])
    child.stdin.close()
    assert child.stdout.read() == data[FRAME:]
    assert child.wait(process.LIMIT) == 0, child.stderr.read()


def a_reader_that_stalls_for_ten_seconds_loses_nothing(weir):
    """In virtual time, of which a stalled pipe takes 10 s in about one."""
    data = clip(4096 * 1024 // FRAME)  # more than a pipe holds
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "long.rgb").write_bytes(data)
    options = ["--backend", "sim", "--explain-after", "10s"]
    child = process.start(weir, "run", *options, graph({"path": str(FOLDER / "long.rgb")}), text=False)
    lines = child.stderr.readline().decode() + child.stderr.readline().decode()
    assert "no tick for 10 s: write waits: file_descriptor: has waited 10" in lines and "(writable)" in lines, lines
    assert "warning: write: has waited 10 s" in lines and "standard output takes nothing: " in lines, lines
    assert child.stdout.read() == data
    assert child.wait(process.LIMIT) == 0, child.stderr.read()


def a_stall_is_one_line_at_each_end(weir):
    """A second of virtual time at the reader; a shorter time, of the host, at the writer."""
    end, begin = os.pipe()
    os.write(begin, clip(1) + b"x" * 100)  # it fits, and is there before the run, whose time passes fast
    child = process.start(weir, "run", "--backend", "sim", graph({"warn_after": "1s"}), stdin=end, text=False)
    os.close(end)
    line = child.stderr.readline().decode()
    assert re.fullmatch(r"weir run: warning: read: has waited 1(\.0\d)? s for descriptor 0 \(readable\): nothing comes from standard "
                        rf"input: frame 1 has 100 of {FRAME} bytes\n", line), line
    os.write(begin, clip(1)[100:])
    os.close(begin)
    assert child.stdout.read(2 * FRAME).startswith(clip(1))
    line = child.stderr.readline().decode()
    assert line.startswith("weir run: warning: read: goes on: has waited "), line
    assert child.wait(process.LIMIT) == 0 and "warning" not in child.stderr.read().decode()

    path = graph({"path": "/dev/zero"}, {"warn_after": "20ms"})
    child = process.start(weir, "run", "--backend", "host", path, text=False)
    line = child.stderr.readline().decode()
    assert re.fullmatch(r"weir run: warning: write: has waited [\d.]+ ms for descriptor \d+ \(writable\): standard output takes "
                        rf"nothing: \d+ of {FRAME} bytes of frame \d+ are written\n", line), line
    child.stdout.close()
    assert child.wait(process.LIMIT) == 0
    assert child.stderr.read().decode().count("warning") == 1, "one line when it goes on"


def warnings_can_be_had_otherwise(weir):
    for words, log, after, wanted in ((["--quiet"], None, "20ms", b""), ([], "off", "20ms", b""), ([], None, "0s", b""),
                                      ([], "warn", "20ms", b" warn: read: has waited 20 ms")):
        env = {**process.environment(), **({"WEIR_LOG": log} if log else {})}
        options = ["--backend", "sim", "--duration", "100ms", *words]
        child = process.start(weir, "run", *options, graph({"warn_after": after}), stdin=subprocess.PIPE, text=False, env=env)
        assert child.wait(process.LIMIT) == 0
        found = b"".join(line for line in child.stderr.read().splitlines() if b"has waited" in line)
        assert wanted in found and bool(wanted) == bool(found), (words, log, after, found)


def frames_of_the_summary_are_frames_and_not_ticks(weir):
    """A frame that the reader takes in parts costs several ticks."""
    path = graph({"bytes": "3MiB", "width": 0, "height": 0, "path": str(FOLDER / "zeros")}, {"warn_after": "1ms"})
    with open(FOLDER / "zeros", "wb") as zeros:
        zeros.truncate(4 * 3 << 20)
    child = process.start(weir, "run", "--backend", "sim", path, text=False)
    assert b"write: has waited" in child.stderr.readline()  # before it, nothing is read: the first frame is cut
    out, err = child.communicate(timeout=process.LIMIT)
    took, unit, rate = re.search(r"finished after ([\d.]+) (us|ms|s) on sim: seed 0, ([\d.,]+) frames/s", err.decode()).groups()
    ticks, received = map(int, re.search(r"^  write +(\d+) +(\d+) ", err.decode(), re.M).groups())
    assert ticks > received == len(out) / (3 << 20) == 4, (ticks, received, len(out))
    assert abs(float(took) / {"s": 1, "ms": 1e3, "us": 1e6}[unit] * float(rate.replace(",", "")) - received) < 0.02 * received, err


def a_graph_on_standard_input_leaves_no_frames_there(weir):
    with open(graph()) as file:
        ended = process.run(weir, "run", "--quiet", "-", text=False, stdin=file)
    said(ended, "/entities/0/parameters/path: standard input is also read as the graph, and what one takes the other lacks: name another one")
    assert ended.returncode == 1
    with open(graph({"path": "/dev/null"})) as file:
        assert process.run(weir, "run", "--quiet", "-", text=False, stdin=file).returncode == 0


def a_stalled_reader_holds_the_senders_back(weir):
    child = process.start(weir, "run", "--backend", "host", "--workers", "1", graph({"path": "/dev/zero"}), text=False)
    child.stdout.read(FRAME)
    until = time.monotonic() + 20
    stalled = False
    while not stalled:  # it reads ahead until all its queues are full, and so is the pipe
        assert time.monotonic() < until, "a stalled reader costs processor time"
        there, before = unread(child.stdout), processor_s(child)
        time.sleep(0.2)
        stalled = 0 < there == unread(child.stdout) and processor_s(child) - before <= 0.02
    child.send_signal(signal.SIGUSR1)
    line = child.stderr.readline().decode()
    assert "write waits: file_descriptor: has waited" in line and "(writable)" in line, line
    child.send_signal(signal.SIGINT)
    rest = child.stdout.read()
    assert child.wait(process.LIMIT) == 130 and (len(rest) + FRAME) % FRAME == 0, "the frame was finished"


def descriptors_keep_their_flags(weir):
    reader, writer = os.pipe()
    into, out_of = os.pipe()
    os.write(out_of, clip(2))
    os.close(out_of)
    ended = subprocess.run([weir, "run", "--quiet", graph()], stdin=into, stdout=writer, timeout=process.LIMIT)
    assert ended.returncode == 0 and os.read(reader, 1 << 20) == clip(2)
    for end in (into, writer):
        assert not fcntl.fcntl(end, fcntl.F_GETFL) & os.O_NONBLOCK
        os.close(end)
    os.close(reader)


def y4m(frames, header=b"YUV4MPEG2 W8 H6 F30:1 Ip A1:1 C420jpeg XYSCSS=420JPEG\n", line=b"FRAME\n", frame=72):
    return header + b"".join(line + bytes([i % 250]) * frame for i in range(frames))


def y4m_is_read_and_written(weir):
    read = {"format": "y4m", "width": 0, "height": 0}
    ended = run(weir, y4m(30), read)
    assert ended.returncode == 0 and ended.stdout == b"".join(bytes([i]) * 72 for i in range(30)), ended.stderr
    ended = run(weir, y4m(30, line=b"FRAME Ip\n"), read, {"format": "y4m", "rate": "30:1"})
    wanted = y4m(30, header=b"YUV4MPEG2 W8 H6 F30:1 Ip A1:1 C420\n")
    assert ended.returncode == 0 and ended.stdout == wanted, ended
    mono = y4m(3, header=b"YUV4MPEG2 W8 H9 Cmono\n")
    ended = run(weir, mono, read, {"format": "y4m", "planes": "mono"})
    assert ended.stdout == mono.replace(b"H9 Cmono", b"H9 F25:1 Ip A1:1 Cmono"), ended


def a_long_path_is_cut_between_two_characters(weir):
    for begin in ("", "a"):
        path = begin + "é" * 100
        ended = run(weir, b"", {"path": path}, {"path": "/dev/null"})
        said(ended, "é...': No such file or directory")
        assert b"\\x" not in ended.stderr, ended


def headers_that_lie_are_refused(weir):
    read = {"format": "y4m", "width": 0, "height": 0}
    for header, why in (
        (b"RIFF1234\n", "has no Y4M header"),
        (b"YUV4MPEG2 H6\n", "needs W and H from 1 to 32768"),
        (b"YUV4MPEG2 W8abc H6\n", "needs W and H from 1 to 32768"),
        (b"YUV4MPEG2 W H6\n", "needs W and H from 1 to 32768"),
        (b"YUV4MPEG2 W8 H-6\n", "needs W and H from 1 to 32768"),
        (b"YUV4MPEG2 W99999999999999999999 H6\n", "needs W and H from 1 to 32768"),
        (b"YUV4MPEG2 W8 H6 C420p10\n", "colour space '420p10' is not supported"),
        (b"YUV4MPEG2 W7 H6\n", "an even width"),
        (b"YUV4MPEG2 W8 H8\n", "does not begin with FRAME"),
        (b"YUV4MPEG2 W8 H6" + b" X" * 1000, "has no end"),
        (b"YUV4MPEG2 W32768 H32768 C444\n", "at most 1 GiB"),
    ):
        ended = run(weir, y4m(3, header=header), read)
        said(ended, "failed in 'read'", why)
        assert ended.returncode == 1, header
    said(run(weir, y4m(3), {**read, "width": 16}), "the Y4M header says 8 x 6, the graph another size")
    said(run(weir, y4m(3)[:-1], read), "ends in the middle of frame 2: 71 of 72 bytes")
    said(run(weir, y4m(3) + b"FRA", read), "ends in the middle of a Y4M header")
    said(run(weir, b"", read), "ends in the middle of a Y4M header")


def what_cannot_be_is_one_line(weir):
    for read, write, why in (
        ({"width": 0}, {}, "raw frames have no header: set width and height, or bytes"),
        ({"bytes": 7}, {}, "bytes is for records without width and height"),
        ({"path": "none.rgb"}, {}, "'none.rgb': No such file or directory"),
        ({"path": "."}, {}, "Is a directory"),
        ({"descriptor": 77}, {}, "descriptor 77: Bad file descriptor"),
        ({"path": "/dev/null"}, {"descriptor": 0}, "descriptor 0: closed, or not open for writing"),
        ({}, {"rate": "25"}, "rate '25': write a fraction"),
        ({"width": 32768, "height": 32768, "channels": 4}, {}, "at most 1 GiB"),
        ({}, {"path": "/dev/full"}, "'/dev/full': No space left on device"),
        ({}, {"format": "y4m"}, "y4m 420 needs the planes one below the other"),
    ):
        ended = run(weir, clip(3), read, write)
        assert ended.returncode == 1, (why, ended)
        said(ended, why)
    path = FOLDER / "unread.fifo"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    said(run(weir, clip(3), {}, {"path": str(path)}), "nothing reads this FIFO yet")
    ended = process.run(weir, "run", graph({}, {"path": "/dev/tty"}), input=clip(3), text=False, cwd=FOLDER, start_new_session=True)
    said(ended, "'/dev/tty': there is no device behind it")


def a_closed_standard_input_is_one_line(weir):
    for words in ((graph(),), ("-",)):
        ended = process.run(weir, "run", "--backend", "host", *words, text=False, preexec_fn=lambda: os.close(0))
        closed = "standard input: cannot be read" if words == ("-",) else "read: standard input: closed, or not open for reading"
        said(ended, closed)
        assert ended.returncode != 0, ended


def a_closed_standard_output_is_one_line(weir):
    ended = process.run(weir, "run", "--backend", "host", graph(), input=clip(2), text=False, preexec_fn=lambda: os.close(1))
    said(ended, "write: standard output: closed, or not open for writing")
    assert ended.returncode == 1, ended


def the_root_holds_for_its_paths(weir):
    shutil.rmtree(FOLDER / "root", ignore_errors=True)
    (FOLDER / "root").mkdir(parents=True)
    (FOLDER / "in.rgb").write_bytes(clip(2))
    (FOLDER / "root/in.rgb").write_bytes(clip(2))
    root = ("--root", str(FOLDER / "root"))
    ended = run(weir, b"", {"path": "in.rgb"}, {"path": "out.rgb"}, *root)
    assert ended.returncode == 0 and (FOLDER / "root/out.rgb").read_bytes() == clip(2), ended
    for read, write in (({"path": "../in.rgb"}, {}), ({"path": "in.rgb"}, {"path": "../out.rgb"})):
        ended = run(weir, b"", read, write, *root)
        assert ended.returncode == 1, ended
        said(ended, "lies outside of the root (--root)")
    ended = run(weir, clip(2), None, None, *root)
    assert ended.returncode == 0 and ended.stdout == clip(2), "the standard descriptors are no paths"


def pictures_go_through_operators(weir):
    ended = run(weir, clip(5), None, None, "--backend", "host", between=("upload", "sobel", "download"))
    assert ended.returncode == 0 and len(ended.stdout) == 5 * WIDTH * HEIGHT, ended.stderr


def the_readme_s_graph_gives_edges(weir):
    root = pathlib.Path(__file__).resolve().parents[2]
    line = f"head -c 9216000 /dev/zero | {weir} run --quiet examples/frames.json | wc -c"
    ended = subprocess.run(["sh", "-c", line], cwd=root, capture_output=True, text=True, timeout=process.LIMIT)
    assert ended.stdout.strip() == str(10 * 640 * 480), ended


process.main([
    thousand_frames_come_out_as_they_went_in, a_chain_of_processes_works, files_fifos_and_descriptors_serve_too,
    types_and_records_have_their_sizes, the_end_in_mid_frame_is_one_line, a_reader_that_leaves_drains_the_run,
    a_silent_writer_and_a_stalled_reader_cost_nothing, a_reader_that_stalls_for_ten_seconds_loses_nothing,
    a_stall_is_one_line_at_each_end, warnings_can_be_had_otherwise, a_closed_standard_input_is_one_line, a_closed_standard_output_is_one_line,
    frames_of_the_summary_are_frames_and_not_ticks, a_graph_on_standard_input_leaves_no_frames_there,
    a_stalled_reader_holds_the_senders_back, descriptors_keep_their_flags,
    y4m_is_read_and_written, headers_that_lie_are_refused, a_long_path_is_cut_between_two_characters, what_cannot_be_is_one_line, the_root_holds_for_its_paths,
    pictures_go_through_operators, the_readme_s_graph_gives_edges,
])
