"""Where the user says that data and weights are."""

from __future__ import annotations

import os
from pathlib import Path

from proofmark.errors import Problem
from proofmark.rules.config import EffectiveConfig


def host_problems(config: EffectiveConfig, here: bool = True) -> list[Problem]:
    """What is wrong with where the user says that data and weights are.

    The embedded profile brings its own data; any other measures a published task and needs the user's. Only the
    directories themselves are looked at, and only if the case runs `here`: what lies in them is the case's matter.
    """
    host, profile = config.host, config.profile
    embedded, problems = profile == "embedded", list[Problem]()
    if embedded and host.data_dir:
        problems.append(Problem("--data-dir", "", "the embedded profile brings its own data; add --profile standard"))
    if not embedded and not host.data_dir:
        problems.append(Problem("--data-dir", "", f"profile {profile} needs the data set: --data-dir DIR"))
    # a training has no such switch: it starts from fresh ones, unless the user may give others and does
    if not embedded and not host.weights and not config.get("no_validation", True):
        what = f"profile {profile} needs trained weights: --weights DIR (a transformers model directory)"
        problems.append(Problem("--weights", "", what))
    for option, directory in (("--data-dir", None if embedded else host.data_dir), ("--weights", host.weights)):
        if here and directory and (wrong := _unusable(Path(directory))):
            problems.append(Problem(option, "", f"{wrong}: {directory}"))
    return problems


def problems_without_engines(config: EffectiveConfig) -> list[Problem]:
    """Refuse options that mean nothing for a suite without engines: --engine-user, and MFU by another's FLOPs."""
    problems = []
    if config.host.flops_convention != "counted":
        what = f"suite {config.suite} has no MFU by FlagPerf's FLOPs, which are inference's: remove it"
        problems.append(Problem("--flops-convention", "", what))
    if config.host.engine_user is not None:
        what = f"suite {config.suite} has no engines, whose user it would be: remove it"
        problems.append(Problem("--engine-user", "", what))
    return problems


def _unusable(directory: Path) -> str | None:
    try:
        with os.scandir(directory) as entries:
            return None if any(entries) else "nothing is in the directory"
    except FileNotFoundError:
        return "no such directory"
    except OSError as error:
        return f"cannot be read as a directory ({error.strerror})"
