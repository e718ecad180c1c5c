"""The same graph gives the same bytes: on every backend, with 1 worker and with 8, with every signal."""
import hashlib
import os
import pathlib
import tempfile

import acceptance

REPEAT = 2  # of the photographs


def pictures(given, folder, backend, signal, workers):
    """name -> digest of the files that a run of edges writes."""
    ended = acceptance.run(
        [given.weir, "run", acceptance.EDGES, "--quiet", "--backend", backend, "--signal", signal, "--workers", workers]
        + ["--set", f"read.repeat={REPEAT}", "--set", f"write.directory={folder}", "--set", "write.every=1"]
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), (backend, signal, workers, ended)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(folder).iterdir()}


def variants(given):
    yield "host", "callback", 1
    for backend, signals in {
        "host": {given.signal},
        "sim": {given.signal},
        "cuda": {given.signal} if given.backend == "cuda" else (),
    }.items():
        for signal in signals:
            yield from ((backend, signal, workers) for workers in (1, 8))


def the_same_bytes_everywhere(given):
    photographs = len(list((acceptance.ROOT / "examples" / "images").glob("*.png")))
    reference, compared = None, 0
    for variant in variants(given):
        with tempfile.TemporaryDirectory(prefix="weir-edges-") as folder:
            found = pictures(given, folder, *variant)
        reference = reference or found
        assert len(found) == REPEAT * photographs > 0, (variant, sorted(found))
        differ = sorted(name for name in {*found, *reference} if found.get(name) != reference.get(name))
        assert not differ, f"{variant} differs from host in {differ}"
        compared += 1
    assert len(set(reference.values())) == photographs, "pictures of different photographs are alike"
    acceptance.report(f"identical: {len(reference)} PNGs, {compared} runs ({given.backend}, {given.signal}) agree")


given = acceptance.arguments()
if given.backend != "cuda" and "WEIR_CUDA_SIGNAL" not in os.environ:
    checks = []
    for signal in ("auto", "callback", "callback_inline", "flag"):

        def check(given, signal=signal):
            given.signal = signal
            the_same_bytes_everywhere(given)

        check.__name__ = f"the_same_bytes_everywhere_with_{signal}"
        checks.append(check)
else:
    checks = [the_same_bytes_everywhere]
acceptance.main(checks, given)
