"""compute-sanitizer's memcheck finds nothing in a short run of edges; skipped where the tool is missing."""
import os
import shutil
import tempfile

import acceptance


def f60_memcheck_finds_nothing_in_edges(given):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        acceptance.report("memcheck: there is no compute-sanitizer here")
        return
    with tempfile.TemporaryDirectory(prefix="weir-memcheck-") as folder:
        ended = acceptance.run(
            [tool, "--tool", "memcheck", "--error-exitcode", "99", given.weir, "run", acceptance.EDGES]
            + ["--backend", given.backend, "--signal", given.signal, "--set", "read.repeat=1"]
            + ["--set", f"write.directory={folder}"],
            limit=120,
        )
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "ERROR SUMMARY" in line]
    acceptance.report(f"memcheck ({given.backend}, {given.signal}): exit {ended.returncode}, {' '.join(lines)}")
    assert ended.returncode == 0 and any("0 errors" in line for line in lines), (ended.stdout + ended.stderr)[-3000:]


acceptance.main([f60_memcheck_finds_nothing_in_edges], acceptance.arguments())
