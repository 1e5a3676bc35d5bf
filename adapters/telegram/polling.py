"""Asking Telegram for updates, and which offset the next `getUpdates` has (`after`, which is pure).

Theory. A poll's offset does one thing: whatever has a lower id is forgotten by the server (https://core.telegram.org/bots/api#getupdates).
So it is sent right behind the updates that it confirms, by a call that waits for nothing, and for what comes next the server is asked
without one: it answers from the head of what it still has. A position that is kept would be compared with ids that the server has chosen
anew meanwhile, lower ones (after a week without updates, or because it is another server): Telegram's own answers from the head then, again
and again until they are confirmed by *their* ids; others would answer nothing, or forget what nobody has seen.

There are servers that never forget (stand-ins for tests mostly). One is known by what it answers without an offset: just what was
confirmed. There the waiting poll has the offset, and every other one looks without.

Where several gateways share a bot, one that lost the database does not know whether the poll is its own still, and each of its polls ends that of
whoever has it by now. So it asks by a poll that waits: if somebody else asks meanwhile, the server ends it with a 409; or what it could not take is gone
the next time. Then it asks no more until it knows. If nobody else asks, the database is away for all, and people are told so.

Laws (tests/adapters/test_offsets.py): what was not answered and taken is never confirmed; whatever the ids do, each update comes in; an
answer that brings nothing new is followed by a pause or by a poll that waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import structlog

from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.contract.pacing import worth_saying
from adapters.telegram.inbound import id_of
from adapters.telegram.port import TelegramPort
from adapters.telegram.section import TelegramSection
from agent_core.ports import Clock
from agent_core.records import dataclass

if TYPE_CHECKING:
    from telegram import Bot

log = structlog.get_logger("telegram")

UPDATES = ["message", "edited_message", "callback_query"]
FIRST_SECONDS = 1.0
"""So soon after somebody else was met for the first time we ask again."""
CONFLICT_SECONDS = 30.0
DISTURBED_SECONDS = 3 * CONFLICT_SECONDS
"""Two that poll disturb each other now and then only: a poll that went well does not mean that the other is gone."""
SEVERAL_HARMLESS = 3
"""So often one that lost the database ends the next one's poll: its last poll, one more by which it is given what it cannot take, one in which that is gone."""
BATCH = 100
QUICK_SECONDS, PAUSE_SECONDS = 0.25, 0.5
"""An empty answer so soon, although the server might have waited, is followed by such a pause; by twice that, if nothing can be confirmed."""
SPARE_SECONDS = 20.0
"""A poll is answered within its time; so much later means that nobody is there."""
CONFLICT = (
    "Somebody else asks Telegram for this bot's updates (409). Two gateways with one token disturb each other: "
    "stop one of them."
)


@dataclass(frozen=True, slots=True)
class Asking:
    """How the server is asked next."""

    offset: int | None = None
    waits: bool = True
    """The server may wait for updates; else it answers at once."""
    confirmed: int | None = None
    """The last offset that the server has answered to."""
    stuck: bool = False
    """The same was answered again although it was confirmed: ask after a pause."""


def after(asked: Asking, ids: Sequence[int], count: int) -> Asking:
    """What to ask next. `ids` are those of the answer, all of which is stored by now; `count` is how much it held.

    What has no id can never be confirmed, so that it comes again.
    """
    confirmed = asked.confirmed if asked.offset is None else asked.offset
    if not ids:
        return Asking(None, confirmed=confirmed, stuck=count > 0)
    offset = max(ids) + 1
    if offset == confirmed:  # it forgets nothing, or answers with the same whatever it is asked
        return Asking(offset, waits=True, confirmed=confirmed, stuck=asked.offset is not None)
    lower = asked.offset is None and confirmed is not None and offset < confirmed
    return Asking(offset, waits=False, confirmed=confirmed, stuck=lower)


