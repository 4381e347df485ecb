"""Waiting for a thread that writes down what processes say, until it has written the last of it."""

from __future__ import annotations

import threading

LOOKS, EVERY = 50, 0.1
"""How often it is looked whether all is in the file, and seconds that a look takes. Looks are counted, not seconds:
while this process stood still its thread did not write either."""


def wait_for_last_words(writing: threading.Thread) -> None:
    """Wait until it has ended; one whose writers nobody could end is left behind after five seconds."""
    for _ in range(LOOKS):
        writing.join(timeout=EVERY)
