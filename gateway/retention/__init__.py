"""What is removed: because it is old, or because a person wants to be forgotten."""
