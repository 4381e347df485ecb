"""Signatures over a manifest by OpenSSH's `ssh-keygen -Y`: made with a user's key, held to a list of signers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from proofmark.errors import UsageError, harmless
from proofmark.record.manifest import MANIFEST, SIGNATURE

NAMESPACE = "proofmark"
"""A signature made for anything else is none for a manifest."""

PROGRAM = "ssh-keygen"

PATIENCE = 60.0
"""Seconds that it may take: a key may wait to be touched."""


class BadSignature(Exception):
    """It is not that of an allowed signer over this manifest; the text says why, in part of a sentence."""


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
    """Look at a key before anything runs for hours that it is to sign.

    Raises:
        UsageError: it can't be read, or there is no ssh-keygen.
    """
    program()
    try:
        with key.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise UsageError(f"--sign {key}: cannot be read: {error.strerror}") from None


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
    try:
        with allowed.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise UsageError(f"--allowed-signers {allowed}: cannot be read: {error.strerror}") from None
    if signature.is_symlink() or not signature.is_file():
        raise BadSignature("is not there: nobody has signed the manifest")
    common = ["-f", str(allowed), "-n", NAMESPACE, "-s", str(signature)]
    principals, complaint = _run(["-Y", "find-principals", *common])
    if complaint is not None or not principals:
        raise BadSignature(f"is of no signer that {allowed} allows: {complaint or 'unknown key'}")
    _, complaint = _run(["-Y", "verify", "-I", principals[0], *common], folder / MANIFEST)
    if complaint is not None:
        raise BadSignature(f"is not over this manifest: {complaint}")
    return principals[0]


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
    told = ended.stderr.decode("utf-8", "backslashreplace").strip().splitlines() or lines
    return lines, None if ended.returncode == 0 else (told[-1] if told else f"exit code {ended.returncode}")
