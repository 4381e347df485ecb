"""An adaptation to FlagPerf, from a checkout to files of ours and a table of what became of each key."""

from __future__ import annotations

from pathlib import Path

from proofmark.errors import UsageError
from proofmark.flagperf.adaptation.fates import as_json, as_markdown
from proofmark.flagperf.adaptation.layout import open_checkout
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.our_cases import OurCases
from proofmark.flagperf.adaptation.package import move_package
from proofmark.flagperf.adaptation.settings.hosts import move_hosts
from proofmark.flagperf.adaptation.settings.inference import move_inference
from proofmark.flagperf.adaptation.settings.training import move_trainings
from proofmark.literal import some

TABLES = ("import.md", "import.json")


def bring(checkout: Path, vendor: str, out: Path, house: Path) -> Moved:
    """Read a vendor's adaptation, and write ours into `out`.

    Args:
        checkout: of FlagPerf.
        vendor: as FlagPerf calls it, and as its package will be called.
        out: where nothing is that would be written over.
        house: our checkout, with the cases that it is held against.

    Raises:
        UsageError: what is asked for is not there, or something is there already; nothing is written.
        OSError: it can't be written.
    """
    moved = Moved(open_checkout(checkout, vendor), OurCases(house))
    move_hosts(moved)  # first: they name the variable that no case may set
    move_trainings(moved)
    move_inference(moved)
    move_package(moved)
    _tell_unread(moved)
    moved.rows = list({repr(row): row for row in moved.rows}.values())  # what several files import is told once
    title = f"{vendor}: from FlagPerf"
    moved.files |= dict(
        zip(TABLES, (as_markdown(moved.rows, moved.check, title), as_json(moved.rows, moved.check)), strict=True)
    )
    _write(moved.files, out)
    return moved


def _tell_unread(moved: Moved) -> None:
    """The vendor's files that are in no row, nor in a folder that is told whole."""
    listed = {row.file for row in moved.rows}
    whole = tuple(f"{row.file}/" for row in moved.rows if not row.key and row.fate in ("unknown", "by hand"))
    for path in moved.checkout.own_files:
        shown = moved.checkout.shown(path)
        if path not in moved.read and shown not in listed and not shown.startswith(whole):
            why = "nothing here reads it: copy what your code or your image needs from it"
            moved.tell(path, 0, "", None, "unknown", why=why)


def _write(files: dict[str, str], out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: is not a folder")
    there = [name for name in files if (out / name).exists() or (out / name).is_symlink()]
    if there:
        raise UsageError(f"--out {out}: {some(there, 5)} would be written over: choose an empty folder")
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
