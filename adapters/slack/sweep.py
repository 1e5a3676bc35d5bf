"""What was said while nobody listened: the history of channels, of direct messages and of threads, behind what was seen last.

Theory. A cursor says up to which ts a channel, or a thread of it, was read; it is stored with the messages. Answers inside threads
are not in a channel's history, so a thread in which the app takes part has a cursor of its own. Slack gives some apps one call for
history a minute: a refusal is waited out, and the newest threads come first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from adapters.chat import CallFailed, ChatDesk, Fate
from adapters.slack.inbound import Table, table
from agent_core.ports import Clock

log = structlog.get_logger("slack")

PAGE = 100
MOST_PAGES = 10
MOST_THREADS = 50
"""Threads that are looked into after an outage."""
THREAD_DAYS = 7
"""A thread that was silent for longer is not looked into."""
TRIES = 5
THREAD_MARK = ":"
"""Between a channel's id and a thread's ts, in the name of a thread's cursor."""

Asked = Callable[[Awaitable[Any]], Awaitable[Any]]


def threads_to_read(cursors: Sequence[tuple[str, str]], now_seconds: float) -> list[tuple[str, str]]:
    """The cursors of threads that are worth a look, the one with the newest message first."""
    since = now_seconds - THREAD_DAYS * 86_400
    threads = [one for one in cursors if THREAD_MARK in one[0] and float(one[1]) >= since]
    return sorted(threads, key=lambda one: -float(one[1]))[:MOST_THREADS]


class Sweep:
    """Reads what was missed; `take` gets each message as an event."""

    def __init__(
        self,
        account: str,
        web: Any,
        asked: Asked,
        desk: ChatDesk,
        clock: Clock,
        take: Callable[[Table], Awaitable[None]],
    ) -> None:
        self._account = account
        self._web = web
        self._asked = asked
        self._desk = desk
        self._clock = clock
        self._take = take
        self._seen: dict[str, str] = {}
        self._known: asyncio.Lock = asyncio.Lock()
        self._loaded = False
        self._running = asyncio.Lock()

    def seen(self, place: str, ts: str) -> tuple[str, str]:
        """The cursor of a place once this message is stored: never behind what was seen there."""
        self._seen[place] = max(self._seen.get(place, "0"), ts, key=float)
        return place, self._seen[place]

    async def cursor(self, channel: str, thread: str, ts: str) -> tuple[str, str]:
        """The cursor that is stored with a message: the thread's if we take part in it, else the channel's."""
        await self._load()
        place = f"{channel}{THREAD_MARK}{thread}"
        return self.seen(place if thread and place in self._seen else channel, ts)

    async def _load(self) -> None:
        async with self._known:
            if not self._loaded:
                for place, ts in await self._desk.cursors(self._account):
                    self._seen.setdefault(place, ts)
                self._loaded = True

    async def run(self) -> None:
        """Read everything behind the cursors, as they are when it begins."""
        async with self._running:
            cursors = await self._desk.cursors(self._account)
            for channel, last in cursors:
                if THREAD_MARK not in channel:
                    await self._read(self._web.conversations_history, {"channel": channel}, channel, last)
            for place, last in threads_to_read(cursors, self._clock.now_ms() / 1000):
                channel, _, thread = place.partition(THREAD_MARK)
                await self._read(self._web.conversations_replies, {"channel": channel, "ts": thread}, channel, last)

    async def _read(
        self, method: Callable[..., Awaitable[Any]], where: dict[str, str], channel: str, last: str
    ) -> None:
        """One channel or thread, oldest first."""
        found: list[Table] = []
        cursor = ""
        for _ in range(MOST_PAGES):
            more = {**where, "cursor": cursor} if cursor else where
            answer = await self._page(lambda more=more: method(**more, oldest=last, limit=PAGE), channel)
            if answer is None:
                return
            found += answer.get("messages") or []
            given: Any = answer.get("response_metadata")
            cursor = str(table(given).get("next_cursor") or "")
            if not cursor:
                break
        kind = "im" if channel.startswith("D") else "channel"
        fresh = {str(message["ts"]): message for message in found if float(message["ts"]) > float(last)}
        for _, message in sorted(fresh.items(), key=lambda one: float(one[0])):
            await self._take({**message, "type": "message", "channel": channel, "channel_type": kind})

    async def _page(self, call: Callable[[], Awaitable[Any]], channel: str) -> Any:
        """One page; None if it cannot be had. A refusal for speed is waited out."""
        for _ in range(TRIES):
            try:
                return await self._asked(call())
            except CallFailed as error:
                if error.fate is Fate.REFUSED:
                    log.info("slack.history_not_read", channel=channel, words=error.words)
                    return None
                await asyncio.sleep(max(1.0, error.retry_after))
        log.warning("slack.history_not_read", channel=channel, words="it was refused too often")
        return None
