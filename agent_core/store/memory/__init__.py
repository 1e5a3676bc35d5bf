"""What agents remember, and their lists."""
