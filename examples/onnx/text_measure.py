"""Pages a second of text.py beside the loop of rapidocr_onnxruntime, on pages of 16 lines that it draws.

    python3 examples/onnx/text_measure.py [--pages N] [--rounds N]

Both with one thread in each network, and with one for each core that the process may use (taskset); the graph has as many workers as cores.
Rounds alternate, forward and backward. Prints the medians, and the least and most of the rounds; a ratio is of the same round.
"""

import argparse
import os
import statistics
import tempfile
import time
from typing import Any

import cv2
import numpy as np
import rapidocr_onnxruntime
import text

CORES = len(os.sched_getaffinity(0))
WORDS = "the quick brown fox reads a page of plain text and finds that each line has words of its own".split()


def draw(number: int, path: str) -> str:
    """An own choice of words for each page."""
    page = np.full((960, 720, 3), 255, np.uint8)
    random = np.random.default_rng(number)
    for i in range(16):
        words = " ".join(WORDS[k] for k in random.integers(len(WORDS), size=random.integers(2, 6)))
        cv2.putText(page, words, (40, 70 + 55 * i), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2, cv2.LINE_AA)
    cv2.imwrite(path, page)
    return path


def rate_of_graph(paths: list[str], threads: int) -> float:
    cv2.setNumThreads(1)
    pages, seconds = text.read(paths, "onnx", CORES, threads)
    assert all(page.result for page in pages)
    return len(paths) / seconds


def rate_of_loop(paths: list[str], threads: int) -> float:
    """The first page of a session is slower, and the graph's are new in each round: so are these."""
    cv2.setNumThreads(threads)
    package = rapidocr_onnxruntime.RapidOCR(intra_op_num_threads=threads, inter_op_num_threads=1)
    begin = time.perf_counter()
    for path in paths:
        package(path)
    return len(paths) / (time.perf_counter() - begin)


def spread(numbers: list[float]) -> str:
    return f"{statistics.median(numbers):.2f} ({min(numbers):.2f} to {max(numbers):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    text.package = rapidocr_onnxruntime.RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
    counts = sorted({1, CORES})
    ways = [(rate, threads) for threads in counts for rate in (rate_of_graph, rate_of_loop)]
    rates: dict[Any, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        paths = [draw(i, f"{folder}/{i}.png") for i in range(options.pages)]
        for i in range(options.rounds):
            for rate, threads in ways[:: -1 if i % 2 else 1]:
                rates[rate, threads].append(rate(paths, threads))
    for threads in counts:
        graph, loop = rates[rate_of_graph, threads], rates[rate_of_loop, threads]
        ratios = [a / b for a, b in zip(graph, loop)]
        print(f"threads {threads}: graph {spread(graph)} pages/s, loop {spread(loop)}, ratio {spread(ratios)}")


if __name__ == "__main__":
    main()
