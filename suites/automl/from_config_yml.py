"""`python -m suites.automl.from_config_yml config.yml > arguments`, then `pytest @arguments`.

What the original's file asks for, as arguments of a session, one a line; beside it, what became of each of its keys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from proofmark.automl.case import AutoMLParameters
from proofmark.automl.config_yml import ConfigYml, read_config_yml
from proofmark.errors import ConfigurationError, Problem
from proofmark.process.command_line import Parser, command, reporting_errors
from proofmark.rules.case_file import CaseFile, load_case_file

CASE, PROFILE = "image_search", "standard"

OPTIONS = {"max_seconds": "--max-duration", "max_trials": "--max-trials"}
"""Settings with an option of their own, of which a later one on the command line takes the place."""


def arguments(read: ConfigYml, where: str) -> list[str]:
    """Those of pytest; what the profile says already is left out, since a session refuses what does nothing.

    Raises:
        ConfigurationError: a setting is outside of its bounds; every one.
    """
    file = _case_file()
    problems = [
        Problem(where, name, what)
        for name, value in read.settings.items()
        if (what := file.settings[name].problem_with(value))
    ]
    if problems:
        raise ConfigurationError(problems)
    changed = {name: value for name, value in read.settings.items() if value != file.settings[name].value}
    options = (f"{OPTIONS.get(name, f'--set={name}')}={value}" for name, value in changed.items())
    return ["suites/automl", f"--profile={PROFILE}", *_data(read), *options]


def fates(read: ConfigYml) -> Iterator[str]:
    """What became of each key, in a line: a setting that is no argument is in force unless a vendor's file has another.

    Raises:
        ConfigurationError: the case's own files are not what they must be.
    """
    file = _case_file()
    left = {f"{name}={value}" for name, value in read.settings.items() if value == file.settings[name].value}
    for fate in read.fates:
        why = f", which the profile has: add --set={fate.what} where a vendor's file has another"
        yield f"{fate}{why if fate.what in left else ''}"


def _case_file() -> CaseFile:
    here = Path(__file__).parent
    return load_case_file(here / f"{CASE}.yaml", here.name, PROFILE, here / "contract.yaml", AutoMLParameters)


def _data(read: ConfigYml) -> Iterator[str]:
    if read.data_dir is not None:
        yield f"--data-dir={read.data_dir}"


@reporting_errors
def main() -> int:
    """Print the arguments; say what became of each key beside them."""
    parser = Parser(prog="python -m suites.automl.from_config_yml", description=__doc__)
    parser.add_argument("file", type=Path, help="the original's config.yml")
    path = parser.parse_args().file
    read = read_config_yml(path)
    listed = arguments(read, str(path))
    for fate in fates(read):
        print(fate, file=sys.stderr)
    print("\n".join(listed))
    return 0


if __name__ == "__main__":
    command(main)
