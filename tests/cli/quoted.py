"""What the docs quote is what the command prints: runs every block of Markdown marked `console`.

A line `$ COMMAND` of a block, with the lines `> ...` that follow it, is run in a folder that has the examples, without a
GPU; the lines up to the next one are what it prints on stdout and stderr. A quoted line `...` stands for any lines. Figures with a
unit, the most ticks in flight and the number of blanks may differ.

Blocks marked `LANGUAGE file NAME` are files of the folder, each there for the commands of the page below it. docs/first-pipeline.md
compiles, too, against the tree's header and library, by the compiler in LESSON; without it that page is left out. Commands with
--python, Python programs, and what reads the run.json of one, need the package weir-gpu, and are left out where there is none. Arguments: the command.
"""
import os
import pathlib
import re
import subprocess
import tempfile

import process

ROOT = pathlib.Path(__file__).resolve().parents[2]
LESSON = ROOT / "docs/first-pipeline.md"
PAPERS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
BLOCK = re.compile(r"^```(console|\w+ file (\S+))\n(.*?)^```$", re.M | re.S)
FIGURE = re.compile(r"\b\d[\d,]*(\.\d+)? (ns|us|ms|s|min|frames/s)\b")
COMPILER = os.environ.get("LESSON")
IN_FLIGHT = re.compile(r"^( \S+( \d+){3} #) \d+$")  # the last column of a row of the summary


def without_figures(line):
    return IN_FLIGHT.sub(r"\1 #", re.sub(r"\s+", " ", FIGURE.sub("#", line.rstrip())))


def sessions(text):
    """(line, command, quoted lines) of every command in the text, and (line, name, content) of every file."""
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start()) + 2
        if block[2]:
            yield first, block[2], block[3]
            continue
        found = None
        for number, line in enumerate(block[3].splitlines(), first):
            if line.startswith("$ "):
                if found:
                    yield found
                found = (number, line[2:], [])
            elif line.startswith("> ") and found and not found[2]:
                found = (found[0], f"{found[1]}\n{line[2:]}", [])
            else:
                assert found, f"line {number}: a console block begins with `$ COMMAND`"
                found[2].append(line)
        yield found


def matches(quoted, printed):
    """Whether the lines are the same, `...` standing for any."""
    if not quoted:
        return not printed
    if quoted[0] == "...":
        return any(matches(quoted[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and without_figures(quoted[0]) == without_figures(printed[0]) and matches(quoted[1:], printed[1:])


def surroundings(weir, tools):
    """The environment of the commands. In `tools` are the names by which a lesson finds the compiler and the tree's library."""
    built = pathlib.Path(weir).resolve().parents[1]
    if COMPILER:
        (tools / "cc").symlink_to(COMPILER)
    (tools / "weir.pc").write_text(f"Name: weir\nDescription: of the tree\nVersion: 0\nCflags: -I{ROOT}/include\nLibs: -L{built} -lweir\n")
    path = f"{tools}:{pathlib.Path(weir).resolve().parent}:{os.environ['PATH']}"
    return {**process.environment(), "PATH": path, "CUDA_VISIBLE_DEVICES": "", "PKG_CONFIG_PATH": str(tools), "LD_LIBRARY_PATH": str(built)}


def printed(command, folder, environment):
    ended = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
                           timeout=3 * process.LIMIT, env=environment)
    return ended.stdout.splitlines()


def run_paper(paper, weir):
    """Runs the commands of a paper in one folder; gives how many."""
    count, left_out = 0, False
    with tempfile.TemporaryDirectory(prefix="weir-quoted-") as work:
        folder, tools = pathlib.Path(work) / "folder", pathlib.Path(work) / "tools"
        folder.mkdir()
        tools.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        environment = surroundings(weir, tools)
        package = not printed("python3 -c 'import weir, numpy'", folder, environment)
        for line, what, content in sessions(paper.read_text()):
            if isinstance(content, str):
                (folder / what).write_text(content)
                continue
            left_out |= bool(re.search("--python|^python3 ", what)) and not package
            if left_out and re.search(r"--python|^python3 |run\.json", what):
                continue
            lines = printed(what, folder, environment)
            place = f"{paper.relative_to(ROOT)}:{line}: `{what}` prints:"
            assert matches(content, lines), "\n".join([place, *lines])
            count += 1
    return count


def what_is_quoted_is_printed(weir):
    count = sum(run_paper(paper, weir) for paper in sorted(PAPERS) if paper != LESSON)
    assert count > 5, f"only {count} commands are quoted"


def the_first_pipeline_is_whole(weir):
    if COMPILER:
        assert run_paper(LESSON, weir) > 10


def each_line_of_the_recipes_is_checked(weir):
    """Those of docs/conditions.md, as keys of an entity between a source and a sink."""
    page = (ROOT / "docs/conditions.md").read_text()
    section = page[page.index("## Which condition") : page.index("## The verdict")]
    lines = re.findall(r"^\|.*\| `(\".*)` \|$", section, re.M)
    assert len(lines) > 12, lines
    for line in lines:
        graph = """{"weir": 1, "resources": {"frames": {"type": "memory_pool", "block_size": "1MiB", "blocks": 8}}, "entities": [
            {"name": "from", "operator": "spin"}, {"name": "it", "operator": "pass", %s}, {"name": "to", "operator": "sink"}],
            "connections": [["from.out", "it.in"], ["it.out", "to.in"]]}""" % line
        ended = process.run(weir, "check", "-", input=graph)
        assert ended.returncode == 0, (line, ended.stderr)


def another_text_is_noticed(_weir):
    assert matches(["a 3.2 s", "...", "z"], ["a   411 ms", "b", "z"])
    assert matches(["  read  60  0  60  255 ms  8"], ["  read  60  0  60  1.2 s  0"])
    for quoted, printed in (["a"], ["a", "b"]), (["a", "b"], ["a"]), (["..."], []), (["a 3 s"], ["a 3 frames"]), (["60  1 s"], ["61  1 s"]):
        assert matches(quoted, printed) == (quoted == ["..."]), (quoted, printed)


process.main([what_is_quoted_is_printed, the_first_pipeline_is_whole, each_line_of_the_recipes_is_checked, another_text_is_noticed])
