"""The standard text: what is read, how it is hidden, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig
from suites.data.loading import BatchDataset, BatchLoader
from suites.data.text.masked import IGNORED, TextFolder, load_tokenizer, text_dataset, text_loader
from tests.suites.conftest import config_of


def loader_of(root: Path | None, weights: Path | None, **values: Any) -> BatchLoader:
    host = {"data_dir": root and str(root), "weights": weights and str(weights)}
    lines = {"continuous": False, "hidden_share": 0.15}
    sizes = {"max_seq_length": 32, "num_workers": 0, "batch_size": 2} | lines
    return text_loader(config_of("bert", "standard", host=host, **sizes | values), "validation")


def loader_config(root: Path, weights: Path) -> EffectiveConfig:
    return config_of("bert", "standard", host={"data_dir": str(root), "weights": str(weights)})


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


def test_continuous_text_has_every_token_once_and_only_its_last_item_is_padded(
    text: Path, tokenizer_files: Path
) -> None:
    loader = loader_of(text, tokenizer_files, continuous=True, hidden_share=0.1)
    tokenizer = load_tokenizer(loader_config(text, tokenizer_files))
    batches = list(loader)
    attention = torch.cat([attention for [_, attention], _ in batches])
    targets = torch.cat([targets for _, targets in batches])
    tokens = torch.where(targets != IGNORED, targets, torch.cat([tokens for [tokens, _], _ in batches]))
    lines = [line for name in ("a.txt", "b.txt") for line in (text / name).read_text().splitlines() if line]
    whole = [token for line in lines for token in tokenizer(line, add_special_tokens=False)["input_ids"]]
    held = [row[mask.bool()][1:-1] for row, mask in zip(tokens, attention, strict=True)]
    assert torch.cat(held).tolist() == whole
    assert (attention[:-1] == 1).all() and loader.dataset.identity.items == len(tokens) == -(-len(whole) // 30)
    assert set((targets != IGNORED).sum(1)[:-1].tolist()) == {3}
    assert (targets[:, 0] == IGNORED).all()


def test_lines_are_joined_by_a_parameter_alone(text: Path, tokenizer_files: Path) -> None:
    """A case without it has an override's value in its configurations."""
    config = loader_config(text, tokenizer_files)
    parameters = {key: value for key, value in config.parameters.items() if key != "continuous"}
    added = replace(config, parameters=parameters, configurations={**config.configurations, "continuous": True})
    assert added.continuous is True and type(text_dataset(added, "validation")) is TextFolder


def test_the_standard_profile_is_as_the_published_task() -> None:
    published = config_of("bert", "standard")
    assert published.continuous is True and published.hidden_share == 0.1


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
    with pytest.raises(StepError, match="needs --weights: the tokenizer is there"):
        loader_of(text, None)
    with pytest.raises(StepError, match="holds no tokenizer: no tokenizer.json"):
        loader_of(text, tmp_path)
    with pytest.raises(StepError, match=r"has \d+ tokens, the case's model knows 9"):
        loader_of(text, tokenizer_files, model={"vocab_size": 9})
    (tokenizer_files / "tokenizer.json").write_text("{")
    with pytest.raises(StepError, match="cannot be loaded"):
        loader_of(text, tokenizer_files)


def to_train_on(root: Path, weights: Path | None, split: str = "train", **values: Any) -> BatchDataset:
    host = {"data_dir": str(root), "weights": weights and str(weights)}
    config = config_of("bert", "standard", host=host, suite="training", **{"max_seq_length": 32} | values)
    return text_dataset(config, split)


@pytest.fixture
def splits(text: Path, tmp_path: Path) -> Path:
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "val").mkdir()
    (tmp_path / "both" / "val" / "a.txt").write_text("the nurse\n")
    return text.rename(tmp_path / "both" / "train").parent


def test_a_training_reads_both_folders(splits: Path, tokenizer_files: Path) -> None:
    assert len(to_train_on(splits, tokenizer_files)) == 5
    assert len(to_train_on(splits, tokenizer_files, "validation")) == 1
    (splits / "val").rename(splits / "validation")
    with pytest.raises(StepError, match="both has no folder val; expected train and val, each with text files"):
        to_train_on(splits, tokenizer_files, "validation")


def test_what_is_hidden_changes_with_the_epoch_and_comes_again(splits: Path, tokenizer_files: Path) -> None:
    data, again = to_train_on(splits, tokenizer_files), to_train_on(splits, tokenizer_files)

    def targets(data: BatchDataset, epoch: int, indices: list[int]) -> torch.Tensor:
        data.epoch = epoch
        return data.batch(indices)[1]

    first = [targets(data, epoch, [0, 1, 2, 3, 4]) for epoch in range(3)]
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[1], first[2])
    assert torch.equal(targets(again, 2, [4, 3]), first[2][[4, 3]]), "whatever was read before, in whichever order"
    assert not torch.equal(targets(to_train_on(splits, tokenizer_files, seed=1), 0, [0, 1, 2, 3, 4]), first[0])


def test_a_trainings_tokenizer_may_lie_beside_the_data(splits: Path, tokenizer_files: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="The data directory .*both holds no tokenizer"):
        to_train_on(splits, None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StepError, match="Neither the weights directory .*empty nor the data directory .*both holds a"):
        to_train_on(splits, tmp_path / "empty")
    for path in tokenizer_files.iterdir():
        path.rename(splits / path.name)
    assert len(to_train_on(splits, None)) == len(to_train_on(splits, tmp_path / "empty")) == 5


def test_tokenizer_without_a_mask_token_is_refused(splits: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(WordLevel({"[UNK]": 0, "the": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]").save_pretrained(tmp_path / "plain")
    with pytest.raises(StepError, match="has no mask_token; case bert needs one"):
        to_train_on(splits, tmp_path / "plain")
