"""What the page shows of a training beside its figures, and the logs that other tools read."""
