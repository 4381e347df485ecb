"""What a run that failed leaves behind, by name: nobody has to train, export or measure again to look at it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from proofmark.inference.record import RunRecord
from proofmark.record.kept import failed
from proofmark.record.parts import Kept
from proofmark.rules.config import EffectiveConfig

ARTIFACTS = {"*.onnx": "the exported model", "engine": "the compiled engine"}
"""What a run leaves beside its results: large, and made again by the next one."""

_WEIGHTS_OF_A_MODEL = "*.onnx.data"


def cached_weights(config: EffectiveConfig) -> Path:
    """Where the weights are that the suite trains for a case's profile."""
    return Path(config.host.cache_dir) / "weights" / config.suite / f"{config.case}-{config.profile}.safetensors"


def of_case(record: RunRecord, config: EffectiveConfig, run_dir: Path) -> tuple[Kept, ...]:
    """What there is of a case's run, nothing if it did not fail."""
    return tuple(_of_case(record, config, run_dir)) if failed(record) else ()


def _of_case(record: RunRecord, config: EffectiveConfig, run_dir: Path) -> Iterator[Kept]:
    if record.weights is not None and "training" in config.parameters and cached_weights(config).exists():
        yield Kept(what="the trained weights", path=str(cached_weights(config)))
    for pattern, what in ARTIFACTS.items():
        for path in sorted(run_dir.glob(pattern)):
            if path.is_file() or any(path.iterdir()):
                yield Kept(what=what, path=path.name)
    if record.framework is not None or record.engine is not None:
        yield Kept(what="all that was measured", path="events.jsonl")
    yield from _log(run_dir, "worker.log", "what the case's process printed")


def _log(run_dir: Path, name: str, what: str) -> Iterator[Kept]:
    path = run_dir / name
    if path.exists() and path.stat().st_size:
        yield Kept(what=what, path=name)


def remove_artifacts(run_dir: Path) -> None:
    """Give their space back."""
    for pattern in (*ARTIFACTS, _WEIGHTS_OF_A_MODEL):
        for path in run_dir.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
