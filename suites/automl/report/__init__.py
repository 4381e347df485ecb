"""A search's part of the page."""
