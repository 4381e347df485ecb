"""Keys of FlagPerf's cases: which of ours they are, and what becomes of those that no vendor says."""

from __future__ import annotations

from typing import Any

from proofmark.flagperf.adaptation.fates import Fate, shown
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.our_cases import OurCase
from proofmark.names import renamed

PRECISIONS = {"fp16": "fp16", "amp": "fp16", "use_amp": "fp16", "bf16": "bf16", "use_bf16": "bf16", "tf32": "tf32"}
"""Switches of FlagPerf's cases, and which precision each stands for."""

BY_ITSELF = {
    "vendor": "--vendor says it",
    "data_dir": "--data-dir, or the run list, says it",
    "local_rank": "torchrun says it",
    "n_device": "the scale says it",
    "dist_init_method": "torchrun says it",
    "name": "the folder says it",
    "do_train": "a training trains",
}
"""Keys of FlagPerf's cases that say what is known here anyway."""


OF_THE_PACKAGE = {"dist_backend": "__init__.py: distributed_backend", "theoryflops": "chips.yaml"}
"""Keys that a vendor's package says here, and where in it."""


def ours_of(case: OurCase, key: str, value: Any) -> tuple[str | None, Any]:
    """Our setting and its value for a key of theirs."""
    settings = case.file.settings
    if key not in settings and key in PRECISIONS and isinstance(value, bool) and "precision" in settings:
        return "precision", PRECISIONS[key] if value else "fp32"
    return case.setting(key), value


def is_off(key: str, value: Any) -> bool:
    """Whether it is a switch of a precision that is off, which says nothing where another is on: it is read last."""
    return key in PRECISIONS and value is False


def fate_of_shared(moved: Moved, case: OurCase, key: str, value: Any) -> tuple[Fate, str]:
    """What becomes of a key that all vendors share, and why: here it is the case's to say, and nobody's to move."""
    if key in BY_ITSELF:
        return "redundant", BY_ITSELF[key]
    if key.lower() in OF_THE_PACKAGE:
        return "redundant", f"each vendor says its own: {moved.package}/{OF_THE_PACKAGE[key.lower()]}"
    ours, theirs = ours_of(case, key, value)
    if ours is not None:
        setting = case.file.settings[ours]
        return _compared(case, key, ours, setting.normalise(theirs), setting.value)
    found = _of_the_task(case, key)
    if found is not None:
        return _compared(case, key, found[0], value, found[1])
    what = case.held(moved.checkout.vendor, {key: value}).wrong.get(key, (False, ""))[1]
    if "reserved name" in what or "host setting" in what:
        return "redundant", what
    return "unknown", "this case has nothing that is called so"


def same_as_the_task(case: OurCase, key: str, value: Any) -> str:
    """Why a vendor need not say a parameter of the task: it is so here; empty where it is not."""
    found = _of_the_task(case, key)
    return _compared(case, key, found[0], value, found[1])[1] if found and _same(value, found[1]) else ""


def _of_the_task(case: OurCase, key: str) -> tuple[str, Any] | None:
    """A parameter of ours that is called so, or is a size of the model, or is the target or the seed."""
    parameters = case.file.parameters.model_dump()
    model = parameters.get("model")
    name = case.parameter(key)
    if name is None and isinstance(model, dict) and (size := key if key in model else renamed(key, model)):
        return f"model: {size}", model[size]
    words = key.lower().split("_")
    name = name or next((each for each in ("target", "seed") if each in words and each in parameters), None)
    return None if name is None else (name, parameters[name])


def _compared(case: OurCase, key: str, ours: str, theirs: Any, here: Any) -> tuple[Fate, str]:
    named = "" if ours == key else f"{ours} "
    if _same(theirs, here):
        return "redundant", f"the case's own, the same here{f' ({ours})' if named else ''}"
    here = list(here) if isinstance(here, tuple) else here
    profile = case.file.profile
    return "differs", f"the case's own: theirs {shown(theirs)}, here {named}{shown(here)} in profile {profile}"


def _same(theirs: Any, here: Any) -> bool:
    here = list(here) if isinstance(here, tuple) else here
    return bool(theirs == here) and isinstance(theirs, bool) == isinstance(here, bool)
