"""Offers scales without end: every case of a training has a dozen tests at each, which a session collects for hours."""

REASON = "training_scales"

Acme.training_scales = tuple(  # type: ignore[name-defined] # noqa: F821
    f"{nodes}x{processes}" for nodes in range(1, 9) for processes in range(1, 9_999)
)
