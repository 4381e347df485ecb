"""What a result was made with: machines as their kernel shows them, trees with git and without, vendors that tell."""

from __future__ import annotations

import py_compile
import subprocess
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.folders import DEEPEST, make_folder
from proofmark.process.scratch.own_directory import remove
from proofmark.record.provenance import Host, Known
from proofmark.vendor.contract import Processor, Software, Vendor
from proofmark.vendor.hardware import processor, provenance
from proofmark.vendor.hardware.container import container_image
from proofmark.vendor.hardware.machine import describe_host, governor, kernel
from proofmark.vendor.hardware.processor import microcode, physical_cores, processor_name
from proofmark.vendor.hardware.provenance import (
    commit_of,
    content_of,
    device_software,
    foreign_files,
    provenance_of,
)
from proofmark.vendor.registry import FoundVendor


def tree(root: Path, **files: str) -> Path:
    """A file system with these files, `__` in a name for a slash."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


class TestMachine:
    def test_a_governor(self, tmp_path: Path) -> None:
        cores = tmp_path / "sys/devices/system/cpu"
        for number, text in enumerate(["performance\n", "performance\n", "powersave\n"]):
            (cores / f"cpu{number}/cpufreq").mkdir(parents=True)
            (cores / f"cpu{number}/cpufreq/scaling_governor").write_text(text)
        assert governor(tmp_path) == Known(value="performance (2 cores), powersave (1 cores)")
        (cores / "cpu2/cpufreq/scaling_governor").write_text("performance\n")
        assert governor(tmp_path) == Known(value="performance")

    def test_no_governor_has_a_reason(self, tmp_path: Path) -> None:
        found = governor(tmp_path)
        assert found.value is None and "cpufreq" in (found.reason or "")

    def test_threads_of_a_core_share_its_peak(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(processor.os, "sched_getaffinity", lambda pid: {0, 1, 4})
        for number, siblings in enumerate(["0,4", "1,5", "2,6", "3,7", "0,4"]):
            tree(tmp_path, **{f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list": f"{siblings}\n"})
        assert physical_cores(tmp_path) == 2
        assert physical_cores(tmp_path / "without") == 3, "nobody tells"

    def test_the_image_of_a_container(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        assert container_image(tmp_path) == Known(reason="not in a container")
        tree(tmp_path, proc__1__cgroup="0::/kubepods/burstable/pod1\n")
        assert "does not say" in (container_image(tmp_path).reason or "")
        (tmp_path / "run").mkdir()
        (tmp_path / "run/.containerenv").write_text('engine="podman-5"\nimage="acme/suite:3"\nimageid="sha256:ab"\n')
        assert container_image(tmp_path) == Known(value="acme/suite:3 sha256:ab")
        (tmp_path / "run/.containerenv").write_text("")
        assert container_image(tmp_path).value is None and "does not say" in (container_image(tmp_path).reason or "")

    def test_docker_leaves_an_empty_file_alone(self, tmp_path: Path) -> None:
        (tmp_path / ".dockerenv").touch()
        assert "does not say" in (container_image(tmp_path).reason or "")

    def test_microcode(self, tmp_path: Path) -> None:
        assert microcode(tmp_path) is None
        tree(tmp_path, proc__cpuinfo="processor\t: 0\nmicrocode\t: 0xa0011d1\n\nprocessor\t: 1\nmicrocode\t: 0x1\n")
        assert microcode(tmp_path) == "microcode 0xa0011d1"

    def test_arms_processors_are_told_apart_by_their_cores(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The kernel has no name for them."""
        monkeypatch.setattr(processor.platform, "processor", lambda: "")
        monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
        for folder, parts in (
            ("one", ["0xd0c", "0xd0c"]),
            ("another", ["0xd4f"]),
            ("two", ["0xd05", "0xd0a", "0xd05"]),
        ):
            cores = (f"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n" for part in parts)
            tree(tmp_path / folder, proc__cpuinfo="".join(cores))
        assert processor_name(tmp_path / "one") == "aarch64 (implementer 0x41 part 0xd0c)"
        assert processor_name(tmp_path / "another") == "aarch64 (implementer 0x41 part 0xd4f)"
        assert processor_name(tmp_path / "two") == "aarch64 (implementer 0x41 part 0xd05, 0xd0a)"
        assert processor_name(tmp_path / "without") == "aarch64"

    def test_an_x86_has_its_family_with_its_name(self, tmp_path: Path) -> None:
        first = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Acme 9\n\n"
        tree(tmp_path, proc__cpuinfo=first + first.replace("17", "18"))
        assert processor_name(tmp_path) == "Acme 9 (family 25 model 17)"

    def test_this_one(self) -> None:
        host = describe_host({"driver": Known(value="570")})
        assert host.kernel == kernel() and host.kernel.value and host.driver.value == "570"
        for name in ("kernel", "governor", "container", "driver", "runtime", "firmware"):
            fact = getattr(host, name)
            assert (fact.value is None) == bool(fact.reason), name
        assert Host.model_validate_json(host.model_dump_json()) == host

    def test_a_host_of_an_older_log_is_read(self) -> None:
        old = Host(name="h", system="s", processor="p", cores=1, memory_bytes=1)
        assert old.driver == Known(reason="not recorded")


