"""Text, made from seeded grammars or read from folders."""
