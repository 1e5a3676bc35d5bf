"""Adapters: one folder a platform or surface, and what they share. Each knows its library and our words; none knows SQL or another adapter."""
