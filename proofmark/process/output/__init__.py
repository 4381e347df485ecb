"""What processes write, on its way into files."""
