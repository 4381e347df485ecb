"""Finding objects in images: how a detector is scored, and what it is trained by.

A detector answers logits, (batch, queries, classes + 1), the last class being none, and boxes, (batch, queries, 4).
Targets are (batch, objects, 6): class, box, and 1 where it is a crowd, or 0; as many rows as the fullest image has
objects, class -1 where an image has fewer. A box is its centre and its size (x, y, width, height), as shares of the
image's width and height.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = 6
"""Of an object: class, box, crowd."""

NOTHING = -1
"""The class of a row without an object."""

MOST = 100
"""Detections of a class in an image that count, those of the highest scores (COCO's figure)."""


class MeanAveragePrecision:
    """COCO's mean average precision, over all images that it is shown.

    Each query is a detection of its likeliest class. `map` is the mean over classes and over overlaps of 0.5, 0.55 to
    0.95, `map_50` and `map_75` are those at one overlap. Objects of all sizes count; crowds are neither found nor
    missed.
    """

    def __init__(self) -> None:
        self._images = 0
        self._objects: list[np.ndarray] = []
        self._found: list[np.ndarray] = []

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Take a batch's detections and objects."""
        logits, boxes = (output.detach().float() for output in outputs)
        scores, classes = logits.softmax(-1)[..., :-1].max(-1)
        found = torch.cat([classes.unsqueeze(-1), boxes, scores.unsqueeze(-1)], -1)
        self._found.append(self._numbered(found, found.isfinite().all(-1)))
        self._objects.append(self._numbered(targets.float(), targets[..., 0] != NOTHING))
        self._images += len(targets)

    def compute(self) -> Mapping[str, float]:
        """The three values; no number where there was no object."""
        objects, found = _concatenated(self._objects), _concatenated(self._found)
        classes = np.unique(objects[:, 1])
        each = [_precision(objects[objects[:, 1] == one], found[found[:, 1] == one]) for one in classes]
        precision = np.concatenate(each, 2) if each else np.full((10, 1, 1), -1.0)
        return {"map": _mean(precision), "map_50": _mean(precision[0]), "map_75": _mean(precision[5])}

    def _numbered(self, rows: torch.Tensor, kept: torch.Tensor) -> np.ndarray:
        """Rows of a batch that are kept, the number of their image before each."""
        numbers = torch.arange(self._images, self._images + len(rows)).view(-1, 1, 1).expand(-1, rows.shape[1], 1)
        return torch.cat([numbers.double(), rows.double()], -1)[kept].numpy()


def _precision(objects: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Of one class, (overlaps, recalls, 1, 1, 1); -1 where all of its objects are crowds.

    One class after the other: the library wants a dict of each detection, dozens of times as large as its row.
    """
    from faster_coco_eval import COCO, COCOeval_faster

    truth = COCO(
        {
            "images": [{"id": int(image)} for image in np.union1d(objects[:, 0], found[:, 0])],
            "categories": [{"id": int(objects[0, 1])}],
            "annotations": [
                {**_annotation(row), "id": number, "area": row[4] * row[5], "iscrowd": int(row[6])}
                for number, row in enumerate(objects.tolist(), 1)
            ],
        }
    )
    detections = truth.loadRes([{**_annotation(row), "score": row[6]} for row in found.tolist()])
    evaluation = COCOeval_faster(truth, detections, "bbox")
    evaluation.print_function = _silent
    evaluation.params.maxDets, evaluation.params.areaRng, evaluation.params.areaRngLbl = [MOST], [[0, 1e10]], ["all"]
    evaluation.evaluate()
    evaluation.accumulate()
    return np.asarray(evaluation.eval["precision"])


def matching_loss(outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
    """DETR's loss: each object is matched with one query (Carion et al. 2020, section 3.1), as YOLOS is trained.

    Crowds are left out, as they are there.
    """
    from transformers import YolosConfig
    from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

    logits, boxes = outputs
    objects = [rows[(rows[:, 0] != NOTHING) & (rows[:, 5] == 0)] for rows in targets]
    labels = [{"class_labels": rows[:, 0].long(), "boxes": rows[:, 1:5]} for rows in objects]
    make: Any = YolosConfig  # its annotations lack what it takes from its base
    function: Any = ForObjectDetectionLoss  # not annotated
    settings = make(num_labels=logits.shape[-1] - 1)
    loss: torch.Tensor = function(logits, labels, logits.device, boxes, settings)[0]
    return loss


def _annotation(row: list[float]) -> dict[str, Any]:
    """COCO's form: the box by its upper left corner."""
    image, category, x, y, width, height = row[:6]
    box = [x - width / 2, y - height / 2, width, height]
    return {"image_id": int(image), "category_id": int(category), "bbox": box}


def _concatenated(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty((0, COLUMNS + 1))


def _mean(precision: np.ndarray) -> float:
    known = precision[precision > -1]
    return float(known.mean()) if known.size else float("nan")


def _silent(*_: object) -> None:
    pass
