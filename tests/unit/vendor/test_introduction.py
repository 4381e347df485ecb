"""A vendor is imported and asked in a process of its own; what it does there is told, and ends nothing else."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from proofmark.errors import ConfigurationError, UsageError
from proofmark.process.child import Child
from proofmark.process.environment import passed_on
from proofmark.vendor.contract import Device
from proofmark.vendor.hardware.chips import count_alike
from proofmark.vendor.hardware.devices import assign, usable_devices
from proofmark.vendor.introduction import asking as introduction
from proofmark.vendor.introduction.answers import IntroducedVendor
from proofmark.vendor.introduction.asking import introduce
from proofmark.vendor.registry import FoundVendor, find_vendor
from tests.unit.vendor.test_registry import GOOD, add, vendors

__all__ = ["vendors"]

ROOT = Path(__file__).parents[3]


def refusal(vendors: Path, text: str) -> str:
    add(vendors, "acme", text)
    with pytest.raises(UsageError) as caught:
        introduce("acme", vendors)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_same_is_known_of_it_as_if_it_were_imported_here(vendors: Path) -> None:
    add(vendors, "acme", GOOD.replace('Device(0, "a")', 'Device(0, "a", "ACME-1")'))
    found = introduce("acme", vendors)
    assert not [name for name in sys.modules if name.startswith("vendors.")]
    here = find_vendor("acme", vendors)
    for name in ("compilers", "default_compiler", "framework_precisions", "training_precisions", "container_options"):
        assert getattr(found.vendor, name) == getattr(here.vendor, name)
    for name in ("visible_devices_variable", "runs_on_processor", "distributed_backend", "training_scales"):
        assert getattr(found.vendor, name) == getattr(here.vendor, name)
    for name in ("chip", "chip_units", "torch_device", "devices"):
        assert getattr(found.vendor, name)() == getattr(here.vendor, name)()
    assert found.vendor.devices() == [Device(0, "a", "ACME-1")]
    for name in ("directory", "chips_file", "is_local", "name", "vendors_dir", "distribution"):
        assert getattr(found, name) == getattr(here, name)
    assert found.compiler("default") == here.compiler("default")
    assert found.adapted_in("training/net") == here.adapted_in("training/net") == []


def test_a_machine_on_which_its_process_cannot_be_started(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/tmp/own")

    monkeypatch.setattr(introduction, "Child", refused)
    told = "vendor 'acme': its process can't be started: [Errno 30] Read-only file system: '/tmp/own'"
    assert refusal(vendors, GOOD) == told


def test_the_variable_that_limits_it_to_some_devices_passes(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To all that the session starts, though no file names it."""
    monkeypatch.setenv("PROOFMARK_PASSES", "")
    add(vendors, "acme", f"{GOOD}\nAcme.visible_devices_variable = 'ACME_VISIBLE_DEVICES'\n")
    introduce("acme", vendors)
    assert passed_on(dict(os.environ) | {"ACME_VISIBLE_DEVICES": "4,5"})["ACME_VISIBLE_DEVICES"] == "4,5"


