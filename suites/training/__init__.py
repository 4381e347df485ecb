"""Training to a target accuracy."""
