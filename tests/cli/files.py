"""The files of a run: none destroys what it reads, what another entity writes, or what was there before without need.

files.py WEIR FOLDER: FOLDER is scratch.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import process

FOLDER = pathlib.Path(sys.argv[2]) / "files"
del sys.argv[2]
FRAME = 16 * 16 * 3
OLD = b"what was there before"
READ = {"name": "r", "operator": "frames_read", "parameters": {"width": 16, "height": 16}}


def frames(count=3):
    return b"".join(bytes([i + 1]) * FRAME for i in range(count))


def fresh():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "in.rgb").write_bytes(frames())


def graph(*entities, name="g.json", **parameters):
    """r -> w, and then one sink of r for each other entity; parameters: of w."""
    write = {"name": "w", "operator": "frames_write", "parameters": parameters}
    sinks = [write, *entities]
    text = {"weir": 1, "entities": [READ, *sinks], "connections": [{"from": "r.out", "to": [f"{sink['name']}.in" for sink in sinks]}]}
    (FOLDER / name).write_text(json.dumps(text))
    return name


def run(weir, *words, **options):
    options = {"cwd": FOLDER, "text": False, "input": b"", **options}
    return process.run(weir, "run", "--quiet", *words, **options)


def refused(ended, *parts, code=1):
    lines = ended.stderr.decode().splitlines() if isinstance(ended.stderr, bytes) else ended.stderr.splitlines()
    assert ended.returncode == code and len(lines) == 1 and all(part in lines[0] for part in parts), (parts, ended)


def names():
    return sorted(path.name for path in FOLDER.iterdir())


def f96_one_file_by_any_name_is_not_read_and_written(weir):
    fresh()
    os.symlink("in.rgb", FOLDER / "link.rgb")
    os.link(FOLDER / "in.rgb", FOLDER / "hard.rgb")
    (FOLDER / "sub").mkdir()
    graph()
    for path in ("in.rgb", "./in.rgb", "sub/../in.rgb", str(FOLDER / "in.rgb"), "link.rgb", "hard.rgb", "/dev/fd/7", "/proc/self/fd/7"):
        with open(FOLDER / "in.rgb", "r+b") as held:
            os.dup2(held.fileno(), 7)
            ended = run(weir, "g.json", "--set", "r.path=in.rgb", "--set", f"w.path={path}", pass_fds=(7,))
            os.close(7)
        refused(ended, "weir run: /entities/1/parameters/path: ", "read by 'r' (/entities/0/parameters/path): name another one")
        assert (FOLDER / "in.rgb").read_bytes() == frames(), path
    with open(FOLDER / "in.rgb", "ab") as out:
        ended = run(weir, "g.json", "--set", "r.path=in.rgb", stdout=out, stderr=subprocess.PIPE, capture_output=False)
    refused(ended, "standard output is the same as 'in.rgb', which is read by 'r'")
    assert (FOLDER / "in.rgb").read_bytes() == frames()


def f96_check_says_so_with_the_place(weir):
    fresh()
    graph(path="in.rgb")
    text = (FOLDER / "g.json").read_text().replace('"width"', '"path": "./in.rgb", "width"')
    (FOLDER / "g.json").write_text(text)
    ended = process.run(weir, "check", "g.json", cwd=FOLDER)
    refused(ended, f"g.json:1:{text.rindex('in.rgb') + 0}: error W050: /entities/1/parameters/path: 'in.rgb' is the same as './in.rgb'", code=3)
    assert process.run(weir, "check", "g.json", "--set", "w.path=new.rgb", cwd=FOLDER).returncode == 0
    assert names() == ["g.json", "in.rgb"], "check makes nothing"


def f96_two_writers_of_one_file_are_refused(weir):
    fresh()
    second = {"name": "w2", "operator": "frames_write"}
    graph(second)
    os.symlink("new.rgb", FOLDER / "dangling")
    os.mkfifo(FOLDER / "fifo")
    for one, two in (("new.rgb", "./new.rgb"), ("new.rgb", "dangling"), ("in2.rgb", "in2.rgb"), ("-", "-"), ("fifo", "fifo"), ("-", "/dev/stdout")):
        (FOLDER / "in2.rgb").write_bytes(OLD)
        ended = run(weir, "g.json", "--set", "r.path=in.rgb", "--set", f"w.path={one}", "--set", f"w2.path={two}")
        refused(ended, "/entities/2/parameters/path: ", "written by 'w' (/entities/1/parameters/path)")
        assert (FOLDER / "in2.rgb").read_bytes() == OLD and "new.rgb" not in names() and not ended.stdout
    ended = run(weir, "g.json", "--set", "r.path=in.rgb", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, capture_output=False)
    assert ended.returncode == 0, "/dev/null may be written by any number"
    refused(run(weir, "g.json", "--set", "r.path=in.rgb", "--set", "w2.descriptor=1"), "/entities/2/parameters/descriptor: standard output is also written by 'w'")


def f96_what_is_consumed_has_one_reader(weir):
    fresh()
    readers = [{**READ, "name": name} for name in ("a", "b")]
    sinks = [{"name": f"{name}out", "operator": "frames_write", "parameters": {"path": f"{name}.rgb"}} for name in ("a", "b")]
    pairs = [["a.out", "aout.in"], ["b.out", "bout.in"]]
    (FOLDER / "two.json").write_text(json.dumps({"weir": 1, "entities": readers + sinks, "connections": pairs}))
    os.mkfifo(FOLDER / "fifo")
    for one, two in (("-", "-"), ("-", "/dev/stdin"), ("fifo", "./fifo")):
        ended = run(weir, "two.json", "--set", f"a.path={one}", "--set", f"b.path={two}", input=frames())
        refused(ended, "/entities/1/parameters/path: ", "read by 'a'", "and what one takes the other lacks")
    with open(FOLDER / "in.rgb", "rb") as file:
        ended = run(weir, "two.json", stdin=file, input=None)
    refused(ended, "standard input is also read by 'a'")
    ended = run(weir, "two.json", "--set", "a.path=in.rgb", "--set", "b.path=./in.rgb")
    assert ended.returncode == 0 and (FOLDER / "a.rgb").read_bytes() == (FOLDER / "b.rgb").read_bytes() == frames(), ended
    graph(path="out.rgb")
    ended = run(weir, "-", input=(FOLDER / "g.json").read_bytes())
    refused(ended, "/entities/0/parameters/path: standard input is also read as the graph, and what one takes the other lacks")


def f96_print_stands_beside_no_frames(weir):
    fresh()
    graph({"name": "p", "operator": "print"}, {"name": "q", "operator": "print"})
    refused(run(weir, "g.json", "--set", "r.path=in.rgb"), "/entities/2: standard output is also written by 'w'")
    refused(process.run(weir, "check", "g.json", cwd=FOLDER), "error W050: /entities/2: standard output is also written by 'w'", code=3)
    ended = run(weir, "g.json", "--set", "r.path=in.rgb", "--set", "p.quiet=true", "--set", "q.quiet=true")
    assert ended.returncode == 0 and ended.stdout == frames(), ended
    ended = run(weir, "g.json", "--set", "r.path=in.rgb", "--set", "w.path=out.rgb")
    assert ended.returncode == 0 and ended.stdout.count(b"\n") == 6, ended


def f96_the_command_s_files_are_in_the_table(weir):
    fresh()
    graph(path="out.rgb")
    (FOLDER / "out.rgb").write_bytes(OLD)
    text = (FOLDER / "g.json").read_text()
    options = ("g.json", "--set", "r.path=in.rgb")
    refused(run(weir, *options, "--stats-file", "./g.json"), "weir run: --stats-file: './g.json' is the same as 'g.json', which is read as the graph: name another one")
    refused(run(weir, *options, "--trace", "out.rgb"), "--trace: 'out.rgb' is also written by 'w' (/entities/1/parameters/path)")
    refused(run(weir, *options, "--trace", "in.rgb"), "--trace: 'in.rgb' is also read by 'r' (/entities/0/parameters/path)")
    refused(run(weir, *options, "--trace", "t.json", "--stats-file", "t.json"), "--stats-file: 't.json' is also written as --trace")
    refused(run(weir, *options, "--set", "w.path=-", "--trace", "/dev/stdout"), "--trace: '/dev/stdout' is the same as standard output, which is written by 'w'")
    assert (FOLDER / "g.json").read_text() == text and (FOLDER / "out.rgb").read_bytes() == OLD
    assert (FOLDER / "in.rgb").read_bytes() == frames() and names() == ["g.json", "in.rgb", "out.rgb"], names()
    ended = run(weir, *options, "--stats-file", "s.json", "--trace", "t.json")
    assert ended.returncode == 0 and (FOLDER / "out.rgb").read_bytes() == frames(), ended


def f96_a_report_keeps_what_it_reads(weir):
    fresh()
    graph(path="out.rgb")
    assert run(weir, "g.json", "--set", "r.path=in.rgb", "--stats-file", "s.json", "--trace", "t.json").returncode == 0
    os.symlink("t.json", FOLDER / "page.html")
    before = {name: (FOLDER / name).read_bytes() for name in ("s.json", "t.json")}
    refused(process.run(weir, "report", "s.json", "-o", "s.json", cwd=FOLDER), "weir report: -o: 's.json' is also read as RUN.json: name another one", code=2)
    refused(process.run(weir, "report", "s.json", "t.json", "-o", "page.html", cwd=FOLDER), "-o: 'page.html' is the same as 't.json', which is read as TRACE.json", code=2)
    refused(process.run(weir, "report", "-", "-", "-o", "p.html", cwd=FOLDER, input="{}"), "TRACE.json: standard input is also read as RUN.json", code=2)
    assert before == {name: (FOLDER / name).read_bytes() for name in before}
    assert process.run(weir, "report", "s.json", "t.json", "-o", "p.html", cwd=FOLDER).returncode == 0


def f96_pictures_do_not_replace_those_that_are_read(weir):
    fresh()
    picture = pathlib.Path(__file__).resolve().parents[2] / "examples" / "images" / "coffee.png"
    (FOLDER / "in").mkdir()
    for i in range(2):
        shutil.copy(picture, FOLDER / f"in/frame00000{i}.png")
    entities = [{"name": "r", "operator": "png_read", "parameters": {"path": "in"}}]
    entities += [{"name": name, "operator": "png_write", "parameters": {"directory": "in", "prefix": f"{name}_", "compression": 0}} for name in ("v", "w")]
    (FOLDER / "p.json").write_text(json.dumps({"weir": 1, "entities": entities, "connections": [{"from": "r.out", "to": ["v.in", "w.in"]}]}))
    before = (FOLDER / "in/frame000000.png").read_bytes()
    for words, said in ((("w.prefix=frame",), "/entities/2/parameters/directory: 'in/frame*' shares files with 'in', which is read by 'r'"),
                        (("w.prefix=frame", "r.path=in/frame000001.png"), "'in/frame*' shares files with 'in/frame000001.png', which is read by 'r'"),
                        (("w.prefix=v_",), "'in/v_*' is also written by 'v' (/entities/1/parameters/directory)")):
        refused(run(weir, "p.json", *(word for each in words for word in ("--set", each))), said)
        assert sorted(os.listdir(FOLDER / "in")) == ["frame000000.png", "frame000001.png"]
    assert run(weir, "p.json").returncode == 0
    assert len(os.listdir(FOLDER / "in")) == 6 and (FOLDER / "in/frame000000.png").read_bytes() == before


def f96_the_root_is_where_paths_begin(weir):
    fresh()
    (FOLDER / "root").mkdir()
    shutil.copy(FOLDER / "in.rgb", FOLDER / "root/in.rgb")
    os.symlink("in.rgb", FOLDER / "out.rgb")  # in the working folder the two are one, beneath the root they are not
    graph(path="out.rgb")
    root = ("--root", "root", "--set", "r.path=in.rgb")
    assert run(weir, "g.json", *root).returncode == 0 and (FOLDER / "root/out.rgb").read_bytes() == frames()
    refused(run(weir, "g.json", *root, "--set", f"w.path={FOLDER}/root/in.rgb"), "read by 'r'")
    refused(run(weir, "g.json", *root, "--stats-file", "root/out.rgb"), "--stats-file: 'root/out.rgb' is the same as 'out.rgb', which is written by 'w'")
    assert run(weir, "g.json", *root, "--stats-file", "s.json").returncode == 0
    assert (FOLDER / "in.rgb").read_bytes() == (FOLDER / "root/in.rgb").read_bytes() == frames()


def f97_an_output_is_as_it_was_until_the_first_frame(weir):
    fresh()
    graph(path="out.rgb")
    last = json.loads((FOLDER / "g.json").read_text())
    last["entities"].reverse()
    (FOLDER / "g.json").write_text(json.dumps(last))
    for old in (OLD, None):
        for words, data in ((("r.path=missing",), b""), (("r.path=-",), b"\1" * 100), (("r.width=8", "r.path=in.rgb", "w.format=y4m"), b"")):
            (FOLDER / "out.rgb").unlink(missing_ok=True)
            if old:
                (FOLDER / "out.rgb").write_bytes(old)
            ended = run(weir, "g.json", *(word for each in words for word in ("--set", each)), input=data)
            assert ended.returncode == 1, ended
            assert (FOLDER / "out.rgb").read_bytes() == old if old else "out.rgb" not in names(), (words, names())
    (FOLDER / "out.rgb").write_bytes(OLD * 1000)
    assert run(weir, "g.json", "--set", "r.path=in.rgb").returncode == 0 and (FOLDER / "out.rgb").read_bytes() == frames()


def f97_a_run_that_ends_well_without_a_frame_leaves_an_empty_file(weir):
    for old in (OLD, None):
        fresh()
        graph(path="out.rgb")
        if old:
            (FOLDER / "out.rgb").write_bytes(old)
        assert run(weir, "g.json").returncode == 0 and (FOLDER / "out.rgb").read_bytes() == b""
        if old:
            (FOLDER / "out.rgb").write_bytes(old)
        else:
            (FOLDER / "out.rgb").unlink()
        child = process.start(weir, "run", "g.json", "--explain-after", "1ms", cwd=FOLDER, stdin=subprocess.PIPE)
        assert "r waits" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(process.LIMIT) == 130
        assert (FOLDER / "out.rgb").read_bytes() == old if old else "out.rgb" not in names(), "interrupted before the first frame"


def f98_frames_before_broken_input_arrive(weir):
    fresh()
    slow = {"name": "slow", "operator": "delay", "parameters": {"duration": "3ms"}}  # so that all of them are under way
    between = {"weir": 1, "entities": [READ, slow, {"name": "w", "operator": "frames_write"}]}
    between["connections"] = [["r.out", "slow.in"], ["slow.out", "w.in"]]
    (FOLDER / "g.json").write_text(json.dumps(between))
    y4m = b"YUV4MPEG2 W8 H6\n" + 5 * (b"FRAME\n" + b"\2" * 72)
    for words, data, wanted, said in (
        ((), frames(5) + b"x" * 100, frames(5), f"standard input ends in the middle of frame 5: 100 of {FRAME} bytes"),
        (("r.format=y4m", "r.width=0", "r.height=0"), y4m + b"FRAME\n123", b"\2" * 72 * 5, "ends in the middle of frame 5: 3 of 72 bytes"),
        (("r.format=y4m", "r.width=0", "r.height=0"), y4m + b"FRA", b"\2" * 72 * 5, "ends in the middle of a Y4M header"),
        (("r.format=y4m", "r.width=0", "r.height=0"), y4m + b"BROKEN\n123", b"\2" * 72 * 5, "does not begin with FRAME"),
    ):
        for workers in ("1", "4"):
            ended = run(weir, "g.json", "--workers", workers, *(word for each in words for word in ("--set", each)), input=data)
            refused(ended, "weir run: g.json: input/output failed in 'r': ", said)
            assert ended.stdout == wanted, (len(ended.stdout), len(wanted))


def f98_pictures_before_a_broken_one_arrive(weir):
    fresh()
    picture = pathlib.Path(__file__).resolve().parents[2] / "examples" / "images" / "coffee.png"
    for i in range(3):
        shutil.copy(picture, FOLDER / f"{i}.png")
    (FOLDER / "3.png").write_bytes(picture.read_bytes()[:5000])
    entities = [{"name": "r", "operator": "png_read", "parameters": {"path": "."}},
                {"name": "slow", "operator": "delay", "parameters": {"duration": "20ms"}},
                {"name": "w", "operator": "png_write", "parameters": {"compression": 0}}]
    (FOLDER / "p.json").write_text(json.dumps({"weir": 1, "entities": entities, "connections": [["r.out", "slow.in"], ["slow.out", "w.in"]]}))
    refused(run(weir, "p.json"), "weir run: p.json: operator failed in 'r': './3.png': the file ends too early")
    assert len(os.listdir(FOLDER / "out")) == 3


def c13_f98_pictures_before_a_broken_one_arrive_from_instances(weir):
    for instances in (2, 3, 5):
        for number in range(4):
            fresh()
            pictures = pathlib.Path(__file__).resolve().parents[2] / "examples" / "images"
            picture = sorted(pictures.glob("*.png"))[0].read_bytes()
            for i in range(8):
                (FOLDER / f"{i}.png").write_bytes(picture if i != number else picture[:5000])
            entities = [{"name": "f", "operator": "files", "parameters": {"path": "."}}, {"name": "r", "operator": "png_decode", "instances": instances},
                        {"name": "w", "operator": "png_write", "parameters": {"compression": 0}}]
            (FOLDER / "p.json").write_text(json.dumps({"weir": 1, "entities": entities, "connections": [["f.out", "r.in"], ["r.out", "w.in"]]}))
            refused(run(weir, "p.json"), f"weir run: p.json: operator failed in 'r': './{number}.png': the file ends too early")
            assert len(os.listdir(FOLDER / "out")) == number if number else not (FOLDER / "out").exists() or not os.listdir(FOLDER / "out")


def c13_instances_write_the_same_files_as_one_entity(weir):
    fresh()
    pictures = pathlib.Path(__file__).resolve().parents[2] / "examples" / "images"
    path, write = {"path": str(pictures), "repeat": 4}, {"name": "w", "operator": "png_write"}
    for instances in (1, 3):
        write |= {"parameters": {"directory": f"out{instances}", "compression": 0, "every": 2}, "instances": instances}
        entities = [{"name": "r", "operator": "png_read", "parameters": path}] if instances == 1 else [
            {"name": "f", "operator": "files", "parameters": path}, {"name": "r", "operator": "png_decode", "instances": instances}]
        links = [["f.out", "r.in"]] * (instances > 1) + [["r.out", "w.in"]]
        (FOLDER / "p.json").write_text(json.dumps({"weir": 1, "entities": [*entities, write], "connections": links}))
        assert run(weir, "p.json").returncode == 0
    names = sorted(os.listdir(FOLDER / "out1"))
    assert len(names) == 6 and names == sorted(os.listdir(FOLDER / "out3"))
    for name in names:
        assert (FOLDER / "out1" / name).read_bytes() == (FOLDER / "out3" / name).read_bytes(), name


def f99_a_graph_reaches_no_descriptor_of_the_command_s_own(weir):
    fresh()
    graph()
    for fd in range(3, 24):
        for word in (f"r.descriptor={fd}", f"w.descriptor={fd}"):
            ended = run(weir, "g.json", "--set", word, stdin=subprocess.DEVNULL, input=None)
            assert ended.returncode == 1 and (b"close-on-exec" in ended.stderr or b"Bad file descriptor" in ended.stderr), (word, ended)
    assert b"/entities/1/parameters/descriptor: descriptor 3 was opened by this process and is close-on-exec: " in run(weir, "g.json", "--set", "w.descriptor=3").stderr


def f91_a_plugin_s_name_needs_the_folder_of_the_library(weir):
    build = pathlib.Path(weir).parent.parent
    for path, says in ((build, "has no file libweir_no_such.so"), (".", "the file of weir, beside which it would be, is unknown here")):
        ended = process.run(weir, "check", "--plugin", "no_such", "g.json", cwd=build, env={**process.environment(), "LD_LIBRARY_PATH": str(path)})
        refused(ended, "plugin 'no_such' is not found: ", says, code=3)


process.main([
    f96_one_file_by_any_name_is_not_read_and_written, f96_check_says_so_with_the_place, f96_two_writers_of_one_file_are_refused,
    f96_what_is_consumed_has_one_reader, f96_print_stands_beside_no_frames, f96_the_command_s_files_are_in_the_table,
    f96_a_report_keeps_what_it_reads, f96_pictures_do_not_replace_those_that_are_read, f96_the_root_is_where_paths_begin,
    f97_an_output_is_as_it_was_until_the_first_frame, f97_a_run_that_ends_well_without_a_frame_leaves_an_empty_file,
    f98_frames_before_broken_input_arrive, f98_pictures_before_a_broken_one_arrive,
    c13_f98_pictures_before_a_broken_one_arrive_from_instances, f99_a_graph_reaches_no_descriptor_of_the_command_s_own, c13_instances_write_the_same_files_as_one_entity,
    f91_a_plugin_s_name_needs_the_folder_of_the_library,
])
