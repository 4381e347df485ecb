"""The embedded images."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from proofmark.errors import StepError
from suites.data.images import digits as module
from suites.data.images.digits import digits
from suites.data.images.loaders import image_loader
from tests.suites.conftest import config_of


def test_they_are_those_that_the_package_gives() -> None:
    images, classes = module._scanned()
    given = load_digits()
    assert np.array_equal(images, given.images) and np.array_equal(classes, given.target)


def test_without_the_package_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "distribution", missing)
    module._scanned.cache_clear()
    with pytest.raises(StepError, match="scikit-learn's: .*; pip install scikit-learn"):
        digits("train", 8, 1)


def test_splits_share_no_image_and_are_stratified() -> None:
    train, validation = digits("train", 8, 1), digits("validation", 8, 1)
    assert len(train) + len(validation) == 1797
    assert 0.19 < len(validation) / 1797 < 0.21
    assert validation.targets.bincount().min() >= 34
    assert train.targets.bincount().min() >= 139
    assert not {image.numpy().tobytes() for image in train.inputs[0]} & {
        image.numpy().tobytes() for image in validation.inputs[0]
    }


def test_images_are_scaled_replicated_and_normalised() -> None:
    images = digits("validation", 32, 3).inputs[0]
    assert images.shape[1:] == (3, 32, 32)
    assert images.dtype == torch.float32
    assert images.min() == -1
    assert images.max() <= 1
    assert torch.equal(images[:, 0], images[:, 2])


def test_identity_is_of_the_content() -> None:
    one = digits("validation", 8, 1).identity
    assert one == digits("validation", 8, 1).identity
    assert one.items == len(digits("validation", 8, 1))
    assert len({one.sha256, digits("train", 8, 1).identity.sha256, digits("validation", 16, 1).identity.sha256}) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_gives_every_image_once_in_order(workers: int) -> None:
    loader = image_loader(config_of("vit", num_workers=workers, batch_size=50), "validation")
    data = digits("validation", 32, 3)
    for _ in range(2):
        batches = list(loader)
        assert [len(targets) for _, targets in batches] == [50] * 7 + [5]
        assert torch.equal(torch.cat([targets for _, targets in batches]), data.targets)
        assert torch.equal(torch.cat([inputs[0] for inputs, _ in batches]), data.inputs[0])


def test_loading_leaves_the_global_random_numbers_alone() -> None:
    loader = image_loader(config_of("vit"), "validation")
    before = torch.get_rng_state()
    list(loader)
    assert torch.equal(before, torch.get_rng_state())
