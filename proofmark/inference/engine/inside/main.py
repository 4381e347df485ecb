"""An engine's process on its host: `python -m proofmark.inference.engine.inside.main PARENT DIRECTORY SOCKET`."""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.inference.engine.inside.closing import close_in
from proofmark.inference.engine.inside.server import Server
from proofmark.process.descriptors import close_all_but
from proofmark.process.lifetime import end_with, leave
from proofmark.process.memory import keep_freed
from proofmark.process.threads import one_thread
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor import torch_extensions

if TYPE_CHECKING:
    import torch


def main() -> None:
    """Serve the referee at the other end of the socket until that closes it."""
    parent, directory, descriptor = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    end_with(parent)
    keep_freed()
    torch_extensions.import_without()
    _keep_only(descriptor)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    root = Path.cwd()
    os.chdir(directory)
    sys.argv = sys.argv[:1]
    HostServer(socket.socket(fileno=descriptor), root, directory).serve()


def _keep_only(descriptor: int) -> None:
    """The socket and what is printed to: whatever else the process that forked this one had open is nobody's here."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    close_all_but((0, 1, 2, descriptor))
    os.set_inheritable(descriptor, False)


class HostServer(Server):
    """Makes a case's model by the case's own code, and then closes itself in."""

    def model(self, order: dict[str, Any], config: EffectiveConfig) -> torch.nn.Module | None:
        """The case's model with the referee's weights, by one thread."""
        from safetensors.torch import load_file

        if order["weights"] is None:
            return None
        module, name = order["case"]
        case = getattr(importlib.import_module(module), name)()
        with one_thread():
            model: torch.nn.Module = case.create_model(config)
            model.load_state_dict(load_file(order["weights"]))
        return model.eval()

    def close_in(self, order: dict[str, Any], config: EffectiveConfig) -> None:
        """Put on the wall, and say how it holds in a message of its own, before code of the vendor's could change what
        is said."""
        isolation = close_in(order, config, self.directory)
        self.behind_a_wall = isolation.landlock > 0
        self.tell(isolation=isolation.model_dump(mode="json"))


if __name__ == "__main__":
    main()
    leave(0, has_others_objects=True)
