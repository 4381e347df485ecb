"""What a vendor's file may ask for, and what its code then finds: nothing of its user's environment and files."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proofmark.errors import ConfigurationError, UsageError
from proofmark.inference.outcome.record import RunRecord
from proofmark.process.environment import LISTED, PASSES, begun_with, passed_on
from proofmark.vendor.introduction.asking import introduce
from proofmark.vendor.isolation import FILE, IsolationSettings, VendorPlace
from proofmark.wall.isolation import Isolation
from proofmark.wall.wall import Wall
from reports.content.provenance import identity_rows
from tests.unit.records import record
from tests.unit.vendor.test_registry import GOOD, add, vendors
from tests.unit.wall.test_wall import behind

__all__ = ["vendors"]

TOKENS = {"GITHUB_TOKEN": "t1", "CI_JOB_TOKEN": "t2", "AWS_SECRET_ACCESS_KEY": "t3", "SSH_AUTH_SOCK": "t4", "CI": "t5"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("network: 1", "network: expected true or false, found 1"),
        ("readable: [opt/acme]", "readable.0: 'opt/acme' is not an absolute path; did you mean '/opt/acme'?"),
        ("environment: 3", "environment: expected a list, found 3"),
        ("networks: true", "networks: unknown key"),
        ("unix_sockets: all", "unix_sockets: "),
        ("devices: [/dev/sda]", "devices.0: '/dev/sda' is the host's own, not an accelerator"),
        ("devices: ['/dev/*']", "devices.0: '/dev/*' is not a device"),
        ("devices: ['/dev/../etc/shadow']", "devices.0: '/dev/../etc/shadow' is not a device"),
        ("devices: [/root]", "devices.0: '/root' is not a device"),
        ("readable: [/root]", "readable.0: '/root' is not visible to a vendor's code: drivers and runtimes"),
        ("readable: [/opt/../root]", "readable.0: '/opt/../root' is not visible"),
        (
            "files: [/srv/x]",
            "files.0: '/srv/x' is no file of the system's settings: they are below /etc, /run, /var/",
        ),
        ("files: [/etc/../srv/x]", "files.0: '/etc/../srv/x' is no file of the system's settings"),
        ("files: [/etc]", "files.0: '/etc' is no file of the system's settings"),
        ("files: [/run/secrets/kubernetes.io/x]", "files.0: '/run/secrets/kubernetes.io/x' is named like a secret"),
        ("files: [acme.conf]", "files.0: 'acme.conf' is not a variable"),
        ("files: ['ACME_*']", "files.0: 'ACME_*' is not a variable that names a file: write out its name"),
        ("files: [ACME_TOKEN]", "files.0: 'ACME_TOKEN' is named like a secret"),
        ("environment: [GITHUB_TOKEN]", "environment.0: 'GITHUB_TOKEN' is named like a secret"),
        ("environment: ['*']", "environment.0: '*' is not a variable"),
        ("environment: ['A*']", "environment.0: 'A*' is not a variable"),
        ("environment: ['*_X']", "environment.0: '*_X' is not a variable"),
        ("environment: [AWS_SECRET_*]", "environment.0: 'AWS_SECRET_*' is named like a secret"),
    ],
)
def test_a_file_that_asks_for_more_is_refused(vendors: Path, text: str, expected: str) -> None:
    add(vendors, "acme")
    (vendors / "acme" / FILE).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        introduce("acme", vendors)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{vendors / 'acme' / FILE}: {expected}")


def test_all_that_is_wrong_is_told_at_once(vendors: Path) -> None:
    add(vendors, "acme")
    (vendors / "acme" / FILE).write_text("network: 1\ndevices: [/dev/sda, /dev/mem]\nmore: 1\n")
    with pytest.raises(ConfigurationError) as caught:
        VendorPlace.of("acme", vendors)
    assert len(caught.value.problems) == 4


def test_devices_by_pattern_are_no_disks(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(vendors, "acme")
    (vendors / "acme" / FILE).write_text("devices: ['/dev/nu*', '/dev/nvm*']\nreadable: [/opt/acme]\n")
    monkeypatch.setattr("glob.glob", lambda pattern: {"/dev/nu*": ["/dev/null"]}.get(pattern, ["/dev/nvme0"]))
    assert VendorPlace.of("acme", vendors).settings.device_files() == [Path("/dev/null")]


def test_what_lies_within_what_is_hidden_is_not_readable(
    vendors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the hidden folder itself is closed says nothing of what is in it."""
    add(vendors, "acme")
    (tmp_path / "runtime").symlink_to(data := tmp_path / "data")
    named = (data, data / "labels", tmp_path / "runtime/images", tmp_path / "data2", tmp_path)
    walls: list[Wall] = []
    monkeypatch.setattr("proofmark.vendor.isolation.put_on", walls.append)
    monkeypatch.setattr("sys.meta_path", [*sys.meta_path])
    place = VendorPlace.of("acme", vendors)
    place = replace(place, settings=IsolationSettings.model_construct(readable=tuple(map(str, named))))
    place.enter(Wall(hidden=(data,)))
    assert walls[0].readable == (*place.readable, tmp_path / "data2", tmp_path)


