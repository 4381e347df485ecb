"""Child processes: their lifetime, their output, their silence, what they may use."""
