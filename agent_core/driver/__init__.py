"""Performs a turn's effects, and composes what a model reads."""
