"""Messages of chat platforms: who may write, what they mean, what comes with them; and the platforms themselves."""
