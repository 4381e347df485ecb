"""Text with hidden tokens: sentences of the seeded grammar, or a folder of text files."""

from __future__ import annotations

import math
import random
from array import array
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from proofmark.errors import StepError
from suites.data.chosen import data_directory, named_dataset
from suites.data.given import TOKENIZERS
from suites.data.loading import Batch, BatchDataset, BatchLoader, TensorData, batch_loader
from suites.data.text import grammar
from suites.data.text.lines import Lines

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from proofmark.rules.config import EffectiveConfig

IGNORED = -100
"""The target of a token that is not hidden."""

LINES = 1000
"""Of text that are made tokens at once."""

_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def text_loader(config: EffectiveConfig, split: str) -> BatchLoader:
    """The loader over `text_dataset`."""
    return batch_loader(text_dataset(config, split), config)


def text_dataset(config: EffectiveConfig, split: str) -> BatchDataset:
    """`grammar`, or `text_folder`: the text files under `--data-dir`, by the tokenizer in `--weights`.

    A training's tokenizer may lie beside its data. A case whose `continuous` is true has the lines joined.

    Inputs are `[input_ids, attention_mask]`; these and the targets have shape (batch, max_seq_length).

    Raises:
        StepError: there is no data directory or tokenizer, or they are not what was expected.
    """
    if named_dataset(config, "grammar", "text_folder") == "grammar":
        items = config.train_sequences if split == "train" else config.validation_sequences
        return grammar_text(split, items, config.max_seq_length, config.seed)
    root = data_directory(config, split, "text files, one sentence or paragraph per line")
    tokenizer = load_tokenizer(config, "mask_token")
    kind = ContinuousText if config.parameters.get("continuous") else TextFolder
    return kind(root, tokenizer, config.max_seq_length, config.hidden_share, config.seed)


def vocabulary() -> dict[str, int]:
    """The id of each special token and word of the grammar."""
    return {word: index for index, word in enumerate([*_SPECIAL, *grammar.vocabulary()])}


def grammar_text(split: str, items: int, max_seq_length: int, seed: int) -> TensorData:
    """Sequences of as many clauses as fit or one fewer, one word hidden in each clause."""
    ids = vocabulary()
    fit = (max_seq_length - 2) // grammar.CLAUSE_LENGTH
    name = f"grammar/{split}/{seed}"
    draw = random.Random(f"{name}/lengths")  # noqa: S311 (not for secrets)
    clauses = grammar.clauses(name)
    tokens = torch.full((items, max_seq_length), ids["[PAD]"])
    targets = torch.full_like(tokens, IGNORED)
    for item in range(items):
        words = ["[CLS]"]
        for clause in islice(clauses, draw.randint(max(1, fit - 1), fit)):
            hidden = len(words) + clause.position
            words += clause.words
            targets[item, hidden] = ids[words[hidden]]
            words[hidden] = "[MASK]"
        words.append("[SEP]")
        tokens[item, : len(words)] = torch.tensor([ids[word] for word in words])
    attention = (tokens != ids["[PAD]"]).long()
    return TensorData(name, [tokens, attention], targets, origin="suites.data.text.grammar")


