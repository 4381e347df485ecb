"""A rank's data, loaded in a process without others' code, which counts what it hands out."""
