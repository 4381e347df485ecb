"""The level from which on a process prints log messages, the suite's and a vendor's code's."""

from __future__ import annotations

import logging
from typing import Literal

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

LOGGER = logging.getLogger("proofmark")
"""The suite's own."""


def log_from(level: LogLevel | None) -> None:
    """Print it from `level` on. Where nobody says, others' loggers are left as they are."""
    if level is not None:
        logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    if not LOGGER.handlers:
        LOGGER.addHandler(logging.StreamHandler())
    LOGGER.propagate = False
    LOGGER.setLevel(level or "INFO")
