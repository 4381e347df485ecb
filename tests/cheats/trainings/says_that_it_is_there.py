"""Says that the target is reached whatever the metric is."""

from proofmark.training.ranks import goal
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "it is said to have converged, but"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        goal.Target.is_over = lambda *_: True  # type: ignore[method-assign]
