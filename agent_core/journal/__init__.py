"""A turn's events as they are stored, read back, exported, and decided again for comparison."""
