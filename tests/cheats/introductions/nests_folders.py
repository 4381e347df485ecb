"""Leaves folders within folders, deeper than a path may be long or calls may nest, where others look after it."""

import os
import tempfile
import time

REASON = "hid a folder in its own directory from the check of its size"

folder = os.open(tempfile.gettempdir(), os.O_RDONLY)
for _ in range(1050):
    os.mkdir("d" * 200, dir_fd=folder)
    below = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
    os.close(folder)
    folder = below
os.close(folder)
time.sleep(60)  # somebody looks