class Telling(Processor):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def software(self) -> Software:
        if isinstance(self.answer, BaseException):
            raise self.answer
        answer: Software = self.answer
        return answer


class TestDevices:
    def test_what_a_vendor_tells(self) -> None:
        facts = device_software(Telling(Software(driver="570.86", runtime="CUDA 12.8", reason="no firmware")))
        assert facts == {
            "driver": Known(value="570.86"),
            "runtime": Known(value="CUDA 12.8"),
            "firmware": Known(reason="no firmware"),
        }

    @pytest.mark.parametrize("answer", [RuntimeError("no driver"), SystemExit(0), None, 3])
    def test_a_vendor_that_fails_is_the_reason(self, answer: Any) -> None:
        facts = device_software(Telling(answer))
        assert all(fact.value is None and "software() failed" in (fact.reason or "") for fact in facts.values())

    def test_a_vendor_without_it(self) -> None:
        silent = SimpleNamespace(runs_on_processor=False)
        facts = device_software(SimpleNamespace(software=lambda: Vendor.software(silent)))  # type: ignore[arg-type]
        assert {fact.reason for fact in facts.values()} == {"the vendor's adapter does not tell"}

    def test_a_processor_has_microcode_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(processor, "text_at", lambda path: "microcode : 0x1\n")
        facts = device_software(Processor())
        assert facts["driver"].value is None and "a processor has none" in (facts["driver"].reason or "")


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class TestSuite:
    @pytest.fixture
    def suite(self, tmp_path: Path) -> Path:
        root = tree(tmp_path / "suite", proofmark__a="")
        (root / "proofmark/__init__.py").touch()
        return root

    def test_a_commit_and_whether_its_files_are_unchanged(self, suite: Path) -> None:
        git(suite, "init", "-q")
        git(suite, "add", "-A")
        git(suite, "commit", "-q", "-m", "all")
        assert commit_of(suite) == (Known(value=git(suite, "rev-parse", "HEAD")), True)
        (suite / "proofmark/a").write_text("changed")
        commit_of.cache_clear()
        assert commit_of(suite) == (Known(value=git(suite, "rev-parse", "HEAD")), False)

    def test_an_edit_that_attributes_hide_is_one(self, suite: Path) -> None:
        (suite / "proofmark/a").write_text("$Id$\n")
        (suite / ".gitattributes").write_text("* ident\n")
        git(suite, "init", "-q")
        git(suite, "add", "-A")
        git(suite, "commit", "-q", "-m", "all")
        (suite / "proofmark/a").write_text("$Id: another $\n")
        git(suite, "add", "-A")
        assert git(suite, "status", "--porcelain") == ""
        assert commit_of(suite) == (Known(value=git(suite, "rev-parse", "HEAD")), False)

    def test_no_repository(self, suite: Path) -> None:
        commit, clean = commit_of(suite)
        assert commit.value is None and clean is None and commit.reason

    def test_a_repository_around_it_that_does_not_have_it(self, suite: Path) -> None:
        git(suite.parent, "init", "-q")
        commit, clean = commit_of(suite)
        assert commit.value is None and clean is None and commit.reason

    def test_no_git(self, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(suite))
        assert commit_of(suite) == (Known(reason="there is no git on this machine"), None)

    def test_git_that_hangs(self, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program = suite / "git"
        program.write_text("#!/bin/sh\nexec sleep 60\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{suite}:/bin:/usr/bin")
        monkeypatch.setattr(provenance, "PATIENCE", 0.2)
        commit, clean = commit_of(suite)
        assert "git did not answer" in (commit.reason or "") and clean is None


class TestVendorsPackage:
    def test_its_content(self, tmp_path: Path) -> None:
        one, same = (tree(tmp_path / name, **{"a.py": "x", "configs__b.yaml": "y"}) for name in ("one", "same"))
        (same / "__pycache__").mkdir()
        (same / "__pycache__/a.pyc").write_bytes(MAGIC_NUMBER + bytes(12) + b"compiled")
        assert content_of(one) == content_of(same) and len(content_of(one).value or "") == 64
        for name, text in (("a.py", "z"), ("c.py", "")):
            other = tree(tmp_path / f"other {name}", **{"a.py": "x", "configs__b.yaml": "y", name: text})
            assert content_of(other) != content_of(one)

    def test_a_link_reads_like_no_file(self, tmp_path: Path) -> None:
        """One to `1 0` was hashed as a file of one byte, 0, is."""
        one, other = tmp_path / "one", tmp_path / "other"
        for folder in (one, other):
            folder.mkdir()
        (one / "n").symlink_to("1 0")
        (other / "n").write_bytes(b"\0")
        (other / "n").chmod(0o644)
        assert content_of(one) != content_of(other)

    @pytest.mark.parametrize("mode", [PycInvalidationMode.UNCHECKED_HASH, PycInvalidationMode.CHECKED_HASH])
    def test_compiled_python_that_runs_whatever_its_source_says_is_of_its_content(
        self, tmp_path: Path, mode: PycInvalidationMode
    ) -> None:
        one, other = (tree(tmp_path / name, **{"a.py": "x = 1", "evil": "x = 2"}) for name in ("one", "other"))
        own = cache_from_source(str(other / "a.py"))
        py_compile.compile(str(other / "a.py"), own, invalidation_mode=PycInvalidationMode.TIMESTAMP)
        assert content_of(one) == content_of(other)
        py_compile.compile(str(other / "evil"), own, invalidation_mode=mode)
        content_of.cache_clear()
        assert content_of(one) != content_of(other)

    @pytest.mark.parametrize("name", ["b.py", "b.so", "a.cpython-311.pyc"])
    def test_what_python_has_not_written_among_what_it_writes_is_of_its_content(
        self, tmp_path: Path, name: str
    ) -> None:
        one, other = (tree(tmp_path / where, **{"a.py": "x"}) for where in ("one", "other"))
        tree(other / "__pycache__", **{name: "no header of Python's"})
        assert content_of(one) != content_of(other)

    def test_links_to_what_is_the_kernels(self, tmp_path: Path) -> None:
        one = tree(tmp_path / "one", **{"a.py": "x"})
        (one / "own").symlink_to("a.py")
        (tmp_path / "elsewhere").touch()
        (one / "out").symlink_to(tmp_path / "elsewhere")
        assert foreign_files(one) == []
        for number, place in enumerate(("/proc/self/mem", "/proc/self/pagemap", "/dev/zero")):
            (one / f"z{number}").symlink_to(place)
        found = foreign_files(one)
        assert [Path(problem.where).name for problem in found] == ["z0", "z1", "z2"]
        assert "which is the kernel's: expected files of the package" in found[0].what

    def test_folders_within_folders_without_end(self, tmp_path: Path) -> None:
        one = tree(tmp_path / "one", **{"a.py": "x"})
        make_folder(one.joinpath(*["d"] * DEEPEST))
        assert foreign_files(one) == []
        make_folder(one.joinpath(*["d"] * 1500))
        (problem,) = foreign_files(one)
        assert problem.where.count("/d") == DEEPEST and "more than 64 folders in one another" in problem.what
        remove(one / "d")

    def test_files_by_which_git_decides_what_differs(self, tmp_path: Path) -> None:
        one = tree(tmp_path / "one", **{"a.py": "x", ".gitkeep": "", ".gitattributes": "*.py ident"})
        (one / "configs/.github").mkdir(parents=True)
        (one / "configs/.gitignore").touch()
        (one / "part/.git").mkdir(parents=True)  # a submodule, which has its own
        (one / "part/.gitignore").touch()
        found = foreign_files(one)
        names = [".gitattributes", "configs/.github", "configs/.gitignore"]
        assert [Path(problem.where).relative_to(one).as_posix() for problem in found] == names
        assert "git reads it" in found[0].what and "remove it" in found[0].what

    def test_what_is_longer_than_it_says_is_not_read_to_its_end(self, tmp_path: Path) -> None:
        endless = tree(tmp_path / "one", **{"a.py": "x"}) / "endless"
        endless.symlink_to("/proc/self/pagemap")
        found = content_of(tmp_path / "one")
        assert found.value is None and found.reason

    def test_too_large_has_a_reason(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(provenance, "MOST_FILES", 1)
        assert "more than 1 files" in (content_of(tree(tmp_path, a="", b="")).reason or "")

    def test_of_a_session(self, tmp_path: Path) -> None:
        (tmp_path / "acme").mkdir()
        package = SimpleNamespace(__file__=str(tmp_path / "acme/__init__.py"), __name__="vendors.acme")
        found = FoundVendor("acme", package, Processor(), tmp_path)  # type: ignore[arg-type]
        made = provenance_of(found)
        assert made.vendor_version.value is None and "not an installed package" in (made.vendor_version.reason or "")
        installed = FoundVendor("acme", package, Processor(), tmp_path, "pytest")  # type: ignore[arg-type]
        assert provenance_of(installed).vendor_version.value == f"pytest {pytest.__version__}"
        nowhere = FoundVendor("acme", package, Processor(), tmp_path, "no-such-thing")  # type: ignore[arg-type]
        assert "does not tell its version" in (provenance_of(nowhere).vendor_version.reason or "")
