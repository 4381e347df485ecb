"""What is told of a device that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.errors import UsageError
from proofmark.vendor.contract import Device, Processor, driver_files
from proofmark.vendor.hardware.container import container_kind
from proofmark.vendor.hardware.devices import assign, limits_to_all, no_device, usable_devices
from proofmark.vendor.introduction.asking import introduce
from proofmark.wall.isolation import Isolation
from tests.unit.vendor.test_registry import GOOD, add, vendors

__all__ = ["vendors"]


class Acme(Processor):
    visible_devices_variable = "ACME_DEVICES"
    container_options = ("--device", "acme")

    def devices_sought(self) -> list[str]:
        return ["/dev/acme0: not there"]


def lines(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> list[str]:
    monkeypatch.delenv("ACME_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("ACME_DEVICES", chosen)
    first, *others = no_device("acme", Acme(), Path("acme.py")).split("\n  ")
    assert first == "vendor acme finds no device on this machine (acme.py: devices()). What was looked for:"
    return others


@pytest.mark.parametrize(
    "chosen, expected",
    [(None, "not set, so it hides none"), ("", "set to ''"), ("7", "set to '7', so that no other device")],
)
def test_it_is_told_what_was_looked_for(monkeypatch: pytest.MonkeyPatch, chosen: str | None, expected: str) -> None:
    found = lines(monkeypatch, chosen)
    assert found[0] == "/dev/acme0: not there"
    assert found[1].startswith(f"ACME_DEVICES: {expected}")
    assert found[2].startswith("container: ")


def test_behind_a_wall_it_is_told_which_files_could_be_opened() -> None:
    walled = Isolation(kind="wall", devices=("/dev/dri/renderD128",))
    file = Path("/opt/lib/acme_proofmark/__init__.py")  # of an installed package
    (line,) = (each for each in no_device("acme", Acme(), file, walled).split("\n  ") if each.startswith("wall: "))
    assert "could open: /dev/dri/renderD128; /opt/lib/acme_proofmark/isolation.yaml must name others" in line
    assert "wall: " not in no_device("acme", Acme(), file, Isolation.none("none was put on"))


@pytest.mark.parametrize("chosen, range_", [("0-3", "0-3"), ("0, 2-3", "2-3")])
def test_a_range_of_devices_is_no_one_device(monkeypatch: pytest.MonkeyPatch, chosen: str, range_: str) -> None:
    """One case would have all of them, under one chip's name."""
    monkeypatch.setenv("ACME_DEVICES", chosen)
    with pytest.raises(UsageError) as caught:
        assign(Acme(), 0)
    what = f"{range_} is a range; expected each device by itself, as in 0,1,2,3"
    assert str(caught.value) == f"ACME_DEVICES={chosen}: {what}"
    monkeypatch.setenv("ACME_DEVICES", "GPU-0001-2, 0.1")
    assert usable_devices(Acme()) == ["GPU-0001-2", "0.1"]


def test_a_rank_asks_for_its_devices_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    class Counting(Acme):
        def devices(self) -> list[Device]:
            asked.append(1)
            return [Device(index, "A") for index in (0, 2)]

    monkeypatch.delenv("ACME_DEVICES", raising=False)
    assert limits_to_all(Counting()) == {"ACME_DEVICES": "0,2"} and len(asked) == 1
    monkeypatch.setenv("ACME_DEVICES", "0,2,3")
    assert limits_to_all(Counting()) == {"ACME_DEVICES": "0,2"} and len(asked) == 2


@pytest.mark.parametrize(
    "file, content, kind",
    [
        (".dockerenv", "", "docker"),
        ("run/.containerenv", "", "podman"),
        ("proc/1/cgroup", "0::/kubepods/burstable", "kubepods"),
        ("proc/1/cgroup", "0::/init.scope", None),
        ("etc/nothing", "", None),
    ],
)
def test_containers_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str, kind: str | None
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
    assert container_kind(tmp_path) == kind


def test_a_container_is_told_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "it has the devices if it was started with --device acme" in lines(monkeypatch, None)[2]


def test_driver_files_are_told_with_who_may_use_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, absent = str(tmp_path / "acme*"), str(tmp_path / "none*")
    (tmp_path / "acme0").touch(mode=0o600)
    assert driver_files(here, absent) == [f"{tmp_path}/acme0: there, this user may use it", f"{absent}: not there"]
    monkeypatch.setattr("os.access", lambda path, mode: False)
    (message,) = driver_files(here)
    assert "may not read and write it: -rw------- of user" in message


def test_what_was_looked_for_comes_from_the_vendors_process(vendors: Path) -> None:
    none = GOOD.replace('[Device(0, "a")]', "[]")
    add(vendors, "silent", none)
    assert introduce("silent", vendors).vendor.devices_sought() == []
    add(vendors, "telling", none + "Acme.devices_sought = lambda self: ['a driver: none']\n")
    assert introduce("telling", vendors).vendor.devices_sought() == ["a driver: none"]
    add(vendors, "raising", none + "Acme.devices_sought = lambda self: 1 / 0\n")
    assert "ZeroDivisionError" in introduce("raising", vendors).vendor.devices_sought()[0]
