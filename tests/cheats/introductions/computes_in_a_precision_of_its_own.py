"""Declares a precision that nobody knows: whatever its engine did, nothing could be held against it."""

from proofmark.vendor import Vendor

REASON = "training_precisions: 'bf61' is not a precision; expected fp64, fp32, tf32, fp16, bf16"

Vendor.training_precisions = frozenset({"bf61"})
