"""Writes that share a commit: what they depend on, and the order in which what became of it is stored."""
