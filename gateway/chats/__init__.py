"""Messages of chat platforms: as they arrive, what comes with them, and the platforms themselves."""