def test_adapters_to_other_machines_are_for_who_may_speak_to_those(monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = "/dev/infiniband/uverbs0"
    monkeypatch.setattr("glob.glob", lambda pattern: [verbs] if "infini" in pattern else [])
    settings = IsolationSettings(devices=("/dev/infini*/uverbs*",))
    assert settings.device_files() == [] and settings.device_files(networks=True) == [Path(verbs)]


def test_what_passes_is_on_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "1",
        **TOKENS,
        "HOME": "/h",
        "TORCH_TOKEN": "t",
        "X": "1",
    }
    assert passed_on(given) == {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "1"}
    assert passed_on({**given, PASSES: "X, GITHUB_T*,CI_JOB_TOKEN"}).keys() >= {"X", "CI_JOB_TOKEN"}
    secrets = {"DB_PASS": "x", "MYSQL_PWD": "x", "PGPASSFILE": "x", "OPENAI_APIKEY": "x", "GITHUB_PAT": "x"}
    addresses = {
        "CI_REPOSITORY_URL": "https://ci:glcbt-1@host/x.git",
        "DB": "postgres://u:p@host/db",
        "URL": "http://x",
    }
    secrets |= {"PG_DSN": "x", "GITHUB_WEBHOOK": "x", "CI_PRIVATE": "x", "DB_PW": "x", "DB_CONNECTION_STRING": "x"}
    addresses |= {"CI_INDEX": "https://glcbt-1@host/simple", "URL_OF_A_USER": "ssh://git@host/x.git"}
    broad = "CI_*,DB*,GITHUB_*,MYSQL_*,OPENAI_*,PG*,UR*"
    assert passed_on({**secrets, **addresses, PASSES: broad}).keys() == {"URL", "URL_OF_A_USER", PASSES}
    assert "CI_REPOSITORY_URL" in passed_on({**addresses, PASSES: "CI_REPOSITORY_URL"}), "its user says so"
    assert "GITHUB_TOKEN" not in passed_on({**given, PASSES: "*"}) and "HOME" not in LISTED
    monkeypatch.setattr(os, "environ", dict(given))
    whole = begun_with({"ACME_HOME": "/opt/acme"}, {"OWN": "1"}, home="/t")
    assert whole[PASSES] == "ACME_HOME" and whole["HOME"] == "/t" and not TOKENS.keys() & whole.keys()
    assert passed_on(whole)["ACME_HOME"] == "/opt/acme" and "OWN" not in passed_on(whole)
    assert begun_with({}, {}, everything=True).keys() >= given.keys()


