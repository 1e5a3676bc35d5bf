"""Speech to text and text to speech: by an endpoint beside the model's, or by a program of the operator's. Loaded when somebody first needs it."""