class Polling:
    """The polls of one bot. What an answer held is confirmed when `take` has come back for all of it."""

    def __init__(
        self,
        settings: TelegramSection,
        bot: Bot,
        clock: Clock,
        take: Callable[[Sequence[object]], Awaitable[bool]],
        introduce: Callable[[], Awaitable[None]],
        ours: Callable[[], Awaitable[bool]],
        *,
        several: bool = False,
    ) -> None:
        """`take` says whether everything is in a table; `introduce` raises if the bot is not let in any more; `ours` and `several` see `ChatIntake`."""
        self.words = ""
        """Why nothing comes in although we ask."""
        self._account = settings.account
        self._bot = bot
        self._poll_seconds = settings.poll_seconds
        self._clock = clock
        self._take = take
        self._introduce = introduce
        self._ours = ours
        self._harmless = SEVERAL_HARMLESS if several else 1
        """So often we may be met by whoever had the connection before us."""
        self._last_life = clock.monotonic()
        self._failed = 0
        """In a row."""
        self._disturbed: float | None = None
        """When somebody else was met last."""
        self._met = 0
        """How often, each time not long after the one before."""
        self._left = False
        """Somebody else asks: our last poll was ended by theirs, or what we could not take was taken."""
        self._refused: frozenset[int] = frozenset()
        """What was not taken of the last answer, by its numbers, while it was not known whether the poll is ours."""

    @property
    def silent_seconds(self) -> float:
        """How long there was no sign of life."""
        return self._clock.monotonic() - self._last_life

    @property
    def deaf_after_seconds(self) -> float:
        return self._poll_seconds + SPARE_SECONDS

    def alive(self) -> None:
        self._last_life = self._clock.monotonic()

    async def run(self) -> None:
        """Ask for updates until cancelled."""
        asking = Asking()
        while True:
            ours = await self._ours()
            if ours:
                self._left, self._refused = False, frozenset()
            elif self._left:
                self.alive()
                continue
            else:
                asking = replace(asking, waits=True)
            began = self._clock.monotonic()
            try:
                updates = await self._ask(asking)
            except CallFailed as error:
                self._failed += 1
                await self._pause(error)
                continue
            self._failed = 0
            self.alive()
            self.words = CONFLICT if self._met > self._harmless and self._disturbed_lately() else ""
            ids = [number for update in updates if (number := id_of(update)) is not None]
            if not self._refused <= {*ids}:
                self._left, self._refused = True, frozenset()
                continue  # whoever took that takes this
            if not await self._take(updates):
                self._refused = frozenset() if ours else frozenset(ids)
                asking = replace(asking, waits=False)  # the same again, and what came since
                continue
            quick = asking.waits and not updates and self._clock.monotonic() - began < QUICK_SECONDS
            asking = after(asking, ids, len(updates))
            if asking.stuck or quick:
                await asyncio.sleep(PAUSE_SECONDS * (2 if asking.stuck else 1))

    async def _ask(self, asking: Asking) -> list[object]:
        """The next updates, as they came: one that is malformed must not hide the others."""
        kwargs = {
            "offset": asking.offset,
            "timeout": self._poll_seconds if asking.waits else 0,
            "limit": BATCH,
            "allowed_updates": UPDATES,
        }
        asked = self._bot.do_api_request("getUpdates", {k: v for k, v in kwargs.items() if v is not None})
        answer: object = await TelegramPort.asked(asked)
        if not isinstance(answer, list):
            raise CallFailed(Fate.UNKNOWN, "Telegram's answer is no list of updates")
        return cast("list[object]", answer)

    def _disturbed_lately(self) -> bool:
        return self._disturbed is not None and self._clock.monotonic() - self._disturbed < DISTURBED_SECONDS

    async def _pause(self, error: CallFailed) -> None:
        """Polling failed: wait as long as that needs."""
        said = error.words.lower()
        if error.cause is Cause.NOT_LET_IN or "webhook" in said:
            # The library says the first of any 404: only getMe tells whether it is the token. A webhook that somebody has set since is taken away.
            await self._introduce()
        if "conflict" in said:
            self.alive()
            self._left = True
            self._met = self._met + 1 if self._disturbed_lately() else 1
            self._disturbed = self._clock.monotonic()
            if self._met <= self._harmless:
                log.info("telegram.poll_ended", account=self._account)
                await asyncio.sleep(FIRST_SECONDS)
                return
            self.words = CONFLICT
            if worth_saying(self._failed):
                log.warning("telegram.conflict", account=self._account, words=self.words, times=self._failed)
            await asyncio.sleep(CONFLICT_SECONDS)
            return
        if worth_saying(self._failed):
            log.warning("telegram.poll_failed", account=self._account, words=error.words, times=self._failed)
        pause = max(1.0, error.retry_after) if error.fate is Fate.TOO_FAST else 1.0
        if self._failed > 1 or pause > self.deaf_after_seconds:  # one alone is nothing: the next poll asks for the same
            self.words = f"Telegram cannot be asked for updates just now: {error.words}"
        self._last_life = max(self._last_life, self._clock.monotonic() + pause - self.deaf_after_seconds / 2)
        await asyncio.sleep(pause)
