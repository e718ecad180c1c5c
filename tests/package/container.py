"""The container of scripts/Containerfile: built by buildah on a Debian 12 that mmdebstrap makes, under the name of the one that the file
begins with, since that comes from a registry. In it the command runs, as no root, on host and sim; a network, by PyPI's onnxruntime;
--metrics answers on another address than the loopback's; SIGTERM drains process 1. Exit code 77: the image cannot be made here.

    container.py WHEEL FOLDER

FOLDER: where the images are kept; a second run begins with its Debian. As root. PIP_CERT of the environment is passed on.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "scripts/Containerfile"
WITHOUT_END = """{"weir": 1, "entities": [
    {"name": "camera", "operator": "ping", "conditions": [{"type": "periodic", "period": "5ms"}]},
    {"name": "slow", "operator": "delay", "parameters": {"duration": "100ms"}, "ports": {"in": {"capacity": 4}}},
    {"name": "print", "operator": "print"}],
  "connections": [["camera.out", "slow.in"], ["slow.out", "print.in"]]}"""


class Container:
    def __init__(self, folder):
        self.folder = folder
        self.store = ["buildah", "--storage-driver", "vfs", "--root", folder / "images", "--runroot", folder / "run"]

    def buildah(self, *words):
        ended = subprocess.run(list(map(str, [*self.store, *words])), capture_output=True, text=True)
        assert not ended.returncode, ended.stdout[-4000:] + ended.stderr[-4000:]
        return ended.stdout.strip()

    def make_base(self):
        name = re.search(r"^FROM (\S+)", FILE.read_text(), re.M)[1]
        if name in self.buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            return
        made = self.folder / "debian.tar"
        if subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "bookworm", made]).returncode:
            print("skipped: mmdebstrap cannot make a Debian")
            sys.exit(77)
        scratch = self.buildah("from", "scratch")
        self.buildah("add", scratch, made, "/")
        self.buildah("commit", "--rm", scratch, name)
        made.unlink()

    def build(self, wheel):
        context = self.folder / "context"
        shutil.rmtree(context, ignore_errors=True)
        (context / "dist").mkdir(parents=True)
        shutil.copy(wheel, context / "dist")
        mounts = []
        if authority := os.environ.get("PIP_CERT"):
            (self.folder / "pip.conf").write_text("[global]\ncert = /mnt/authority\n")
            mounts = ["--volume", f"{authority}:/mnt/authority:ro", "--volume", f"{self.folder}/pip.conf:/etc/pip.conf:ro"]
        self.buildah("build", "--isolation", "chroot", "--layers=false", *mounts, "--build-arg", "PACKAGES=numpy onnx onnxruntime", "-f", FILE,
                     "-t", "weir", context)

    @contextlib.contextmanager
    def started(self):
        """The file system of a new container, which has the examples in /work."""
        name = self.buildah("from", "localhost/weir")
        try:
            self.root = pathlib.Path(self.buildah("mount", name))
            self.config = json.loads(self.buildah("inspect", "--type", "container", name))["OCIv1"]["config"]
            shutil.copytree(ROOT / "examples", self.root / "work/examples")
            (self.root / "work/without_end.json").write_text(WITHOUT_END)
            (self.root / "work/out").mkdir()
            (self.root / "work/out").chmod(0o777)
            yield
        finally:
            self.buildah("rm", name)

    def words(self, *words, user=None):
        """Of a program as process 1 of a new namespace of processes, with the settings of the image."""
        user = user or f"{self.config.get('User', 'root')}:nogroup"
        settings = ["-i", "-C", self.config["WorkingDir"], *self.config["Env"]]
        words = ["unshare", "--fork", "--pid", "--kill-child", "chroot", f"--userspec={user}", self.root, "/usr/bin/env", *settings, *words]
        return list(map(str, words))

    def run(self, *words, **others):
        ended = subprocess.run(self.words(*words, **others), capture_output=True, text=True, timeout=120)
        assert not ended.returncode, f"{words}: {ended}"
        return ended.stdout + ended.stderr


def check_runs(container):
    assert container.config["Entrypoint"] == ["weir"], container.config
    assert container.run("id", "-u").strip() != "0"
    version = container.run("weir", "--version")
    for backend in ("host", "sim"):
        for others in ({}, {"user": "12345:12345"}):  # a user without a name: docker run --user
            told = container.run("weir", "run", "--backend", backend, "examples/ping.json", **others)
            assert f" on {backend}" in told and told.count("print: tick ") == 10, told
    container.run("python3", "examples/onnx/models.py", "out/onnx")
    told = container.run("weir", "run", "--quiet", "--backend", "host", "--plugin", "onnx", "examples/onnx/classify.json")
    assert told.count("print: tick ") == len(list((ROOT / "examples/images").glob("*.png"))), told
    return version


def check_stop(container):
    """What `docker stop` sends to process 1: all that the camera emitted is printed."""
    command = ["weir", "run", "--backend", "host", "--metrics", "0.0.0.0:0", "without_end.json"]
    process = subprocess.Popen(container.words(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = re.search(r"http://0\.0\.0\.0:(\d+)/metrics", process.stderr.readline())[1]
        while process.stdout.readline().startswith("print: tick 0"):
            pass
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert b"weir_running 1" in opener.open(f"http://127.0.0.2:{port}/metrics", timeout=10).read()
        first = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        os.kill(int(first), 15)
        told, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143 and "stopped by SIGTERM" in told, (process.returncode, told, said)
    ticks = {line.split()[0]: line.split()[1] for line in told.splitlines() if line.startswith("  ")}
    assert ticks["camera"] == ticks["print"] and int(ticks["print"]) >= 2, told


def main(wheel, folder):
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    container = Container(folder)
    container.make_base()
    container.build(wheel)
    with container.started():
        version = check_runs(container)
        check_stop(container)
    container.buildah("rmi", "--prune", "--force")  # of earlier runs; each layer is a whole copy
    print(f"container: {version.strip()}")


main(*sys.argv[1:])
