"""Huawei's own clients, imported when they are needed, and kept from writing into the user's home."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from proofmark.errors import UsageError
from proofmark.launch.launchers.modelarts.cloud_file import Cloud
from proofmark.launch.launchers.modelarts.credentials import Credentials
from proofmark.launch.service.contract import ServiceError

PACKAGES = ("huaweicloudsdkmodelarts", "esdk-obs-python")
"""Of the extra `modelarts`."""

INSTALL = f"--launcher modelarts needs Huawei's clients: pip install {' '.join(PACKAGES)}"

TIMEOUT = (10, 60)
"""Seconds to connect, and to wait for an answer."""

TAKEN = "ModelArts.2751"
"""A job of that name is there."""

RETRIED = (408, 429)
"""Status codes of requests that may be granted later, beside those of a server that fails."""

NOBODY, MAY_NOT = 401, 403
"""Status codes of requests that another key might be granted: this one is not accepted, or lacks a right."""

UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "doesn't match")
"""What is said of a certificate that is not to be trusted, or is another host's. Their client has one kind of error for
that and for a connection that is cut while it is being secured, or after."""

T = TypeVar("T")
_importing = threading.Lock()


class Denied(ServiceError):
    """Whoever asks may not.

    Attributes:
        of_key: their key is not accepted, whatever it is used for.
    """

    def __init__(self, text: str, *, of_key: bool) -> None:
        super().__init__(text)
        self.of_key = of_key


def sdk_module(name: str) -> Any:
    """A module of Huawei's clients.

    Raises:
        UsageError: it is not installed; one line with the command that does so.
    """
    if name in sys.modules:
        return sys.modules[name]
    with _importing, _another_home():
        try:
            return import_module(name)
        except ImportError:
            raise UsageError(INSTALL) from None


@contextlib.contextmanager
def _another_home() -> Iterator[None]:
    """Their core writes an id of the user's into the home directory when it is imported, and sends it along."""
    before = os.environ.get("HOME")
    with tempfile.TemporaryDirectory(prefix="proofmark-") as folder:
        os.environ["HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = before


def modelarts_client(cloud: Cloud, who: Credentials) -> Any:
    """A client of API v2.

    Raises:
        UsageError: it is not installed, or the project is not known.
    """
    project = cloud.project_id or who.project
    if project is None:
        raise UsageError("no project: set `project_id` in the cloud file, or HUAWEICLOUD_SDK_PROJECT_ID")
    core = sdk_module("huaweicloudsdkcore.auth.credentials")
    http = sdk_module("huaweicloudsdkcore.http.http_config")
    theirs = sdk_module("huaweicloudsdkmodelarts.v1")
    credentials = core.BasicCredentials(who.ak, who.sk, project)
    if who.token:
        credentials = credentials.with_security_token(who.token)
    config = http.HttpConfig.get_default_config()
    config.timeout, config.ssl_ca_cert, config.ignore_ssl_verification = TIMEOUT, cloud.ca_file, False
    endpoint = cloud.endpoint or f"https://modelarts.{cloud.region}.myhuaweicloud.com"
    logging.getLogger("HuaweiCloud-SDK-ModelArtsClient").addHandler(logging.NullHandler())  # else it prints errors
    builder = theirs.ModelArtsClient.new_builder().with_http_config(config).with_credentials(credentials)
    with _another_home():
        return builder.with_endpoints([endpoint]).build()


def asked(what: str, who: Credentials, request: Callable[[], T]) -> T:
    """The answer of the service's client.

    Raises:
        ServiceError: it refused, or was not to be reached; nothing secret of `who` is in the text.
    """
    errors = sdk_module("huaweicloudsdkcore.exceptions.exceptions")
    try:
        return request()
    except errors.ServiceResponseException as error:
        message = f"{what}: {error.status_code} {error.error_code}: {error.error_msg}"
        if error.status_code in (NOBODY, MAY_NOT):
            raise Denied(who.hidden(message), of_key=error.status_code == NOBODY) from None
        transient = error.status_code in RETRIED or error.status_code >= 500
        raise ServiceError(who.hidden(message), transient=transient, taken=error.error_code == TAKEN) from None
    except (errors.SdkException, OSError, AttributeError) as error:  # theirs reads what some lost connections lack
        message = who.hidden(str(getattr(error, "error_msg", None) or error))
        if isinstance(error, errors.SslHandShakeException) and any(sign in message for sign in UNTRUSTED):
            raise ServiceError(f"{what}: its certificate is not trusted: {message:.300}") from None
        raise ServiceError(f"{what}: no answer: {type(error).__name__}: {message:.300}", transient=True) from None
