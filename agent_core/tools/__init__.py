"""Tools: what one is, which there are, and how they are run."""
