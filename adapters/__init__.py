"""Adapters: one file a platform. Each knows its library and our words; none knows SQL or another adapter."""
