"""Looks from outside that change nothing: what was found, and whether an address can be reached."""
