"""The turn: a pure machine from events to effects, what it is made of, how it ends, and what is seen of it."""
