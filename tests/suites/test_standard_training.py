"""The standard profiles' way from files to a trained step, with small models."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.training.feeding.loading import RankLoader
from tests.suites.conftest import config_of
from tests.suites.test_training_cases import CLASSES

SIZES: dict[str, dict[str, Any]] = {
    "resnet50": {"classes": 2, "image_size": 32, "resize": 36},
    "bert": {
        "max_seq_length": 32,
        "model": {
            "vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 16, "max_position_embeddings": 32,
        },
    },
    "glm": {
        "max_seq_length": 64,
        "model": {
            "vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "max_position_embeddings": 64,
        },
    },
    "cpm": {
        "max_seq_length": 32,
        "model": {
            "vocab_size": 100, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2,
            "bos_token_id": None, "eos_token_id": None,
        },
    },
}  # fmt: skip


PAGE = (Path(__file__).parents[2] / "docs" / "standard.md").read_text(encoding="utf-8")
TREES = {
    name: tree.split()
    for name, tree in re.findall(r"^### Training `(\w+)`\n.*?^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
}
"""What lies in a data directory, as the page prints it for each case."""


def test_the_page_has_a_section_for_each_case() -> None:
    assert TREES.keys() == CLASSES.keys()


@pytest.fixture
def data(name: str, images: Path, text: Path, tokenizer_files: Path, tmp_path: Path) -> Path:
    """The case's data directory: small files of the formats that the page's names stand for, where it says."""
    root = tmp_path / "data"
    passage = {"text": "the old baker sells bread", "entities": [{"start": 4, "end": 12}, {"start": 20, "end": 24}]}
    asked = {"query": "the @placeholder sells", "answers": [{"text": "old baker"}]}
    for path in map(root.joinpath, TREES[name]):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl":
            path.write_text(json.dumps({"passage": passage, "qas": [asked] * 5}))
        elif path.suffix == ".json":
            shutil.copy(tokenizer_files / path.name, path)
        elif path.suffix == ".txt":
            path.write_text("\n".join(each.read_text() for each in sorted(text.iterdir())))
        else:
            for number in range(3):
                shutil.copy(images / "n01" / "a.JPEG", path.with_stem(f"{path.stem}{number}"))
    return root


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", CLASSES)
def test_files_are_trained_on_and_evaluated(name: str, workers: int, data: Path) -> None:
    case = CLASSES[name]()
    config = config_of(name, "standard", {"data_dir": str(data)}, suite="training", **SIZES[name])
    torch.manual_seed(0)
    model = case.create_model(config).train()
    optimizer = case.create_optimizer(model, config)
    for inputs, targets in RankLoader(case.build_dataset(config, "train"), workers).load([[0, 3], [1, 2, 4]]):
        loss = case.train_step(model, inputs, targets)
        assert torch.isfinite(loss)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for inputs, targets in RankLoader(case.build_dataset(config, "validation"), workers).load([[0, 1], [4]]):
            output = model(*inputs)
            score, count = case.evaluator(list(output) if isinstance(output, tuple) else [output], targets)
            assert abs(score) <= count + 1e-6 and count > 0  # a cosine may be below 0