@pytest.mark.parametrize("name", ["ZE_AFFINITY_MASK", "HABANA_VISIBLE_MODULES"])
def test_its_file_sets_no_variable_by_which_its_devices_are_chosen(
    vendors: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It would win over what its user chose."""
    monkeypatch.setenv("PROOFMARK_PASSES", "")
    monkeypatch.setenv(name, "4,5")
    add(vendors, "acme", f"{GOOD}\nAcme.visible_devices_variable = '{name}'\n")
    file = vendors / "acme/environment.yaml"
    own = f"{{{name}: '0,1'}}"
    file.write_text(f"variables: {own}\ncases:\n  training/net: {{variables: {own}}}\n")
    with pytest.raises(ConfigurationError) as caught:
        introduce("acme", vendors)
    what = "says which devices are used, which the suite assigns"
    assert [(each.where, each.key, each.what) for each in caught.value.problems] == [
        (str(file), f"variables.{name}", what),
        (str(file), f"cases.training/net.variables.{name}", what),
    ]
    file.write_text("variables: {ACME_AFFINITY: '0,1'}\n")
    assert usable_devices(introduce("acme", vendors).vendor) == ["4", "5"]


def test_a_vendor_says_what_there_is_under_the_variable_that_limits_it(
    vendors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runtime may heed it: the chip would be another device's. A second import is for that alone."""
    shown = "[int(n) for n in os.environ.get('ACME_VISIBLE_DEVICES', '0,1,2').split(',')]"
    devices = f"[Device(place, 'ABC'[number]) for place, number in enumerate({shown})]"
    text = GOOD.replace('[Device(0, "a")]', devices).replace('return "a"', "return self.devices()[0].name")
    add(vendors, "acme", f"import os\n{text}\nAcme.visible_devices_variable = 'ACME_VISIBLE_DEVICES'\n")
    begun = list[str]()
    monkeypatch.setattr(introduction, "Child", lambda name, **others: begun.append(name) or Child(name, **others))
    monkeypatch.setenv("PROOFMARK_PASSES", "")
    assert introduce("acme", vendors).vendor.chip() == "A" and len(begun) == 1
    monkeypatch.setenv("PROOFMARK_PASSES", "")
    monkeypatch.setenv("ACME_VISIBLE_DEVICES", "1,2")
    found = introduce("acme", vendors)
    assert found.vendor.chip() == "B" and len(begun) == 3
    assert count_alike(found.vendor, found.chips_file)[0] == 1, "they are of two chips, however it numbers them"
    assert introduce("acme", vendors).vendor.chip() == "B" and len(begun) == 4


def test_the_variable_that_limits_a_vendor_is_one(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another, that it names where the first is set, would not be looked for in its file, nor passed to processes."""
    named = "'ZE_AFFINITY_MASK' if 'ACME_VISIBLE_DEVICES' in os.environ else 'ACME_VISIBLE_DEVICES'"
    add(vendors, "acme", f"import os\n{GOOD}\nAcme.visible_devices_variable = {named}\n")
    (vendors / "acme/environment.yaml").write_text("variables: {ZE_AFFINITY_MASK: '0,1'}\n")
    monkeypatch.setenv("PROOFMARK_PASSES", "")
    monkeypatch.setenv("ACME_VISIBLE_DEVICES", "4,5")
    what = "ACME_VISIBLE_DEVICES, and where that is set ZE_AFFINITY_MASK; expected one"
    with pytest.raises(UsageError, match=f"^vendor 'acme': visible_devices_variable: {what} "):
        introduce("acme", vendors)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "vendors").glob("*/chips.yaml")))
def test_every_vendor_introduces_itself(name: str) -> None:
    found = introduce(name, ROOT / "vendors")
    assert isinstance(found, FoundVendor) and found.vendor.chip()
    assert assign(found.vendor, 0).environment.keys() <= {found.vendor.visible_devices_variable}
    assert usable_devices(found.vendor) is not None


@pytest.mark.parametrize(
    "text, what",
    [
        ("import os; os._exit(0)", "its import ended with exit code 0"),
        ("import os; print('no card'); os._exit(3)", "its import ended with exit code 3"),
        ("import ctypes; print('no card', flush=True); ctypes.string_at(0)", "its import died of signal 11 (SIGSEGV)"),
        ("import os; os.kill(os.getpid(), 9)", "its import died of signal 9 (SIGKILL)"),
        ("raise SystemExit(0)", "cannot be imported: SystemExit"),
        ("import threading, os, time; threading.Timer(0, os._exit, [0]).start(); time.sleep(60)", "exit code 0"),
        (GOOD.replace('return "a"', "import os; os._exit(0)"), "chip() ended with exit code 0"),
        (
            GOOD.replace('return "a"', "raise RuntimeError('no driver')"),
            "chip() failed: RuntimeError: no driver, line ",
        ),
        (GOOD.replace('return "a"', "return None"), "chip: expected text, found null"),
        (GOOD.replace('return "a"', "return 3"), "chip: expected text, found 3"),
        (GOOD.replace('[Device(0, "a")]', "__import__('os')._exit(0)"), "devices() ended with exit code 0"),
    ],
)
def test_what_goes_wrong_is_one_line(vendors: Path, text: str, what: str) -> None:
    assert what in refusal(vendors, text) and "acme" in str(vendors / "acme")


@pytest.mark.parametrize("devices, found", [('["a"]', "str in it"), ("7", "int"), ("None", "NoneType")])
def test_devices_that_are_none_are_told_by_their_type(vendors: Path, devices: str, found: str) -> None:
    add(vendors, "acme", GOOD.replace('[Device(0, "a")]', devices))
    with pytest.raises(UsageError) as caught:
        introduce("acme", vendors).vendor.devices()
    file = vendors / "acme/__init__.py"
    assert str(caught.value) == f"vendor 'acme': devices(): expected a list of Device, found {found} ({file})"


def test_last_words_are_told(vendors: Path) -> None:
    line = refusal(vendors, "import os\nprint('looking')\nprint('no card', flush=True)\nos._exit(0)")
    assert line == "vendor 'acme': its import ended with exit code 0: no card"


def test_a_vendor_that_hangs_is_ended(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introduction, "PATIENCE", 60.0)  # enough for its import, whatever the machine does
    line = refusal(vendors, GOOD.replace('return "a"', "import time; time.sleep(600)"))
    assert line == "vendor 'acme': chip() did not end within 60 s"


def test_all_of_it_ends_however_often_patience_is_renewed(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introduction, "ALTOGETHER", 3.0)
    line = refusal(vendors, GOOD.replace('return "a"', "import time; time.sleep(600)"))
    assert line == "vendor 'acme': its introduction did not end within 3 s"


@pytest.mark.parametrize("file", ["\ud800", "a\0b"])
def test_a_package_where_no_file_can_lie_is_one_line(vendors: Path, file: str) -> None:
    add(vendors, "acme")
    known = introduce("acme", vendors).vendor
    assert isinstance(known, IntroducedVendor)
    said = {"answers": {**known.answers, "file": file}}
    with pytest.raises(UsageError, match=r"^vendor 'acme': it says that its package is \S+; it is in \S+$"):
        introduction._understood("acme", said, vendors / "acme")


def test_devices_that_cannot_be_counted_are_told_where_they_are_needed(vendors: Path) -> None:
    add(vendors, "acme", GOOD.replace('return [Device(0, "a")]', "raise OSError('no driver')"))
    found = introduce("acme", vendors)
    with pytest.raises(UsageError, match=r"vendor 'acme': devices\(\) failed: OSError: no driver"):
        usable_devices(found.vendor)


def test_a_broken_package_is_told_as_ever(vendors: Path) -> None:
    with pytest.raises(UsageError, match="unknown vendor 'nobody'"):
        introduce("nobody", vendors)
    assert "'default_compiler' must be one of" in refusal(
        vendors, GOOD.replace('    default_compiler = "engine"\n', "")
    )
