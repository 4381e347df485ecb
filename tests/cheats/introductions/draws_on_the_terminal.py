"""A chip whose name clears the screen, and says that all is well."""

from proofmark.vendor import Vendor

REASON = "chip: expected one line of text"

for own in Vendor.__subclasses__():
    own.chip = lambda self: "\x1b[2Ja chip\n==== 12 passed ===="  # type: ignore[method-assign]
