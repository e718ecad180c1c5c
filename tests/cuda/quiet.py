"""From the first to the last frame of edges: no call that waits, allocates or creates anything, and hardly any
CPU time of the workers beside compute. recorder.c records the calls, probe.c the CPU time.
"""
import os
import tempfile
from collections import Counter

import acceptance
import calls as recorded

FRAMES = 60
RATIO = 1.2


def window(events):
    """From the first tick of read to the end of the last one of write."""
    of = recorded.ticks(events)
    written = [tick for tick in of if tick[0] == "write"]
    assert len(written) == FRAMES, f"{len(written)} ticks of write were recorded, not {FRAMES}"
    return min(begin for name, begin, _ in of if name == "read"), max(end for *_, end in written), written


def record(given, folder):
    path = os.path.join(folder, "record.tsv")
    recorder = given.program("recorder.so")
    env = acceptance.environment(NVTX_INJECTION64_PATH=recorder, WEIR_RECORD=path)
    if given.backend == "cuda":
        library = recorded.cupti()
        assert library, "no libcupti was found"
        env.update(CUDA_INJECTION64_PATH=recorder, WEIR_CUPTI=library)
    ended = acceptance.run(
        [given.weir, "run", acceptance.EDGES, "--backend", given.backend, "--signal", given.signal, "--quiet"]
        + ["--set", f"read.repeat={FRAMES // 3}", "--set", f"write.directory={folder}/pictures", "--set", "write.every=1"],
        env=env,
    )
    assert ended.returncode == 0 and not ended.stderr, ended
    assert os.path.exists(path), "nothing was recorded: is the build without NVTX?"
    keep = os.environ.get("WEIR_KEEP")
    if keep:
        with open(path) as source, open(f"{keep}/calls-{given.signal}.tsv", "w") as copy:
            copy.write(source.read())
    return recorded.read_events(path)


def no_call_waits_or_allocates_between_the_first_and_the_last_frame(given):
    with tempfile.TemporaryDirectory(prefix="weir-quiet-") as folder:
        events = record(given, folder)
    begin, end, written = window(events)
    calls = [(at, kind, name) for at, _, kind, name in events if kind in ("runtime", "driver") and begin <= at <= end]
    runtime = Counter(name for _, kind, name in calls if kind == "runtime")
    bad = [call for call in calls if recorded.FORBIDDEN.fullmatch(call[2])]
    acceptance.report(
        f"quiet ({given.backend}, {given.signal}): {FRAMES} frames, {sum(runtime.values())} calls of the runtime, "
        f"{len(bad)} forbidden; {', '.join(f'{name} {n}' for name, n in runtime.most_common())}"
    )
    if given.backend == "cuda":  # otherwise the recorder saw nothing
        launches = sum(n for name, n in runtime.items() if name.startswith("cudaLaunchKernel"))
        copies = sum(n for name, n in runtime.items() if name.startswith("cudaMemcpyAsync"))
        assert launches >= 2 * FRAMES and copies >= 2 * FRAMES, f"{launches} launches, {copies} copies were recorded"
    first_done = min(tick[2] for tick in written)
    late = sum(at > first_done for at, *_ in bad)
    count = ", ".join(f"{name} {n}" for name, n in Counter(name for *_, name in bad).most_common())
    assert not bad, f"{len(bad)} forbidden calls, {late} of them after the first frame was written: {count}"


def what_is_forbidden_is_known(_given):
    """Checks the pattern itself."""
    for name in (
        "cudaStreamSynchronize cuCtxSynchronize cudaDeviceSynchronize cudaEventSynchronize cudaMemcpy cudaMemcpy2D "
        "cuMemcpyHtoD_v2 "
        "cudaGraphInstantiateWithFlags cuGraphCreate cudaGraphExecDestroy "
        "cudaMalloc cudaFree cudaFreeHost cudaHostAlloc cudaMallocHost cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc "
        "cudaEventCreateWithFlags cuEventCreate cudaStreamCreateWithPriority cuStreamCreate cudaMemset cudaMemcpy_v3020"
    ).split():
        assert recorded.FORBIDDEN.fullmatch(name), name
    for name in (
        "cudaMemcpyAsync cuMemcpyHtoDAsync_v2 cuMemcpyAsync cudaLaunchKernel cudaEventRecord cudaEventQuery "
        "cudaStreamWaitEvent "
        "cudaGraphLaunch cuGraphLaunch cudaLaunchHostFunc cudaMemcpyAsync_v3020 cudaMemsetAsync cuMemsetD8Async cudaStreamIsCapturing"
    ).split():
        assert not recorded.FORBIDDEN.fullmatch(name), name


def workers_use_little_time_beside_compute(given):
    with tempfile.TemporaryDirectory(prefix="weir-quiet-") as folder:
        came = acceptance.run_json(
            [given.program("probe"), acceptance.EDGES, "--backend", given.backend, "--signal", given.signal]
            + ["--until", "write", "--set", f"read.repeat={given.repeat}", "--set", f"write.directory={folder}"]
            + ["--set", "write.every=1"]
        )
    assert came["status"] == "ok" and came["conserved"], came
    ratio = came["worker_cpu"] / came["compute"] if came["compute"] else 0
    acceptance.report(
        f"workers ({came['where']}, {given.signal}): {came['workers']} used {came['worker_cpu']:.3f} s of CPU, "
        f"{came['compute']:.3f} s inside compute, ratio {ratio:.3f}, run {came['seconds']:.2f} s"
    )
    assert came["compute"] > 1, f"too short to tell: {came}"
    assert ratio <= RATIO, f"worker CPU time is {ratio:.3f} times the time inside compute, more than {RATIO}"


acceptance.main(
    [
        what_is_forbidden_is_known,
        no_call_waits_or_allocates_between_the_first_and_the_last_frame,
        workers_use_little_time_beside_compute,
    ],
    acceptance.arguments(repeat=100),
)