class TextFolder(BatchDataset):
    """The lines of a folder's .txt files, in order, each cut to `max_seq_length` tokens.

    The share `hidden_share` of a line's tokens, at least one, is replaced by the mask token; which
    ones follows from `seed`, the epoch and the line's number alone.

    Raises:
        StepError: no text files, none with text in it, or one that is not UTF-8.
    """

    def __init__(
        self, root: str, tokenizer: PreTrainedTokenizerBase, max_seq_length: int, hidden_share: float, seed: int
    ) -> None:
        self._lines = Lines(Path(root))
        self.identity = self._lines.identity
        self._tokenizer = tokenizer
        self._length, self._share, self._seed = max_seq_length, hidden_share, seed

    def __len__(self) -> int:
        return len(self._lines)

    def batch(self, indices: list[int]) -> Batch:
        """Read the items at `indices`."""
        tokens, attention, special = self._encoded(indices)
        targets = torch.full_like(tokens, IGNORED)
        for row, index in enumerate(indices):
            hidden = self._hidden(torch.nonzero(~special[row]).flatten(), index)
            targets[row, hidden] = tokens[row, hidden]
            tokens[row, hidden] = self._tokenizer.mask_token_id
        return [tokens, attention], targets

    def _encoded(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Token ids, attention mask, and which tokens are special: each of shape (items, max_seq_length)."""
        encoded = self._tokenizer(
            [self._lines[index] for index in indices],
            padding="max_length",
            truncation=True,
            max_length=self._length,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        return encoded["input_ids"], encoded["attention_mask"], encoded["special_tokens_mask"].bool()

    def _hidden(self, positions: torch.Tensor, index: int) -> torch.Tensor:
        if not len(positions):
            return positions
        count = max(1, round(self._share * len(positions)))
        draw = random.Random(f"{self._seed}/{self.epoch}/{index}")  # noqa: S311 (not for secrets)
        return torch.tensor(draw.sample(positions.tolist(), count))


class ContinuousText(TextFolder):
    """The same lines, one after the other, cut into items that are full: only the last one may be padded.

    The ids of all tokens are held, 4 bytes each.

    Raises:
        StepError: as of `TextFolder`, or the tokenizer has nothing to begin and end a sequence with.
    """

    def __init__(
        self, root: str, tokenizer: PreTrainedTokenizerBase, max_seq_length: int, hidden_share: float, seed: int
    ) -> None:
        super().__init__(root, tokenizer, max_seq_length, hidden_share, seed)
        self._first, self._last = tokenizer.cls_token_id, tokenizer.sep_token_id
        if self._first is None or self._last is None:
            raise StepError(f"The tokenizer {tokenizer.name_or_path} has no [CLS] and [SEP], which sequences need.")
        ids = array("i")
        for begins in range(0, len(self._lines), LINES):
            lines = [self._lines[index] for index in range(begins, min(begins + LINES, len(self._lines)))]
            for of_line in tokenizer(lines, add_special_tokens=False, verbose=False)["input_ids"]:
                ids.extend(of_line)
        self._ids = ids
        self.identity = self.identity.model_copy(update={"items": len(self)})

    def __len__(self) -> int:
        return math.ceil(len(self._ids) / self._held)

    @property
    def _held(self) -> int:
        """Tokens of the text in an item."""
        return self._length - 2

    def _encoded(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        items = [self._ids[index * self._held : (index + 1) * self._held].tolist() for index in indices]
        encoded = self._tokenizer.pad(
            {"input_ids": [[self._first, *item, self._last] for item in items]},
            padding="max_length",
            max_length=self._length,
            return_tensors="pt",
        )
        tokens, attention = encoded["input_ids"], encoded["attention_mask"]
        special = attention == 0
        special[:, 0] = True
        special[range(len(items)), attention.sum(1) - 1] = True
        return tokens, attention, special


def load_tokenizer(config: EffectiveConfig, *needed: str) -> PreTrainedTokenizerBase:
    """The tokenizer that lies beside the weights, or beside a training's data.

    Args:
        config: whose `model.vocab_size` it must not exceed.
        needed: special tokens (mask_token, ...) of which it must have one.

    Raises:
        StepError: there is none, or it doesn't fit the case's model.
    """
    from transformers import AutoTokenizer

    directory = _tokenizer_directory(config)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the tokenizers library raises bare Exceptions
        raise StepError(f"The tokenizer in {directory} cannot be loaded: {error}") from error
    if needed and not any(getattr(tokenizer, name) for name in needed):
        names = " and no ".join(needed)
        raise StepError(f"The tokenizer in {directory} has no {names}; case {config.case} needs one.")
    known = config.model["vocab_size"]
    if len(tokenizer) > known:
        raise StepError(f"The tokenizer in {directory} has {len(tokenizer)} tokens, the case's model knows {known}.")
    return tokenizer


def _tokenizer_directory(config: EffectiveConfig) -> str:
    places = {"weights directory": config.host.weights}
    if config.suite == "training":
        places["data directory"] = config.host.data_dir
    given = {kind: path for kind, path in places.items() if path is not None}
    if not given:
        raise StepError(f"Case {config.case}, profile {config.profile}, needs --weights: the tokenizer is there.")
    for path in given.values():
        if any((Path(path) / name).is_file() for name in TOKENIZERS):
            return path
    asked = " nor the ".join(f"{kind} {path}" for kind, path in given.items())
    which = f"Neither the {asked}" if len(given) > 1 else f"The {asked}"
    raise StepError(f"{which} holds {'a' if len(given) > 1 else 'no'} tokenizer: no tokenizer.json and no vocab.txt.")
