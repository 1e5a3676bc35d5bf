"""Discord, on discord.py: gateway events in, messages out."""
