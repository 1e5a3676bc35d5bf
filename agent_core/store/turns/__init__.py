"""Turns, their journals and their tool calls."""
