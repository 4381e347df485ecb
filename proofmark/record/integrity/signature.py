"""Signatures over a manifest by OpenSSH's `ssh-keygen -Y`: made with a user's key, held to a list of signers."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from proofmark.errors import UsageError, harmless
from proofmark.plain_json import open_plain
from proofmark.record.integrity.manifest import MANIFEST, SIGNATURE

NAMESPACE = "proofmark"
"""A signature made for anything else is none for a manifest."""

PROGRAM = "ssh-keygen"

PATIENCE = 60.0
"""Seconds that it may take: a key may wait to be touched."""


class BadSignature(Exception):
    """The signature is not that of an allowed signer over this manifest; the text says why, in part of a sentence."""


def program() -> str:
    """Where ssh-keygen is.

    Raises:
        UsageError: it is not installed.
    """
    found = shutil.which(PROGRAM)
    if found is None:
        raise UsageError(f"{PROGRAM} is not on this machine: install OpenSSH's client, which signs and verifies")
    return found


def refuse_unusable(key: Path) -> None:
    """Sign something with a key before anything runs for hours that it is to sign. One in hardware is touched twice.

    Raises:
        UsageError: it can't be read, ssh-keygen is missing, or does not sign with it.
    """
    program()
    _refuse_unread(key, "--sign")
    try:
        with tempfile.TemporaryDirectory(prefix="proofmark-") as folder:
            Path(folder, MANIFEST).write_text("whether the key signs\n")
            sign(Path(folder), key)
    except OSError as error:
        raise UsageError(harmless(f"--sign {key}: cannot be tried: {error}")) from None


def _refuse_unread(path: Path, option: str) -> None:
    """Look whether a file that the user names can be read, and to its end.

    Raises:
        UsageError: it can't.
    """
    try:
        with open_plain(path) as stream:
            stream.read(1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(harmless(f"{option} {path}: cannot be read: {why}")) from None


def sign(folder: Path, key: Path) -> Path:
    """Sign a folder's manifest. `key` is read by ssh-keygen alone: a private one, or the public half of an agent's.

    Raises:
        UsageError: ssh-keygen is missing, or does not sign with it.
    """
    signature = folder / SIGNATURE
    signature.unlink(missing_ok=True)  # it would ask whether it may be overwritten
    _, complaint = _run(["-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(folder / MANIFEST)])
    if complaint is not None or not signature.is_file():
        raise UsageError(harmless(f"--sign {key}: {PROGRAM} does not sign with it: {complaint or 'no reason given'}"))
    return signature


def signer_of(folder: Path, allowed: Path) -> str:
    """Who signed a folder's manifest, by the name that the file of allowed signers gives them.

    Raises:
        BadSignature: nobody, somebody else, or they signed something else.
        UsageError: ssh-keygen is missing, or the list can't be read.
    """
    signature = folder / SIGNATURE
    _refuse_unread(allowed, "--allowed-signers")
    if signature.is_symlink() or not signature.is_file():
        raise BadSignature("is missing: nobody has signed the manifest")
    if not (folder / MANIFEST).is_file():
        raise BadSignature(f"is over nothing: there is no {MANIFEST}")
    principals, complaint = _principals(signature, allowed)
    if complaint is not None or not principals:
        raise BadSignature(f"is not by a signer that {allowed} allows: {complaint or 'unknown key'}")
    complaint_of = dict[str, str]()
    for principal in itertools.chain(principals, _of_each_line(signature, allowed)):
        if principal not in complaint_of:
            wanted = ["-f", str(allowed), "-n", NAMESPACE, "-s", str(signature), "-I", principal]
            _, complaint = _run(["-Y", "verify", *wanted], folder / MANIFEST)
            if complaint is None:
                return principal
            complaint_of[principal] = complaint
    raise BadSignature(f"does not verify by {allowed}: {'; '.join(dict.fromkeys(complaint_of.values()))}")


def _principals(signature: Path, allowed: Path) -> tuple[list[str], str | None]:
    """Names that the first line has whose key it is of, whatever the line allows; and a complaint where none has."""
    return _run(["-Y", "find-principals", "-f", str(allowed), "-s", str(signature)])


def _of_each_line(signature: Path, allowed: Path) -> Iterator[str]:
    """Those of all lines: ssh-keygen looks no further than the first, which may be for another namespace."""
    with tempfile.TemporaryDirectory(prefix="proofmark-") as folder:
        alone = Path(folder, "allowed")
        for line in allowed.read_bytes().splitlines(keepends=True):
            if line.strip() and not line.lstrip().startswith(b"#"):
                alone.write_bytes(line)
                found, complaint = _principals(signature, alone)
                yield from found if complaint is None else ()


def _run(arguments: Sequence[str], read: Path | None = None) -> tuple[list[str], str | None]:
    """Lines that it wrote, and its complaint in a line, None where it had none. It never asks anybody anything."""
    environment = {**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    with open(read or os.devnull, "rb") as stream:
        try:
            ended = subprocess.run(
                [program(), *arguments],
                stdin=stream,
                capture_output=True,
                timeout=PATIENCE,
                env=environment,
                start_new_session=True,  # without a terminal, on which it would ask for a passphrase
            )
        except subprocess.TimeoutExpired:
            return [], f"{PROGRAM} did not end within {PATIENCE:g} s"
        except OSError as error:
            return [], f"{PROGRAM} cannot be started: {error.strerror}"
    lines = ended.stdout.decode("utf-8", "backslashreplace").splitlines()
    complaints = ended.stderr.decode("utf-8", "backslashreplace").strip().splitlines() or lines
    return lines, None if ended.returncode == 0 else (complaints[-1] if complaints else f"exit code {ended.returncode}")
