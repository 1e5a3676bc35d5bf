"""What happened to a message or a turn, told from what is stored."""
