"""Chips, devices and machines: what they are called, what they can do, who has them."""
