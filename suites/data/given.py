"""What one look tells of the folders that the user gives, before anything runs: whether that lies there which a case
will open.

Who found out only in the run would have waited for a device first. Alone of the modules here this one imports no torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from proofmark.errors import Problem

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig

SETTINGS = "config.json"
"""What describes a model of the transformers library, beside its weights."""

TOKENIZERS = ("tokenizer.json", "vocab.txt")
"""Either is one."""

COCO = ("annotations/instances_val2017.json", "val2017")

_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_NAMED = 5


class OnGivenFolders:
    """A case whose weights and data are of the forms that are known here."""

    weights_settings: ClassVar[str | None] = SETTINGS
    """The file that must describe the weights; None, where none need."""

    @classmethod
    def host_problems(cls, config: EffectiveConfig) -> list[Problem]:
        """What one look tells of the user's folders."""
        return given_problems(config, cls.weights_settings)


def given_problems(config: EffectiveConfig, settings: str | None) -> list[Problem]:
    """What is wrong with what lies in --weights and --data-dir; nothing of a folder that itself is missing or empty.

    Args:
        config: of a case that runs on this machine.
        settings: the file that must describe the weights, where one must.
    """
    host, problems = config.host, list[Problem]()
    # without validation no model is made
    if host.weights and not config.get("no_validation", False) and _filled(Path(host.weights)):
        directory = Path(host.weights)
        wrong = without_weights(directory) or (settings and _lacking(directory, [settings]))
        if wrong:
            problems.append(Problem("--weights", "", f"{wrong}: expected {_of_weights(config, settings)}"))
    look = _LAYOUTS.get(str(config.get("dataset")))
    if look is None:
        return problems
    if host.data_dir and _filled(Path(host.data_dir)):
        problems += [Problem("--data-dir", "", what) for what in look(Path(host.data_dir), config)]
    return problems + _of_tokenizer(config)


def without_weights(directory: Path) -> str | None:
    """What is wrong with a directory that holds no safetensors, which alone are read: a pickle can run code."""
    names = _names(directory)
    if any(name.endswith(".safetensors") for name in names):
        return None
    if pickles := sorted(name for name in names if name.endswith(_PICKLES)):
        what = f"pickled weights only ({', '.join(pickles[:_NAMED])}), which can run code when loaded"
        return f"{directory} holds {what}; convert them to safetensors"
    return f"{directory} holds no *.safetensors file"


def meant(folders: Iterable[Path]) -> str:
    """Where the class folders are, for one who gives the folder above them."""
    for folder in folders:
        if folder.name in ("val", "validation") and any(path.is_dir() for path in folder.iterdir()):
            return f"; did you mean {folder}?"
    return ""


def _of_weights(config: EffectiveConfig, settings: str | None) -> str:
    holds = f"{settings} and *.safetensors" if settings else "*.safetensors"
    given = Path(str(config.host.weights))
    # a folder of the case's name is the one that was chosen already
    apart = "" if given.name == config.case else f", or a folder {config.case} with these"
    return f"a model directory with {holds}{apart}"


def _of_tokenizer(config: EffectiveConfig) -> list[Problem]:
    """A tokenizer lies beside the weights, or beside a training's data."""
    if config.dataset not in ("text_folder", "record"):
        return []
    training = config.suite == "training"
    places = [Path(each) for each in (config.host.weights, training and config.host.data_dir) if each]
    if not places and not training and config.get("no_validation", False):
        return [Problem("--weights", "", f"case {config.case} needs its tokenizer, which is there: --weights DIR")]
    if not places or not all(map(_filled, places)) or any(_names(place) & {*TOKENIZERS} for place in places):
        return []
    neither = " nor ".join(map(str, places))
    what = f"no tokenizer in {neither}: expected {' or '.join(TOKENIZERS)}"
    return [Problem("--data-dir" if training else "--weights", "", what)]


def _class_folders(root: Path, config: EffectiveConfig) -> Iterator[str]:
    """Folders of a split, or of what is validated with: one per class."""
    for folder in _splits(root, config):
        if not folder.is_dir():
            yield f"{root} holds no folder {folder.name}: expected train and val, each with one folder per class"
            continue
        found = [path for path in _paths(folder) if path.is_dir()]
        if len(found) != config.classes:
            folders = "class folder" if len(found) == 1 else "class folders"
            what = f"{folder} holds {len(found)} {folders}: expected {config.classes}, one per class"
            yield f"{what}, each with that class's images{meant(found)}"


def _text_files(root: Path, config: EffectiveConfig) -> Iterator[str]:
    for folder in _splits(root, config):
        if not folder.is_dir():
            yield f"{root} holds no folder {folder.name}: expected train and val, each with text files (*.txt)"
        elif not any(name.endswith(".txt") for name in _names(folder)):
            yield f"{folder} holds no *.txt file: expected text files in UTF-8"


def _coco(root: Path, config: EffectiveConfig) -> Iterator[str]:
    if lacking := _lacking(root, COCO):
        yield f"{lacking}: expected both as COCO publishes them"


def _record(root: Path, config: EffectiveConfig) -> Iterator[str]:
    if lacking := _lacking(root, ("train.jsonl", "val.jsonl")):
        yield f"{lacking}: expected both as SuperGLUE's ReCoRD has them"


_LAYOUTS: Mapping[str, Callable[[Path, EffectiveConfig], Iterator[str]]] = {
    "image_folder": _class_folders,
    "text_folder": _text_files,
    "coco": _coco,
    "record": _record,
}
"""By what a profile's parameter `dataset` names."""


def _splits(root: Path, config: EffectiveConfig) -> list[Path]:
    return [root / "train", root / "val"] if config.suite == "training" else [root]


def _lacking(root: Path, needed: Iterable[str]) -> str | None:
    lacking = [name for name in needed if not (root / name).exists()]
    return f"{root} holds no {' and no '.join(lacking)}" if lacking else None


def _filled(directory: Path) -> bool:
    """Whether there is anything to be seen: what is not there, or empty, has been told."""
    return bool(_names(directory))


def _names(directory: Path) -> set[str]:
    return {path.name for path in _paths(directory)}


def _paths(directory: Path) -> list[Path]:
    """What lies there, sorted; nothing where it can't be read: the run says why, in the words of who opens it."""
    try:
        return sorted(directory / name for name in os.listdir(directory))
    except OSError:
        return []
