"""The cache of trained weights: keyed by everything that made them, and never believed unchecked."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from proofmark.affected.imports import imports_of
from proofmark.errors import StepError
from proofmark.inference.recipe import Recipe
from proofmark.inference.steps import weights
from proofmark.inference.steps.embedded import seen_by_training
from proofmark.inference.steps.weights import embedded_weights
from proofmark.record.identity import identify
from proofmark.record.integrity.own_key import KEY, OwnKey
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig, HostSettings
from tests.unit.automl.net import Net

ROOT = Path(__file__).parents[3]
TRAINING = {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}


class Cache:
    """A cache directory, and what was told of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.messages: list[str] = []

    @property
    def entry(self) -> Path:
        """The weights' file."""
        return self.directory / "weights/inference/net-embedded.safetensors"

    def get(self, case: Net | None = None, **parameters: Any) -> torch.nn.Module:
        """A model with the cache's weights; what was told is this call's."""
        self.messages = []
        values = {"training": TRAINING, "seed": 0} | parameters
        host = HostSettings(cache_dir=str(self.directory))
        config = EffectiveConfig("inference", "net", "embedded", "acme", values, {}, host=host)
        torch.manual_seed(0)
        model = (case or Net()).create_model(config)
        embedded_weights(case or Net(), model, config, self.messages.append, lambda **figures: None)
        return model


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setattr(weights, "train", quickly)
    return Cache(tmp_path)


def quickly(case: Net, config: EffectiveConfig, recipe: Recipe, directory: Path, progress: Any) -> Path:
    """In place of a training in a process of its own: weights that follow from recipe and data."""
    seen = seen_by_training(config)
    case.build_dataloader(seen, "train")
    torch.manual_seed(recipe.epochs)
    save_file(case.create_model(seen).state_dict(), directory / "weights.safetensors")
    return directory / "weights.safetensors"


def test_trained_once(cache: Cache) -> None:
    first = identify(cache.get(), "")
    assert cache.messages == ["no cached weights for net-embedded: training them"]
    assert identify(cache.get(), "") == first
    assert cache.messages == []


def test_another_recipe_is_stale(cache: Cache) -> None:
    cache.get()
    cache.get(training=TRAINING | {"epochs": 2})
    assert len(cache.messages) == 1 and "are stale" in cache.messages[0] and str(cache.entry) in cache.messages[0]
    cache.get(training=TRAINING | {"epochs": 2})
    assert cache.messages == []


def test_how_a_run_is_judged_makes_no_weights_stale(cache: Cache) -> None:
    first = identify(cache.get(target=0.9, flops=8.0, warmup=3), "")
    assert identify(cache.get(target=0.5, flops=9.0, warmup=1), "") == first
    assert cache.messages == []


def test_training_does_not_see_how_a_run_is_judged(cache: Cache) -> None:
    class Peeks(Net):
        def build_dataloader(self, config: Any, split: str = "validation") -> Any:
            assert "training" in config and not {"target", "flops", "warmup"} & set(config)
            return super().build_dataloader(config, split)

    cache.get(Peeks(), target=0.9, flops=8.0, warmup=3)


