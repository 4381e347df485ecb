"""What tells runs of one case apart: in names, titles and histories, so that nothing sets unlike runs side by side."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from proofmark.inference.record import RunRecord
from proofmark.record.envelope import CaseRecord
from proofmark.training.record import TrainingRecord


def run_name(record: CaseRecord) -> str:
    """What a session calls a run: suite and case, and the scale of a training."""
    name = f"{record.suite}/{record.case}"
    return f"{name}/{record.scale}" if isinstance(record, TrainingRecord) else name


def variant(record: CaseRecord) -> dict[str, str]:
    """Vendor, compiler or scale, precision and profile of a run, by name, in the order in which they are shown."""
    assert isinstance(record, RunRecord | TrainingRecord)
    way = {"scale": record.scale} if isinstance(record, TrainingRecord) else {"compiler": record.compiler or "none"}
    return {"vendor": record.vendor, **way, "precision": record.precision, "profile": record.profile}


def batch(record: CaseRecord) -> str:
    """How many samples are computed at once, by all processes together."""
    size = record.global_batch_size if isinstance(record, TrainingRecord) else record.config.get("batch_size")
    return "batch unknown" if size is None else f"batch {size}"


def machine(record: CaseRecord) -> dict[str, Any]:
    """What a speed depends on beside the configuration. Names and numbers only, so that it may lie in a file."""
    host = record.host
    return {
        "chip": record.chip.name,
        "chip_units": record.chip.units,
        "processor": host.processor if host else None,
        "cores": host.cores if host else None,
    }


def likeness(config_hash: str, machine: dict[str, Any]) -> str:
    """The same for runs whose speeds may be compared: of one task, configured alike, on like machines."""
    text = json.dumps([config_hash, machine], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
