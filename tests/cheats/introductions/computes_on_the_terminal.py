"""Says that its devices compute at precisions whose names clear the screen."""

from proofmark.vendor import Vendor

REASON = "framework_precisions: '\\x1b[2J8' is not a precision"

for own in Vendor.__subclasses__():
    own.framework_precisions = frozenset({f"\x1b[2J{number}" for number in range(9)})
