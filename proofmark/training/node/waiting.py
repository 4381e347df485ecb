"""Whether a rank that hangs waits for others, by the Python stack of its main thread."""

from __future__ import annotations

from itertools import takewhile

WAITING = ("torch/distributed/", "torch/nn/parallel/", "torch/autograd/graph.py", " in synchronize")
"""Innermost frames of a rank that waits for the others: files of torch; and a wait for its device, in which on an
accelerator the exchange is: who calls that returns at once."""

DONE = ("proofmark/training/ranks/clock.py", "proofmark/training/ranks/model/gathering.py")
"""The referee's own files in which a rank waits for its device or the others when it has done its part of a step: these
are anywhere in the stack, since whose code waits there depends on the device."""

STEPPER, AFTERWARDS = "proofmark/training/ranks/stepper.py", " in step"
"""The referee's file of a step, and the function in which a rank is when its passes, and so its exchanges, are behind
it: an optimizer, or a loss scaler's look at the gradients, waits for the device in whoever's code."""


def waits(stack: str) -> bool:
    """Whether a rank's main thread waits for others or for its device: it is inside torch's communication, in a
    backward pass, or has done its part.

    Args:
        stack: what faulthandler wrote, the innermost frame of each thread first and the main thread last. The current
            one may be any: a process that goes on after it was stopped is asked in whichever goes on first.
    """
    _, found, thread = stack.rpartition("hread 0x")
    lines = thread.splitlines()[1:] if found else []
    thread_lines = takewhile(lambda line: line.startswith("  "), lines)
    frames = [*thread_lines] or [""]
    if any(place in frames[0] for place in WAITING) or any(place in frame for frame in frames for place in DONE):
        return True
    return next((frame for frame in frames if STEPPER in frame), "").endswith(AFTERWARDS)
