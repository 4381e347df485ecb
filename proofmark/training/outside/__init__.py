"""The referee outside the ranks: what they leave is looked at in a process that runs no vendor's code."""
