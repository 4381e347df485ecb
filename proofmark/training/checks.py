"""The checks of a training's honesty: their names, which of them a run must have passed, and that of its clock."""

from __future__ import annotations

from proofmark.record.parts import Check

PARAMETERS = "keeps the case's parameters"
WEIGHTS = "starts from the case's weights"
FUNCTION = "computes the case's function"
METRIC = "as good in the case's own model"
CLOCK = "keeps time"

EVENT = "check"
"""The event of a rank's log with a check's outcome; its other fields are a record's `Check`."""


def required(adapted: bool, converged: bool) -> frozenset[str]:
    """Checks without which a run that came to its end counts for nothing.

    Args:
        adapted: whether the vendor does any step its own way. Where it does none, the case's own model is the very
            object that is trained and evaluated, by the referee's own steps.
        converged: whether the target was reached.
    """
    always = {PARAMETERS, WEIGHTS, CLOCK}
    return frozenset(always | ({FUNCTION} if adapted else set()) | ({METRIC} if adapted and converged else set()))


CLOCK_SECONDS, CLOCK_SHARE = 1.0, 0.01
"""How far a rank's clock may be from its agent's. Both are the same host's, but a busy one may stop a rank between
reading its clock and saying so."""


def keeps_time(said: float, least: float, most: float) -> Check:
    """Hold a rank's clock against its agent's: the seconds that it `said` must lie between the `least` and the `most`.

    Both are of processes that run, and of clocks that nobody sets: the time of day is not asked. The check's figure is
    how far they are apart, in units of how far they may be.
    """
    off, allowed = max(0.0, least - said, said - most), CLOCK_SECONDS + CLOCK_SHARE * most
    what = "its clock and the agent's, another process's, tell different times"  # no figure: times may be withheld
    if off > allowed:
        seen = " to ".join(dict.fromkeys((f"{least:.4g}", f"{most:.4g}")))
        what = f"its clock says that training took {said:.4g} s, and the agent's, another process's, {seen} s"
    return Check(name=CLOCK, passed=off <= allowed, figure=off / allowed, bound=1.0, meaning=what)