def test_other_data_versions_or_code_are_stale(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.get()
    other = Net()
    other.data = "1"
    cache.get(other)
    assert "are stale" in cache.messages[0]
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99")
    cache.get(other)
    assert "are stale" in cache.messages[0]
    monkeypatch.setattr("proofmark.inference.steps.weights._source", lambda module: "other code")
    cache.get(other)
    assert "are stale" in cache.messages[0]


def test_what_other_cases_of_a_session_have_imported_makes_nothing_stale(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.get()
    other = ModuleType("tests.unit.automl.another")
    other.__file__ = __file__
    monkeypatch.setitem(sys.modules, other.__name__, other)
    cache.get()
    assert cache.messages == []


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_damaged_weights_are_made_again(cache: Cache, damage: str) -> None:
    first = identify(cache.get(), "")
    content = bytearray(cache.entry.read_bytes())
    content[-1] ^= 1
    damaged = {"flip": bytes(content), "truncate": bytes(content[:-4]), "empty": b""}
    cache.entry.unlink() if damage == "delete" else cache.entry.write_bytes(damaged[damage])
    assert identify(cache.get(), "") == first
    damage_text = "incomplete" if damage == "delete" else "corrupt (checksum differs)"
    assert len(cache.messages) == 1 and damage_text in cache.messages[0]
    cache.get()
    assert cache.messages == []


def test_other_weights_with_a_fitting_manifest_are_made_again(cache: Cache) -> None:
    """Whoever writes the cache knows how its entries are made, but not the key."""
    first = identify(cache.get(), "")
    manifest = cache.entry.with_suffix(".json")
    made = json.loads(manifest.read_text())
    torch.manual_seed(99)
    save_file(Net().create_model(EffectiveConfig("i", "n", "e", "a", {}, {})).state_dict(), cache.entry)
    forged = made | {"sha256": hashlib.sha256(cache.entry.read_bytes()).hexdigest()}
    unsigned = {name: value for name, value in forged.items() if name != "signature"}
    for content in (forged, unsigned, forged | {"signature": None}, forged | {"signature": "é"}):
        (forgery := cache.entry.with_suffix(".forged")).write_bytes(cache.entry.read_bytes())
        manifest.write_text(json.dumps(content))
        assert identify(cache.get(), "") == first
        assert cache.messages == [f"cached weights {cache.entry} are not signed with this cache's key: training them"]
        forgery.replace(cache.entry)


def test_entries_can_not_be_exchanged(cache: Cache) -> None:
    cache.get()
    made = json.loads(cache.entry.with_suffix(".json").read_text())
    own = OwnKey(cache.directory)
    assert own.signed(made["signature"], "net-embedded", made["key"], made["sha256"])
    assert not own.signed(made["signature"], "other-embedded", made["key"], made["sha256"])


def test_a_key_that_others_can_read_is_refused(cache: Cache) -> None:
    cache.get()
    key = cache.directory / KEY
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o640)
    with pytest.raises(StepError, match=f"{key} can be read or written by others .mode 640.: chmod 600"):
        cache.get()
    key.chmod(0o600)
    key.write_bytes(b"short")
    with pytest.raises(StepError, match=f"{key} is not a key: expected 32 bytes, found 5"):
        cache.get()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b'{"key": 1', b"\xff", None])
def test_damaged_manifest(cache: Cache, content: bytes | None) -> None:
    first = identify(cache.get(), "")
    manifest = cache.entry.with_suffix(".json")
    manifest.unlink() if content is None else manifest.write_bytes(content)
    assert identify(cache.get(), "") == first
    assert len(cache.messages) == 1 and ": training them" in cache.messages[0]


