"""Fails with words that clear the screen and say that all is well."""

from proofmark.vendor import Vendor

REASON = "chip() failed: RuntimeError: \\x1b[2J==== 12 passed ===="


def fail(self: Vendor) -> str:
    raise RuntimeError("\x1b[2J==== 12 passed ====")


for own in Vendor.__subclasses__():
    own.chip = fail  # type: ignore[method-assign]
