"""Cases' configurations, and small folders of images, text and weights made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from proofmark.inference.case import InferenceParameters
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import EffectiveConfig, resolve
from proofmark.training.case import TrainingParameters

CASES = Path(__file__).parents[2] / "suites" / "inference"
PARAMETERS = {"inference": InferenceParameters, "training": TrainingParameters}


def config_of(
    case: str, profile: str = "embedded", host: dict[str, Any] | None = None, suite: str = "inference", **values: Any
) -> EffectiveConfig:
    """A case's configuration; `values` replace parameters or configurations, `host` host settings."""
    cases = CASES.with_name(suite)
    file = load_case_file(cases / f"{case}.yaml", suite, profile, cases / "contract.yaml", PARAMETERS[suite])
    plain = resolve(file, "cpu", [], default_compiler="onnxruntime").config.as_dict()
    for key, value in values.items():
        plain["configurations" if key in plain["configurations"] else "parameters"][key] = value
    plain["host"] = plain["host"] | (host or {})
    return EffectiveConfig.from_dict(plain)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three classes in ImageNet's layout, seven images of several formats and modes."""
    root = tmp_path / "val"
    noise = np.random.default_rng(0)
    classes = {
        "n01": ["a.JPEG", "b.jpg", "c.png"],
        "n02": ["a.JPEG", "palette.png"],
        "n03": ["grey.jpg", "cmyk.jpg"],
    }
    for label, names in classes.items():
        (root / label).mkdir(parents=True)
        for name in names:
            image = Image.fromarray(noise.integers(0, 256, (40, 56, 3), dtype=np.uint8))
            mode = {"palette.png": "P", "grey.jpg": "L", "cmyk.jpg": "CMYK"}.get(name, "RGB")
            image.convert(mode).save(root / label / name)
    return root


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Two files, five lines of text, one of them long."""
    root = tmp_path / "text"
    root.mkdir()
    (root / "a.txt").write_text("the old baker sells bread\n\nthe young sailor paints boats\n", encoding="utf-8")
    (root / "b.txt").write_text("the nurse\n" + "the old baker " * 30 + "\nthe end\n", encoding="utf-8")
    return root


@pytest.fixture
def tokenizer_files(tmp_path: Path) -> Path:
    """A weights directory that so far holds a small WordPiece tokenizer."""
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertTokenizerFast  # type: ignore[attr-defined]

    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(["the old young baker sailor nurse sells paints bread boats end"] * 3, vocab_size=80)
    directory = tmp_path / "weights"
    BertTokenizerFast(tokenizer_object=trained._tokenizer).save_pretrained(directory)
    return directory
