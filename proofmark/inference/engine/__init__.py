"""A vendor's engine in a process of its own: it can do nothing but answer."""
