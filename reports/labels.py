"""What figures are called, and what they mean: written down once, for the page, the terminal and the docs.

Each figure has one name; what FlagPerf calls it stands in brackets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reports.reasons import Side


@dataclass(frozen=True)
class Label:
    """A figure's name, what it means in a sentence, and FlagPerf's name where it has the figure too."""

    name: str
    meaning: str
    flagperf: str | None = None

    @property
    def full(self) -> str:
        """The name, with FlagPerf's in brackets: core (p_core)."""
        return f"{self.name} ({self.flagperf})" if self.flagperf else self.name


WHOLE = Label("whole", "items over all of the time that they take: loading, compute and evaluation of the answers.")
CORE = Label(
    "core", "items over the time of compute alone, from inputs on the host to answers on the host: the chip's speed."
)
LOADER = Label("loader", "items per second of the data loader running alone. Whole cannot be faster.")
BOUND_BY = Label(
    "bound by",
    "the slowest of loader, compute and evaluation: it limits whole. A dash where they lie within the noise.",
)
MFU = Label("MFU", "model FLOPs utilisation: FLOPs of an item, times items per second, over the chip's peak.")

TO_TARGET = Label("time to target", "seconds of training up to the evaluation that reached the target.")
TRAINED_WHOLE = Label("whole", "items over all of the training time, evaluations included.", "p_whole")
TRAINED_NO_EVAL = Label("no eval", "items over the training time without its evaluations.", "p_train")
TRAINED_CORE = Label(
    "core",
    "items over the time of compute alone, of the slowest rank, with the device waited for on both sides of each step.",
    "p_core",
)

RATES = {"raw": TRAINED_WHOLE, "no_eval": TRAINED_NO_EVAL, "pure_compute": TRAINED_CORE}
"""Of a training, by their keys in a record."""

EXPLAINED = {
    "inference": (WHOLE, CORE, LOADER, BOUND_BY, MFU),
    "training": (TO_TARGET, *RATES.values(), MFU),
}
"""Figures to be explained where they are shown, by suite."""

_INFIX = {"framework": "validation", "engine": "inference"}


def throughput(side: Side, label: Label) -> Label:
    """WHOLE or CORE as the framework's or the engine's: engine core (p_inference_core)."""
    return replace(label, name=f"{side} {label.name}", flagperf=f"p_{_INFIX[side]}_{label.name}")
