"""What a module imports is told by its text, whatever else somebody laid beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.affected.imports import LARGEST, imports_in, imports_of
from proofmark.folders import make_folder
from proofmark.process.scratch.own_directory import remove

UNREADABLE = imports_of("vendors/other/x.py", "(")


def test_what_another_vendor_has_laid_there_ends_no_session(tmp_path: Path) -> None:
    other = tmp_path / "vendors/other"
    other.mkdir(parents=True)
    (other / "own.py").write_text("import vendors.other.part")
    (other / "endless.py").symlink_to("/dev/zero")
    (other / "itself.py").symlink_to("itself.py")
    (other / "large.py").write_text("#" * (LARGEST + 1))
    (other / "folder.py").mkdir()
    deep = other.joinpath(*["d"] * 1500)
    make_folder(deep)
    (deep / "x.py").touch()
    found = imports_in(tmp_path, "vendors")
    names = ("endless", "itself", "large", "own")
    assert sorted(found) == [f"vendors/other/{name}.py" for name in names]
    assert "vendors.other.part" in found["vendors/other/own.py"]
    assert [found[f"vendors/other/{name}.py"] for name in names[:3]] == [UNREADABLE] * 3
    remove(other / "d")


@pytest.mark.parametrize(
    "text",
    [
        f"import a{'.a' * 99_999}",
        "import a" + ".\\\na" * 99_999,
        f"import {'aaaa.' * 200}a",
        f"from a{'.a' * 400} import x",
        f"from {'a' * 600} import x",
    ],
)
def test_a_name_without_end_is_not_taken_apart(text: str) -> None:
    assert imports_of("vendors/other/x.py", text) == UNREADABLE
