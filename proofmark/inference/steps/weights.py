"""Weights that the suite trains itself, cached under a hash of everything that made them."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.affected.imports import sources
from proofmark.errors import StepError
from proofmark.inference.outcome.kept import cached_weights
from proofmark.inference.recipe import Recipe
from proofmark.inference.steps.embedded import seen_by_training, train
from proofmark.literal import short
from proofmark.measuring.rehearsal import checked_data, checked_dataset
from proofmark.process.scratch.own_directory import remove
from proofmark.record.identity import identify
from proofmark.record.integrity.own_key import OwnKey
from proofmark.record.parts import Identity
from proofmark.rules.case_file import numbers_of

if TYPE_CHECKING:
    import torch

    from proofmark.inference.case import InferenceCase
    from proofmark.rules.config import EffectiveConfig

Note = Callable[[str], None]

TRAINING = ".training-"
"""What follows an entry's name in that of the directory in which it is trained."""

TRAINED_BY = (
    "proofmark.case",
    "proofmark.inference.recipe",
    "proofmark.inference.steps.embedded",
    "proofmark.training.case",
    *(f"proofmark.training.feeding.{name}" for name in ("batches", "loading")),
    *(f"proofmark.training.ranks.{name}" for name in ("goal", "model.own", "model.strategy", "stepper", "trainer")),
    "proofmark.vendor.adapter",
)
"""Modules whose change makes other weights."""


def embedded_weights(
    case: InferenceCase,
    model: torch.nn.Module,
    config: EffectiveConfig,
    note: Note,
    progress: Callable[..., None],
    rehearse: Callable[[], None] = lambda: None,
) -> Identity:
    """Put the embedded profile's weights into `model`: from the cache, or by training them now.

    A cached entry that is stale (made by other code, parameters or versions), corrupt, or not signed with the user's
    key is named in a note and trained again, after `rehearse` found nothing wrong. Two runs at once train once.

    Raises:
        StepError: the case's profile has no recipe, the key in the cache is none, the training failed, or the weights
            are not in the cache and it can't be written.
    """
    from safetensors.torch import load

    if "training" not in config.parameters:
        where = f"{short(numbers_of(type(case)))}: profiles.{config.profile}.parameters.training"
        shape = "{epochs: 30, batch_size: 64, learning_rate: 1.0e-2}"
        raise StepError(f"{where}: missing, so there are no weights; expected a recipe such as {shape}, or --weights")
    entry = cached_weights(config).with_suffix("")
    with _locked(entry.with_suffix(".lock")) as unwritable:
        with ThreadPoolExecutor(1) as beside:
            reading = beside.submit(_read, entry)
            key = _key(case, seen_by_training(config))
        own = _own_key(Path(config.host.cache_dir), entry, unwritable)
        manifest, content, digest = reading.result()
        wrong = _wrong(entry, manifest, digest, key, own)
        if wrong is None:
            model.load_state_dict(load(content))
            return identify(model, f"trained by the suite (cached as {key[:12]})")
        if unwritable:
            raise _not_kept(wrong, unwritable)
        note(f"{wrong}: training them")
        rehearse()
        content = _trained(case, config, entry, progress)
        model.load_state_dict(load(content))
        _sign(entry, key, content, own)
        return identify(model, f"trained by the suite (as {key[:12]})")


def _trained(case: InferenceCase, config: EffectiveConfig, entry: Path, progress: Callable[..., None]) -> bytes:
    """Weights made now, which the cache has from here on, not signed yet."""
    recipe = Recipe.model_validate(dict(config.parameters["training"]))
    for left in entry.parent.glob(f"{entry.name}{TRAINING}*"):  # by a run that was killed: this one alone is here
        remove(left)
    with tempfile.TemporaryDirectory(prefix=f"{entry.name}{TRAINING}", dir=entry.parent) as folder:
        made = train(case, config, recipe, Path(folder), progress)
        content = made.read_bytes()
        entry.with_suffix(".json").unlink(missing_ok=True)  # not before: what is there may do for another run
        made.replace(entry.with_suffix(".safetensors"))
    return content


def _sign(entry: Path, key: str, content: bytes, own: OwnKey) -> None:
    """Say beside an entry of the cache what it is."""
    draft, digest = entry.with_suffix(".draft"), _digest(content)
    manifest = {"key": key, "sha256": digest, "signature": own.sign(entry.name, key, digest)}
    draft.write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    draft.replace(entry.with_suffix(".json"))


def _own_key(cache_dir: Path, entry: Path, unwritable: OSError | None) -> OwnKey:
    try:
        return OwnKey(cache_dir)
    except ValueError as error:
        raise StepError(str(error)) from None
    except OSError as error:
        raise _not_kept(f"no cached weights for {entry.name}", unwritable or error) from None


def _not_kept(wrong: str, error: OSError) -> StepError:
    """The weights are to be trained, and there is no place for them."""
    why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return StepError(f"{wrong}, and the cache cannot be written ({why}): --cache-dir names another")


def _key(case: InferenceCase, config: EffectiveConfig) -> str:
    """A hash of what decides the weights: the parameters it sees, code of case and training, data, versions."""
    loader = case.build_dataloader(config, "train")
    checked_data(loader, "build_dataloader", ("dataset", "__len__", "__iter__"))
    checked_dataset(loader.dataset, "build_dataloader", "the data set of 'train'")
    made_by: dict[str, Any] = {
        "parameters": config.as_dict()["parameters"],
        "code": _code(type(case).__module__),
        "training": {name: _source(name) for name in TRAINED_BY},
        "data": loader.dataset.identity.sha256,
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "transformers", "numpy")},
    }
    return hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()


def _source(module: str) -> str:
    """A module's text, without importing it: that takes a second where nothing is to be trained."""
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None
    return Path(found.origin).read_text(encoding="utf-8")


def _code(module: str) -> dict[str, str]:
    """A case's module, and what it may import of its package; not what this session's other cases have imported."""
    package = sys.modules[module.partition(".")[0]]
    return sources(module, getattr(package, "__path__", ())) or {module: _source(module)}


def _read(entry: Path) -> tuple[Any, bytes, str]:
    """What the cache has: what is said of the weights, these, and their hash. Of an incomplete entry it is nothing."""
    try:
        manifest = json.loads(entry.with_suffix(".json").read_text(encoding="utf-8"))
        content = entry.with_suffix(".safetensors").read_bytes()
    except (OSError, ValueError):
        return None, b"", ""
    return manifest, content, _digest(content)


def _wrong(entry: Path, manifest: Any, digest: str, key: str, own: OwnKey) -> str | None:
    """Why a cached entry can't be used, or None."""
    weights = entry.with_suffix(".safetensors")
    if not entry.with_suffix(".json").exists() and not weights.exists():
        return f"no cached weights for {entry.name}"
    wrong = None
    try:
        if manifest["key"] != key:
            wrong = "stale (made by other code, parameters or versions)"
        elif manifest["sha256"] != digest:
            wrong = "corrupt (checksum differs)"
        elif not own.signed(manifest.get("signature"), entry.name, key, digest):
            wrong = "not signed with this cache's key"
    except (KeyError, TypeError):
        wrong = "incomplete"
    return wrong and f"cached weights {weights} are {wrong}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[OSError | None]:
    """Alone with the entry; with the reason where the cache can't be written, and then nobody changes it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("w")
    except OSError as error:
        yield error
        return
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield None
