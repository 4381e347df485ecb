"""What one rank wrote, or its feeder: read while it runs, and when it has ended."""
