"""A trial's epochs count at the moment at which they ended, and none ended while its trial did not last."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.automl.outcome.trials import trials_of

EPOCH = {"images": 10, "evaluated": 5, "accuracy": 0.5, "loss": 1.0, "seconds": 1.0}
BEGUN = {"round": 0, "attempt": 1, "parent": None, "operations": [], "hyperparameters": {}, "sampled": False}
COUNTED = ("parameters", "forward", "training", "compatible_forward", "compatible_training")


@pytest.mark.parametrize("said, expected", [(0.0, 100.0), (150.0, 150.0), (9e9, 200.0)])
def test_whatever_moment_a_rank_gives(tmp_path: Path, said: float, expected: float) -> None:
    own = {"per_image": dict.fromkeys(COUNTED, 1), "generated_seconds": 0.0, "device": "0", "folder": "trials/0"}
    end = {
        "status": "finished",
        "accuracy": 0.5,
        "log_sha256": "0" * 64,
        "epochs": [{**EPOCH, "clock": int(said * 1e9)}],
    }
    events = [
        {"event": "driver_begin", "clock": 0, "host": {"name": "here"}, "devices": 1},
        {"event": "trial_begin", "clock": 100 * 10**9, "trial": 0, "epochs": 1, **BEGUN, **own},
        {"event": "trial_end", "clock": 200 * 10**9, "trial": 0, **end},
    ]
    (trial,) = trials_of(events, tmp_path)
    assert trial.epochs[0].ended == expected
