"""The configuration: where it is read from, what can be configured, and what is said of mistakes."""
