"""The speed gate: two versions of a case timed in turns on one device, and whether one of them is slower."""

SIDE = "PROOFMARK_GATE_SIDE"
"""The environment variable by which a session knows that it is a side: the run that it is for."""
