"""Copies of answers, in memory of the referee's alone."""

from __future__ import annotations

import os

import pytest
import torch

from proofmark.inference.engine import answers, protocol
from proofmark.inference.engine.answers import Answers
from proofmark.process.shared_memory.layout import read_layout, written
from proofmark.process.shared_memory.slots import Slot

SIZE = 1 << 16


@pytest.fixture
def slot() -> Slot:
    slot, descriptor = Slot.make(1, SIZE)
    os.close(descriptor)
    return slot


def to(outputs: list[torch.Tensor]) -> bytes:
    return protocol.ANSWER_FORM.pack(protocol.ANSWER, 1, 0.0) + written(outputs)


def lay(slot: Slot, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    slot.lay(read_layout(written(outputs)), outputs)
    return outputs


def test_each_is_as_it_was_when_it_was_taken(slot: Slot) -> None:
    first = [torch.rand(4, 3), torch.arange(4)]
    its = Answers(to(first), slot)
    assert its.form == written(first) and its.length == len(to(first))
    taken = []
    for _ in range(2 * answers.READY + 1):
        given = lay(slot, [torch.rand(4, 3), torch.randint(9, (4,))])
        taken.append((given, its.copy()))
    lay(slot, [torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)])
    assert all(torch.equal(*pair) for given, copy in taken for pair in zip(given, copy, strict=True))
    copies = [copy[0].data_ptr() for _, copy in taken]
    assert len(set(copies)) == len(copies)


def test_of_large_ones_there_is_memory_for_one_that_comes_again(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST", SIZE // 2)
    its = Answers(to([torch.rand(SIZE // 4)]), slot)
    for _ in range(3):
        its.prepare()
        assert len(its._ready) == 1
        given = lay(slot, [torch.rand(SIZE // 4)])
        assert torch.equal(its.copy()[0], given[0])
    its.prepare()
    its.put_aside()
    assert not its._ready
    assert torch.equal(its.copy()[0], given[0])


def test_of_small_ones_there_is_for_many(slot: Slot) -> None:
    its = Answers(to([torch.rand(4)]), slot)
    for _ in range(200):
        its.copy()
    its.put_aside()
    assert 0 < len(its._ready) <= answers.READY


@pytest.mark.parametrize("outputs", [[], [torch.rand(4, 0)]])
def test_of_none_and_of_empty_ones(slot: Slot, outputs: list[torch.Tensor]) -> None:
    assert [tuple(each.shape) for each in Answers(to(outputs), slot).copy()] == [tuple(each.shape) for each in outputs]


def test_the_slot_is_too_small(slot: Slot) -> None:
    with pytest.raises(ValueError, match=f"{SIZE + 64} bytes in a slot of {SIZE}"):
        Answers(to([torch.rand(SIZE // 4 + 16)]), slot)
