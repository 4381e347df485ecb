"""FlagPerf's own settings of a training, which all vendors share: `_base.py` and `mutable_params.py`."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

from proofmark.flagperf.adaptation.layout import CaseFolder
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.our_cases import OurCase
from proofmark.flagperf.adaptation.python.literals import Assigned
from proofmark.flagperf.adaptation.python.source import read_python
from proofmark.flagperf.adaptation.settings.shared_keys import fate_of_shared


class Standard(NamedTuple):
    """What all vendors share of a case: its values, and which of them FlagPerf lets vendors change."""

    values: dict[str, Assigned]
    """Of `_base.py`."""

    whole: bool
    """Whether all of `values` could be read."""

    mutable: frozenset[str] | None
    """None where nobody knows."""

    lists: dict[str, Assigned]
    """Of `mutable_params.py`."""

    def says(self, key: str, value: Any) -> str:
        """What FlagPerf's own rules say of an assignment."""
        if self.mutable is not None and key not in self.mutable:
            nowhere = self.whole and key not in self.values
            return "not in FlagPerf's mutable_params" + (", nor in its _base" if nowhere else "")
        base = self.values.get(key)
        same = base is not None and type(base.value) is type(value) and base.value == value
        return "equal to FlagPerf's _base" if same else ""


def read_standard(moved: Moved, folder: CaseFolder) -> Standard:
    """A case as FlagPerf has it. Of a list that could not be read whole nobody knows what is not on it."""
    config = moved.checkout.base_of(folder)
    files = (config / "_base.py", config / "mutable_params.py")
    base, listed = (read_python(file, moved.checkout.root, [config]) if file.exists() else None for file in files)
    for file in filter(None, (base, listed)):
        moved.tell_refused(file)
    mutable = listed.plain.get("mutable_params") if listed and not listed.refused else None
    if listed and not listed.refused and not isinstance(mutable, list):
        moved.tell(files[1], 0, "mutable_params", None, "refused", why="is not a list of names there")
    known = frozenset(map(str, mutable)) if isinstance(mutable, list) else None
    lists = {key: each for key, each in (listed.values if listed else {}).items() if isinstance(each.value, list)}
    return Standard(base.values if base else {}, base is not None and not base.refused, known, lists)


def tell_standard(moved: Moved, case: OurCase | None, folder: CaseFolder, standard: Standard, said: Set[str]) -> None:
    """Tell what became of the case's own keys: none of them is the vendor's, so that none is illegal.

    Args:
        moved: the adaptation.
        case: ours.
        folder: the vendor's.
        standard: theirs.
        said: what the vendor's settings say at every scale.
    """
    if case is None:
        files = dict.fromkeys(each.file for each in (*standard.values.values(), *standard.lists.values()))
        for file in files:
            why = f"{moved.absence(folder)}, nor a use for any of its keys"
            moved.tell(file, 0, "", None, "unknown", why=why)
        return
    for key, each in standard.values.items():
        if key.startswith("_"):
            continue
        if key in said:
            why = f"{moved.checkout.vendor}'s own settings say it at every scale"
            moved.tell(each.file, each.line, key, each.value, "redundant", why=why)
        else:
            fate, why = fate_of_shared(moved, case, key, each.value)
            moved.tell(each.file, each.line, key, each.value, fate, why=why)
    for key, each in standard.lists.items():
        why = f"what may be changed here is in suites/{case.name}.yaml"
        moved.tell(each.file, each.line, key, each.value, "redundant", why=why)
