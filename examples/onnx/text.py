"""Reads the text of pictures by the three networks of the PyPI package rapidocr_onnxruntime, as one graph.

    python3 examples/onnx/text.py PICTURE... [--workers N] [--threads N] [--check]

    pages -> detect -> crops -> classify -> turn -> recognise -> words
       '---- page -------^ '----- batch -----^ '------ batch -------^

detect finds lines of text, classify says which stand on their head, recognise reads them: entities `onnx` with the package's models.
What comes between is Python, by the package's own functions. Each batch of a network travels beside an object that says
of which lines of which page it is. While one page is read, the next ones are searched. --check: compares with the package's own loop.

Needs `pip install weir-gpu rapidocr_onnxruntime`.
"""

import argparse
import dataclasses
import os
import pathlib
import time
from typing import Any

import cv2
import numpy as np
import onnxruntime
import rapidocr_onnxruntime
import weir

os.environ.setdefault("WEIR_ONNXRUNTIME", str(pathlib.Path(onnxruntime.__file__).parent / "capi"))  # that of this Python
MODELS = pathlib.Path(rapidocr_onnxruntime.__file__).parent / "models"
# The networks: their files, and the names of their outputs; the input of each is x.
DETECT = "ch_PP-OCRv4_det_infer.onnx", "sigmoid_0_tmp_0"
CLASSIFY = "ch_ppocr_mobile_v2.0_cls_infer.onnx", "save_infer_model_scale_0_tmp_1"
RECOGNISE = "ch_PP-OCRv4_rec_infer.onnx", "softmax_11_tmp_0"
BATCHES = 64  # of a page, at most

package: Any = None  # a RapidOCR, set by main: its parameters, and what it does before and after the networks


@dataclasses.dataclass
class Page:
    path: str
    image: Any = None
    shape: tuple[int, int] = (0, 0)
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    boxes: Any = None
    lines: list[Any] = dataclasses.field(default_factory=list)  # cut out
    words: list[Any] = dataclasses.field(default_factory=list)
    result: Any = None  # [[box, text, score], ...]; None: there is no text


@dataclasses.dataclass
class Batch:
    page: Page
    which: list[int]  # of its lines
    last: bool
    ratios: list[float]


def batches(page: Page, size: int) -> list[Batch]:
    """Lines of like length go together."""
    ratios = [line.shape[1] / float(line.shape[0]) for line in page.lines]
    order = [int(i) for i in np.argsort(np.array(ratios))]
    parts = [order[at : at + size] for at in range(0, len(order), size)]
    return [Batch(page, part, part is parts[-1], [ratios[i] for i in part]) for part in parts]


class Pages:
    outputs = ["out", "page"]

    def __init__(self, pages: list[Page]):
        self.pages = pages
        self.began = 0.0

    def compute(self, ctx: weir.Context) -> None:
        self.began = self.began or time.perf_counter()
        page = self.pages[ctx.tick]
        image = package.load_img(page.path)
        page.shape = image.shape[:2]
        image, ratio_h, ratio_w = package.preprocess(image)
        page.record = {"preprocess": {"ratio_h": ratio_h, "ratio_w": ratio_w}}
        page.image, page.record = package.maybe_add_letterbox(image, page.record)
        prepare = package.text_det.get_preprocess(max(page.image.shape[:2]))
        ctx.emit("out", np.ascontiguousarray(prepare(page.image)), give=True)
        ctx.emit("page", weir.Object(page))
        if ctx.tick + 1 == len(self.pages):
            ctx.finish()


class Crops:
    """The lines that the network found, cut out, in batches for the next one."""

    inputs = [weir.Port("in", dtype="float32", place="host"), "of"]
    outputs = [weir.Port("out", max_emits=BATCHES), weir.Port("batch", max_emits=BATCHES)]

    def compute(self, ctx: weir.Context) -> None:
        page: Page = ctx.receive("of").object
        detector, shape = package.text_det, page.image.shape[:2]
        boxes, _ = detector.postprocess_op(np.asarray(ctx.receive("in")), shape)
        boxes = detector.filter_tag_det_res(boxes, shape)
        if len(boxes) < 1:
            return
        page.boxes = package.sorted_boxes(boxes)
        page.lines = package.get_crop_img_list(page.image, page.boxes)
        page.words = [("", 0.0)] * len(page.lines)
        for batch in batches(page, package.text_cls.cls_batch_num):
            lines = [package.text_cls.resize_norm_img(page.lines[i]) for i in batch.which]
            ctx.emit("out", np.stack(lines).astype(np.float32), give=True)
            ctx.emit("batch", weir.Object(batch))


