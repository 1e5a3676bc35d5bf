"""What a turn sets going for later, and word of it when it comes."""
