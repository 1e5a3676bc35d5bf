"""The sessions of Discord's connections, where several gateways divide them: begun through one queue, and gone on with by the next one who has them.

Theory. A session is known by its id, an address, and the number of the last event. Whoever connects with these is told all that came since, for some
minutes; so nobody has to read a history. What is stored of a session never runs ahead of what is stored of its events, and is nothing while a
history is still to be read, or may have to be: then the next one begins a session of its own, and reads. It is written under the epoch of its slot, like
any position.

Discord lets an account begin one session each five seconds (of some very large ones, several, by the remainders of their numbers), and some thousand a
day: https://docs.discord.com/developers/events/gateway#rate-limiting
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any

import structlog

from adapters.contract.chat import ChatIntake
from adapters.contract.notaccepted import NotAccepted
from adapters.contract.supervision import AdapterDown
from adapters.discord.port import failure
from adapters.refusing import MISREAD

if TYPE_CHECKING:
    from adapters.discord.client import BotClient, Session

log = structlog.get_logger("discord")

BEGIN_MS = 5_500
"""Half a second more than Discord asks for: one connection is made sooner than another."""
KEEP_SECONDS = 1.0
"""How often it is stored how far a session is: so much may be told again."""
LEAVE_SECONDS = 2.0
HANDED = 4000
"""With this code a session stays one with which somebody can go on; 1000 ends it."""


class Upto(Enum):
    """How much of what a connection has told is stored, where that is no number of an event."""

    ALL = "all"
    NOTHING = "nothing"
    """Something was left out, or may have been: nobody can go on with it."""
    AS_BEFORE = "as before"
    """No more than when it was stored last how far it is."""


class ShardSessions:
    """Those of one account. `up_to` says up to which event everything that a connection has told is stored; `alive` is told that one is in order which
    waits for its turn: it has nothing to say."""

    waiting = 0
    """So many wait for their turn."""

    def __init__(
        self,
        account: str,
        intake: ChatIntake,
        up_to: Callable[[int | None], Upto | int],
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._account = account
        self._intake = intake
        self._up_to = up_to
        self._alive = alive
        self._stored: dict[int | None, str] = {}

    async def turn(self, client: BotClient) -> None:
        """Come back when this client may begin a session. Raises `AdapterDown` if it may not for long."""
        try:
            _, _, limit = await client.http.get_bot_gateway()
            at_once, used_up = limit["max_concurrency"], limit["remaining"] <= 0
            seconds = limit["reset_after"] / 1000 if used_up else 0.0
        except MISREAD as error:
            raise AdapterDown(failure(error).words) from error
        if used_up:
            words = f"Discord lets this bot begin no more sessions for {seconds / 3600:.1f} hours: it has begun too many today."
            raise AdapterDown(words, wait_seconds=seconds)
        bucket = (client.shard_id or 0) % max(1, at_once)
        self.waiting += 1
        try:
            while wait := await self._intake.reserve(self._account, f"starts:{bucket}", BEGIN_MS):
                self._alive()
                await asyncio.sleep(wait / 1000)
        except NotAccepted as away:
            raise AdapterDown(str(away)) from away
        finally:
            self.waiting -= 1

    async def stored(self, shard: int | None) -> Session | None:
        """The one that whoever had this connection before us has left."""
        from adapters.discord.client import Session

        try:
            found = await self._intake.cursor(self._account, _channel(shard))
        except NotAccepted as away:
            raise AdapterDown(str(away)) from away
        self._stored[shard] = found or ""
        try:
            session, seq, url = json.loads(found or "null")
            return Session(str(session), int(seq), str(url))
        except (TypeError, ValueError):
            return None

    async def keep(self, client: BotClient) -> None:
        """Store how far it is, until cancelled."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            with suppress(NotAccepted):  # then the next one begins from further back, or anew
                await self._store(client)

    async def leave(self, client: BotClient) -> None:
        """Let the next one go on from here."""
        with suppress(NotAccepted, TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._store(client)
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                for socket in client.sockets():
                    if socket.open:
                        await socket.close(code=HANDED)

    async def _store(self, client: BotClient) -> None:
        from adapters.discord.client import session_of

        if not client.is_ready() and client.resumes is None:
            return  # of what was begun nothing is known yet
        shard = client.shard_id
        upto = self._up_to(shard)
        if upto is Upto.AS_BEFORE:
            return
        session = None if upto is Upto.NOTHING else session_of(client, None if upto is Upto.ALL else upto)
        told: Any = None if session is None else [session.session, session.seq, session.url]
        said = "" if told is None else json.dumps(told)
        if said != self._stored.get(shard):
            await self._intake.skip(self._account, (_channel(shard), said))
            self._stored[shard] = said


def _channel(shard: int | None) -> str:
    return f"session:{shard or 0}"
