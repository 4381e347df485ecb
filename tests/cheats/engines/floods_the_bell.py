"""Answers before it is asked, again and again."""

import contextlib
import gc
import socket
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "the engine's process "


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __call__(self, inputs: Any) -> Any:
        for channel in [each for each in gc.get_objects() if type(each) is socket.socket]:
            with contextlib.suppress(OSError):
                for _ in range(100):
                    channel.send(b"a" + bytes(15), socket.MSG_DONTWAIT)
        return super().__call__(inputs)
