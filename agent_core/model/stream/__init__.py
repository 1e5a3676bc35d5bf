"""What comes from a model's server: bodies, events, chunks, and what of them is new, thought, call or text."""
