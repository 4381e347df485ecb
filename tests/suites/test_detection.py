"""Mean average precision: held to COCO's own implementation. The loss of a detector."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
from typing import Any

import faster_coco_eval
import pytest
import torch

from suites.detection import MeanAveragePrecision, matching_loss
from suites.inference import test_yolos

CLASSES = 4


def logits_of(classes: torch.Tensor, sure: float = 8.0) -> torch.Tensor:
    return torch.nn.functional.one_hot(classes, CLASSES + 1).float() * sure


def example(images: int, seed: int = 0) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Objects, some of them crowds, and six queries near some of them, in a random order of sureness."""
    chance = torch.Generator().manual_seed(seed)
    targets = torch.zeros(images, 5, 6)
    targets[..., 0] = torch.randint(-1, CLASSES, (images, 5), generator=chance)
    targets[..., 1:3] = torch.rand(images, 5, 2, generator=chance) * 0.6 + 0.2
    targets[..., 3:5] = torch.rand(images, 5, 2, generator=chance) * 0.3 + 0.05
    targets[..., 5] = (torch.rand(images, 5, generator=chance) < 0.15).float()
    targets[targets[..., 0] == -1] = torch.tensor([-1.0, 0, 0, 0, 0, 0])
    near = torch.cat([targets[:, :, 1:5], torch.rand(images, 1, 4, generator=chance) * 0.5 + 0.1], 1)
    boxes = (near * (1 + 0.04 * torch.randn(near.shape, generator=chance))).clamp(0.01, 0.99)
    found = torch.cat([targets[:, :, 0].clamp(min=0).long(), torch.zeros(images, 1, dtype=torch.long)], 1)
    wrong = torch.rand(found.shape, generator=chance) < 0.2
    found[wrong] = torch.randint(0, CLASSES + 1, (int(wrong.sum()),), generator=chance)
    sure = torch.rand(images, 6, 1, generator=chance) * 6
    return [logits_of(found, 1.0) * sure, boxes], targets


def by_pycocotools(outputs: list[torch.Tensor], targets: torch.Tensor) -> dict[str, float]:
    """The same by the reference implementation, in pixels of an image of 640 x 480 and with all of its settings."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def corner(box: list[float]) -> list[float]:
        x, y, width, height = box
        return [(x - width / 2) * 640, (y - height / 2) * 480, width * 640, height * 480]

    rows = [(image, *row) for image, many in enumerate(targets.tolist()) for row in many if row[0] >= 0]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": image} for image in range(len(targets))],
            "categories": [{"id": category} for category in range(CLASSES)],
            "annotations": [
                {"id": number, "image_id": row[0], "category_id": int(row[1]), "bbox": corner(row[2:6])}
                | {"iscrowd": int(row[6]), "area": row[4] * 640 * row[5] * 480}
                for number, row in enumerate(rows, 1)
            ],
        }
        truth.createIndex()
        scores, classes = outputs[0].softmax(-1)[..., :-1].max(-1)
        detections = truth.loadRes(
            [
                {"image_id": image, "category_id": int(classes[image, query]), "score": float(scores[image, query])}
                | {"bbox": corner(outputs[1][image, query].tolist())}
                for image, query in itertools.product(range(len(targets)), range(outputs[1].shape[1]))
            ]
        )
        evaluation = COCOeval(truth, detections, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return dict(zip(("map", "map_50", "map_75"), map(float, evaluation.stats), strict=False))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_coco_computes(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    outputs, targets = example(30, seed)
    metric = MeanAveragePrecision()
    for start in range(0, 30, 8):
        metric.update([output[start : start + 8] for output in outputs], targets[start : start + 8])
    found = metric.compute()
    assert found == pytest.approx(by_pycocotools(outputs, targets), abs=1e-6)
    assert 0.1 < found["map"] < found["map_50"] < 0.99
    assert capsys.readouterr() == ("", "")


def test_passes_of_a_round_never_become_dicts_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dict is dozens of times as large as a row: there are never more than one class's."""
    given = []

    class Noted(faster_coco_eval.COCO):
        def loadRes(self, found: list[dict[str, Any]]) -> Any:
            given.append({each["category_id"] for each in found})
            return super().loadRes(found)

    outputs, targets = example(10)
    once, often = MeanAveragePrecision(), MeanAveragePrecision()
    once.update(outputs, targets)
    for _ in range(20):
        often.update(outputs, targets)
    expected = once.compute()
    monkeypatch.setattr(faster_coco_eval, "COCO", Noted)
    assert often.compute() == pytest.approx(expected, abs=0.01)
    assert given == [{0}, {1}, {2}, {3}]


