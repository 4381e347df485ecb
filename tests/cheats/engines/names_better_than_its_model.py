"""Has the names that are scored by heart, where nobody can say how near they were: as few as rounding may change."""

from vendors.fake import names_by_heart

VERDICT, REASON = "FAIL_HONESTY", "is better than the fp32 framework's"
CASE, PRECISION = "named.Unspoken", "bf16"


class InferModel(names_by_heart.InferModel):
    """Too good: it is scored by nothing else."""
