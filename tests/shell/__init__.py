"""Commands in their sandbox: what they may do, what they may not, and what is known of them."""
