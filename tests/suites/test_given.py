"""What one look tells of the user's folders before anything runs, and that no look needs torch."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.case import Case
from suites.data.given import OnGivenFolders
from tests.suites.conftest import CASES, PARAMETERS, config_of

SUITES = CASES.parent

MODEL = ("config.json", "model.safetensors")
TOKENIZER = "tokenizer.json"


def laid(root: Path, *files: str) -> str:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return str(root)


def problems_of(case: str, *, suite: str = "inference", profile: str = "standard", **given: object) -> list[str]:
    host = {key: given.pop(key) for key in ("data_dir", "weights") if key in given}
    config = config_of(case, profile, host=host, suite=suite, **given)
    return list(map(str, case_class(suite, case).host_problems(config)))


def case_class(suite: str, case: str) -> type[Case]:
    named = vars(importlib.import_module(f"suites.{suite}.test_{case}"))
    return next(each for name, each in named.items() if name.startswith("Test"))


@pytest.mark.parametrize(
    "path",
    [path for suite in PARAMETERS for path in sorted(SUITES.glob(f"{suite}/test_*.py"))],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_every_case_is_looked_at(path: Path) -> None:
    """A search is by its own layout."""
    assert issubclass(case_class(path.parent.name, path.stem.removeprefix("test_")), OnGivenFolders)


@pytest.mark.parametrize("profile", ["embedded", "standard"])
def test_a_folder_without_weights_is_told_with_what_belongs_there(tmp_path: Path, profile: str) -> None:
    wrong = laid(tmp_path / "w", "stray")
    assert problems_of("vit", profile=profile, weights=wrong) == [
        f"--weights: {wrong} holds no *.safetensors file: expected a model directory with config.json and "
        "*.safetensors, or a folder vit with these"
    ]
    chosen = laid(tmp_path / "vit", "model.safetensors")
    assert problems_of("vit", profile=profile, weights=chosen) == [
        f"--weights: {chosen} holds no config.json: expected a model directory with config.json and *.safetensors"
    ]
    assert not problems_of("vit", profile=profile, weights=laid(tmp_path / "w", *MODEL))


def test_pickles_are_told_as_such(tmp_path: Path) -> None:
    (problem,) = problems_of("vit", weights=laid(tmp_path, "pytorch_model.bin", "config.json"))
    assert "holds pickled weights only (pytorch_model.bin), which can run code when loaded; convert them" in problem


def test_weights_that_nothing_loads_may_be_anything(tmp_path: Path) -> None:
    assert not problems_of("vit", weights=laid(tmp_path, "stray"), no_validation=True)


def test_weights_of_a_model_that_the_library_does_not_know_need_no_settings(tmp_path: Path) -> None:
    weights = laid(tmp_path / "w", "model.safetensors", TOKENIZER)
    data = laid(tmp_path / "d", "train.jsonl")
    assert problems_of("glm", suite="training", weights=weights, data_dir=data) == [
        f"--data-dir: {data} holds no val.jsonl: expected both as SuperGLUE's ReCoRD has them"
    ]


def test_class_folders_are_counted(tmp_path: Path) -> None:
    laid(tmp_path / "val", "a/1.png", "b/1.png", "stray.txt")
    for root, more in ((tmp_path / "val", ""), (tmp_path, f"; did you mean {tmp_path}/val?")):
        (problem,) = problems_of("resnet50", data_dir=str(root), classes=3)
        holds = f"--data-dir: {root} holds {'1 class folder' if more else '2 class folders'}: expected 3, one per class"
        assert problem == f"{holds}, each with that class's images{more}"
    assert not problems_of("resnet50", data_dir=str(tmp_path / "val"), classes=2)


def test_a_training_needs_both_splits(tmp_path: Path) -> None:
    root = laid(tmp_path, "val/a/1.png", "val/b/1.png")
    expected = "expected train and val, each with one folder per class"
    problems = problems_of("resnet50", suite="training", data_dir=root, classes=2)
    assert problems == [f"--data-dir: {root} holds no folder train: {expected}"]
    laid(tmp_path, "train/a/1.png")
    (problem,) = problems_of("resnet50", suite="training", data_dir=root, classes=2)
    assert problem.startswith(f"--data-dir: {root}/train holds 1 class folder: expected 2")


def test_coco_needs_both_folders(tmp_path: Path) -> None:
    root = laid(tmp_path, "val2017/1.jpg")
    what = "holds no annotations/instances_val2017.json: expected both as COCO publishes them"
    assert problems_of("yolos", data_dir=root) == [f"--data-dir: {root} {what}"]
    assert not problems_of("yolos", data_dir=laid(tmp_path, "annotations/instances_val2017.json"))


def test_text_and_its_tokenizer(tmp_path: Path) -> None:
    weights, text = laid(tmp_path / "bert", *MODEL), laid(tmp_path / "text", "a.md")
    assert problems_of("bert", data_dir=text, weights=weights) == [
        f"--data-dir: {text} holds no *.txt file: expected text files in UTF-8",
        f"--weights: no tokenizer in {weights}: expected tokenizer.json or vocab.txt",
    ]
    laid(tmp_path, "text/a.txt", "bert/vocab.txt")
    assert not problems_of("bert", data_dir=text, weights=weights)
    (problem,) = problems_of("bert", data_dir=text, no_validation=True)
    assert problem == "--weights: case bert needs its tokenizer, which is there: --weights DIR"


def test_the_tokenizer_of_a_training_lies_in_either_folder(tmp_path: Path) -> None:
    data, weights = laid(tmp_path / "d", "train/a.txt", "val/a.txt"), laid(tmp_path / "w", *MODEL)
    for given, places in (({}, data), ({"weights": weights}, f"{weights} nor {data}")):
        (problem,) = problems_of("cpm", suite="training", data_dir=data, **given)
        assert problem == f"--data-dir: no tokenizer in {places}: expected tokenizer.json or vocab.txt"
    laid(tmp_path, "d/tokenizer.json")
    assert not problems_of("cpm", suite="training", data_dir=data, weights=weights)


def test_folders_that_are_missing_or_empty_are_told_by_others(tmp_path: Path) -> None:
    for place in (str(tmp_path / "none"), str(tmp_path)):
        for case, suite in (("vit", "inference"), ("bert", "inference"), ("yolos", "inference"), ("glm", "training")):
            assert not problems_of(case, suite=suite, data_dir=place, weights=place), (case, place)


def test_no_look_imports_torch() -> None:
    look = "import sys, suites.data.given; sys.exit('torch' in sys.modules)"
    assert not subprocess.run([sys.executable, "-c", look], check=False).returncode