def test_one_of_two_is_found_and_one_is_invented() -> None:
    """By hand: class 0's object is hit, class 1's is missed; a surer detection of class 0 hits nothing."""
    targets = torch.tensor([[[0, 0.3, 0.3, 0.2, 0.2, 0], [1, 0.7, 0.7, 0.2, 0.2, 0]]])
    boxes = torch.tensor([[[0.3, 0.3, 0.2, 0.2], [0.8, 0.2, 0.1, 0.1], [0.1, 0.9, 0.1, 0.1]]])
    logits = torch.stack([logits_of(torch.tensor([0, 0, CLASSES]))]) * torch.tensor([0.5, 1.0, 1.0]).view(1, 3, 1)
    metric = MeanAveragePrecision()
    metric.update([logits, boxes], targets)
    # precision 1/2 at every recall of class 0, 0 of class 1
    assert metric.compute() == pytest.approx({"map": 0.25, "map_50": 0.25, "map_75": 0.25})


def test_half_precision_is_scored_too() -> None:
    outputs, targets = example(4)
    metric = MeanAveragePrecision()
    metric.update([output.to(torch.bfloat16) for output in outputs], targets)
    assert 0 < metric.compute()["map_50"] <= 1


def test_what_is_no_number_is_no_detection() -> None:
    outputs, targets = example(4)
    outputs[0][1], outputs[1][2] = math.nan, math.inf
    lacking, nan = MeanAveragePrecision(), MeanAveragePrecision()
    nan.update(outputs, targets)
    outputs[0][1] = outputs[0][2] = logits_of(torch.full((6,), CLASSES), 100.0)
    outputs[1][2] = 0.001
    lacking.update(outputs, targets)
    assert nan.compute() == pytest.approx(lacking.compute(), abs=0.02)
    nothing = MeanAveragePrecision()
    nothing.update([torch.full_like(outputs[0], math.nan), outputs[1]], targets)
    assert set(nothing.compute().values()) == {0.0}


def test_without_an_object_there_is_no_number() -> None:
    outputs, targets = example(2)
    targets[..., 0] = -1
    metric = MeanAveragePrecision()
    metric.update(outputs, targets)
    assert all(map(math.isnan, metric.compute().values()))


def test_the_loss_is_least_where_each_object_has_its_query_in_whatever_order() -> None:
    targets = torch.tensor([[[2, 0.3, 0.3, 0.2, 0.2, 0], [-1, 0, 0, 0, 0, 0]], [[-1.0, 0, 0, 0, 0, 0]] * 2])
    boxes = torch.tensor([[0.3, 0.3, 0.2, 0.2], [0.8, 0.2, 0.1, 0.1]]).expand(2, 2, 4)
    right = logits_of(torch.tensor([[2, CLASSES], [CLASSES, CLASSES]]))
    least = matching_loss([right, boxes], targets)
    assert least == pytest.approx(matching_loss([right.flip(1), boxes.flip(1)], targets))
    assert least < 0.01 < matching_loss([right.flip(1), boxes], targets)
    assert matching_loss([right, boxes * 0.9], targets) > least
    crowd = targets.clone()
    crowd[0, 1] = torch.tensor([1, 0.5, 0.5, 0.9, 0.9, 1])
    assert matching_loss([right, boxes], crowd) == pytest.approx(least)
    assert test_yolos.TestYolos().loss_weight(crowd) == test_yolos.TestYolos().loss_weight(targets) == 1
