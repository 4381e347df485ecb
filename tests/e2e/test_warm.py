"""What the cases of a session share: one process that has imported what each of them needs."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import House

NOTES = """
import os, sys
with open(os.environ["HOUSE"] + "/notes", "a") as notes:
    has = ["xdist" in sys.modules, "torch" in sys.modules]
    print(os.getpid(), os.getppid(), *has, sys.argv[-1], file=notes)
"""
"""Of a case's module, which each process that imports it writes."""


@pytest.mark.parametrize("as_users_do", [True, False])
def test_no_case_pays_for_the_imports_of_another(house: House, as_users_do: bool) -> None:
    house.started_as_users_do = as_users_do
    house.add_case("second")
    module = house.case_yaml.with_name("test_tiny.py")
    module.write_text(module.read_text() + NOTES)
    session = house.start("--vendor=fake")
    ran = house.end(session)
    assert ran.code == 0, ran.output
    collected, warm = (house.root / "notes").read_text().splitlines()  # and by none of the cases' own processes
    assert collected.startswith(f"{session.pid} ")
    forked = collected.split()[3] == "True"  # it has torch: such a session of tests imports nothing anew
    assert not (forked and as_users_do)
    assert f" {session.pid} {forked} True " in warm
    assert warm.endswith(" torch") or forked  # it began with that, before the session had found its suites
    assert house.becomes_empty()
