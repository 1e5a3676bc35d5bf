"""Families of models whose calls come in text: a file for each, with its grammar and examples."""
