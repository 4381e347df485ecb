"""An engine that misbehaves, by the session's exit code; and loader processes."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import House, clean


@pytest.mark.parametrize(
    "precision, code, kind, told",
    [
        ("fp16", 10, "UNSUPPORTED", "no fp16 here"),
        ("bf16", 17, "ERROR", "does not declare bf16, yet it ran"),
    ],
)
def test_undeclared_precision(house: House, precision: str, code: int, kind: str, told: str) -> None:
    entry = f"{{case: inference/tiny, compiler: honest, precision: {precision}, reason: known}}"
    (house.root / "vendors/fake/unsupported.yaml").write_text(f"unsupported:\n  - {entry}\n")
    ran = house.run("--precision", precision)
    found, reasons = ran.verdict()
    assert found == kind and told in reasons, (found, reasons)
    assert "the vendor expects it: known" in reasons or "and remove it from vendors/fake/unsupported.yaml" in reasons
    assert ran.code == code, ran.output
    clean(ran)


def test_accuracy_alone_is_exit_code_14(house: House) -> None:
    ran = house.run("--compiler", "short")
    assert ran.code == 14, ran.output
    clean(ran)


def test_dishonesty_alone_is_exit_code_15(house: House) -> None:
    assert house.run("--compiler", "foo_time").code == 15


def test_loader_processes_load_and_leave(house: House) -> None:
    """A forked loader once waited for a lock that a thread of the case's process held."""
    ran = house.run("--set", "num_workers=2", "--step-timeout", "60")
    assert ran.code == 0, ran.output
    assert house.becomes_empty(10)
