"""Leaves folders within folders, deeper than a path may be long or calls may nest, where others look after it."""

import os
import tempfile
import time

from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "hid a folder in its own directory from the check of its size"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        for top, name in ((os.environ["HOME"], "d" * 200), (tempfile.gettempdir(), "d")):
            folder = os.open(top, os.O_RDONLY)
            for _ in range(1050):
                os.mkdir(name, dir_fd=folder)
                below = os.open(name, os.O_RDONLY, dir_fd=folder)
                os.close(folder)
                folder = below
            os.close(folder)
        time.sleep(60)  # somebody looks, and ends it
