"""How a step of an inference case ended, as the event log has it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofmark.errors import StepError
from proofmark.inference.engine.engine_process import EngineFailed
from proofmark.inference.failure import LONGEST, failure_text


class Unsupported(StepError):
    """What is asked for is not among what the vendor declares."""


class Undeclared(StepError):
    """It worked, and the vendor does not declare it: declarations are strict both ways."""


def step_ended(step: Callable[[], None], of_case: Path, undeclared: str | None) -> dict[str, Any]:
    """Run a step; what it ended with: status, reason, kind and detail.

    Args:
        step: what may raise anything.
        of_case: the case's folder, whose lines of a traceback count.
        undeclared: where the vendor doesn't declare what is tested, what a failure then means.
    """
    outcome: dict[str, Any] = {"status": "done", "reason": None, "kind": None, "detail": None}
    try:
        step()
    except Unsupported as error:
        outcome |= {"status": "failed", "reason": str(error), "kind": "unsupported"}
    except StepError as error:
        outcome |= {"status": "failed", "reason": str(error), "kind": "error"}
        if isinstance(error, EngineFailed):
            outcome["detail"] = error.detail
        if isinstance(error, Undeclared):
            undeclared = None
    except Exception as error:  # noqa: BLE001 (cases may raise anything)
        traceback.print_exc()  # to worker.log
        outcome |= {"status": "failed", "reason": failure_text(error, [of_case]), "kind": "error"}
        outcome["detail"] = traceback.format_exc()
    outcome = {key: value[: LONGEST[key]] if key in LONGEST and value else value for key, value in outcome.items()}
    if outcome["status"] == "failed" and undeclared:
        outcome |= {"reason": f"{undeclared}: {outcome['reason']}", "kind": "unsupported"}
    return outcome
