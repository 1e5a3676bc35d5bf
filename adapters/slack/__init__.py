"""Slack, on slack-sdk: events in over Socket Mode or signed HTTP, messages out."""
