"""What a case's own process does: its steps, and what they are made of."""
