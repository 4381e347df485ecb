"""A vendor introduces itself from a process of its own: whoever asks runs none of its code."""
