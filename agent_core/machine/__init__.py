"""The machine: takes a fact, asks for what it means, and says what is wanted next."""
