"""Who asks: from the environment, the SDK's own credential file, or the user's keyring. Kept in memory alone."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from proofmark.errors import UsageError
from proofmark.finding import imported

AK, SK, TOKEN = "HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK", "HUAWEICLOUD_SDK_SECURITY_TOKEN"
PROJECT, FILE = "HUAWEICLOUD_SDK_PROJECT_ID", "HUAWEICLOUD_SDK_CREDENTIALS_FILE"
DEFAULT_FILE = "~/.huaweicloud/credentials"
SECTION = "basic"


@dataclass(frozen=True)
class Credentials:
    """An access key and its secret part, which nothing prints."""

    ak: str
    sk: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    project: str | None = None

    def hidden(self, text: str) -> str:
        """A text without what is secret."""
        for secret in filter(None, (self.sk, self.token)):
            text = _written(secret).sub("***", text)
        return text

    def is_in(self, text: str) -> bool:
        """Whether a text holds the key or what is secret of it."""
        return any(_written(part).search(text) for part in (self.ak, self.sk, self.token) if part)


def _written(secret: str) -> re.Pattern[str]:
    """A secret as it is, or as an address has it: any of its characters percent-encoded."""
    return re.compile("".join(f"(?:{re.escape(each)}|{_encoded(each)})" for each in secret))


def _encoded(character: str) -> str:
    return "".join(f"%(?i:{byte:02x})" for byte in character.encode("utf-8", "surrogateescape"))


def find_credentials(keyring: str | None) -> Credentials:
    """The first that has both halves of a key: environment, file, keyring.

    Args:
        keyring: the service in the user's keyring; None where that isn't to be asked.

    Raises:
        UsageError: none has.
    """
    found = next(known_credentials(keyring), None)
    if found is None:
        places = f"{AK} and {SK} in the environment, [{SECTION}] in {credentials_file()}"
        asked = f", or 'ak' and 'sk' of '{keyring}' in the keyring" if keyring else ""
        raise UsageError(f"no access key: looked for {places}{asked}")
    return found


def known_credentials(keyring: str | None) -> Iterator[Credentials]:
    """Of each place that has both halves of a key, as it is now: environment, file, keyring.

    Raises:
        UsageError: one can't be read.
    """
    places = (_of_environment, _of_file, *((partial(_of_keyring, keyring),) if keyring else ()))
    return (found for place in places if (found := place()) is not None)


def _of_environment() -> Credentials | None:
    ak, sk = os.environ.get(AK), os.environ.get(SK)
    if not ak or not sk:
        return None
    return Credentials(ak, sk, os.environ.get(TOKEN) or None, os.environ.get(PROJECT) or None)


def _of_file() -> Credentials | None:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(credentials_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise UsageError(
            f"{credentials_file()}: cannot be read: {type(error).__name__}"
        ) from None  # its text may have a secret
    if not parser.has_section(SECTION):
        return None
    section = parser[SECTION]
    ak, sk = section.get("ak"), section.get("sk")
    if not ak or not sk:
        return None
    return Credentials(ak, sk, section.get("security_token"), os.environ.get(PROJECT) or section.get("project_id"))


def credentials_file() -> Path:
    """The SDK's own."""
    return Path(os.environ.get(FILE) or DEFAULT_FILE).expanduser()


def _of_keyring(service: str) -> Credentials | None:
    try:
        ring = imported("keyring", "the keyring")
    except UsageError:
        raise UsageError("`keyring` in the cloud file needs the package keyring: pip install keyring") from None
    ak, sk = ring.get_password(service, "ak"), ring.get_password(service, "sk")
    return (
        Credentials(ak, sk, ring.get_password(service, "security_token"), os.environ.get(PROJECT))
        if ak and sk
        else None
    )