def test_broken_off_training_is_no_entry(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    cache.get()
    with monkeypatch.context() as patch:
        patch.setattr(weights, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cache.get(training=TRAINING | {"epochs": 2})
    cache.get()
    assert cache.messages == [], "what was there does for those who made it"
    cache.get(training=TRAINING | {"epochs": 2})
    assert "are stale" in cache.messages[0]


def test_what_a_killed_training_has_left_goes_with_the_next(cache: Cache) -> None:
    cache.get()
    left, others = (cache.entry.parent / f"{name}{weights.TRAINING}x1" for name in ("net-embedded", "net-embedded-2"))
    for folder in (left, others):
        (folder / "noderank0").mkdir(parents=True)
    cache.get()
    assert left.exists()
    cache.get(training=TRAINING | {"epochs": 2})
    assert not left.exists() and others.exists()


def test_a_cache_that_cannot_be_written_is_used_where_it_is_valid(cache: Cache) -> None:
    first = identify(cache.get(), "")
    lock = cache.entry.with_suffix(".lock")
    lock.unlink()
    lock.mkdir()  # whoever is root may write everywhere, but to no directory
    assert identify(cache.get(), "") == first and cache.messages == []
    stale = f"cached weights {cache.entry} are stale .*, and the cache cannot be written .{lock}: .*--cache-dir"
    with pytest.raises(StepError, match=stale):
        cache.get(training=TRAINING | {"epochs": 2})
    assert identify(cache.get(), "") == first and cache.messages == []


def test_two_at_once_train_once(cache: Cache) -> None:
    trained = []

    def one() -> None:
        mine = Cache(cache.directory)
        mine.get()
        trained.extend(mine.messages)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trained == ["no cached weights for net-embedded: training them"]


@pytest.mark.parametrize(
    "identity, told",
    [
        (None, "the data set of 'train', a .*, has no `identity`"),
        (Identity(name="x", sha256="0" * 64, items=7), "says 7"),
    ],
)
def test_what_is_trained_on_says_what_it_is(cache: Cache, identity: Identity | None, told: str) -> None:
    class Strange(Net):
        def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Any:
            loader = super().build_dataloader(config, split)
            loader.dataset.identity = identity
            return loader

    with pytest.raises(StepError, match=f"^build_dataloader: .*{told}"):
        cache.get(Strange())


def test_a_profile_without_a_recipe(tmp_path: Path) -> None:
    config = EffectiveConfig("inference", "net", "standard", "acme", {}, {}, host=HostSettings(cache_dir=str(tmp_path)))
    with pytest.raises(
        StepError, match=r"net\.yaml: profiles\.standard\.parameters\.training: .* such as \{.*\}, or --w"
    ):
        embedded_weights(Net(), torch.nn.Linear(2, 2), config, print, print)
    assert not list(tmp_path.iterdir())


def test_manifest_names_the_file_that_it_vouches_for(cache: Cache) -> None:
    cache.get()
    manifest = json.loads(cache.entry.with_suffix(".json").read_text())
    assert set(manifest) == {"key", "sha256", "signature"}
    assert not list(cache.entry.parent.glob("*.draft"))


class TestIdentity:
    def test_follows_every_bit_and_nothing_else(self) -> None:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        first = identify(model, "a").sha256
        assert identify(model, "b").sha256 == first
        for change in (
            lambda: model[0].weight.data.mul_(1.0000001),
            lambda: model[1].running_mean.add_(1),
            lambda: model.half(),
        ):
            before = identify(model, "").sha256
            change()
            assert identify(model, "").sha256 != before

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int8, torch.bool])
    def test_any_type(self, dtype: torch.dtype) -> None:
        module = torch.nn.Module()
        module.register_buffer("b", torch.ones(3).to(dtype))
        module.register_buffer("scalar", torch.tensor(1).to(dtype))
        assert len(identify(module, "").sha256) == 64


MAKES_NO_WEIGHTS = {
    *(f"proofmark.training.ranks.{name}" for name in ("account", "clock", "communication", "left", "recording")),
    *(f"proofmark.training.ranks.{name}" for name in ("saving", "model.evaluation", "model.referee")),
    "proofmark.training.ranks.model.gathering",  # of several ranks
    "proofmark.training.ranks.model.rehearsal",
    "proofmark.vendor.contract",
}
"""What a training uses to count, to judge and to write down what it does."""


def test_a_part_of_the_training_that_moves_to_another_module_stays_in_the_key() -> None:
    """Whatever the modules import of their own rooms decides the weights too, or is known not to."""
    rooms = ("proofmark.training.ranks", "proofmark.training.feeding", "proofmark.vendor")
    imported = set()
    for module in weights.TRAINED_BY:
        file = Path(*module.split(".")).with_suffix(".py")
        names = imports_of(file.as_posix(), (ROOT / file).read_text("utf-8"))
        files = {name for name in names if (ROOT / Path(*name.split("."))).with_suffix(".py").is_file()}
        imported |= {name for name in files if name.startswith(rooms)}
    assert imported - set(weights.TRAINED_BY) == MAKES_NO_WEIGHTS
