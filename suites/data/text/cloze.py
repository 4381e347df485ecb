"""Questions with one blank and several candidates for it: words of the seeded grammar, or SuperGLUE's ReCoRD.

A sequence is laid out for blank infilling as in GLM: the context with a mask token in the blank's place, then every
candidate, each led in by a start and led out by an end. Context tokens see the whole context; a candidate's tokens see
the context and what comes before them in their own candidate. So one pass scores all candidates, as if each were
generated after the context alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import torch

from suites.data.chosen import named_dataset, needed_directory
from suites.data.loading import Batch, BatchDataset, TensorData
from suites.data.text import grammar
from suites.data.text.masked import IGNORED, load_tokenizer, vocabulary

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig

PADDING = -1
"""The segment of padding. The context is segment 0, candidate number n is segment n + 1."""


@dataclass(frozen=True)
class Cloze:
    """A question as token ids: context with a blank, candidates for it, and which of these are right."""

    context: list[int]
    blank: int
    candidates: list[list[int]]
    right: list[bool]


def cloze_dataset(config: EffectiveConfig, split: str) -> BatchDataset:
    """`grammar`, or `record`: SuperGLUE's files under `--data-dir`, by the tokenizer there or in `--weights`.

    A batch is as `lay_out` gives it.

    Raises:
        StepError: there is no data directory or tokenizer, or they are not what was expected.
    """
    if named_dataset(config, "grammar", "record") == "grammar":
        items = config.train_sequences if split == "train" else config.validation_sequences
        return grammar_cloze(split, items, config.max_seq_length, config.seed)
    from suites.data.text.superglue import ReCoRD

    root = needed_directory(config, "the folder with SuperGLUE's train.jsonl and val.jsonl")
    tokenizer = load_tokenizer(config, "mask_token")
    drawn = config.train_candidates if split == "train" else None
    return ReCoRD(root, split, tokenizer, config.max_seq_length, drawn, config.seed)


def grammar_cloze(split: str, items: int, max_seq_length: int, seed: int) -> TensorData:
    """One clause of the seeded grammar each, one meaningful word blank; candidates are all words of its role."""
    ids = vocabulary()
    name = f"grammar/{split}/{seed}"
    questions = []
    for clause in islice(grammar.clauses(name), items):
        context = [ids[word] for word in ("[CLS]", *clause.words, "[SEP]")]
        blank = clause.position + 1
        context[blank] = ids["[MASK]"]
        candidates = grammar.words_of(clause.hidden)
        right = [word == clause.chain[clause.hidden] for word in candidates]
        questions.append(Cloze(context, blank, [[ids[word]] for word in candidates], right))
    inputs, targets = lay_out(questions, max_seq_length, ids["[CLS]"], ids["[SEP]"])
    return TensorData(name, inputs, targets, origin="suites.data.text.grammar")


def lay_out(questions: Sequence[Cloze], length: int, begin: int, end: int) -> Batch:
    """Questions as tensors.

    Args:
        questions: none longer than `length` in all.
        length: tokens of a sequence.
        begin: the token that leads a candidate in.
        end: the token that leads it out.

    Returns:
        `[tokens, segments, positions, blocks, expected, present]` and targets. The first five have shape
        (questions, length); `blocks` is a token's place in its candidate, from 1, and 0 elsewhere; `expected` is what
        a candidate's token predicts, -100 elsewhere. `present` and the targets have shape (questions, candidates): 1
        for a right one, 0 for a wrong one, -100 for none.
    """
    shape = len(questions), length
    tokens, positions, blocks = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    segments, expected = torch.full(shape, PADDING), torch.full(shape, IGNORED)
    targets = torch.full((len(questions), max(len(question.right) for question in questions)), IGNORED)
    for row, question in enumerate(questions):
        laid = torch.tensor(_places(question, begin, end)).T
        for tensor, values in zip((tokens, segments, positions, blocks, expected), laid, strict=True):
            tensor[row, : len(values)] = values
        targets[row, : len(question.right)] = torch.tensor(question.right).long()
    return [tokens, segments, positions, blocks, expected, targets != IGNORED], targets


def _places(question: Cloze, begin: int, end: int) -> list[tuple[int, int, int, int, int]]:
    """Token, segment, position, place in the blank, and expected token of each. A candidate stands where the blank
    stands."""
    places = [(token, 0, position, 0, IGNORED) for position, token in enumerate(question.context)]
    for number, candidate in enumerate(question.candidates, 1):
        pairs = zip([begin, *candidate], [*candidate, end], strict=True)
        places += [(token, number, question.blank, i, expected) for i, (token, expected) in enumerate(pairs, 1)]
    return places
