"""Wanted parts against what was sent: what has to be done, how fast, and what becomes of what failed. Pure."""
