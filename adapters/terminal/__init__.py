"""The surfaces in a terminal, as clients of a running gateway."""
