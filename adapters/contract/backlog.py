"""Places whose history has to be read, because something may have been said there while nobody listened.

Theory. A place (a channel, a thread) has a mark: everything up to it is stored. While a place is *behind*, its mark is what is
stored of it, whatever newer message comes in; so a crash in the middle loses nothing. A place is read until that succeeds or is
refused; a platform that asks for a pause gets it, for all places. What is said in a place that is behind waits for a short time
for its past, so that the order is kept where that can be had.

Whatever is raised while a place is read, the place stays behind and is tried again, and nobody who waits for it is disturbed.

Where more places are behind than a platform likes to be asked for, those in which something is least likely to have been said are read
*at leisure*: when nothing else is to be read, one in each `LEISURE_SECONDS`, and at once when something is said there. None is left out, however
often it begins anew: their order is drawn for each gap.

A gap while a place is read has it read once more: what was found there is older than that gap.

Laws (tests/adapters/test_backlog.py): a mark never goes back, nor over what was not read; a pause that was asked for is kept;
a place that can be read is read, whatever befalls the others, and one that is read at leisure keeps none of them waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TypeVar
from zlib import crc32

import structlog

from adapters.contract.chat import CallFailed, Fate
from agent_core.ports import Clock, steady_ms
from agent_core.records import dataclass
from agent_core.retry import MISSED

log = structlog.get_logger("chat")

LIVE_SECONDS = 5.0
"""How long a message waits for the past of its place."""
LEISURE_SECONDS = 3.0
"""Between two places that are read at leisure. Slack allows some fifty calls in a minute, and most of them are left for others
(https://docs.slack.dev/apis/web-api/rate-limits, tier 3)."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A place that has to be read after `mark`."""

    mark: int
    since_ms: int
    """When it was noticed: what was said before then came late."""
    attempt: int = 0
    not_before_ms: int = 0
    """By the monotonic clock."""
    leisure: float = 0.0
    """If it is not 0, others come first, and not many such places are read in a minute; of these, the greater its chance, the sooner."""


def lot(place: str, since_ms: int, chance: float) -> int:
    """Which place's turn comes first at leisure: the greatest, and with each gap another. Where connections go from gateway to gateway every
    minute, the same ones would else come first each time, and the others never. Pure."""
    return round(crc32(f"{place} {since_ms}".encode()) * chance)


Item = TypeVar("Item")


def numbered(
    page: Iterable[Item], number_of: Callable[[Item], int], odd: Callable[[Exception], None]
) -> list[tuple[int, Item]]:
    """The messages of a page with their numbers, the oldest first; what has none is told to `odd`, because nobody can ask for it again."""
    found: list[tuple[int, Item]] = []
    for one in page:
        try:
            found.append((number_of(one), one))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            odd(error)
    return sorted(found, key=lambda pair: pair[0])


def after_failure(behind: Behind, error: CallFailed, now: int) -> Behind | None:
    """What becomes of a place whose reading failed; None if it can never be read. Pure."""
    match error.fate:
        case Fate.REFUSED:
            return None
        case Fate.TOO_FAST:
            return replace(behind, not_before_ms=now + round(error.retry_after * 1000))
        case Fate.NOT_SENT | Fate.UNKNOWN:
            attempt = behind.attempt + 1
            return replace(behind, attempt=attempt, not_before_ms=now + MISSED.ms(attempt))


Read = Callable[[str, Behind], Awaitable[bool]]
"""Reads a place after its mark and hands over what it finds, telling `advanced` for each; whether that was all: if not, the place
stays behind, and goes on at leisure. Raises `CallFailed`."""


class Backlog:
    """The places of one account that are behind. `run` it as long as the account is connected."""

    def __init__(self, account: str, read: Read, clock: Clock) -> None:
        self._account = account
        self._read = read
        self._clock = clock
        self.seen: dict[str, int] = {}
        """Place → the last message of it that is stored."""
        self._behind: dict[str, Behind] = {}
        self._hurried: set[str] = set()
        self._anew: set[str] = set()
        """Places of which it was said, since their reading began, that they have to be read: what it has found is older than that."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._closed_until_ms = 0
        """The platform asked for a pause."""
        self._leisure_at_ms = 0
        """When the next place may be read at leisure."""
        self._more = asyncio.Event()

    def add(
        self,
        marks: Iterable[tuple[str, int]],
        since_ms: int | None = None,
        *,
        pause_seconds: float = 0.0,
        leisure: float = 0.0,
    ) -> None:
        """These places have to be read: they are behind since then (default: now). One that is behind already stays where it is,
        and is read as soon as either wants it."""
        not_before_ms = steady_ms(self._clock) + round(pause_seconds * 1000) if pause_seconds else 0
        since = self._clock.now_ms() if since_ms is None else since_ms
        for place, mark in marks:
            known = self._behind.get(place)
            if known is None:
                self._behind[place] = Behind(mark, since, not_before_ms=not_before_ms, leisure=leisure)
            else:
                self._anew.add(place)
                sooner = min(known.not_before_ms, not_before_ms)
                chance = max(known.leisure, leisure) if known.leisure and leisure else 0.0
                self._behind[place] = replace(known, since_ms=since, not_before_ms=sooner, leisure=chance)
        self._more.set()

    def anew(self, place: str) -> bool:
        """Whether a place that is being read has to be read once more: nothing is noted of it then, and its mark stays."""
        return place in self._anew

    @property
    def paused(self) -> bool:
        """The platform asked for a pause that is not over."""
        return steady_ms(self._clock) < self._closed_until_ms

    def mark(self, place: str) -> int | None:
        """Up to where everything of a place is stored, if it is behind."""
        found = self._behind.get(place)
        return None if found is None else found.mark

    def advanced(self, place: str, mark: int) -> None:
        """What was read of a place is stored up to here."""
        found = self._behind.get(place)
        if found is not None and mark > found.mark:
            self._behind[place] = replace(found, mark=mark)

    def saw(self, place: str, mark: int) -> int:
        """Something of a place is stored up to here; the last of it that is."""
        self.seen[place] = last = max(self.seen.get(place, 0), mark)
        return last

    def cursor(self, place: str, mark: int, *, late: bool) -> int:
        """What is stored together with a message: a place that is behind stays so until its history is read."""
        behind = self.mark(place)
        if behind is None:
            return max(self.seen.get(place, 0), mark)
        return max(behind, mark) if late else behind

    def stored(self, place: str, mark: int, *, late: bool) -> None:
        """A message is stored; a `late` one was read from the history."""
        self.saw(place, mark)
        if late:
            self.advanced(place, mark)

    def __len__(self) -> int:
        return len(self._behind)

    # ------------------------------------------------------------------ reading

    async def run(self) -> None:
        """Read what is to be read, until cancelled: places that are waited for, and then those with the newest marks."""
        while True:
            self._more.clear()
            now = steady_ms(self._clock)
            waits = [self._due_ms(place, now) for place in self._behind]
            due = [place for place, wait in zip(self._behind, waits, strict=True) if wait <= 0]
            if due:
                place = max(due, key=self._first)
                if self._behind[place].leisure:
                    self._leisure_at_ms = now + round(LEISURE_SECONDS * 1000)
                await self._try(place)
                continue
            try:
                async with asyncio.timeout(min(waits) / 1000 if waits else None):
                    await self._more.wait()
            except TimeoutError:
                continue

    def hurry(self, place: str, pause: float) -> bool:
        """Somebody waits for a place: it is read before others. False if it is not behind, or not tried for more seconds than that."""
        if place not in self._behind or self._wait_ms(place, steady_ms(self._clock)) > pause * 1000:
            return False
        self._hurried.add(place)
        self._more.set()
        return True

    async def catch_up(self, place: str, seconds: float = LIVE_SECONDS) -> None:
        """Something came from a place that may be behind: read that first, if it can be done so soon."""
        try:
            async with asyncio.timeout(seconds):
                while place in self._behind:
                    wait = self._wait_ms(place, steady_ms(self._clock))
                    if wait > seconds * 1000:
                        return
                    await asyncio.sleep(max(0, wait) / 1000)
                    await self._try(place)
        except TimeoutError:
            return

    def _first(self, place: str) -> tuple[bool, bool, int]:
        behind = self._behind[place]
        drawn = lot(place, behind.since_ms, behind.leisure) if behind.leisure else behind.mark
        return place in self._hurried, not behind.leisure, drawn

    def _due_ms(self, place: str, now: int) -> int:
        """How long until it is read by itself."""
        at_leisure = self._behind[place].leisure and place not in self._hurried
        return max(self._wait_ms(place, now), self._leisure_at_ms - now if at_leisure else 0)

    def _wait_ms(self, place: str, now: int) -> int:
        """How long until it may be read, if somebody waits for it."""
        return max(self._behind[place].not_before_ms, self._closed_until_ms) - now

    async def _try(self, place: str) -> None:
        async with self._locks.setdefault(place, asyncio.Lock()):
            behind = self._behind.get(place)
            if behind is None:
                return
            self._anew.discard(place)
            try:
                whole = await self._read(place, behind)
            except CallFailed as error:
                self._failed(place, error)
                return
            except Exception as error:
                # Of the library's, or of ours: whoever waits for this place must not suffer from it, nor the other places.
                log.exception("chat.history_odd", account=self._account, place=place)
                self._failed(place, CallFailed(Fate.UNKNOWN, f"reading it failed ({type(error).__name__})"))
                return
            self._hurried.discard(place)
            if self.anew(place):
                return  # a connection was lost meanwhile, and is there again
            if whole:
                self._locks.pop(place, None)
                self._behind.pop(place, None)
            else:
                self._behind[place] = replace(self._behind[place], leisure=1.0)

    def _failed(self, place: str, error: CallFailed) -> None:
        now = steady_ms(self._clock)
        left = after_failure(self._behind[place], error, now)
        if error.fate is Fate.TOO_FAST:
            self._closed_until_ms = max(self._closed_until_ms, now + round(error.retry_after * 1000))
        if left is None:
            log.warning("chat.history_refused", account=self._account, place=place, words=error.words)
            self._hurried.discard(place)
            self._anew.discard(place)
            del self._behind[place]
            return
        self._behind[place] = left
        log.info("chat.history_not_read", account=self._account, place=place, words=error.words, attempt=left.attempt)
