"""What the page shows of an inference case beside its figures."""
