"""The inference suite: seven steps in a process of their own, collected and judged."""