LOOKS = """
import os, pathlib, socket
from proofmark.vendor.contract import Software
tried = []
for attempt in (
    lambda: open("/proc/self/environ").read() + str(dict(os.environ)),
    lambda: os.listdir(pathlib.Path(__file__).parents[2]),
    lambda: os.listdir(pathlib.Path(__file__).parents[1] / "other"),
    lambda: socket.socket(),
    lambda: os.kill(os.getppid(), 0),
    lambda: open(os.environ["TMPDIR"] + "/x", "w") and "own directory",
):
    try: tried.append(str(attempt()))
    except OSError as error: tried.append(type(error).__name__)
Acme.software = lambda self: Software(driver=repr(tried))
"""


READS = """
import os
from proofmark.vendor.contract import Software
read = []
for name in ("/etc/profile", os.environ["ACME_TOPOLOGY"], os.environ["ACME_LABELS"], "/etc/fstab"):
    try: read.append(bool(open(name).read()))
    except OSError as error: read.append(type(error).__name__)
Acme.software = lambda self: Software(driver=repr(read))
"""


@behind
def test_settings_of_the_systems_are_read_where_a_vendor_names_them_and_nothing_else_is(
    vendors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "labels").write_text("1")
    monkeypatch.setenv("ACME_TOPOLOGY", "/etc/login.defs")
    monkeypatch.setenv("ACME_LABELS", str(tmp_path / "labels"))
    add(vendors, "acme", GOOD + READS)
    (vendors / "acme" / FILE).write_text("files: [/etc/profile, ACME_TOPOLOGY, ACME_LABELS]\nenvironment: [ACME_*]")
    found = introduce("acme", vendors)
    assert eval(found.vendor.software().driver or "") == [True, True, "PermissionError", "PermissionError"]
    assert found.isolation and found.isolation.kind == "wall"


@behind
def test_an_introduction_sees_nothing(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**TOKENS, "ACME_HOME": "/opt/acme"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(PASSES, "")
    add(vendors, "other")
    add(vendors, "acme", GOOD + LOOKS)
    (vendors / "acme" / FILE).write_text("environment: [ACME_*]")
    found = introduce("acme", vendors)
    environment, *others = eval(found.vendor.software().driver or "")
    assert "ACME_HOME" in environment and not [name for name in TOKENS if f"{name}=" in environment]
    assert others == ["PermissionError"] * 4 + ["own directory"]
    assert found.isolation and found.isolation.kind == "wall" and found.isolation.network == "closed"
    assert not [name for name in sys.modules if name.startswith("vendors.")]


def test_the_wall_can_be_left_out(vendors: Path) -> None:
    add(vendors, "acme")
    found = introduce("acme", vendors, wall=False)
    assert found.isolation and found.isolation.kind == "process"
    assert found.isolation.gaps == ("none was put on: --isolation process",)


def test_an_isolation_that_the_vendor_tells_of_is_not_heard(vendors: Path) -> None:
    forges = """
import os
for number in range(3, 1024):
    try: os.write(number, b'{"isolation": {"kind": "wall", "landlock": 99, "network": "asked for"}}\\n')
    except OSError: pass
"""
    add(vendors, "acme", GOOD + forges)
    for wall in (True, False):
        with pytest.raises(UsageError, match="its import gave an invalid answer"):
            introduce("acme", vendors, wall=wall)


def test_a_record_is_as_well_isolated_as_the_weakest_process() -> None:
    wall = Isolation(kind="wall", landlock=7, network="closed")
    apart = Isolation.none("no Landlock here")
    assert record().isolated == "process" and record(isolation={"engine": wall}).isolated == "wall"
    both = record(isolation={"engine": apart, "introduction": wall})
    assert both.isolated == "process" and RunRecord.model_validate_json(both.text()) == both
    assert dict(identity_rows(both))["isolation"] == "process (engine: no Landlock here)"
    asks = record(isolation={"engine": wall.model_copy(update={"network": "asked for"})})
    assert dict(identity_rows(asks))["isolation"] == "wall (engine: network)"


def test_what_is_imported_leaves_one_thread_however_a_process_begins() -> None:
    """pyarrow's allocator starts one otherwise, and a wall would be refused."""
    program = "import pyarrow; from proofmark.process.warm.main import is_alone; print(is_alone())"
    environment = {**begun_with({}, {}), "PYTHONPATH": os.getcwd()}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"
