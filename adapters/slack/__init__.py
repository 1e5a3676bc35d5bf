"""Slack, on slack-bolt: events in over Socket Mode or signed HTTP, messages out."""
