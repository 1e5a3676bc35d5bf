"""What can go wrong, what is tried then, and how a turn can end: exits with their words, remedies, what is left out, troubles that are known."""
