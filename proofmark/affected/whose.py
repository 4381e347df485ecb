"""Whose change it is: a vendor's, held to what the base says that a vendor may touch, or anybody's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from proofmark.affected.changes import Change
from proofmark.affected.reach import vendors_in
from proofmark.affected.rooms import Rooms
from proofmark.literal import some

SHOWN = 5
"""Files that are named in a line."""

LONGEST = 1024
"""Bytes of a path in the project; of one on a disk most systems take 4,096."""


@dataclass(frozen=True)
class Whose:
    """Attributes:
    vendors: whose files have changed.
    outside: what else has changed, where the files of exactly one vendor have.
    """

    vendors: tuple[str, ...]
    outside: tuple[str, ...] = ()

    @property
    def vendor(self) -> str | None:
        """The vendor that it is judged as a change of."""
        return self.vendors[0] if len(self.vendors) == 1 and not self.outside else None

    def __str__(self) -> str:
        if not self.vendors:
            return "no vendor's files have changed"
        if self.vendor:
            return f"judged as vendor {self.vendor}'s: nothing but vendors/{self.vendor}/ has changed"
        if len(self.vendors) > 1:
            return f"not judged as a vendor's: it touches vendors {', '.join(self.vendors)}"
        named = some(self.outside, SHOWN)
        return f"not judged as vendor {self.vendors[0]}'s: it touches what a vendor may not: {named}"


def whose(files: Iterable[Change], rooms: Rooms) -> Whose:
    """Decide it by the base's rooms."""
    changed = tuple(files)
    vendors = tuple(vendors_in(changed))
    if len(vendors) != 1:
        return Whose(vendors)
    may = [each for each in changed if rooms.may_touch(vendors[0], each.path) and not _spoils_checkouts(each)]
    return Whose(vendors, tuple(each.path for each in changed if each not in may))


def _spoils_checkouts(change: Change) -> bool:
    """Whether it may keep everybody else from the project's files: another repository's commit, which nobody need have,
    or a path that is too long where a checkout lies a little deeper."""
    return change.submodule or len(os.fsencode(change.path)) > LONGEST
