"""A host in a vendor's words: that one's code sees nothing of the user's, and says nothing in another's place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proofmark.errors import UsageError
from proofmark.launch.hosts import describe
from proofmark.vendor.hardware.provenance import content_of
from proofmark.vendor.introduction.asking import introduce
from tests.unit.vendor.test_registry import GOOD, add, vendors
from tests.unit.wall.test_wall import behind

__all__ = ["vendors"]

ROOT = Path(__file__).parents[3]
SECRETS = {"HUB_TOKEN": "geheim1", "SSH_AUTH_SOCK": "/run/geheim2", "SOMETHING": "geheim3", "ACME_KEY": "geheim4"}

NOSY = """
import os
from pathlib import Path
from proofmark.vendor.readings import Monitor, Reading
def seen():
    once = Path("/proc/self/environ").read_text()
    return " ".join(name for name in NAMES if name in os.environ or f"{name}=" in once)
class Nosy(Monitor):
    def sample(self): return [Reading(device=0, error=seen())]
Acme.chip = lambda self: seen()
Acme.monitor = lambda self: Nosy()
Acme.visible_devices_variable = "ACME_VISIBLE_DEVICES"
"""

FORGED = """
import sys, os
if "describe" in sys.argv[0]:
    print(LINE, flush=True)
    os._exit(0)
print(LINE, flush=True)
"""


def described(vendors: Path, isolation: str = "process") -> dict[str, Any]:
    """This host, in a vendor's words."""
    path = os.pathsep.join([str(vendors.parent), str(ROOT)])
    environment = {**os.environ, **SECRETS, "ACME_HOME": "/opt/acme", "PYTHONPATH": path}
    command = [sys.executable, "-m", "proofmark.launch.hosts.describe", "acme", str(vendors), "fp32", "", isolation]
    ran = subprocess.run(command, cwd=vendors.parent, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return describe.facts(ran.stdout)


@behind
@pytest.mark.parametrize("isolation", ["wall", "process"])
def test_a_vendor_sees_no_secret_of_a_hosts(vendors: Path, isolation: str) -> None:
    add(vendors, "acme", f"{GOOD}\nNAMES = {[*SECRETS, 'ACME_HOME']}\n{NOSY}")
    (vendors / "acme/isolation.yaml").write_text("environment: [ACME_*]\n")
    found = described(vendors, isolation)
    assert found["chip"]["name"] == "ACME_HOME"
    assert found["busy"] == ["device 0 cannot be read: ACME_HOME"]


def test_a_vendors_code_does_not_say_which_package_it_is(vendors: Path) -> None:
    add(vendors, "acme")
    honest = described(vendors)
    forged = honest | {"package": {"vendor_sha256": {"value": "ab" * 32}, "vendor_version": {"value": "1"}}}
    (vendors / "acme/__init__.py").write_text(
        f"{GOOD}\nLINE = {describe.Description.model_validate(forged).model_dump_json()!r}\n{FORGED}"
    )
    package = described(vendors)["package"]
    assert package["vendor_sha256"]["value"] == content_of(vendors / "acme").value
    assert package["vendor_version"]["value"] is None


USED = """
from proofmark.vendor.readings import Monitor, Reading
class Used(Monitor):
    def sample(self): return READINGS
Acme.monitor = lambda self: Used()
Acme.visible_devices_variable = VARIABLE
"""


@pytest.mark.parametrize(
    "readings, variable, expected",
    [
        ("[Reading(device=0, processes=(7, 8))]", "ACME_VISIBLE_DEVICES", ["device 0 is used by process 7, 8"]),
        ("[Reading(device=0, utilization=0.5)]", "ACME_VISIBLE_DEVICES", ["device 0 is busy: 50%"]),
        ("[Reading(device=0, utilization=0.2)]", "ACME_VISIBLE_DEVICES", []),
        ("[Reading(device=0, utilization=0.5)]", None, []),
        ("[Reading(device=7, processes=(7,)), Reading(device=8, error='lost')]", "ACME_VISIBLE_DEVICES", []),
    ],
)
def test_devices_that_somebody_uses(vendors: Path, readings: str, variable: str | None, expected: list[str]) -> None:
    used = USED.replace("READINGS", readings)
    add(vendors, "acme", f"{GOOD}\nVARIABLE = {variable!r}\n{used}")
    assert described(vendors)["busy"] == expected


def test_a_monitor_that_fails_is_named(vendors: Path) -> None:
    used = USED.replace("READINGS", "1 / 0")
    add(vendors, "acme", f"{GOOD}\nVARIABLE = 'ACME_VISIBLE_DEVICES'\n{used}")
    with pytest.raises(UsageError, match="vendor 'acme': monitor\\(\\) failed: ZeroDivisionError"):
        introduce("acme", vendors, wall=False, busy=True)
    introduce("acme", vendors, wall=False)
