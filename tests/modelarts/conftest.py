"""The stand-in, buckets, an access key in the environment, and a home that nobody may write into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import house, trained
from tests.modelarts.bench import Bench
from tests.modelarts.buckets import Buckets
from tests.modelarts.stand_in import AK, SK, StandIn
from tests.services import missing

__all__ = ["house", "trained"]


@pytest.fixture(scope="module")
def buckets() -> Iterator[Buckets]:
    """One store for a module's tests, each with a prefix of its own."""
    try:
        import huaweicloudsdkmodelarts  # noqa: F401
        import moto  # noqa: F401
        import obs  # noqa: F401
    except ImportError:
        missing("the extra `modelarts` and moto[s3] (pip install -r requirements-dev.txt)")
    with Buckets() as started:
        yield started


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture
def account(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An access key, where a user would put it."""
    monkeypatch.setenv("HUAWEICLOUD_SDK_AK", AK)
    monkeypatch.setenv("HUAWEICLOUD_SDK_SK", SK)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def stand_in(buckets: Buckets, account: None) -> Iterator[StandIn]:
    """The service."""
    with StandIn(buckets) as started:
        yield started


@pytest.fixture
def bench(stand_in: StandIn, buckets: Buckets, tmp_path: Path, home: Path) -> Iterator[Bench]:
    """A cloud file by which jobs go there. Nothing is left in the home directory."""
    yield Bench(tmp_path, stand_in, buckets)
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == []
