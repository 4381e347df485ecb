"""The referee's process: `python -m proofmark.training.outside.examiner SPEC NODE DIGEST ANSWER_FD`.

No vendor is imported.

It answers with one line of JSON: what it found, or why there is nothing.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proofmark.errors import ProofmarkError, in_a_line
from proofmark.process.answering.line import write_line
from proofmark.process.lifetime import die_with_parent, leave
from proofmark.rules.config import EffectiveConfig
from proofmark.training.spec import WEIGHTS, TrainingSpec

SHARE = 0.5
"""Share of its time after which it is content with fewer samples."""


def main() -> None:
    """Look at what the ranks of a run left, and say what was found."""
    die_with_parent(signal.SIGKILL)()
    spec, descriptor = TrainingSpec.load(Path(sys.argv[1])), int(sys.argv[4])
    os.set_inheritable(descriptor, False)
    began = time.monotonic()
    try:
        directory, until = spec.own_directory(int(sys.argv[2]), 0), began + spec.setup_timeout * SHARE
        answer = _examined(spec, directory, sys.argv[3], until)
    except Exception as error:  # noqa: BLE001 (a case's code may raise anything; the agent goes on)
        if not isinstance(error, ProofmarkError):
            traceback.print_exc()
        answer = {"reason": in_a_line(error)}
    write_line(descriptor, {**answer, "took_seconds": time.monotonic() - began})


def _examined(spec: TrainingSpec, directory: Path, digest: str, until: float) -> dict[str, Any]:
    """The metric of the weights, or the tensors that don't fit; and the replays of recorded steps.

    Args:
        spec: what was trained.
        directory: of rank 0's node.
        digest: of the weights, as rank 0 told it when training ended; empty where it told none.
        until: when to be content with fewer samples.

    Raises:
        StepError: what was left is not whole, or the data isn't there.
    """
    from proofmark.training.outside.metric import evaluated, filled, shown
    from proofmark.training.outside.replay import Replay
    from proofmark.training.ranks.left import digest_of, read_left

    config = EffectiveConfig.from_dict(spec.config)
    case = getattr(importlib.import_module(spec.case[0]), spec.case[1])()
    data = case.build_dataset(config, "train")
    answer: dict[str, Any] = {"items": len(data), "data": data.identity.model_dump(mode="json")}
    if spec.audited:
        answer["steps"] = [asdict(step) for step in Replay(case, config, spec).all(directory)]
    if not (directory / WEIGHTS).exists():
        return answer | {"reason": f"rank 0 left no {WEIGHTS}"}
    weights = read_left(directory / WEIGHTS)
    if digest_of(weights) != digest:
        what = f"are not those whose digest it told when training ended ({digest[:12] or 'none'})"
        return answer | {"reason": f"the weights that rank 0 left {what}"}
    model, wrong = filled(case, config, weights)
    if wrong:
        return answer | {"misfits": shown(wrong)}
    found = evaluated(model, case, config, config.profile == "embedded", until)
    (_, headline), *others = ((name, asdict(value)) for name, value in found.values.items())
    answer |= {**headline, "samples": found.samples, "of": found.of}
    return {**answer, "others": dict(others)} if others else answer


if __name__ == "__main__":
    main()
    leave(0)
