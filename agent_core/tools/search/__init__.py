"""Searching the web by an engine that the operator has configured."""
