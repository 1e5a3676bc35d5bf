"""What may be used and kept: places for turns, budgets, quotas, what lies on the disk, how long a connection may take, and from when on operators are told."""
