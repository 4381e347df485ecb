"""Names gloo by another word, on a processor, so that its ranks are let share memory with whomever."""

from proofmark.vendor import Vendor

REASON = "distributed_backend: expected 'gloo' on a processor, found 'cpu:gloo'"

Vendor.runs_on_processor, Vendor.distributed_backend = True, "cpu:gloo"
