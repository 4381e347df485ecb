"""The page of a run, and what setting it beside another needs; and the pages that have no run of their own."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofmark.record.envelope import CaseRecord
from proofmark.suite import Suite
from reports.content import provenance, text
from reports.content.view import View, with_other_name
from reports.html import fragment, of_a_case
from reports.site.entry import Entry
from reports.site.files import as_json, script, write

_HERE = Path(__file__).parent
_STYLE = _HERE.parent / "templates" / "report.css"
SHELLS = ("index", "league", "trends", "compare")
"""Pages that show what the data says."""


def write_run(folder: Path, entry: Entry, view: View[CaseRecord], suites: Mapping[str, Suite], assets: str) -> None:
    """Write the page of a run, and the script with which it is compared.

    Raises:
        OSError: no space, no permission.
    """
    context: dict[str, Any] = {"entry": entry, "view": view, "assets": assets, "index": entry.id}
    page = fragment(_HERE / "templates" / "run.html.j2", **context, **of_a_case(suites))
    write(folder / f"{entry.id}.html", page)
    write(folder / f"{entry.id}.js", script(f"runs/{entry.id}", as_json(comparable(entry, view))))


def comparable(entry: Entry, view: View[CaseRecord]) -> dict[str, Any]:
    """What two runs are compared by: sections of labels and texts."""
    sections = {
        "run": {
            "verdict": entry.verdict,
            "vendor": entry.vendor,
            **entry.variant,
            "precision": entry.precision,
            "profile": entry.profile,
        },
        "figures": _figures(view),
        "configuration": {row.key: row.value for row in provenance.config_rows(view.record)},
        "identity": {**dict(provenance.identity_rows(view.record)), **_versions(view.record)},
    }
    sections["identity"].pop("versions", None)
    return {"title": entry.name, "when": text.instant(entry.started), "tone": entry.tone, "sections": sections}


def _figures(view: View[CaseRecord]) -> dict[str, str]:
    """Figures by their names; those that share a name by their keys too."""
    named = [(with_other_name(figure.name, figure), figure.key, str(shown)) for figure, shown in view.listed()]
    times = Counter(name for name, _, _ in named)
    return {name if times[name] == 1 else f"{name}, {key}": value for name, key, value in named}


def _versions(record: CaseRecord) -> dict[str, str]:
    return {f"version of {name}": version for name, version in sorted(record.versions.items())}


def write_assets(site: Path) -> str:
    """Copy styles and scripts into a folder that is called by what is in it; its name within the site.

    Raises:
        OSError: no space, no permission.
    """
    files = [_STYLE, *sorted((_HERE / "assets").iterdir())]
    digest = hashlib.sha256(b"\0".join(path.name.encode() + b"\0" + path.read_bytes() for path in files))
    name = f"assets/{digest.hexdigest()[:12]}"
    (site / name).mkdir(parents=True, exist_ok=True)
    for path in files:
        write(site / name / path.name, path.read_text(encoding="utf-8"))
    return name


def sweep_assets(site: Path, keep: str) -> None:
    """Delete styles and scripts that no page asks for any more."""
    for old in (site / "assets").iterdir():
        if old != site / keep:
            shutil.rmtree(old, ignore_errors=True)


def write_shells(site: Path, assets: str) -> None:
    """Write the pages without a run.

    Raises:
        OSError: no space, no permission.
    """
    for name in SHELLS:
        write(site / f"{name}.html", fragment(_HERE / "templates" / f"{name}.html.j2", assets=assets, here=name))
