"""What a run that failed leaves behind, by name: nobody has to train, export or measure again to look at it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from proofmark.inference.outcome.record import RunRecord
from proofmark.process.scratch.own_directory import remove
from proofmark.record.events.log import LOG_FILE
from proofmark.record.parts import Kept
from proofmark.rules.config import EffectiveConfig

OWN_DIRECTORY = "engine-"
"""How the name of the directory begins that is the engine's own; the rest of it is drawn."""

HANDED_OVER = "weights-"
"""How the names of folders begin in which the case's process has a model for as long as somebody needs it."""

ARTIFACTS = {"*.onnx": "the exported model", f"{OWN_DIRECTORY}*": "the compiled engine"}
"""What a run leaves beside its results: large, and made again by the next one."""

WEIGHTS_OF_A_MODEL = "*.onnx.data"

_NODE = "noderank0"
"""Where a run's files are that was on another host."""


def cached_weights(config: EffectiveConfig) -> Path:
    """Where the weights are that the suite trains for a case's profile."""
    return Path(config.host.cache_dir) / "weights" / config.suite / f"{config.case}-{config.profile}.safetensors"


def home_of(run_dir: Path) -> Path:
    """Where the logs of the case's processes are: in a folder of their own if those were on a host."""
    return run_dir / _NODE if (run_dir / _NODE).is_dir() else run_dir


def of_case(record: RunRecord, config: EffectiveConfig, run_dir: Path, here: bool = True) -> tuple[Kept, ...]:
    """What there is of a case's run, nothing if it did not fail; trained weights are listed if it ran `here`."""
    return tuple(_of_case(record, config, run_dir, here)) if record.failed else ()


def _of_case(record: RunRecord, config: EffectiveConfig, run_dir: Path, here: bool) -> Iterator[Kept]:
    if here and record.weights is not None and "training" in config.parameters and cached_weights(config).exists():
        yield Kept(what="the trained weights", path=str(cached_weights(config)))
    home = home_of(run_dir)
    for pattern, what in ARTIFACTS.items():
        for path in sorted(home.glob(pattern)):
            if path.is_file() or any(path.iterdir()):
                yield Kept(what=what, path=str(path.relative_to(run_dir)))
    if record.framework is not None or record.engine is not None:
        yield Kept(what="all that was measured", path=LOG_FILE)
    for name, what in (("worker.log", "what the case's process printed"), ("agent.log", "what its agent printed")):
        path = home / name
        if path.exists() and path.stat().st_size:
            yield Kept(what=what, path=str(path.relative_to(run_dir)))


def remove_handed_over(home: Path) -> None:
    """A process that was killed could not."""
    for path in home.glob(f"{HANDED_OVER}*"):
        remove(path)


def remove_artifacts(run_dir: Path) -> None:
    """Give their space back."""
    for pattern in (*ARTIFACTS, WEIGHTS_OF_A_MODEL):
        for path in home_of(run_dir).glob(pattern):
            if path.is_dir():
                remove(path)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
