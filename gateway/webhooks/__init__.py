"""Webhooks: what happens is told to other programs, and other programs begin turns."""
