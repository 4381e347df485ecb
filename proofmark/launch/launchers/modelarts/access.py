"""Clients that may outlive their key: a job may run for longer than a temporary one is good for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from proofmark.errors import UsageError
from proofmark.launch.launchers.modelarts.cloud_file import Cloud, refuse_secrets
from proofmark.launch.launchers.modelarts.credentials import Credentials, credentials_file, known_credentials
from proofmark.launch.launchers.modelarts.obs import Obs
from proofmark.launch.launchers.modelarts.sdk import Denied
from proofmark.launch.service.contract import ObjectStore, ServiceError, Stored

C = TypeVar("C")
T = TypeVar("T")


def keys_for(cloud: Cloud) -> Iterator[Credentials]:
    """All access keys that are there now, the one to use first.

    Raises:
        UsageError: a place can't be read, or a key stands in the cloud file.
    """
    for who in known_credentials(cloud.keyring):
        refuse_secrets(cloud, who.is_in)
        yield who


class Access(Generic[C]):
    """A client, made anew by another key once its own is refused that was good before."""

    def __init__(self, who: Credentials, make: Callable[[Credentials], C], known: Callable[[], Iterator[Credentials]]):
        """`known` are all keys that are there at the time."""
        self._who, self._make, self._known = who, make, known
        self._client, self._was_good = make(who), False

    def ask(self, request: Callable[[C], T]) -> T:
        """A client's answer.

        Raises:
            ServiceError: as of `request`; but a key that was good may be so again (`transient`): somebody renews it.
        """
        try:
            answer = request(self._client)
        except Denied as denied:
            if not self._was_good:
                raise
            return self._by_another(request, denied)
        self._was_good = True
        return answer

    def _by_another(self, request: Callable[[C], T], denied: Denied) -> T:
        """Other keys are only kept if they are of use: one may be older still, or of another account."""
        with contextlib.suppress(UsageError):  # a file that is just being written, or is none
            for who in self._known():
                if who == self._who:
                    continue
                client = self._make(who)
                try:
                    answer = request(client)
                except ServiceError as error:
                    if error.transient:
                        raise
                    continue
                self._who, self._client = who, client
                return answer
        if not denied.of_key:
            raise denied
        renewed = f"this access key was good before; put a new one into {credentials_file()}, and it is used"
        raise ServiceError(f"{denied} ({renewed})", transient=True) from None


class Buckets(ObjectStore):
    """One account's, for as long as any of its keys is good."""

    def __init__(self, access: Access[Obs]) -> None:
        self._access = access

    def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        self._access.ask(lambda obs: obs.put(key, content))

    def list(self, prefix: str) -> dict[str, Stored]:
        """All objects below a prefix, by what follows it."""
        return self._access.ask(lambda obs: obs.list(prefix))

    def fetch(self, key: str, path: Path) -> None:
        """An object as a file."""
        self._access.ask(lambda obs: obs.fetch(key, path))

    def log(self, key: str, since: int) -> bytes | None:
        """A piece that follows a position of an object that grows; None where there is none yet."""
        return self._access.ask(lambda obs: obs.log(key, since))
