"""What doing a recorded step again has shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Replayed:
    """What doing a step again showed; lengths of vectors over all parameters, as shares of the replayed one's.

    Attributes:
        step: which one, from 1.
        gradient: of the recorded gradients' difference; None: they are no finite numbers.
        noise: by which a replay differs from the mean of several, which draw their dropout anew: one standard
            deviation.
        rounding: of what roundings make of the gradients, at most, where those are further off than roundings come in
            most steps; 0 elsewhere.
        update: of the difference in what the optimizer made of the recorded gradients.
        unseen: why that was not looked at; None where it was.
        state: what of the optimizer's state, as a rank claims it, can't be.
        seeded: whether the first step began from the weights that the case makes from the seed.
        misfits: tensors that the case's model has not, or in another shape.
        astray: how much of its replayed gradient's length a matrix's recorded one lacks, or has too much of it, in the
            worst of all but a twentieth of them. One that is far longer than all others hides them in the vector of
            all, and by how much one is longer is a matter of how a function is written down.
        stray: the worst of all.
        replaced: whether the weights that it left were others when they were used.
        drawn: how far recorded gradients are, of a step that draws its dropout as a rank says that it did, from the
            mean of replays that draw it anew, in their `noise`: a state may be one that draws none.
        due: whether its gradients are yet to be computed again.
    """

    step: int
    gradient: float | None = None
    noise: float = 0.0
    rounding: float = 0.0
    update: float | None = None
    unseen: str | None = None
    state: str | None = None
    seeded: bool | None = None
    misfits: tuple[str, ...] = ()
    astray: float = 0.0
    stray: str | None = None
    drawn: float | None = None
    replaced: bool = False
    due: bool = False
