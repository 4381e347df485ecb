"""Patterns of a vendor's files: those that people write for names pass, those that search without end do not."""

from __future__ import annotations

import pytest

from proofmark.vendor.hardware.pattern import ways


@pytest.mark.parametrize(
    ("pattern", "many"),
    [
        ("H100.*80GB", 200),
        ("A100(-SXM4)?", 2),
        ("RTX 4090( D)?$", 2),
        (r"MI3\d{2}X", 1),
        ("(?i)H100", 1),
        ("H[12]00|B200", 2),
    ],
)
def test_it_can_tell_how_long_a_search_is(pattern: str, many: int) -> None:
    assert ways(pattern) == many


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a|b){20}",
        "a{2,}",
        "a{1,3}",
        r"(\w{2})*",
        "(?i)(a*)*b",
        "(?x)(a+) +",
        r"(a)\1",
        "(?=a*)*",
        "(?P<n>a*)",
    ],
)
def test_it_refuses_what_it_cannot_tell_of(pattern: str) -> None:
    with pytest.raises(ValueError, match="could be searched for without end|not a regular expression"):
        ways(pattern)
