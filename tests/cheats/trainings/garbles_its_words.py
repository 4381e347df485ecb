"""Says to the process that loads its data what is no word, so that it should lose count."""

from collections.abc import Iterator
from typing import Any

from proofmark.training.feeding import words
from proofmark.training.feeding.fed import Fed
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "the process that loads its data ended with exit code 1"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        batches = Fed.batches

        def garbled(fed: Fed, *at: int) -> Iterator[Any]:
            fed._say(words.TAKEN_FORM.pack(words.TAKEN) + words.NUMBER.pack(1 << 31))
            return batches(fed, *at)

        Fed.batches = garbled  # type: ignore[method-assign]
