"""What may be used and kept: places for turns, budgets, quotas, and what lies on the disk."""
