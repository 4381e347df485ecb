"""The referee's process: `python -m proofmark.training.outside.examiner SPEC NODE DIGEST STEPS ANSWER_FD`.

No vendor is imported.

It answers with lines of JSON, each with all that it knows by then: first what the weights are, or why nobody knows, and
in an audit then what recorded steps are. So whoever ends it loses what it was at and no more.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import ProofmarkError, in_a_line
from proofmark.process.answering.line import write_line
from proofmark.process.lifetime import die_with_parent, leave
from proofmark.process.threads import heed_environment
from proofmark.rules.config import EffectiveConfig
from proofmark.training.spec import WEIGHTS, TrainingSpec

if TYPE_CHECKING:
    from proofmark.training.case import TrainingCase

SHARE = 0.5
"""Share of its time after which it is content with fewer samples."""


def main() -> None:
    """Look at what the ranks of a run left, and say what was found."""
    die_with_parent(signal.SIGKILL)()
    spec, descriptor = TrainingSpec.load(Path(sys.argv[1])), int(sys.argv[5])
    os.set_inheritable(descriptor, False)
    heed_environment()
    began = time.monotonic()

    def tell(answer: Mapping[str, Any]) -> None:
        write_line(descriptor, {**answer, "took_seconds": time.monotonic() - began})

    try:
        directory, until = spec.own_directory(int(sys.argv[2]), 0), began + spec.setup_timeout * SHARE
        for answer in _answers(spec, directory, sys.argv[3], int(sys.argv[4]), until):
            tell(answer)
    except Exception as error:  # noqa: BLE001 (a case's code may raise anything; the agent goes on)
        tell({"reason": _said(error)})


def _answers(spec: TrainingSpec, directory: Path, digest: str, steps: int, until: float) -> Iterator[dict[str, Any]]:
    """The weights, and after them the recorded steps: there may be no time for those, and no verdict without these.

    Args:
        spec: what was trained.
        directory: of rank 0's node.
        digest: of the weights, as rank 0 told it when training ended; empty where it told none.
        steps: after which that was.
        until: when to be content with fewer samples.
    """
    config = EffectiveConfig.from_dict(spec.config)
    case = getattr(importlib.import_module(spec.case[0]), spec.case[1])()
    answer: dict[str, Any] = {}
    try:
        answer |= _evaluated(case, config, directory, digest, until)
    except Exception as error:  # noqa: BLE001 (likewise; and of steps there is still something to say)
        answer["reason"] = _said(error)
    yield answer
    if not spec.audited:
        return
    from proofmark.training.outside.replay import Replay

    try:
        for found in Replay(case, config, spec).all(directory, steps):
            answer["steps"] = [asdict(step) for step in found]
            yield answer
    except Exception as error:  # noqa: BLE001 (likewise)
        yield answer | {"unreplayed": _said(error)}


def _evaluated(
    case: TrainingCase, config: EffectiveConfig, directory: Path, digest: str, until: float
) -> dict[str, Any]:
    """The metric of the weights, or the tensors that don't fit.

    Raises:
        StepError: what was left is not whole, or the data isn't there.
    """
    from proofmark.training.outside.metric import evaluated, filled, shown
    from proofmark.training.ranks.left import digest_of, read_left

    if not (directory / WEIGHTS).exists():
        return {"reason": f"rank 0 left no {WEIGHTS}"}
    weights = read_left(directory / WEIGHTS)
    if digest_of(weights) != digest:
        what = f"are not those whose digest it told when training ended ({digest[:12] or 'none'})"
        return {"reason": f"the weights that rank 0 left {what}"}
    model, wrong = filled(case, config, weights)
    if wrong:
        return {"misfits": shown(wrong)}
    found = evaluated(model, case, config, config.profile == "embedded", until)
    (_, headline), *others = ((name, asdict(value)) for name, value in found.values.items())
    answer = {**headline, "samples": found.samples, "of": found.of}
    return {**answer, "others": dict(others)} if others else answer


def _said(error: Exception) -> str:
    if not isinstance(error, ProofmarkError):
        traceback.print_exc()
    return in_a_line(error)


if __name__ == "__main__":
    main()
    leave(0)
