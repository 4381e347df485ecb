"""Pages that two processes share: slots for batches, and how they are laid out."""
