"""Below a hundred."""

from suites.made_up.contract import PrimesContract


class TestHundred(PrimesContract):
    """There are 25."""
