#!/usr/bin/env python3
"""A generated clip through examples/network/video.json, as in the shell line of the README: what comes out, beside NumPy and
OpenVINO's Python package one by one and beside a loop in C; what a silent input costs; how the ends of a pipe end a run.

    video.py [--build FOLDER] [--frames N] [--rounds N] [--stall SECONDS] [--quick]

From the root, after `scripts/install-deps network` and a build; with the python3 of build/openvino. Needs ffmpeg. Rounds of weir and of the
loop (bench/network.c, --pipe) alternate; both get their frames from a process of ffmpeg and have the same cores.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 640, 480
FRAME = WIDTH * HEIGHT * 3
SKIPPED = 77


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stall", type=float, default=12, help="seconds for which a writer and a reader stall; weir says so after 10")
    parser.add_argument("--quick", action="store_true", help="few frames; whether it runs at all")
    given = parser.parse_args()
    if given.quick:
        given.frames, given.rounds, given.stall = 6, 1, 0.1
    return given


def find(folder):
    """The programs and the model; ends with 77 where something is missing."""
    model = folder / "video/squeezenet.onnx"
    paths = [folder / "cli/weir", folder / "examples/libnetwork.so", folder / "bench/network"]
    missing = [str(path) for path in paths if not path.exists()]
    if missing or subprocess.run(["sh", "-c", "command -v ffmpeg"], stdout=subprocess.DEVNULL).returncode:
        print(f"skipped: no {missing[0] if missing else 'ffmpeg'}")
        sys.exit(SKIPPED)
    if not model.exists():
        subprocess.run([sys.executable, ROOT / "examples/network/models.py", model.parent], check=True)
    weir = [paths[0], "run", "--plugin", paths[1], "--set", f"network.model={model}", ROOT / "examples/network/video.json"]
    loop = [paths[2], model, paths[1], "--requests", "2", "--pipe"]
    one_by_one = [sys.executable, ROOT / "examples/network/reference.py", model, str(WIDTH), str(HEIGHT)]
    return weir, loop, one_by_one


def clip(frames, errors=None):
    """ffmpeg, which draws the clip and writes its frames to a pipe."""
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25"
    return subprocess.Popen(["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", source, "-frames:v", str(frames),
                             "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE, stderr=errors)


def through(command, frames):
    """ffmpeg | command: its output, and the seconds from the first start to the last end."""
    begun = time.monotonic()
    with clip(frames) as source:
        ended = subprocess.run(list(map(str, command)), stdin=source.stdout, capture_output=True, timeout=600)
        source.stdout.close()
    seconds = time.monotonic() - begun
    if ended.returncode:
        sys.exit(f"{command[0]}: {ended.stderr.decode()}")
    return ended.stdout, seconds


def bytes_and_rates(weir, loop, one_by_one, given):
    expected, seconds = through([*loop, given.frames] if given.quick else one_by_one, given.frames)
    print(f"{given.frames} frames of {WIDTH} x {HEIGHT}, {len(expected) // given.frames} bytes of result each")
    if not given.quick:
        print(f"  NumPy and OpenVINO one by one: {given.frames / seconds:.1f} frames/s")
    rows = []
    for i in range(given.rounds):
        found = [through(command, given.frames) for command in (weir, [*loop, given.frames])]
        if any(out != expected for out, _ in found):
            sys.exit(f"round {i}: {[len(out) for out, _ in found]} bytes of {len(expected)}, or other ones")
        rows.append([given.frames / seconds for _, seconds in found])
        print(f"  round {i}: weir {rows[i][0]:.1f}, loop {rows[i][1]:.1f} frames/s, ratio {rows[i][0] / rows[i][1]:.3f};"
              " the same bytes", flush=True)
    ratios = sorted(a / b for a, b in rows)
    print(f"  ratio: median {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}")


# ---- the ends


class Run:
    """weir with pipes whose other ends are here."""

    def __init__(self, command):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.out = b""
        self.reader = threading.Thread(target=self.read)

    def read(self):
        while part := os.read(self.process.stdout.fileno(), 1 << 20):
            self.out += part

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def cpu(self):
        """Seconds of processor time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """The exit code, and the lines on stderr that are not of the summary."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        if self.reader.ident:
            self.reader.join()
        lines = self.process.stderr.read().decode().splitlines()
        return self.process.wait(60), [line for line in lines if line.startswith("weir")]


def frame(i):
    return bytes([i % 256]) * FRAME


def silent(weir, given):
    run = Run(weir)
    run.reader.start()
    run.write(frame(0))
    while not run.out:
        time.sleep(0.05)
    time.sleep(0.2)
    before, begun = run.cpu(), time.monotonic()
    time.sleep(given.stall)
    share = (run.cpu() - before) / (time.monotonic() - begun)
    print(f"silent input for {given.stall:g} s: {100 * share:.2f} % of a core; {said(run.end())}")


def said(ended):
    code, lines = ended
    return f"exit code {code}, {lines[0] if len(lines) == 1 else f'{len(lines)} lines {lines}'}"


def ends_in_mid_frame(weir, _):
    run = Run(weir)
    run.reader.start()
    run.write(frame(0) + frame(1) + frame(2)[:12345])
    print(f"EOF in mid-frame: {said(run.end())}; {len(run.out)} bytes out")


def reader_leaves(weir, given):
    """It takes a result and closes its end; ffmpeg then finds no reader either."""
    with clip(given.frames, subprocess.DEVNULL) as source:
        run = subprocess.Popen(list(map(str, weir)), stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        source.stdout.close()
        os.read(run.stdout.fileno(), 4000)
        run.stdout.close()
        lines = [line for line in run.stderr.read().decode().splitlines() if line.startswith("weir")]
        print(f"a reader that leaves: {said((run.wait(60), lines))}")


def writer_stalls(weir, given):
    run = Run(weir)
    run.reader.start()
    run.write(frame(0) + frame(1)[:1000])
    time.sleep(given.stall)
    run.write(frame(1)[1000:] + frame(2))
    print(f"a writer that stalls for {given.stall:g} s: {said(run.end())}; {len(run.out)} bytes out")


def reader_stalls(weir, given):
    run = Run(weir)
    feeder = threading.Thread(target=lambda: [run.write(frame(i)) for i in range(given.frames)])
    feeder.start()
    time.sleep(given.stall)
    run.reader.start()
    feeder.join()
    print(f"a reader that stalls for {given.stall:g} s: {said(run.end())}; {len(run.out)} bytes out")


def main():
    given = options()
    weir, loop, one_by_one = find(given.build)
    bytes_and_rates(weir, loop, one_by_one, given)
    for end in (silent, ends_in_mid_frame, reader_leaves, writer_stalls, reader_stalls):
        if not given.quick or end is silent:
            end(weir, given)


main()
