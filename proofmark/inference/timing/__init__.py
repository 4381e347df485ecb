"""The timed loop of an inference case: rounds, the loader, honesty between them."""
