"""Data that a loader reads."""

from __future__ import annotations

import pytest
import torch

from proofmark.errors import StepError
from suites.data.loading import TensorData


@pytest.mark.parametrize("lengths, targets", [((3, 4), 4), ((5,), 4)])
def test_tensors_of_unequal_lengths_are_no_data(lengths: tuple[int, ...], targets: int) -> None:
    found = ", ".join(map(str, lengths))
    with pytest.raises(StepError, match=rf"^TensorData 'mine': inputs have {found} items, targets {targets}; expected"):
        TensorData("mine", [torch.ones(length, 2) for length in lengths], torch.ones(targets), "made up")
