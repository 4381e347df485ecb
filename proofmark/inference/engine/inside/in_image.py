"""An engine's process in its vendor's image: `python3 -m proofmark.inference.engine.inside.in_image DIRECTORY NAME`.

Python, the vendor's torch and what lies below `proofmark` is all that it needs: no package of ours is in such an image.
NAME is the container's; by it is known, on its host, whose process this is.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError, reason
from proofmark.inference.engine import protocol
from proofmark.inference.engine.inside.server import Server
from proofmark.process.lifetime import leave
from proofmark.process.memory import keep_freed
from proofmark.process.threads import one_thread
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor import torch_extensions

if TYPE_CHECKING:
    import torch


def main() -> None:
    """Call the referee, and serve it until it closes the connection."""
    directory = Path(sys.argv[1])
    keep_freed()
    torch_extensions.hold_back()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.connect(protocol.SOCKET)
    os.chdir(directory)
    sys.argv = sys.argv[:1]
    ImageServer(channel, directory, directory).serve()


class ImageServer(Server):
    """Is closed in by its container, and has no code of a case: its model is a program, as torch exports one."""

    def model(self, order: dict[str, Any], config: EffectiveConfig) -> torch.nn.Module | None:
        """The case's model as exported at the tested precision, on the vendor's device: a program says where it runs
        in its steps too."""
        import torch

        if order["program"] is None:
            return None
        torch_extensions.load()
        try:
            with one_thread():
                program = torch.export.load(order["program"])
                if order["device"] != "cpu":
                    from torch.export.passes import move_to_device_pass

                    program = move_to_device_pass(program, order["device"])
                module = program.module()
        except Exception as error:
            which = (
                f"this image's torch ({torch.__version__}) cannot load the model as torch {order['torch']} exports it"
            )
            raise StepError(f"{which}: {reason(error)}; an engine that is made from ONNX needs no model") from error
        for refused in ("train", "eval"):  # a program has one mode, which was the model's: to ask for it is no mistake
            vars(module).pop(refused, None)
        return module

    def close_in(self, order: dict[str, Any], config: EffectiveConfig) -> None:
        """Nothing is left to close."""


if __name__ == "__main__":
    main()
    leave(0, has_others_objects=True)
