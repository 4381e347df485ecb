"""What engines are held to says of names what its case does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.inference.case import InferenceCase
from proofmark.inference.steps.reference import Reference, framework_reference, rehearse_shortfall

pytestmark = pytest.mark.usefixtures("one_thread")
INPUTS = [torch.eye(4)]


class Likeliest(torch.nn.Linear):
    def forward(self, points: torch.Tensor) -> Any:
        return super().forward(points).max(-1)


def case_that_says(short: Any) -> Any:
    class Said(InferenceCase):
        build_dataloader = create_model = None  # type: ignore[assignment]

        def shortfall(self, model: Any, inputs: Any, outputs: Any) -> Any:
            return short(outputs)

    return Said()


def test_it_says_that_it_lives_and_what_its_case_says() -> None:
    calls: list[int] = []
    case = case_that_says(lambda outputs: [outputs[1] * 2])
    reference = framework_reference(case, Likeliest(4, 3), lambda: calls.append(1))
    outputs, seconds = reference(INPUTS)
    assert seconds == 0.0 and [output.dtype for output in outputs] == [torch.float32, torch.int64]
    assert torch.equal(reference.shortfall(INPUTS, outputs)[0], outputs[1] * 2) and len(calls) == 2
    assert Reference(lambda inputs: (inputs, 0.0), lambda: None).shortfall(INPUTS, outputs) == []


def test_what_a_case_says_is_rehearsed() -> None:
    model = Likeliest(4, 3)
    rehearse_shortfall(case_that_says(lambda outputs: [outputs[1] * 0.0]), model, INPUTS)
    rehearse_shortfall(case_that_says(lambda outputs: []), model, INPUTS)
    with pytest.raises(StepError, match="one of each output of whole numbers"):
        rehearse_shortfall(case_that_says(lambda outputs: [outputs[1][:1] * 0.0]), model, INPUTS)
    with pytest.raises(StepError, match="less than the highest score"):
        rehearse_shortfall(case_that_says(lambda outputs: [outputs[1] * 0.0 + 0.1]), model, INPUTS)


def test_a_case_without_a_word_on_names_is_not_asked() -> None:
    silent = SimpleNamespace()
    asked: Any = type("Silent", (), {"shortfall": InferenceCase.shortfall})()
    rehearse_shortfall(asked, silent, INPUTS)  # type: ignore[arg-type]
