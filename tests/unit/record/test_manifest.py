"""A folder is what its manifest says, or every file that is not is named."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from proofmark.errors import UsageError
from proofmark.record.integrity import manifest
from proofmark.record.integrity.manifest import MANIFEST, SIGNATURE, differences, read_manifest, write_manifest
from proofmark.record.integrity.signature import BadSignature, refuse_unusable, sign, signer_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a file, one below, a link and a manifest."""
    made = tmp_path / "session"
    (made / "a/b").mkdir(parents=True)
    (made / "a/b/log").write_text("one\ntwo\n")
    (made / "page").write_bytes(b"")
    (made / "link").symlink_to("page")
    write_manifest(made)
    return made


def found(folder: Path) -> dict[str, str]:
    return {each.file: each.what for each in differences(read_manifest(folder), folder)}


def test_nothing_differs_of_what_was_left_alone(folder: Path) -> None:
    assert found(folder) == {}
    assert set(read_manifest(folder).files) == {"a/b/log", "page", "link"}
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == [], "the draft is gone"


def test_a_file_that_is_all_holes_is_known_by_its_length(folder: Path) -> None:
    """To hash it would take years."""
    (folder / "holes").touch()
    os.truncate(folder / "holes", 1 << 42)
    write_manifest(folder)
    assert read_manifest(folder).files["holes"].bytes == 1 << 42 and found(folder) == {}
    os.truncate(folder / "holes", 1 << 41)
    assert "bytes, not" in found(folder)["holes"]


def test_a_copy_that_has_holes_as_zeros_is_no_edited_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "PIECE", 1024)
    (folder / "holes").touch()
    os.truncate(folder / "holes", 1 << 20)
    write_manifest(folder)
    assert read_manifest(folder).files["holes"].sha256 is None
    (folder / "holes").write_bytes(bytes(1 << 20))
    assert found(folder) == {}
    write_manifest(folder)
    assert read_manifest(folder).files["holes"].sha256 is not None
    (folder / "holes").write_bytes(b"")
    os.truncate(folder / "holes", 1 << 20)
    assert "SHA-256 is another" in found(folder)["holes"], "nobody may put holes where there was content"


@pytest.mark.parametrize(
    "change, name, what",
    [
        (lambda folder: (folder / "a/b/log").write_text("one\ntwO\n"), "a/b/log", "SHA-256 is another"),
        (lambda folder: (folder / "a/b/log").write_text("one\n"), "a/b/log", "4 bytes, not 8"),
        (lambda folder: (folder / "a/b/log").unlink(), "a/b/log", "is missing"),
        (lambda folder: (folder / "a/more").write_text(""), "a/more", "was added"),
        (lambda folder: (folder / ".hidden").write_text(""), ".hidden", "was added"),
        (lambda folder: (folder / "a/manifest.json").write_text("{}"), "a/manifest.json", "was added"),
        (lambda folder: os.mkfifo(folder / "pipe"), "pipe", "was added"),
        (lambda folder: ((folder / "page").unlink(), os.mkfifo(folder / "page")), "page", "something else now"),
        (lambda folder: ((folder / "page").unlink(), (folder / "page").symlink_to("/etc")), "page", "is a link now"),
        (lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("a")), "link", "somewhere else"),
        (lambda folder: ((folder / "link").unlink(), (folder / "link").write_text("x")), "link", "something else"),
        (lambda folder: (folder / os.fsdecode(b"\xff")).write_text(""), "\\xff", "was added"),
        (lambda folder: (folder / "\\xff").write_text(""), "\\\\xff", "was added"),
    ],
)
def test_every_change_is_named(folder: Path, change: Callable[[Path], object], name: str, what: str) -> None:
    change(folder)
    (found_change,) = found(folder).items()
    assert found_change[0] == name and what in found_change[1]


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret").write_text("x")
    (folder / "a/out").symlink_to(tmp_path / "elsewhere")
    assert list(found(folder)) == ["a/out"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "Expecting value"),
        ("{}", "schema version None"),
        ('{"schema_version": 2}', "schema version 2, this Proofmark reads 1"),
        ("[]", "not a manifest"),
        ('{"schema_version": 1, "files": {}}', "proofmark: Field required"),
        ("[" * 100_000, "not a manifest"),
    ],
)
def test_what_is_no_manifest_is_refused_in_a_line(folder: Path, text: str, expected: str) -> None:
    (folder / MANIFEST).write_text(text)
    with pytest.raises(UsageError) as refused:
        read_manifest(folder)
    assert expected in str(refused.value) and str(folder / MANIFEST) in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_another_byte_of_a_manifest_is_refused_whichever_it_is(folder: Path) -> None:
    path = folder / MANIFEST
    content = path.read_bytes()
    for position in range(len(content)):
        for flipped in (1, 32):  # to another digit or letter, to the other case
            path.write_bytes(content[:position] + bytes([content[position] ^ flipped]) + content[position + 1 :])
            with pytest.raises(UsageError):
                read_manifest(folder)
    for other in (content + b"\n", b" " + content, content[:-1], content.replace(b": ", b":"), content + b"{}"):
        path.write_bytes(other)
        with pytest.raises(UsageError):
            read_manifest(folder)
    path.write_bytes(content)
    assert found(folder) == {}


