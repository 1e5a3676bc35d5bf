"""What a chat should show, and making it so: surfaces, their parts, and the outbox that holds them."""
