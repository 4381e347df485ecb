"""What runs in an engine's process, on its host or in its vendor's image."""
