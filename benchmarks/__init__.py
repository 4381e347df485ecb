"""What the suite itself costs. Never a test: figures of one machine at one time."""
