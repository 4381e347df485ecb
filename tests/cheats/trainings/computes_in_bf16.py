"""Trains in bfloat16 where float32 was asked for, and evaluates in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "of their length off"


class Adapter(TrainingAdapter):
    def autocast(self, config: EffectiveConfig, device: torch.device) -> AbstractContextManager[None]:
        if not torch.is_grad_enabled():
            return nullcontext()
        return torch.autocast(device.type, dtype=torch.bfloat16)
