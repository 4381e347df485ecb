"""Text whose next token is to be predicted: sentences of the Chinese grammar, or a folder of text files."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from suites.data.chosen import data_directory, named_dataset
from suites.data.loading import Batch, BatchDataset, TensorData
from suites.data.text import chinese
from suites.data.text.lines import Lines
from suites.data.text.masked import IGNORED, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from proofmark.rules.config import EffectiveConfig

_END = "[END]"


def causal_dataset(config: EffectiveConfig, split: str) -> BatchDataset:
    """`chinese`, or `text_folder`: the text files under `--data-dir`, by the tokenizer there or in `--weights`.

    Inputs are `[input_ids]`; these and the targets, each the token after, have shape (batch, max_seq_length).

    Raises:
        StepError: there is no data directory or tokenizer, or they are not what was expected.
    """
    if named_dataset(config, "chinese", "text_folder") == "chinese":
        items = config.train_sequences if split == "train" else config.validation_sequences
        return chinese_text(split, items, config.max_seq_length, config.seed)
    root = data_directory(config, split, "text files, one sentence or paragraph per line")
    return NextTokens(root, load_tokenizer(config, "eos_token", "sep_token"), config.max_seq_length)


def vocabulary() -> dict[str, int]:
    """The id of each character of the grammar, and of the end."""
    return {character: index for index, character in enumerate([_END, *chinese.characters()])}


def chinese_text(split: str, items: int, max_seq_length: int, seed: int) -> TensorData:
    """Sequences of as many sentences as fit, and the end.

    `max_seq_length` must be that many whole sentences: nothing is padded.
    """
    ids, count = vocabulary(), max_seq_length // chinese.SENTENCE_LENGTH
    assert count * chinese.SENTENCE_LENGTH == max_seq_length
    name = f"chinese/{split}/{seed}"
    sentences = chinese.sentences(name)
    tokens = torch.tensor(
        [[*(ids[character] for character in "".join(islice(sentences, count))), ids[_END]] for _ in range(items)]
    )
    return TensorData(name, [tokens[:, :-1]], tokens[:, 1:], origin="suites.data.text.chinese")


class NextTokens(BatchDataset):
    """The lines of a folder's .txt files, in order, each followed by the end and cut to `max_seq_length` tokens.

    Raises:
        StepError: no text files, none with text in it, or one that is not UTF-8.
    """

    def __init__(self, root: str, tokenizer: PreTrainedTokenizerBase, max_seq_length: int) -> None:
        self._lines = Lines(Path(root))
        self.identity = self._lines.identity
        self._tokenizer, self._length = tokenizer, max_seq_length
        self._end = tokenizer.sep_token_id if tokenizer.eos_token_id is None else tokenizer.eos_token_id

    def __len__(self) -> int:
        return len(self._lines)

    def batch(self, indices: list[int]) -> Batch:
        """Read the items at `indices`."""
        lines = [self._lines[index] for index in indices]
        tokens = torch.full((len(lines), self._length), self._end)
        targets = torch.full_like(tokens, IGNORED)
        for row, found in enumerate(self._tokenizer(lines, add_special_tokens=False)["input_ids"]):
            # a line of which a tokenizer makes nothing is an empty one, behind the end of another
            line = torch.tensor([*(found or [self._end]), self._end][: self._length + 1])
            tokens[row, : len(line) - 1] = line[:-1]
            targets[row, : len(line) - 1] = line[1:]
        return [tokens], targets
