"""Asking a model: endpoints, the client, and what refusals mean."""
