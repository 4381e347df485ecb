"""Files in a vendor's folder that are never read there, and what would be: many are FlagPerf's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from proofmark.names import BRING, hint, meant, misspelled
from proofmark.rules.scale import Scale

CONFIGS = "configs"
"""The folder with a vendor's overrides."""

_THEIRS = "config_"
"""How FlagPerf's settings at a scale begin."""

_THEIR_CASES = "configurations"
"""How FlagPerf's settings of a case end, whichever case it is: acme_configurations.yaml."""

_THEIR_FILES = frozenset({"environment_variables.sh", "test_conf.py", "cluster_conf.py"})
"""FlagPerf's files that stand for something of ours under another name."""

_OWN_YAML = frozenset({"chips", "container", "environment", "isolation", "unsupported"})
"""What a vendor's folder has beside its code and its configs: `<name>.yaml`."""


def names_a_scale(name: str, cases: Mapping[str, bool]) -> bool:
    """Whether a file is a case's at some scale: `<suite>/<case>/<scale>.yaml`. FlagPerf's own names are not taken for
    chips."""
    folder, _, file = name.rpartition("/")
    ours = file.endswith(".yaml") and not file.startswith(_THEIRS)
    return cases.get(folder, False) and ours and Scale.is_named(file.removesuffix(".yaml"))


def what_is_expected(name: str, known: Collection[str], cases: Mapping[str, bool]) -> str:
    """What is wrong with a file under `configs/`, and what would be read in its place."""
    folder, _, file = name.rpartition("/")
    stem, dot, ending = file.rpartition(".")
    scale, bring = stem.removeprefix(_THEIRS), f" (`{BRING}` converts what was made for FlagPerf)"
    suite = next((case.partition("/")[0] for case, scaled in cases.items() if scaled), "<suite>")
    if file.startswith(_THEIRS) and Scale.is_named(scale):
        case = folder if folder in cases else f"{suite}/<case>"
        return f"is never read: FlagPerf's settings at a scale are expected as YAML, in {case}/{scale}.yaml{bring}"
    if Scale.names_two_chips(scale):
        return f"names two chips, so it is never read: expected a file for each, as A100x1x8.yaml{bring}"
    at_scales = [case for case in (folder, f"{folder}/{stem}") if cases.get(case, False)]
    if at_scales and ending == "yaml":
        expected = f"{at_scales[0]}/<scale>.yaml, as A100x1x8.yaml"
        return f"is not named after a scale, so it is never read: expected {expected}{bring}"
    if dot and ending == "yaml":
        near = "" if stem.endswith(_THEIR_CASES) else hint(name, _alike(folder, stem, known))
        return f"is not named after a case, so it is never read{near}{bring}"
    own = f"{folder}/{stem}.yaml"
    if own in known or names_a_scale(own, cases):
        return f"is never read: expected YAML in {own}{bring}"
    expected = f"<suite>/<case>.yaml or {suite}/<case>/<scale>.yaml and no other file"
    return f"is never read: expected {expected}{bring}"


def _alike(folder: str, stem: str, known: Collection[str]) -> list[str]:
    """The files whose case and suite may be meant, each for itself: in whole paths what all have alike would do."""
    split = {name: name.removesuffix(".yaml").rpartition("/") for name in known}
    return [
        name
        for name, (suite, _, case) in split.items()
        if meant(stem, [case]) and (not folder or meant(folder, [suite]))
    ]


def why_never_read(name: str) -> str | None:
    """Why a file in a vendor's folder means nothing there; None of one that may be anything."""
    stem, _, ending = name.rpartition(".")
    scale = stem.removeprefix(_THEIRS)
    settings = name.startswith(_THEIRS) and ending == "py" and (Scale.is_named(scale) or Scale.names_two_chips(scale))
    if settings or name in _THEIR_FILES or name.endswith(f"{_THEIR_CASES}.yaml"):
        return f"is never read: it is FlagPerf's; `{BRING}` converts it"
    if stem in _OWN_YAML and ending in ("yml", "json"):
        return f"is never read: expected YAML in {stem}.yaml"
    if ending == "yaml" and stem not in _OWN_YAML:
        near = (own for own in sorted(_OWN_YAML) if abs(len(own) - len(stem)) <= 1 and misspelled(stem, own))
        return next((_misspelled(f"{own}.yaml") for own in near), None)
    return None


def why_none_is_read(folder: Path, suites: Collection[str]) -> str | None:
    """Why no settings are read in a folder beside the vendor's package; None where it may be the vendor's own code."""
    if folder.name == CONFIGS or not misspelled(folder.name, CONFIGS):
        return None
    files = (path for suite in suites for path in (folder / suite).rglob("*"))
    return _misspelled(CONFIGS) if any(path.suffix in (".yaml", ".yml", ".json") for path in files) else None


def _misspelled(own: str) -> str:
    return f"is never read; did you mean '{own}'?"
