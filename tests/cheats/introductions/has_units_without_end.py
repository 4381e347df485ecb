"""A chip of so many units that no float holds its peak."""

from proofmark.vendor import Vendor

REASON = "chip_units: expected a whole number of at least 1"

Vendor.chip_units = lambda self: 10**400  # type: ignore[method-assign]
