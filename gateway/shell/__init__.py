"""Commands that the agent runs, as the gateway has them."""
