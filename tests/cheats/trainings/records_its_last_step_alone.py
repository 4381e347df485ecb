"""Keeps one recorded step besides the first, its last, as of a run that training's end cut short, with a state of the
optimizer that explains that one; it takes another optimizer after the first steps."""

import shutil
from typing import Any

import torch
from vendors.fake import lays_a_made_up_state

from proofmark.training.drawn_steps import RUN
from proofmark.training.ranks.recording import Recorder
from proofmark.training.spec import STEP
from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "FAIL_HONESTY", "are there of those that were recorded"
EACH = 13
"""Steps between two evaluations, at one of which training ends."""


class Adapter(lays_a_made_up_state.Adapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        asked, honest = list[bool](), Recorder.due

        def due(recorder: Recorder) -> bool:
            asked.append(True)
            if len(asked) <= RUN:
                return honest(recorder)
            steps, last = recorder._steps, len(asked) % EACH == 0
            steps.first, steps.begins, steps.ends = False, last, False
            for folder in recorder._directory.glob(STEP.format("*")) if last else ():
                if int(folder.name.rpartition("-")[2]) > RUN:
                    shutil.rmtree(folder)
            return last

        Recorder.due = due  # type: ignore[method-assign]
        return optimizer
