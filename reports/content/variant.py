"""What tells runs of one case apart: in names, titles and histories, so that nothing sets unlike runs side by side."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from proofmark.record.envelope import CaseRecord
from proofmark.record.provenance import said_of


def variant(record: CaseRecord) -> dict[str, str]:
    """Vendor, what the suite tells runs apart by, precision and profile, in the order in which they are shown."""
    return {"vendor": record.vendor, **record.variant, "precision": record.precision, "profile": record.profile}


def batch(record: CaseRecord) -> str:
    """How many items are computed at once."""
    return "batch unknown" if record.batch_size is None else f"batch {record.batch_size}"


def machine(record: CaseRecord) -> dict[str, Any]:
    """What a speed depends on beside the configuration. Names and numbers only, so that it may lie in a file."""
    return {
        "chip": record.chip.name,
        "chip_units": record.chip.units,
        "processor": said_of("processor", record.hosts),
        "cores": said_of("cores", record.hosts),
    }


def likeness(config_hash: str, machine: dict[str, Any]) -> str:
    """The same for runs whose speeds may be compared: of one task, configured alike, on like machines."""
    text = json.dumps([config_hash, machine], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
