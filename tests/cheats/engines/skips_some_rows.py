"""Computes seven rows of eight, and answers the last one as the one before: a metric hardly shows it."""

from typing import Any

from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "answers "


class InferModel(honest.InferModel):
    """Cheaper by an eighth."""

    def __call__(self, inputs: Any) -> Any:
        (answer,), foo_time = super().__call__(inputs)
        answer = answer.clone()
        likely = answer[7::8].argmax(-1)
        answer[7::8] = answer[6 : 6 + 8 * len(likely) : 8]
        answer[7::8].scatter_(1, likely[:, None], float(answer.max()) + 1)  # so that it is right still
        return [answer], foo_time
