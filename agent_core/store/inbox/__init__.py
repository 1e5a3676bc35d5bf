"""Accepted messages, and what could not be taken in."""
