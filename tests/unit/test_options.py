"""Values on the command line that mean nothing."""

from __future__ import annotations

import argparse
from argparse import Namespace

import pytest

from fixtures.options import OPTIONS, _refuse_numbers
from proofmark.errors import UsageError

DEFAULTS = {name[2:].replace("-", "_"): option.get("default") for name, option in OPTIONS.items()}


def test_those_of_who_says_nothing_are_none_of_them() -> None:
    _refuse_numbers(Namespace(**DEFAULTS))
    _refuse_numbers(Namespace(**DEFAULTS | {"monitor_interval": 0.0, "hang_timeout": 1.0, "step_timeout": 0.1}))


@pytest.mark.parametrize(
    "option, values, told",
    [
        ("--step-timeout", (0, -1, "nan"), "seconds above 0"),
        ("--hang-timeout", (0, 0.9, -5, "nan"), "at least 1 second"),
        ("--setup-timeout", (0, 0.9, -5, "nan"), "at least 1 second"),
        ("--own-directory", (0, -1, "nan"), "GiB above 0"),
        ("--monitor-interval", (-1, 3601, "nan"), "0 to 3600 seconds"),
    ],
)
def test_each_is_refused_by_its_name(option: str, values: tuple[float | str, ...], told: str) -> None:
    for value in values:
        with pytest.raises(UsageError) as caught:
            _refuse_numbers(Namespace(**DEFAULTS | {option[2:].replace("-", "_"): float(value)}))
        assert str(caught.value) == f"{option}: expected {told}, found {value}"


@pytest.mark.parametrize(
    "given, told",
    [
        ("--profile=tiny", "argument --profile: invalid choice: 'tiny'"),
        ("--precision=fp12", "argument --precision: invalid choice: 'fp12'"),
        ("--repeat=many", "argument --repeat: invalid int value: 'many'"),
    ],
)
def test_what_the_parser_refuses(given: str, told: str) -> None:
    parser, name = argparse.ArgumentParser(exit_on_error=False), given.partition("=")[0]
    parser.add_argument(name, **{key: value for key, value in OPTIONS[name].items() if key != "sets"})
    with pytest.raises(argparse.ArgumentError) as caught:
        parser.parse_args([given])
    assert str(caught.value).startswith(told)
