"""Wanted parts against what was sent: what has to be done, and what becomes of what failed. Pure."""
