"""What a user decides about a run of an inference case."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from proofmark.inference.outcome.record import Validated
from proofmark.process.answering.silence import Patience
from proofmark.record.policy import Policy, default_policy
from proofmark.rules.config import EffectiveConfig

STEP_TIMEOUT = 86400.0
"""Seconds that a step may take where the user doesn't say."""


@dataclass(frozen=True)
class RunOptions:
    """What the user decides about a run, beside its configuration.

    `policy` is what it is held to; `step_timeout` is in seconds, and so is `monitor_interval`, None for no monitor;
    `patience` says what silence of the case's process is a hang; `clear_caches` has this machine's kernel drop
    its caches first; `validated` is what a run relies on that validates nothing itself.
    """

    policy: Policy = field(default_factory=default_policy)
    step_timeout: float | None = None
    patience: Patience = field(default_factory=Patience)
    keep_artifacts: bool = False
    monitor_interval: float | None = 1.0
    clear_caches: bool = False
    validated: Validated | None = None

    def with_vouched_onnx(self, config: EffectiveConfig) -> EffectiveConfig:
        """The same task, with what its processes need to know of what it relies on."""
        relied_on = self.validated.onnx_sha256 if self.validated and config.no_validation else None
        return replace(config, host=replace(config.host, validated_onnx=relied_on))
