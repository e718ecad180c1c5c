"""The page of weir report in headless Chromium: no script error, nothing wider than the window, no two boxes of the
graph on each other, text that can be read, in light and dark, from 320 to 2560 pixels and from 1 to 1,000 entities;
and that these checks can fail. Without Chromium it is skipped, unless WEIR_REQUIRE_CHROMIUM is set.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import process
import simulated

HERE = pathlib.Path(__file__).parent
FOLDER = pathlib.Path(sys.argv[2]).resolve()
WIDTHS = (320, 800, 1600, 2560)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOOK = "<script>window.errors = []; addEventListener('error', event => errors.push(event.message));</script>"


def page(weir, name, world, trace=True, change=lambda data: data):
    """Writes a page with the checks at its end; returns what they want to see."""
    data = change(world.run())
    (FOLDER / "run.json").write_text(json.dumps(data))
    (FOLDER / "trace.json").write_text(json.dumps(world.chrome()))
    files = [str(FOLDER / "run.json")] + ([str(FOLDER / "trace.json")] if trace else [])
    ended = process.run(weir, "report", *files, "-o", str(FOLDER / f"{name}.html"))
    assert ended.returncode == 0, ended.stderr
    found = json.loads(process.run(weir, "report", "--json", files[0]).stdout)["findings"]
    count = len(data["entities"])
    return {"page": name, "entities": count, "findings": len(found), "frames": trace, "collapsed": count > 120}


def with_checks(wanted, of=None, was="", now=""):
    """Makes the page that is looked at: with the checks, and with one thing changed."""
    text = (FOLDER / f"{of or wanted['page']}.html").read_text()
    assert was in text, was
    text = text.replace(was, now) if was else text
    script = f"<script>window.wanted = {json.dumps(wanted)};</script><script>{(HERE / 'report_page.js').read_text()}</script>"
    text = text.replace("<head>", "<head>" + HOOK, 1).replace("</body>", script + "</body>", 1)
    (FOLDER / f"{wanted['page']}.checked.html").write_text(text)


def chromium(*arguments):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={FOLDER / 'profile'}", *arguments]
    return subprocess.run([CHROMIUM, *options], capture_output=True, text=True, timeout=100)


def look(names, widths, dark):
    """Opens every page at every width; returns what each said."""
    frames = "".join(f'<iframe src="{name}.checked.html" width="{width}" height="900"></iframe>' for name in names for width in widths)
    listen = "<pre id=out></pre><script>const said = []; addEventListener('message', event => { said.push(event.data); out.textContent = JSON.stringify(said); });</script>"
    (FOLDER / "all.html").write_text(f"<!doctype html><meta charset=utf-8>{listen}{frames}")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    ended = chromium(*scheme, "--virtual-time-budget=20000", "--dump-dom", f"file://{FOLDER}/all.html")
    found = re.search(r'<pre id="out">(.*?)</pre>', ended.stdout, re.S)
    said = json.loads(html.unescape(found.group(1))) if found and found.group(1) else []
    assert len(said) == len(names) * len(widths), f"{len(said)} of {len(names) * len(widths)} pages ended their checks: {ended.stderr[-600:]}"
    assert all(each["dark"] == dark for each in said), "the colour scheme was not taken"
    return said


def renamed(data):
    text = json.dumps(data).replace("stage0", "</script><img src=x onerror=hacked=1><b>name")
    return json.loads(text)


def without_paths(data):
    return {**data, "paths": [], "queues": [], "pools": [], "workers": [], "signals": [], "notes": ["a note"]}


def pages(weir):
    return [
        page(weir, "one", simulated.wide(5, 1)[0]),
        page(weir, "chain", simulated.planted(0, "workers")[0]),
        page(weir, "pool", simulated.planted(1, "pool")[0]),
        page(weir, "markup", simulated.planted(2, "drops")[0], trace=False, change=renamed),
        page(weir, "bare", simulated.planted(3, "device")[0], trace=False, change=without_paths),
        page(weir, "wide", simulated.wide(3, 40)[0]),
        page(weir, "thousand", simulated.wide(5, 1000)[0]),
    ]


def pages_are_in_order(weir):
    wanted = pages(weir)
    for each in wanted:
        with_checks(each)
    small = [each["page"] for each in wanted if each["page"] != "thousand"]
    said = [each for dark in (False, True) for each in look(small, WIDTHS, dark)] + look(["thousand"], (320, 1600), False)
    assert not [each for each in said if each["faults"]], "\n".join(map(str, (each for each in said if each["faults"])))


BROKEN = [
    ("--muted: #525d69", "--muted: #b5bdc5", "contrast"),
    ("+ apart;\n\t\t\tconst forward", "- 60;\n\t\t\tconst forward", "boxes overlap"),
    ('document.getElementById("bottom").append(', "undefined(); (", "is not a function"),
    ("header, main, footer {", "main { min-width: 1000px; } header, main, footer {", "wide"),
    ("matches(text, name(row))", "true", "the search does not filter"),
    ("Math.max(2, count", "Math.max(0, count", "a bar cannot be seen"),
    ("font-size: 0.83rem; overflow-wrap: anywhere;", "font-size: 0.83rem; overflow: hidden; white-space: nowrap;", "a wait is cut"),
    ('event.key === "Enter"', 'event.key === "F9"', "Enter on a box"),
]


def checks_can_fail(weir):
    wanted = page(weir, "sound", simulated.wide(3, 40)[0])
    names = [f"broken{i}" for i in range(len(BROKEN))]
    for name, (was, now, _) in zip(names, BROKEN):
        with_checks({**wanted, "page": name}, "sound", was, now)
    said = {each["page"]: str(each["faults"]) for each in look(names, (800,), False)}
    for name, (_, _, fault) in zip(names, BROKEN):
        assert fault in said[name], (fault, said[name])


if not CHROMIUM:
    print("skipped: no chromium (scripts/install-deps browser)")
    sys.exit(1 if os.environ.get("WEIR_REQUIRE_CHROMIUM") else 77)
sys.argv = sys.argv[:2] + sys.argv[3:]
FOLDER.mkdir(exist_ok=True)
process.main([pages_are_in_order, checks_can_fail])