@pytest.mark.parametrize("change", [{"session": "another"}, {"made": 1.0}, {"proofmark": "99"}, {"altered": ["x"]}])
def test_an_edited_manifest_is_told_as_one(folder: Path, change: dict[str, object]) -> None:
    raw = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**raw, **change}, indent=1) + "\n")
    with pytest.raises(UsageError, match=r"manifest\.json: was edited or damaged since the session ended"):
        read_manifest(folder)


def test_an_older_manifest_has_no_digest_of_its_own_and_is_read(folder: Path) -> None:
    raw = json.loads((folder / MANIFEST).read_text())
    assert raw.pop("sha256")
    (folder / MANIFEST).write_text(json.dumps(raw))
    assert found(folder) == {} and read_manifest(folder).sha256 is None


def test_a_link_is_no_manifest(folder: Path) -> None:
    (folder / MANIFEST).rename(folder.parent / "other")
    (folder / MANIFEST).symlink_to(folder.parent / "other")
    with pytest.raises(UsageError, match="it is a link"):
        read_manifest(folder)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys, and a list of signers that allows the first."""
    made = tmp_path_factory.mktemp("keys")
    for name, passphrase in (("ours", ""), ("theirs", ""), ("locked", "hush")):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", made / name], check=True)
    (made / "allowed").write_text(f'vendor@example.org namespaces="proofmark" {(made / "ours.pub").read_text()}')
    return made


def test_a_signature_of_an_allowed_signer_counts(folder: Path, keys: Path) -> None:
    sign(folder, keys / "ours")
    assert signer_of(folder, keys / "allowed") == "vendor@example.org"
    sign(folder, keys / "ours")  # once more
    assert found(folder) == {}, "it is in no manifest"


def test_any_other_does_not(folder: Path, keys: Path) -> None:
    with pytest.raises(BadSignature, match="nobody has signed"):
        signer_of(folder, keys / "allowed")
    sign(folder, keys / "theirs")
    with pytest.raises(BadSignature, match="not by a signer"):
        signer_of(folder, keys / "allowed")
    sign(folder, keys / "ours")
    manifest = folder / MANIFEST
    manifest.write_text(manifest.read_text().replace('"session"', '"session" '))
    with pytest.raises(BadSignature, match="does not verify by .*: Signature verification failed"):
        signer_of(folder, keys / "allowed")
    (folder / SIGNATURE).write_text("no signature")
    with pytest.raises(BadSignature):
        signer_of(folder, keys / "allowed")
    (folder / SIGNATURE).unlink()
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", keys / "ours", "-n", "file", manifest], check=True)
    with pytest.raises(BadSignature):
        signer_of(folder, keys / "allowed")
    sign(folder, keys / "ours")
    manifest.unlink()
    with pytest.raises(BadSignature, match="is over nothing"):
        signer_of(folder, keys / "allowed")


def test_a_signer_may_be_listed_for_other_things_before(folder: Path, keys: Path, tmp_path: Path) -> None:
    ours, theirs = ((keys / f"{name}.pub").read_text() for name in ("ours", "theirs"))
    lines = [
        "# who may sign what\n",
        f'builds@example.org namespaces="file" {ours}',
        "rubbish\n",
        f'old@example.org,older@example.org namespaces="proofmark",valid-before="20200101" {ours}',
        f'other@example.org namespaces="proofmark" {theirs}',
        f'first@example.org,second@example.org namespaces="file,proofmark" {ours}',
    ]
    allowed = tmp_path / "allowed"
    allowed.write_text("".join(lines))
    sign(folder, keys / "ours")
    assert signer_of(folder, allowed) == "first@example.org"
    allowed.write_text("".join(lines[:-1]))
    with pytest.raises(BadSignature, match=f"does not verify by {allowed}: .*namespace"):
        signer_of(folder, allowed)


def test_what_cannot_sign_or_verify_is_told_in_a_line(
    folder: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="No such file"):
        refuse_unusable(keys / "nothing")
    for wrong in ("nothing", "locked", "allowed"):
        with pytest.raises(UsageError) as refused:
            sign(folder, keys / wrong)
        assert "does not sign" in str(refused.value) and len(str(refused.value).splitlines()) == 1, wrong
        assert not (folder / SIGNATURE).exists()
    refuse_unusable(keys / "ours")
    for wrong in ("locked", "allowed"):
        with pytest.raises(UsageError, match=f"--sign {keys / wrong}: ssh-keygen does not sign with it"):
            refuse_unusable(keys / wrong)
    with pytest.raises(UsageError, match="allowed-signers .* cannot be read"):
        signer_of(folder, keys / "nobody")
    os.mkfifo(tmp_path / "pipe")
    for endless in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match=f"--sign {endless}: cannot be read: it is not a regular file"):
            refuse_unusable(endless)
        with pytest.raises(UsageError, match=f"--allowed-signers {endless}: cannot be read: it is not a regular file"):
            signer_of(folder, endless)
    sign(folder, keys / "ours")
    monkeypatch.setenv("PATH", str(tmp_path))
    for attempt in (lambda: signer_of(folder, keys / "allowed"), lambda: refuse_unusable(keys / "ours")):
        with pytest.raises(UsageError, match="ssh-keygen is not on this machine"):
            attempt()


def test_no_secret_is_in_what_is_left(folder: Path, keys: Path) -> None:
    sign(folder, keys / "ours")
    secret = "".join((keys / "ours").read_text().splitlines()[1:3])
    left = "".join(path.read_text() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    assert secret[:60] not in left.replace("\n", "") and str(keys) not in left
    assert json.loads((folder / MANIFEST).read_text())["session"] == "session"
