"""What grammars of calls in text are made of."""
