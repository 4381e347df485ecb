"""The original's `config.yml`: what it asks for, and what becomes of each key here.

Its trials are commands of a shell, whose words are read and never run. Of its 16 parameters some are settings here,
some are what the house does by itself, and some did nothing there either; each of them says so.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from proofmark.errors import ConfigurationError, Problem, harmless
from proofmark.rules.yaml.strict import load_mapping

Came = Literal["taken over as", "not needed:", "yours to say:", "unknown"]

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Fate:
    """What became of a key: `what` is a setting with its value, or why there is none."""

    key: str
    value: str
    came: Came
    what: str

    def __str__(self) -> str:
        what = self.what if self.came == "unknown" else f"{self.came} {self.what}"
        return harmless(f"{self.key} {self.value}".strip() + f": {what}")


@dataclass
class ConfigYml:
    """What a file asks for.

    Attributes:
        fates: of each of its keys.
        settings: configurations of a search by name.
        data_dir: the folder with the images, None where the file does not say.
    """

    fates: list[Fate] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    data_dir: str | None = None


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError("expected a whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("expected a number")
    return number


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if found is None:
        raise ValueError("expected a number with s, m, h or d, such as 12h")
    return float(int(found[1]) * SECONDS[found[2]])


TAKEN: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "maxExecDuration": ("max_seconds", _seconds),
    "maxTrialNum": ("max_trials", _whole),
    "--batch_size": ("batch_size", _whole),
    "--epochs": ("epochs", _whole),
    "--epoch": ("epochs", _whole),
    "--warmup_1": ("warmup_1", _whole),
    "--warmup_2": ("warmup_2", _whole),
    "--warmup_3": ("warmup_3", _whole),
    "--initial_lr": ("learning_rate", _number),
}
"""Keys that are a setting here."""

NOT_NEEDED: Mapping[str, str] = {
    "authorName": "a record names no author",
    "experimentName": "a session is called by the time that it began",
    "trialConcurrency": "each device has a trial",
    "trainingServicePlatform": "--launcher says where trials run",
    "searchSpacePath": "the case has the ranges of hyper-parameters",
    "useAnnotation": "nothing is read out of a program's comments",
    "logLevel": "all events are written down",
    "debug": "all events are written down",
    "tuner.builtinTunerName": "there is one search, by network morphism",
    "tuner.classArgs.optimize_mode": "accuracy is maximised",
    "tuner.classArgs.task": "the case classifies images",
    "tuner.classArgs.input_width": "the profile has the size of images",
    "tuner.classArgs.input_channel": "the case has the channels of images",
    "tuner.classArgs.n_output_node": "the profile has the number of classes",
    "trial.codeDir": "a trial's program is the suite's",
    "trial.gpuNum": "devices_per_trial says how many a trial has",
    "CUDA_VISIBLE_DEVICES": "the devices are those that the environment leaves visible: set it before the command",
    "NPU_NUM": "the vendor says how many devices there are",
    "-N": "--launcher and --cluster say on which hosts",
    "-n": "a trial's processes are started by the suite",
    "--ntasks-per-node": "a trial's processes are started by the suite",
    "--cpus-per-task": "a trial has the cores of its host",
    "--slave": "it is trialConcurrency again: each device has a trial",
    "--ip": "there is no master to reach: no port listens",
    "--final_lr": "the learning rate falls to 0; the original never read this one",
    "--maxTPEsearchNum": "the study chooses before a trial trains: no trial is trained twice",
    "--smooth_factor": "labels are smoothed by 0.1",
}
"""Keys that mean something there and nothing here, and why."""

YOURS: Mapping[str, str] = {
    "--num_parallel_calls": "num_workers is of each loader, of which each trial has two; those were threads of a node",
}
"""Keys that mean something here which their value does not say, and what."""

COMMAND = "trial.command: "
"""Before a word of a command that is neither a variable nor an option."""

DATA = ("--train_data_dir", "--val_data_dir")
PROGRAM = "the program of a trial is the suite's"


def read_config_yml(path: Path) -> ConfigYml:
    """Read it. Nothing in it is run, and no path in it is opened.

    Raises:
        ConfigurationError: unreadable, no such file, or a value that is none; every problem.
    """
    where, read, problems = str(path), ConfigYml(), list[Problem]()
    given, again = dict[str, str](), dict[str, Problem]()
    for key, value in _keys(load_mapping(path), where, problems):
        if key in given and not key.startswith(COMMAND):
            again[key] = Problem(where, key, "is given more than once")
            continue
        given[key] = value
        if not f"{key}{value}".isprintable():  # each line of what is printed would be an argument of its own
            problems.append(Problem(where, harmless(key), f"expected a text of one line, found {value[:80]!r}"))
            continue
        try:
            read.fates += _fate(key, value, read.settings)
        except ValueError as error:
            problems.append(Problem(where, key, f"{error}, found {value[:80]!r}"))
    _take_data(read, given)
    problems += again.values()
    if problems:
        raise ConfigurationError(problems)
    return read


def _fate(key: str, value: str, settings: dict[str, Any]) -> list[Fate]:
    """What becomes of a key; one for data waits for the other one.

    Raises:
        ValueError: its value is none.
    """
    if key in DATA:
        return []
    if key in TAKEN:
        name, convert = TAKEN[key]
        if name in settings:
            raise ValueError(f"sets {name} a second time")
        settings[name] = convert(value)
        return [Fate(key, value, "taken over as", f"{name}={settings[name]}")]
    if key in NOT_NEEDED:
        return [Fate(key, value, "not needed:", NOT_NEEDED[key])]
    if key in YOURS:
        return [Fate(key, value, "yours to say:", YOURS[key])]
    if key.startswith(COMMAND):
        return [Fate(key, value, "not needed:", PROGRAM)]
    return [Fate(key, value, "unknown", "unknown, so it is ignored")]


def _take_data(read: ConfigYml, given: Mapping[str, str]) -> None:
    """The original has two folders, this suite the one that has both."""
    folders = {key: Path(given[key]) for key in DATA if key in given}
    parents = {folder.parent for folder in folders.values()}
    if [folder.name for folder in folders.values()] == ["train", "val"] and len(parents) == 1:
        read.data_dir = str(parents.pop())
        read.fates += [Fate(key, given[key], "taken over as", f"--data-dir {read.data_dir}") for key in folders]
        return
    what = "give --data-dir a folder with train and val, each with one folder of images per class"
    read.fates += [Fate(key, given[key], "yours to say:", what) for key in folders]


def _keys(values: Mapping[str, Any], where: str, problems: list[Problem], above: str = "") -> Iterator[tuple[str, str]]:
    """Every key with its value as text: of a mapping those within, of a trial's command its words."""
    for name, value in values.items():
        key = f"{above}{name}"
        if key == "trial.command":
            yield from _words(value, where, problems)
        elif isinstance(value, dict):
            yield from _keys(value, where, problems, f"{key}.")
        elif isinstance(value, list):
            problems.append(Problem(where, key, "expected a single value, found a list"))
        else:
            yield key, "" if value is None else str(value)


def _words(command: Any, where: str, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """Variables, options with their values, and the rest, as `trial.command: WORD`, of a command's text."""
    try:
        if not isinstance(command, str):
            raise ValueError("expected text")
        words = shlex.split(re.sub(r"\\(\s|$)", " ", command))
    except ValueError as error:
        problems.append(Problem(where, "trial.command", f"cannot be read: {error}"))
        return
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            yield name, value
        elif equals and name.isidentifier():
            yield name, value
        else:
            yield f"{COMMAND}{word}", ""
