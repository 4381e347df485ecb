"""What ranks and agents wrote, read back: figures, failures, curves."""
