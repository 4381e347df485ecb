"""What many hosts and many trials cost."""
