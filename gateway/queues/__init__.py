"""A session's queue: what waits, what runs, and what is left of either when a process ends."""
