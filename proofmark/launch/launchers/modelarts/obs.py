"""Huawei's object store, by its own client: each bucket has a host name of its own, and nothing is sent in pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofmark.launch.launchers.modelarts.cloud_file import Cloud
from proofmark.launch.launchers.modelarts.credentials import Credentials
from proofmark.launch.launchers.modelarts.sdk import RETRIED, TIMEOUT, sdk_module
from proofmark.launch.service.contract import ObjectStore, ServiceError, Stored

PAGE = 1000
"""Objects that are listed at once."""

NOTHING_THERE, BEYOND_ITS_END = 404, 416


class Obs(ObjectStore):
    """One account's buckets."""

    def __init__(self, cloud: Cloud, who: Credentials) -> None:
        """Prepare; nothing is asked yet.

        Raises:
            UsageError: the client is not installed.
        """
        self._theirs, self._secret = sdk_module("obs"), who.sk
        self._client = self._theirs.ObsClient(
            access_key_id=who.ak,
            secret_access_key=who.sk,
            security_token=who.token,
            server=cloud.obs_endpoint or f"https://obs.{cloud.region}.myhuaweicloud.com",
            ssl_verify=cloud.ca_file or True,
            timeout=TIMEOUT[1],
            max_retry_count=0,
        )

    def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        bucket, name = _parts(key)
        self._ask(f"writing {key}", lambda: self._client.putContent(bucket, name, content))

    def list(self, prefix: str) -> dict[str, Stored]:
        """All objects below a prefix, by what follows it."""
        bucket, below = _parts(prefix)
        found: dict[str, Stored] = {}
        marker: str | None = None
        while True:
            page = self._page(bucket, below, marker).body
            for each in page.contents or ():
                if each.key != below and not each.key.endswith("/"):  # which stand for folders
                    found[each.key.removeprefix(below)] = Stored(int(each.size), _moment(each.lastModified))
            if not page.is_truncated:
                return found
            marker = page.next_marker or page.contents[-1].key

    def fetch(self, key: str, path: Path) -> None:
        """An object as a file."""
        path.write_bytes(self.read(key))

    def read(self, key: str, since: int = 0) -> bytes:
        """An object from a position on.

        Raises:
            ServiceError: it is not there, or refused.
        """
        bucket, name = _parts(key)
        headers = self._theirs.GetObjectHeader(range=f"{since}-") if since else None
        answer = self._ask(
            f"reading {key}",
            lambda: self._client.getObject(bucket, name, headers=headers, loadStreamInMemory=True),
            (BEYOND_ITS_END,),
        )
        return b"" if answer.status == BEYOND_ITS_END else bytes(answer.body.buffer or b"")

    def log(self, key: str, since: int) -> bytes | None:
        """What follows a position of an object that grows; None where there is none yet."""
        try:
            return self.read(key, since)
        except _Missing:
            return None

    def _page(self, bucket: str, prefix: str, marker: str | None) -> Any:
        return self._ask(
            f"listing {bucket}/{prefix}",
            lambda: self._client.listObjects(bucket, prefix=prefix, marker=marker, max_keys=PAGE),
        )

    def _ask(self, what: str, request: Callable[[], Any], fine: tuple[int, ...] = ()) -> Any:
        try:
            answer = request()
        except Exception as error:  # noqa: BLE001 (theirs passes on whatever http.client and ssl raise)
            told = f"{what}: no answer: {type(error).__name__}: {error}".replace(self._secret, "***")
            raise ServiceError(told[:400], transient=True) from None
        if answer.status < 300 or answer.status in fine:
            return answer
        reason = f"{answer.errorCode or answer.reason}: {answer.errorMessage or ''}".replace(self._secret, "***")
        kind = _Missing if answer.status == NOTHING_THERE else ServiceError
        transient = answer.status in RETRIED or answer.status >= 500
        raise kind(f"{what}: {answer.status} {reason}".rstrip(": "), transient=transient)


class _Missing(ServiceError):
    """There is no such object."""


def _parts(key: str) -> tuple[str, str]:
    bucket, _, name = key.partition("/")
    return bucket, name


def _moment(shown: str) -> float:
    """Their client shows an object's time by this machine's clock."""
    return time.mktime(time.strptime(shown, "%Y/%m/%d %H:%M:%S"))
