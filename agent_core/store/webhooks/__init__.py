"""Webhooks that are to be sent, and how their receivers are doing."""
