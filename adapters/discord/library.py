"""The library discord.py, imported where it is needed and as it is needed."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # It imports a module for sound that Python 3.13 has no more.
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord
    from discord import app_commands
    from discord.gateway import DiscordWebSocket, ReconnectWebSocket
    from discord.http import Ratelimit, Route

# It warns at each start that there is no sound, which nobody asks for here.
discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False

__all__ = ["DiscordWebSocket", "Ratelimit", "ReconnectWebSocket", "Route", "app_commands", "discord"]
