"""Huawei's object store, by its own client: each bucket has a host name of its own, and nothing is sent in pieces."""

from __future__ import annotations

import contextlib
import ssl
import time
from calendar import timegm
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofmark.errors import UsageError
from proofmark.launch.launchers.modelarts.cloud_file import Cloud
from proofmark.launch.launchers.modelarts.credentials import Credentials
from proofmark.launch.launchers.modelarts.sdk import MAY_NOT, NOBODY, RETRIED, TIMEOUT, Denied, sdk_module
from proofmark.launch.service.contract import LOG_PIECE, ObjectStore, ServiceError, Stored

PAGE = 1000
"""Objects that are listed at once."""

PIECE = 1 << 20
"""Bytes that are held at once of an object that becomes a file."""

SHOWN = "%Y/%m/%d %H:%M:%S"
"""How their client shows a time."""

OF_KEY = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity", "InvalidToken", "ExpiredToken")
"""Error codes for a key, or its token, that is not accepted, with whichever status."""

NOTHING_THERE, BEYOND_ITS_END = 404, 416


class Obs(ObjectStore):
    """One account's buckets."""

    def __init__(self, cloud: Cloud, who: Credentials) -> None:
        """Prepare; nothing is asked yet.

        Raises:
            UsageError: the client is not installed, or `ca_file` holds no certificates.
        """
        self._theirs, self._who = sdk_module("obs"), who
        self._client = self._theirs.ObsClient(
            access_key_id=who.ak,
            secret_access_key=who.sk,
            security_token=who.token,
            server=cloud.obs_endpoint or f"https://obs.{cloud.region}.myhuaweicloud.com",
            ssl_verify=True,
            timeout=TIMEOUT[1],
            max_retry_count=0,
            max_redirect_count=0,  # theirs would sign anew for whatever host it is sent to, without TLS too
        )
        if self._client.is_secure:
            self._client.context = _trust(cloud.ca_file)

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
            page = self._page(bucket, below, marker)
            for each in page.contents or ():
                if each.key != below and not each.key.endswith("/"):  # which stand for folders
                    found[each.key.removeprefix(below)] = _stored(each)
            if not page.is_truncated:
                return found
            marker = page.next_marker or page.contents[-1].key

    def fetch(self, key: str, path: Path) -> None:
        """An object as a file, piece by piece."""
        bucket, name = _parts(key)
        answer = self._ask(f"reading {key}", lambda: self._client.getObject(bucket, name))
        with contextlib.closing(answer.body.response) as body, path.open("wb") as stream:
            while piece := self._tried(f"reading {key}", lambda: body.read(PIECE)):
                stream.write(piece)

    def read(self, key: str, since: int = 0) -> bytes:
        """A piece of an object, from a position on.

        Raises:
            ServiceError: it is not there, or refused.
        """
        bucket, name = _parts(key)
        headers = self._theirs.GetObjectHeader(range=f"{since}-{since + LOG_PIECE - 1}")
        answer = self._ask(
            f"reading {key}",
            lambda: self._client.getObject(bucket, name, headers=headers, loadStreamInMemory=True),
            (BEYOND_ITS_END,),
        )
        return b"" if answer.status == BEYOND_ITS_END else bytes(answer.body.buffer or b"")

    def log(self, key: str, since: int) -> bytes | None:
        """A piece that follows a position of an object that grows; None where there is none yet."""
        try:
            return self.read(key, since)
        except _Missing:
            return None

    def _page(self, bucket: str, prefix: str, marker: str | None) -> Any:
        """A list's next part. Their client has none, and no error, for an answer that is cut, or no list."""
        what = f"listing {bucket}/{prefix}"
        page = self._ask(
            what, lambda: self._client.listObjects(bucket, prefix=prefix, marker=marker, max_keys=PAGE)
        ).body
        if page is None or not page.name or (page.is_truncated and not (page.next_marker or page.contents)):
            raise ServiceError(f"{what}: the store sent an invalid answer", transient=True)
        return page

    def _ask(self, what: str, request: Callable[[], Any], fine: tuple[int, ...] = ()) -> Any:
        answer = self._tried(what, request)
        if answer.status < 300 or answer.status in fine:
            return answer
        reason = f"{answer.errorCode or answer.reason}: {answer.errorMessage or ''}"
        if answer.status < 400:
            reason += "; redirects are not followed: set `obs_endpoint` to that of the bucket's own region"
        text = self._who.hidden(f"{what}: {answer.status} {reason}".rstrip(": "))
        if (of_key := answer.errorCode in OF_KEY) or answer.status in (NOBODY, MAY_NOT):
            raise Denied(text, of_key=of_key or answer.status == NOBODY)
        kind = _Missing if answer.status == NOTHING_THERE else ServiceError
        raise kind(text, transient=answer.status in RETRIED or answer.status >= 500)

    def _tried(self, what: str, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except ssl.SSLCertVerificationError as error:
            raise ServiceError(self._who.hidden(f"{what}: its certificate is not trusted: {error}")[:400]) from None
        except Exception as error:  # noqa: BLE001 (theirs passes on whatever http.client and ssl raise)
            message = self._who.hidden(f"{what}: no answer: {type(error).__name__}: {error}")
            raise ServiceError(message[:400], transient=True) from None


class _Missing(ServiceError):
    """There is no such object."""


def _parts(key: str) -> tuple[str, str]:
    bucket, _, name = key.partition("/")
    return bucket, name


def _trust(ca_file: str | None) -> ssl.SSLContext:
    """Certificates are verified, and the names in them: theirs does neither by the system's own authorities."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"ca_file: {ca_file}: holds no certificates: {error}") from None


def _stored(each: Any) -> Stored:
    try:
        return Stored(int(each.size), _moment(each.lastModified))
    except (TypeError, ValueError) as error:
        raise ServiceError(f"listing {each.key}: the store sent an invalid answer: {error}"[:400]) from None


def _moment(shown: str) -> float:
    """Their client adds the zone's offset without daylight saving, but for the hours around its beginning and end."""
    near = timegm(time.strptime(shown, SHOWN)) + time.timezone
    return next((moment for moment in (near, near + 3600, near - 3600) if _as_shown(moment) == shown), near)


def _as_shown(moment: float) -> str:
    """What their client makes of an instant: UTC is read as local time, and shown as such."""
    as_local = time.mktime((*time.gmtime(moment)[:8], -1))
    return time.strftime(SHOWN, time.localtime(as_local - time.timezone))
