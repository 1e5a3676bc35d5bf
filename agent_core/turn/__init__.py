"""What a turn is made of: facts and judgements, effects, the state they come to, what is seen of it and what the model reads of it."""
