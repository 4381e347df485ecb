"""The standard text: what is read, how it is hidden, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from harness.errors import StepError
from suites.data.loading import BatchLoader
from suites.data.text import IGNORED, text_loader
from tests.suites.conftest import config_of


def loader_of(root: Path | None, weights: Path | None, **values: Any) -> BatchLoader:
    host = {"data_dir": root and str(root), "weights": weights and str(weights)}
    sizes = {"max_seq_length": 32, "num_workers": 0, "batch_size": 2}
    return text_loader(config_of("bert", "standard", host=host, **sizes | values), "validation")


def test_a_share_of_each_lines_tokens_is_hidden(text: Path, tokenizer_files: Path) -> None:
    batches = list(loader_of(text, tokenizer_files))
    assert [len(targets) for _, targets in batches] == [2, 2, 1]
    for [tokens, attention], targets in batches:
        assert tokens.shape == attention.shape == targets.shape
        assert tokens.shape[1] == 32
        hidden = (targets != IGNORED).sum(1)
        words = attention.sum(1) - 2
        assert torch.equal(hidden, (0.15 * words).round().clamp(min=1).long())
        assert (attention[targets != IGNORED] == 1).all()
        assert tokens[targets != IGNORED].unique().numel() == 1


def test_what_is_hidden_follows_from_seed_and_line_alone(text: Path, tokenizer_files: Path) -> None:
    def targets(**values: Any) -> torch.Tensor:
        return torch.cat([targets for _, targets in loader_of(text, tokenizer_files, **values)])

    assert torch.equal(targets(), targets(num_workers=2, batch_size=3))
    assert not torch.equal(targets(), targets(seed=1))


def test_identity_is_of_the_files(text: Path, tokenizer_files: Path) -> None:
    identity = loader_of(text, tokenizer_files).dataset.identity
    assert identity.items == 5
    (text / "b.txt").write_text("the end\n")
    assert loader_of(text, tokenizer_files).dataset.identity.sha256 != identity.sha256


def test_no_text_files_are_refused(tmp_path: Path, tokenizer_files: Path) -> None:
    with pytest.raises(StepError, match=r"holds no \.txt files"):
        loader_of(tmp_path, tokenizer_files)


def test_missing_directory_is_refused(tmp_path: Path, tokenizer_files: Path) -> None:
    with pytest.raises(StepError, match="nowhere cannot be read"):
        loader_of(tmp_path / "nowhere", tokenizer_files)
    with pytest.raises(StepError, match="needs --data-dir"):
        loader_of(None, tokenizer_files)


def test_empty_file_is_named(text: Path, tokenizer_files: Path) -> None:
    (text / "c.txt").write_text("\n \n")
    with pytest.raises(StepError, match=r"c\.txt holds no text"):
        loader_of(text, tokenizer_files)


def test_file_that_is_not_utf8_is_named(text: Path, tokenizer_files: Path) -> None:
    (text / "c.txt").write_bytes("the café\n".encode("latin-1"))
    with pytest.raises(StepError, match=r"c\.txt is not UTF-8: byte 7"):
        loader_of(text, tokenizer_files)


def test_missing_or_damaged_tokenizer_is_refused(text: Path, tmp_path: Path, tokenizer_files: Path) -> None:
    with pytest.raises(StepError, match="needs --weights: the tokenizer lies there"):
        loader_of(text, None)
    with pytest.raises(StepError, match="holds no tokenizer: no tokenizer.json"):
        loader_of(text, tmp_path)
    with pytest.raises(StepError, match=r"has \d+ tokens, the case's model knows 9"):
        loader_of(text, tokenizer_files, model={"vocab_size": 9})
    (tokenizer_files / "tokenizer.json").write_text("{")
    with pytest.raises(StepError, match="cannot be loaded"):
        loader_of(text, tokenizer_files)