class Turn:
    """Turns the lines that stand on their head, and makes batches for the network that reads, each as wide as its longest line."""

    inputs = [weir.Port("in", dtype="float32", place="host"), "of"]
    outputs = [weir.Port("out", max_emits=BATCHES), weir.Port("batch", max_emits=BATCHES)]

    def compute(self, ctx: weir.Context) -> None:
        batch: Batch = ctx.receive("of").object
        page, reader = batch.page, package.text_rec
        for i, (label, score) in zip(batch.which, package.text_cls.postprocess_op(np.asarray(ctx.receive("in")))):
            if "180" in label and score > package.text_cls.cls_thresh:
                page.lines[i] = cv2.rotate(page.lines[i], cv2.ROTATE_180)
        if not batch.last:
            return
        for batch in batches(page, reader.rec_batch_num):
            widest = self.widest(batch)
            lines = [reader.resize_norm_img(page.lines[i], widest) for i in batch.which]
            ctx.emit("out", np.stack(lines).astype(np.float32), give=True)
            ctx.emit("batch", weir.Object(batch))

    @staticmethod
    def widest(batch: Batch) -> float:
        _, height, width = package.text_rec.rec_image_shape[:3]
        return max(width / height, *batch.ratios)


class Words:
    inputs = [weir.Port("in", dtype="float32", place="host"), "of"]

    def compute(self, ctx: weir.Context) -> None:
        batch: Batch = ctx.receive("of").object
        page, widest = batch.page, Turn.widest(batch)
        scores = np.asarray(ctx.receive("in"))
        words = package.text_rec.postprocess_op(scores, False, wh_ratio_list=batch.ratios, max_wh_ratio=widest)
        for i, word in zip(batch.which, words):
            page.words[i] = word
        if batch.last:
            boxes = package._get_origin_points(page.boxes, page.record, *page.shape)
            page.result, _ = package.get_final_res(boxes, None, page.words, 0, 0, 0)
            page.image, page.lines = None, []


def read(paths: list[str], plugin: str, workers: int, threads: int) -> tuple[list[Page], float]:
    """The pages that were read, and how many seconds that took from the first one on."""
    pages = [Page(path) for path in paths]
    graph = weir.Graph(plugins=[plugin])
    source, crops, turn, words = (graph.add(operator) for operator in (Pages(pages), Crops(), Turn(), Words()))
    for name, (model, output), before, beside, after, capacity in (
        ("detect", DETECT, source, "page", crops, 4),
        ("classify", CLASSIFY, crops, "batch", turn, 2 * BATCHES),
        ("recognise", RECOGNISE, turn, "batch", words, 2 * BATCHES),
    ):
        # Its shapes are known after a run alone, which a worker waits for: instances read several lines at once.
        instances = workers if name == "recognise" else 1
        network = graph.add("onnx", name=name, model=str(MODELS / model), threads=threads, instances=instances)
        graph.connect(before["out"], network["x"], capacity=capacity)
        graph.connect(network[output], after["in"], capacity=capacity)
        graph.connect(before[beside], after["of"], capacity=capacity)
    with graph:
        graph.run(backend="host", workers=workers)
        return pages, time.perf_counter() - source.instance.began


def differences(pages: list[Page]) -> int:
    """Prints in which pages the package's own loop reads something else."""
    count = 0
    for page in pages:
        own, _ = package(page.path)
        if own != page.result:
            count += 1
            print(f"{page.path}: the package reads {own}")
    return count


def main() -> int:
    global package
    parser = argparse.ArgumentParser()
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--plugin", default="onnx", help="its name or file")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0, help="of each network; 0: one for each core")
    parser.add_argument("--check", action="store_true", help="read each picture by the package's own loop, too, and compare")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    package = rapidocr_onnxruntime.RapidOCR(intra_op_num_threads=options.threads or -1, inter_op_num_threads=1)
    pages, seconds = read(options.pictures, options.plugin, options.workers, options.threads)
    for page in pages:
        print(f"{page.path}: " + " | ".join(text for _, text, _ in page.result or []))
    print(f"{len(pages)} pages, {len(pages) / seconds:.2f} a second")
    if not options.check:
        return 0
    begin = time.perf_counter()
    count = differences(pages)
    print(f"{len(pages) / (time.perf_counter() - begin):.2f} a second by the package's own loop; {count} pages differ")
    return 1 if count else 0


if __name__ == "__main__":
    raise SystemExit(main())
