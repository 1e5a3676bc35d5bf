"""What people and the model wrote, for an operator who asks for it: a conversation's title, and the turns in which words stand.

Each is an entry in the audit before it is shown.
"""

from __future__ import annotations

import asyncio

import structlog

from adapters.http.sessions.pagelist import TITLE, around, said_in, stands_in
from agent_core.jsonvalue import Json
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.store.audit import AuditRow
from agent_core.store.overview import TurnSummary
from agent_core.store.store import Damaged, Store
from gateway.console.acting import CannotAct
from gateway.console.naming import Names
from gateway.conversations.sights import SessionSights

log = structlog.get_logger("console")

SEARCH_SECONDS = 3.0
"""So long texts are looked through; the latest turns come first."""
SEARCH_CHARS = 200
SEARCH_TURNS = 5_000
TURNS_AT_ONCE = 50
MOST_FOUND = 50


@dataclass(frozen=True, slots=True)
class TextReading:
    """Shows it. `who` is how somebody came in."""

    store: Store
    sights: SessionSights
    names: Names
    clock: Clock
    ids: Ids

    async def title(self, who: str, session: str) -> str:
        """The title of a conversation. Raises `CannotAct`."""
        row = await self.store.sessions.one(session)
        if row is None:
            raise CannotAct(404, "There is no such conversation any more.")
        await self._note(who, "show title", session, f"The title of {session} was shown.")
        seen = (await self.sights.of([row]))[0]
        return seen.metadata.get(TITLE, "") or seen.title or "It has none yet."

    async def search(self, who: str, text: str) -> dict[str, Json]:
        """The latest turns in which all of the words stand in one text. Raises `CannotAct`."""
        words = text.casefold().split()
        if not words or len(text) > SEARCH_CHARS:
            raise CannotAct(400, f"Say what to search for, in at most {SEARCH_CHARS} characters.")
        await self._note(who, "search", "texts", f"The texts were searched for “{' '.join(text.split())}”.")
        loop = asyncio.get_running_loop()
        until, found, seen, read = loop.time() + SEARCH_SECONDS, list[Json](), 0, True
        latest = await self.store.overview.turns(SEARCH_TURNS)
        while seen < len(latest) and len(found) < MOST_FOUND and loop.time() < until:
            some = latest[seen : seen + TURNS_AT_ONCE]
            seen += len(some)
            fits, whole = await self._found(some, words)
            found, read = [*found, *fits], read and whole
        whole = read and seen == len(latest) < SEARCH_TURNS and len(found) <= MOST_FOUND
        return {"found": found[:MOST_FOUND], "turns": seen, "whole": whole}

    async def _found(self, turns: list[TurnSummary], words: list[str]) -> tuple[list[Json], bool]:
        """Those in which they stand, and whether all could be read."""
        found, whole = list[Json](), True
        await self.names.learn(turns)
        for one in turns:
            try:
                told = await self.sights.turns(one.session, one.number - 1, 1, newest_first=False)
            except Damaged:  # others can be read
                told, whole = [], False
            texts = said_in(told[0]) if told and told[0].turn == one.turn else []
            piece = next((around(words[0], text) for text in texts if stands_in(words, text)), "")
            if piece:
                name = self.names.of(one.session, one.key)
                found.append({"id": one.turn, "name": name, "exit": one.exit, "at": one.opened_at, "text": piece})
        return found, whole

    async def _note(self, who: str, act: str, what: str, words: str) -> None:
        await self.store.deliveries.act(AuditRow(self.ids.new("a"), self.clock.now_ms(), who, act, what, words))
        log.info("console.acted", who=who, act=act, part=what, to=None)
