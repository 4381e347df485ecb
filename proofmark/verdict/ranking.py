"""What keeps a run from being set among others though it passed: what it is itself, or what a policy asks for."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.record.envelope import CaseRecord
from proofmark.record.policy import Policy


def obstacles(record: CaseRecord, policy: Policy) -> Iterator[str]:
    """Each in a sentence; none where it may be ranked."""
    if record.unrankable:
        yield f"not rankable: {'; '.join(record.unrankable)}"
    wanted = policy.ranking
    if wanted.isolation == "wall" and record.isolated != "wall":
        open_ = sorted(name for name, kept in record.kept_apart.items() if kept.kind != "wall")
        which = ", ".join(open_) or "its vendor's code, as far as is recorded,"
        yield f"isolation: {which} ran without a wall, and policy {policy.title} ranks no such run"
    if wanted.isolation == "wall" and record.in_vendors_image:
        whose = "all of it ran on the interpreter and the libraries of its vendor's own image"
        yield f"isolation: {whose}, whose word the wall is, and policy {policy.title} ranks no such run"
    reaching = sorted(name for name, kept in record.kept_apart.items() if kept.network == "asked for")
    if wanted.isolation == "wall" and reaching:
        asked = "could reach other machines, as isolation.yaml asks: those may have computed"
        yield f"isolation: {', '.join(reaching)} {asked}, and policy {policy.title} ranks no such run"
    claimed = [what for what in wanted.verified if what in record.claimed]
    if claimed:
        yield f"only claimed: {', '.join(claimed)}; policy {policy.title} ranks what was verified"
