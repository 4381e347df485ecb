"""Numbers written as products, such as `2*512*0.33e9`, read without evaluating anything."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")
_PRODUCT = re.compile(rf"\s*(?:{_NUMBER.pattern})(?:\s*\*\s*(?:{_NUMBER.pattern}))*\s*")


def parse_product(value: object) -> float:
    """Read a number, or a string that multiplies numbers with `*`.

    The form `a_1*a_2*...*a_n` is the one of the FlagPerf inference specification (flops).

    Raises:
        ValueError: anything else: another operator, a name, a negative or non-finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a number or a product such as 2*512*0.33e9, found {value!r}")
    if isinstance(value, str):
        if len(value) > 200 or not _PRODUCT.fullmatch(value):
            raise ValueError(f"expected a number or a product such as 2*512*0.33e9, found {value[:80]!r}")
        result = math.prod(float(factor) for factor in value.split("*"))
    else:
        result = float(value)
    if not math.isfinite(result) or result < 0:
        raise ValueError(f"expected a finite number that is not negative, found {value!r}")
    return result
