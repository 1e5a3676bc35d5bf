"""Processes that do what a person, a page or a model can make endless: with limits, killed when they reach them, and replaced."""
