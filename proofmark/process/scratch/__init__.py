"""What a process of others' code may keep in directories of its own, and what is kept of it."""
