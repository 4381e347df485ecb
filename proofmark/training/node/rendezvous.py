"""torchrun on a machine by itself.

Its own way (`--standalone`) keeps what it knows in a store that ranks reach too, and unpickles it: a rank could write
there what the agent then does. A rendezvous of one node has nothing to agree on, and reads nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters

NAME, ADDRESS = "proofmark-alone", "127.0.0.1"


def alone() -> list[str]:
    """Options of torchrun's for a single node. Ranks have logs of their own; torchrun would leave a folder in /tmp."""
    from torch.distributed.elastic.rendezvous import rendezvous_handler_registry

    rendezvous_handler_registry.register(NAME, _made)
    return ["--nnodes", "1", "--rdzv-backend", NAME, "--local-addr", ADDRESS, "--log-dir", os.devnull]


def _made(parameters: RendezvousParameters) -> RendezvousHandler:
    """The one that is fixed beforehand, at a port that the kernel chooses: one that was only looked up can be taken."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]
    from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

    class Alone(StaticTCPRendezvous):
        def get_backend(self) -> str:
            return NAME

        def next_rendezvous(self):  # type: ignore[no-untyped-def]
            if self._store is None:
                store = TCPStore(ADDRESS, 0, self.world_size, is_master=True, multi_tenant=True)
                self._store, self.master_port = store, store.port
            return super().next_rendezvous()

    return Alone(ADDRESS, 0, rank=0, world_size=1, run_id=parameters.run_id, timeout=600)
