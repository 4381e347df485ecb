"""ReCoRD of SuperGLUE (Zhang et al. 2018): news passages, and sentences about them with one entity left out."""

from __future__ import annotations

import hashlib
import json
import random
import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError
from proofmark.record.parts import Identity
from suites.data.loading import Batch, BatchDataset
from suites.data.text.cloze import Cloze, lay_out

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BLANK = "@placeholder"
_FORMAT = "ReCoRD's passage.text, passage.entities with start and end, and qas with query and answers"
_HIGHLIGHT = "@highlight\n"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class Question:
    """A query about a passage; candidates are the passage's entities, `right` says which are answers."""

    passage: str
    query: str
    candidates: tuple[str, ...]
    right: tuple[bool, ...]


class ReCoRD(BatchDataset):
    """The questions of `train.jsonl` or `val.jsonl`, each query an item of its own.

    The context is the passage, then the query with the mask token in the placeholder's place; where both and the
    candidates don't fit, the passage's end is cut.

    Args:
        root: the folder with the files, as SuperGLUE publishes them.
        split: 'train' or 'validation'.
        tokenizer: has a mask token, and tokens that begin and end a text.
        length: tokens of a sequence, candidates included.
        drawn: how many candidates to keep, the right ones first, the others drawn anew each epoch; None keeps all.
        seed: of what is drawn.

    Raises:
        StepError: the file is not there or not in that format; on a batch: a query and its candidates don't fit.
    """

    def __init__(
        self, root: str, split: str, tokenizer: PreTrainedTokenizerBase, length: int, drawn: int | None, seed: int
    ) -> None:
        path = Path(root) / {"train": "train.jsonl", "validation": "val.jsonl"}[split]
        self._questions, digest = _read(path)
        self.identity = Identity(name=path.name, sha256=digest, items=len(self._questions), origin=str(path))
        self._tokenizer, self._length, self._drawn, self._seed = tokenizer, length, drawn, seed
        self._ends, self._piece = _ends(tokenizer), _piece(tokenizer)

    def __len__(self) -> int:
        return len(self._questions)

    def batch(self, indices: list[int]) -> Batch:
        """Lay out the questions at `indices`."""
        return lay_out([self._cloze(index) for index in indices], self._length, *self._piece)

    def _cloze(self, index: int) -> Cloze:
        question = self._questions[index]
        chosen = self._chosen(question, index)
        candidates = [self._ids(question.candidates[number]) for number in chosen]
        begin, end = self._ends
        mask: Any = self._tokenizer.mask_token_id
        before, after = (self._ids(part) for part in question.query.split(_BLANK, 1))
        query = [*before, mask, *after, end]
        taken = sum(len(candidate) + 1 for candidate in candidates)
        room = self._length - taken - len(query) - 2  # the passage's begin and end
        if room < 0:
            what = f"{len(query) + taken + 2} tokens of query and candidates, a sequence has {self._length}"
            raise StepError(f"Question {index + 1} of {self.identity.origin} takes {what}.")
        passage = [begin, *self._ids(question.passage)[:room], end]
        right = [question.right[number] for number in chosen]
        return Cloze([*passage, *query], len(passage) + len(before), candidates, right)

    def _chosen(self, question: Question, index: int) -> list[int]:
        """Numbers of the candidates to score."""
        numbers = list(range(len(question.candidates)))
        if self._drawn is None:
            return numbers
        draw = random.Random(f"{self._seed}/{self.epoch}/{index}")  # noqa: S311 (not for secrets)
        draw.shuffle(numbers)
        return sorted(numbers, key=lambda number: not question.right[number])[: self._drawn]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids


def _ends(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """Ids of the tokens that begin and end a text: [CLS] and [SEP], or what the tokenizer has for them."""
    ends: list[Any] = [
        tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id,
        tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id,
    ]
    if None in ends:
        raise StepError(
            "The tokenizer has no token that begins a text (cls or bos), or none that ends one (sep or eos)."
        )
    return ends[0], ends[1]


def _piece(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """Ids of the tokens that begin and end what fills a blank: GLM's own, or else those of a text."""
    words = tokenizer.get_vocab()
    known = [words.get(name) for name in ("<|startofpiece|>", "<|endofpiece|>")]
    return (known[0], known[1]) if known[0] is not None and known[1] is not None else _ends(tokenizer)


def _read(path: Path) -> tuple[list[Question], str]:
    """All questions of a file, and its checksum."""
    digest = hashlib.sha256()
    questions: list[Question] = []
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                digest.update(line)
                if line.strip():
                    questions += _questions(line, f"{path}, line {number}")
    except OSError as error:
        what = f"cannot be read ({error.strerror}); expected ReCoRD's train.jsonl and val.jsonl"
        raise StepError(f"The data file {path} {what}.") from error
    if not questions:
        raise StepError(f"The data file {path} holds no questions.")
    return questions, digest.hexdigest()


def _questions(line: bytes, where: str) -> list[Question]:
    try:
        item = json.loads(line.decode("utf-8"))
        text: str = item["passage"]["text"]
        # both ends of an entity are within it
        spans = [text[entity["start"] : entity["end"] + 1] for entity in item["passage"]["entities"]]
        entities = tuple(dict.fromkeys(span for span in spans if span.strip()))
        asked = [(qa["query"], {_plain(answer["text"]) for answer in qa["answers"]}) for qa in item["qas"]]
    except UnicodeDecodeError as error:
        raise StepError(f"{where}: is not UTF-8: byte {error.start} cannot be decoded.") from error
    except json.JSONDecodeError as error:
        raise StepError(f"{where}: is not JSON: {error}.") from error
    except KeyError as error:
        raise StepError(f"{where}: has no {error}; expected {_FORMAT}.") from error
    except (TypeError, AttributeError) as error:
        raise StepError(f"{where}: {error}; expected {_FORMAT}.") from error
    passage = text.replace(_HIGHLIGHT, "- ")
    return [_question(passage, query, entities, answers, where) for query, answers in asked]


def _question(passage: str, query: str, entities: tuple[str, ...], answers: set[str], where: str) -> Question:
    if query.count(_BLANK) != 1:
        raise StepError(f"{where}: the query {query[:60]!r} has {query.count(_BLANK)} {_BLANK}s, expected one.")
    right = tuple(_plain(entity) in answers for entity in entities)
    if not any(right):
        raise StepError(f"{where}: no entity of the passage is an answer to {query[:60]!r}.")
    return Question(passage, query, entities, right)


def _plain(text: str) -> str:
    """An answer as SuperGLUE's scorer compares it: lower case, no punctuation, articles or surplus spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())
