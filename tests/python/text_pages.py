"""Draws pages, has examples/onnx/text.py and the loop of rapidocr_onnxruntime read them, and prints both results as JSON.

text_pages.py FOLDER: that of the pages. For the python3 of scripts/install-deps text, with the package weir in its path.
"""

import json
import pathlib
import sys

import cv2
import numpy as np
import rapidocr_onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/onnx"))
import text  # noqa: E402

# Eight lines are two batches of each network after the first.
LINES = ["Invoice 2047", "Monday", "one page of text", "Window", "three networks", "The quick brown fox", "Total 118", "Paper"]


def draw(lines):
    page = np.full((60 + 55 * len(lines), 460, 3), 255, np.uint8)
    for i, line in enumerate(lines):
        cv2.putText(page, line, (30, 60 + 55 * i), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2, cv2.LINE_AA)
    return page


def main(folder):
    pages = {"upright": draw(LINES), "blank": draw([])[:, :200], "turned": cv2.rotate(draw(LINES[:3]), cv2.ROTATE_180), "last": draw(LINES[5:6])}
    paths = {name: f"{folder}/{name}.png" for name in pages}
    for name, page in pages.items():
        cv2.imwrite(paths[name], page)
    cv2.setNumThreads(1)
    text.package = rapidocr_onnxruntime.RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
    graph, _ = text.read(list(paths.values()), "onnx", workers=2, threads=1)
    loop = rapidocr_onnxruntime.RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
    print(json.dumps({name: {"graph": page.result, "loop": loop(paths[name])[0]} for name, page in zip(paths, graph)}))


main(*sys.argv[1:])
