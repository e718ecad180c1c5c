"""Where the output goes: terminals, pipes without a reader, full disks, closed descriptors."""
import os
import pathlib
import pty
import re
import subprocess
import tempfile

import process

HOST = ["--backend", "host"]


def on_a_terminal(weir, *arguments):
    """Runs with stderr on a terminal; returns the exit code, stdout, and what the terminal received."""
    master, slave = pty.openpty()
    child = process.start(weir, *arguments, stderr=slave)
    os.close(slave)
    got = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # the other end was closed
            break
        if not part:
            break
        got += part
    os.close(master)
    out, _ = child.communicate(timeout=process.LIMIT)
    return child.returncode, out, got.decode()


def a_terminal_sees_a_line_that_moves(weir):
    code, out, got = on_a_terminal(weir, "run", process.graph("endless.json"), *HOST, "--duration", "2s")
    assert code == 0, (code, got)
    assert 2 <= got.count("ticks") <= 20 and "frames/s" in got, got
    assert got.endswith("\r\x1b[K"), got  # and is cleared
    assert "finished" in out, out


def a_quiet_run_says_nothing_on_a_terminal(weir):
    quiet = ["--duration", "500ms", "--quiet", "--set", "end.quiet=true"]
    code, out, got = on_a_terminal(weir, "run", process.graph("endless.json"), *HOST, *quiet)
    assert (code, out, got) == (0, "", ""), (code, out, got)


def a_pipe_sees_whole_lines_only(weir):
    ended = process.run(weir, "run", process.graph("endless.json"), *HOST, "--duration", "500ms")
    assert ended.returncode == 0 and ended.stderr == "", ended
    assert "\r" not in ended.stdout and "\x1b" not in ended.stdout, ended.stdout


def the_duration_ends_the_run(weir):
    ended = process.run(weir, "run", process.graph("endless.json"), *HOST, "--duration", "300ms")
    assert ended.returncode == 0 and "finished" in ended.stdout, ended


def a_rate_is_written_out(weir):
    rates = (("ping", "1ns", r"\d{1,3}(,\d{3})+"), ("ping", "7ms", r"\d+\.\d+"), ("once", "4h", r"0\.0000\d+"))
    for graph, duration, wanted in rates:
        options = ["--backend", "sim", "--set", f"work.duration={duration}"]
        ended = process.run(weir, "run", process.graph(f"{graph}.json"), *options)
        first = ended.stdout.split("\n")[0]
        assert re.search(f", {wanted} frames/s$", first) and not re.search(r"\de[+-]?\d", ended.stdout), ended


def a_run_without_frames_has_no_rate(weir):
    ended = process.run(weir, "run", process.graph("ping.json"), "--backend", "sim", "--set", "work.duration=1h", "--duration", "1s")
    first = ended.stdout.split("\n")[0]
    assert "abandoned after" in first and "frames/s" not in first, ended


def nobody_reads_stdout(weir):
    ping = process.graph("ping.json")
    for arguments in (["operators"], ["run", ping, *HOST], ["show", ping]):
        reader, writer = os.pipe()
        os.close(reader)
        ended = process.run(weir, *arguments, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert ended.returncode == 0 and ended.stderr == "", (arguments, ended)


def nobody_reads_stderr(weir):
    reader, writer = os.pipe()
    os.close(reader)
    ended = process.run(
        weir, "check", process.graph("wrong.json"), capture_output=False, stdout=subprocess.DEVNULL,
        stderr=writer,
    )
    os.close(writer)
    assert ended.returncode == 3, ended


def a_full_disk_is_a_failure(weir):
    with open("/dev/full", "w") as full:
        ended = process.run(weir, "operators", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1 and "cannot write to stdout" in ended.stderr, ended


def xb13_an_operator_that_cannot_write_is_told_once(weir):
    with open("/dev/full", "w") as full:
        ended = process.run(
            weir, "run", "--quiet", process.graph("endless.json"), *HOST, capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1, ended
    assert ended.stderr.endswith("in 'end': stdout: No space left on device\n"), ended


def closed_descriptors_stay_out_of_files(weir):
    """With stdout closed, the first opened file would get its number and receive the summary."""
    with tempfile.TemporaryDirectory() as folder:
        ended = process.run(
            weir, "run", process.graph("ping.json"), *HOST, capture_output=False, cwd=folder,
            preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)],
        )
        assert ended.returncode == 1, ended
        assert not list(pathlib.Path(folder).iterdir())


def f44_a_non_blocking_standard_input_is_waited_for(weir):
    report = pathlib.Path(__file__).parent / "report" / "run.json"
    for arguments, text in ((["check", "-"], pathlib.Path(process.graph("ping.json")).read_text()), (["report", "--json", "-"], report.read_text())):
        end, begin = os.pipe()
        os.set_blocking(end, False)
        child = process.start(weir, *arguments, stdin=end)
        os.close(end)
        while child.poll() is None and pathlib.Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "S":
            pass
        with open(begin, "w") as to:
            to.write(text)
        out, err = child.communicate(timeout=process.LIMIT)
        assert child.returncode == 0 and not err, (arguments, child.returncode, out, err)


def a_device_that_is_not_there_is_no_fifo(weir):
    report = pathlib.Path(__file__).parent / "report" / "run.json"
    ended = process.run(weir, "report", str(report), "-o", "/dev/tty", start_new_session=True)
    assert ended.returncode == 1 and ended.stderr == "weir report: /dev/tty: the page cannot be written: No such device\n", ended


process.main(
    [
        a_terminal_sees_a_line_that_moves,
        a_quiet_run_says_nothing_on_a_terminal,
        a_pipe_sees_whole_lines_only,
        the_duration_ends_the_run,
        a_rate_is_written_out,
        a_run_without_frames_has_no_rate,
        nobody_reads_stdout,
        nobody_reads_stderr,
        a_full_disk_is_a_failure,
        xb13_an_operator_that_cannot_write_is_told_once,
        closed_descriptors_stay_out_of_files,
        f44_a_non_blocking_standard_input_is_waited_for,
        a_device_that_is_not_there_is_no_fifo,
    ]
)
