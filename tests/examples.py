"""How many examples a law is tried with, where more than usual find more: the laws of whole turns and texts. No other number stands anywhere."""

from __future__ import annotations

from hypothesis import settings

MANY = settings(max_examples=2 * settings().max_examples)
"""Of what the profile says: so `make soak` tries these with more examples, too."""
