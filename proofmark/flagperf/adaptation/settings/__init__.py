"""What an adaptation's files set, each kind of file in a module."""
