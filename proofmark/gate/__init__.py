"""The speed gate: two versions of a case timed in turns on one device, and whether one of them is slower."""
