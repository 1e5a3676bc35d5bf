"""A plain client for tests of the fake: requests with the bot's token, without a library in between."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from tests.fakes.discord.fake import DiscordFake
from tests.fakes.discord.library import serving
from tests.fakes.discord.objects import Channel, Guild, User


@dataclass
class Got:
    """An answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Plain:
    """A fake with a channel, and a plain client with the bot's token."""

    def __init__(self, fake: DiscordFake, session: aiohttp.ClientSession) -> None:
        self.fake = fake
        self.session = session
        self.ada: User = fake.people.user("Ada")
        self.guild: Guild = fake.people.guild("Lovelace", self.ada)
        self.channel: Channel = fake.people.channel(self.guild, "general")
        self.messages = f"/channels/{self.channel.id}/messages"

    async def ask(self, method: str, path: str, body: object = None, **options: Any) -> Got:
        """One request."""
        headers: dict[str, str] = {"Authorization": f"Bot {self.fake.token}", **options.pop("headers", {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
            options["data"] = body if isinstance(body, bytes) else orjson.dumps(body)
        async with self.session.request(method, self.fake.api_url + path, headers=headers, **options) as response:
            data = await response.read()
            is_json = response.headers.get("Content-Type") == "application/json"
            return Got(response.status, orjson.loads(data) if is_json else data, response.headers)

    async def send(self, **fields: object) -> Got:
        """Create a message."""
        return await self.ask("POST", self.messages, fields)


@contextlib.asynccontextmanager
async def furnished(fake: DiscordFake) -> AsyncGenerator[Plain]:
    """A fake that listens, with a client."""
    async with serving(fake), aiohttp.ClientSession(trust_env=False) as session:
        yield Plain(fake, session)
