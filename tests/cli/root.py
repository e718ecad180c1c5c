"""--root: the built-in operators open files in one folder only, whatever the graph and links name.

root.py WEIR FOLDER: FOLDER is scratch.
"""
import json
import os
import pathlib
import shutil
import sys

import process

FOLDER = pathlib.Path(sys.argv[2]) / "root"
del sys.argv[2]
PICTURE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "images" / "coffee.png"
OUTSIDE = "lies outside of the root (--root)"


def fresh():
    """root/inside/a.png, root/images/a.png, outside/b.png, and links that lead out of root and within it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("root/inside", "root/images", "outside"):
        (FOLDER / name).mkdir(parents=True)
    shutil.copy(PICTURE, FOLDER / "root/inside/a.png")
    shutil.copy(PICTURE, FOLDER / "root/images/a.png")
    shutil.copy(PICTURE, FOLDER / "outside/b.png")
    os.symlink("../../outside/b.png", FOLDER / "root/inside/out.png")
    os.symlink("../outside", FOLDER / "root/away")
    os.symlink(FOLDER / "root/inside", FOLDER / "root/absolute")
    os.symlink("inside/a.png", FOLDER / "root/about.png")


def run(weir, path, directory="made/pictures", *options):
    graph = {
        "weir": 1,
        "entities": [
            {"name": "r", "operator": "png_read", "parameters": {"path": str(path)}},
            {"name": "w", "operator": "png_write", "parameters": {"directory": str(directory), "compression": 0}},
        ],
        "connections": [["r.out", "w.in"]],
    }
    (FOLDER / "graph.json").write_text(json.dumps(graph))
    options = options or ("--root", str(FOLDER / "root"))
    return process.run(weir, "run", "--backend", "host", *options, str(FOLDER / "graph.json"), cwd=FOLDER)


def outside_is_untouched():
    assert sorted(path.name for path in (FOLDER / "outside").iterdir()) == ["b.png"]
    assert not (FOLDER / "made").exists()


def xb30_what_lies_inside_is_read_and_written(weir):
    for path in ("inside/a.png", "images", "./inside/../inside/a.png", "about.png", FOLDER / "root/inside/a.png"):
        fresh()
        ended = run(weir, path)
        assert ended.returncode == 0, (path, ended)
        assert (FOLDER / "root/made/pictures/frame000000.png").is_file(), path
        outside_is_untouched()


def xb30_a_path_that_leads_out_is_refused_in_one_line(weir):
    fresh()
    for path in ("../outside/b.png", "inside/out.png", "away", "away/b.png", "absolute/a.png", FOLDER / "outside/b.png", "/"):
        ended = run(weir, path)
        assert ended.returncode == 1 and ended.stderr.count("\n") == 1, (path, ended)
        assert f"r: path '{path}': {OUTSIDE}" in ended.stderr, (path, ended)


def xb30_a_picture_of_a_folder_that_leads_out_is_refused(weir):
    fresh()
    ended = run(weir, "inside")
    assert ended.returncode == 1 and f"out.png': {OUTSIDE}" in ended.stderr, ended


def xb30_no_folder_is_made_outside(weir):
    fresh()
    for directory in ("../made", "away/made", "away", "../outside", FOLDER / "made", FOLDER / "outside", "absolute/x"):
        ended = run(weir, "images", directory)
        assert ended.returncode == 1 and f"w: directory '{directory}': {OUTSIDE}" in ended.stderr, (directory, ended)
        outside_is_untouched()


def xb30_a_root_that_is_none_is_refused(weir):
    fresh()
    for root in ("nowhere", "graph.json"):
        ended = run(weir, "images", "made", "--root", root)
        assert ended.returncode == 1 and f"root '{root}': " in ended.stderr, ended


def xb30_without_a_root_paths_are_as_they_were(weir):
    fresh()
    ended = run(weir, "root/absolute/a.png", "outside/made", "--quiet")
    assert ended.returncode == 0, ended
    assert (FOLDER / "outside/made/frame000000.png").is_file()


process.main(
    [
        xb30_what_lies_inside_is_read_and_written,
        xb30_a_path_that_leads_out_is_refused_in_one_line,
        xb30_a_picture_of_a_folder_that_leads_out_is_refused,
        xb30_no_folder_is_made_outside,
        xb30_a_root_that_is_none_is_refused,
        xb30_without_a_root_paths_are_as_they_were,
    ]
)
