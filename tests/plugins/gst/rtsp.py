"""A network stream whose server is killed and started again: named, goes on, and no thread or descriptor is left.

rtsp.py WEIR FOLDER PLUGIN SERVER [KILLS]: SERVER is rtsp_server.c.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/cli"))
import process

FOLDER = pathlib.Path(sys.argv[2])
PLUGIN, SERVER = os.path.abspath(sys.argv[3]), os.path.abspath(sys.argv[4])
KILLS = int(sys.argv[5]) if len(sys.argv) > 5 else 3
del sys.argv[2:]
LOST = "it is tried again every 100 ms"
BACK = "frames come again, after "


def serve(port):
    server = subprocess.Popen([SERVER, str(port)], stdout=subprocess.PIPE, text=True)
    process.started.append(server)
    assert server.stdout.readline() == "ready\n"
    return server


def graph(port, on_lost):
    pipeline = f"rtspsrc location=rtsp://127.0.0.1:{port}/camera protocols=tcp latency=20 ! decodebin ! videoconvert"
    read = {"name": "read", "operator": "gst_read", "parameters": {"pipeline": pipeline, "on_lost": on_lost, "retry": "100ms"}}
    described = {"weir": 1, "entities": [read, {"name": "end", "operator": "sink"}], "connections": [["read.out", "end.in"]]}
    (FOLDER / "rtsp.json").write_text(json.dumps(described))
    return ["run", "--backend", "host", "--plugin", PLUGIN, str(FOLDER / "rtsp.json")]


class Lines:
    """What a command says on stderr, line by line, as it comes."""

    def __init__(self, stream):
        self.lines, self.changed = [], threading.Condition()
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            with self.changed:
                self.lines.append(line)
                self.changed.notify()

    def wait(self, text, count):
        """Waits for so many lines with the text."""
        deadline = time.monotonic() + process.LIMIT
        with self.changed:
            while sum(text in line for line in self.lines) < count:
                assert self.changed.wait(deadline - time.monotonic()), (text, count, self.lines)


def held(child):
    """(threads, descriptors) of the process."""
    return tuple(len(os.listdir(f"/proc/{child.pid}/{folder}")) for folder in ("task", "fd"))


def a_server_that_is_killed_is_named_and_frames_come_again(weir):
    port = process.free_port()
    child = process.start(weir, *graph(port, "reconnect"))  # before there is a server
    says = Lines(child.stderr)
    says.wait(LOST, 1)
    server, first = serve(port), None
    for i in range(KILLS):
        says.wait(BACK, i + 1)
        first = first or held(child)
        server.kill()
        server.wait()
        says.wait(LOST, i + 2)
        server = serve(port)
    says.wait(BACK, KILLS + 1)
    # Threads of a pipeline begin as they are needed.
    assert all(now <= then + 3 for now, then in zip(held(child), first)), (held(child), first)
    child.send_signal(signal.SIGINT)
    assert child.wait(process.LIMIT) == 130, says.lines
    server.kill()
    assert "read: " in says.lines[0] and sum(LOST in line for line in says.lines) == KILLS + 1, says.lines


def a_stop_does_not_wait_for_a_server_that_is_lost(weir):
    child = process.start(weir, *graph(process.free_port(), "reconnect"))
    Lines(child.stderr).wait(LOST, 1)
    child.send_signal(signal.SIGINT)
    assert child.wait(process.LIMIT) == 130


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    process.main(
        [
            a_server_that_is_killed_is_named_and_frames_come_again,
            a_stop_does_not_wait_for_a_server_that_is_lost,
        ]
    )
