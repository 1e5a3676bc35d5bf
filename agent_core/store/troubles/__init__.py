"""Failures of turns, and incidents."""
