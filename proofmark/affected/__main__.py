"""`python -m proofmark.affected --since BASE --head COMMIT`: whose change it is, without checking it out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from proofmark.affected.git import changes_between, has, has_changed, text_at
from proofmark.affected.rooms import FILE, Rooms, read_rooms
from proofmark.affected.whose import whose
from proofmark.errors import harmless
from proofmark.process.command_line import Parser, command, reporting_errors

NOT_A_VENDORS = 1
"""The exit code of another change than a vendor's."""


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Print `vendor=NAME` of a change that is one vendor's, as GitHub's outputs are written, else why it is none."""
    parser = Parser(prog="python -m proofmark.affected", description=__doc__)
    parser.add_argument(
        "--since", required=True, metavar="BASE", help="the revision to compare with, and to read the rules from"
    )
    parser.add_argument("--head", required=True, metavar="COMMIT", help="the change")
    parser.add_argument("--in", dest="house", type=Path, default=Path(), metavar="DIR", help="the repository (.)")
    option = parser.parse_args(arguments)
    text = text_at(option.since, FILE, option.house, "--since")
    rooms = read_rooms(text, f"{option.since}:{FILE}") if text is not None else Rooms()
    changes = changes_between(option.since, option.head, option.house)
    found = whose(changes.files, rooms)
    print(harmless(str(found)), file=sys.stderr)
    if found.vendor is None:
        return NOT_A_VENDORS
    if not has(option.head, folder := f"vendors/{found.vendor}", option.house):
        print(f"{folder}/ is deleted: nothing of it is left to run, and a maintainer decides", file=sys.stderr)
        return NOT_A_VENDORS
    if has_changed(folder, changes, option.house):
        merging = f"merge {option.since} into it, and what is judged is what will be merged"
        print(harmless(f"{option.since} has changed {folder}/ since: {merging}"), file=sys.stderr)
        return NOT_A_VENDORS
    print(f"vendor={found.vendor}")
    return 0


if __name__ == "__main__":
    command(main)
