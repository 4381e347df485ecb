"""Containers on hosts: their image, what they are given, and that none stays."""
