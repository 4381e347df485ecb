"""An object store on this machine: moto's, with one bucket, and what a test does to it."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
from pathlib import Path
from typing import Any, Self

BUCKET = "bench"


class Buckets:
    """A store that is gone at the end of the test."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.client: Any = None
        self.endpoint = ""

    def __enter__(self) -> Self:
        import boto3
        from botocore.config import Config
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication

        # It is asked as S3 alone. A signature of the older kind with four slashes moto would read as a service's name
        DomainDispatcherApplication.infer_service_region_host = lambda *_: None  # type: ignore[method-assign]
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="nobody",
            aws_secret_access_key="nothing",
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )
        self.client.create_bucket(Bucket=BUCKET)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def keys(self, prefix: str = "") -> list[str]:
        """All objects' below a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def read(self, key: str) -> bytes:
        """An object."""
        return bytes(self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def write(self, key: str, content: bytes) -> None:
        """Write one."""
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def remove(self, key: str) -> None:
        """Delete one."""
        self.client.delete_object(Bucket=BUCKET, Key=key)

    def download(self, folder: str, into: Path) -> None:
        """All below `/bucket/folder/`."""
        into.mkdir(parents=True, exist_ok=True)
        prefix = folder.removeprefix(f"/{BUCKET}/")
        for key in self.keys(prefix):
            path = into / key.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.read(key))

    def upload(self, folder: Path, to: str) -> None:
        """All below a folder to `/bucket/folder/`."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.write(f"{to.removeprefix(f'/{BUCKET}/')}{path.relative_to(folder).as_posix()}", path.read_bytes())


def free_port() -> int:
    """A port that nobody listens at: none of those that the system gives to whoever asks for any, and may have given
    away when it is listened at."""
    while True:
        port = random.randrange(20_000, 32_000)  # those below are for workers of a Ray
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
