"""Looks at everything that is stored, page by page, and says which laws are broken where. It reads, and writes nothing.

A pass has two halves: what is open (messages that wait, open turns, budgets, times), which is little and looked at whole each time; and what
has ended since the last pass, which is gone through in the order of its ending, up to a moment ago. So a gateway that is looked at for ever has
each turn looked at once, and a look at a whole database is the same pass from the beginning.

Laws (tests/laws/test_auditor.py). A breach is told only if it is still there when it is looked at once more: rows are read one after
the other, and who reads meanwhile what somebody writes sees half of it. Between two pages the auditor rests for as long as it is told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from agent_core.records import dataclass
from agent_core.store.deliveries.rows import behind
from agent_core.store.errors import Damaged
from agent_core.store.evidence import CURSORS, Cursor, EvidencePage, EvidenceReads, KeptPart
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.turns.rows import TurnRow, TurnState
from agent_core.store.webhooks.rows import StoredHook
from gateway.laws.law import Breach, Law, Viewpoint
from gateway.laws.others import (
    looks_around,
    of_claimed,
    of_files,
    of_forgetting,
    of_ledger,
    of_message,
    of_numbers,
    of_owners,
    of_pieces,
    of_references,
    of_states,
    of_times,
    of_times_to_come,
    of_unread,
)
from gateway.laws.outside import of_cursors, of_gates, of_hooks, of_told
from gateway.laws.shown import OPEN, answers_message, doubled, of_part, of_shown, orphan, unasked, waits
from gateway.laws.turns import of_turn
from gateway.webhooks.deciding import LONGEST_PAUSE_MS

PAGE = 20
"""So many turns, messages or parts are read at a time."""
PIECES = 200
"""So many pieces at most."""
SETTLES_MS = 10_000
"""What ended only just now is looked at once more in the next pass: others that are stored behind it may have ended before it."""
BEHIND = 500
"""So many parts are looked at again at most, for one among them that was under way."""
AGAIN_SECONDS = 0.5
"""So much later a breach is looked at once more."""
PULSE = 20
"""So many times as much later, one of a process that seems to be gone: its database may have stumbled, and others take a moment to take over."""
MOST = 1_000
"""Breaches that one pass remembers."""

PUT_BACK = "restore"
"""Whose message stands where numbers go on, far behind, after a backup was put back."""
TURNS = "t_"
"""How the ids of turns begin."""
T = TypeVar("T")
Numbered = tuple[tuple[int, int | None], ...]
"""Numbers in their order, and when each was given, ms."""

Rest = Callable[[int], Awaitable[None]]
"""Waits for as long as so many things that were looked at are to take."""


async def no_rest(count: int) -> None:
    """For those who wait for the result."""
    del count


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far everything that has ended was looked at."""

    turns: Cursor = (-1, "")
    messages: int = 0
    parts: int = 0
    pieces: int = 0
    hooks: int = 0


@dataclass(slots=True)
class Audited:
    """What a pass has looked at, and found."""

    breaches: list[Breach] = field(default_factory=list[Breach])
    turns: int = 0
    messages: int = 0
    parts: int = 0
    mark: Watermark = field(default_factory=Watermark)

    @property
    def seen(self) -> int:
        return self.turns + self.messages + self.parts


@dataclass(frozen=True, slots=True)
class Auditor:
    """One for each pass: the rows are looked at as of one moment."""

    reads: EvidenceReads
    moment: Viewpoint
    rest: Rest = no_rest
    again_seconds: float = AGAIN_SECONDS
    newest: int = 0
    """So many of the latest model calls, and of what is told outside, are looked at; 0: all."""

    async def run(self, since: Watermark) -> Audited:
        """Everything that is open, and what ended behind `since`. Raises `StorageUnavailable`."""
        found = Audited(mark=since)
        of_open = (self._ledger, self._times, self._hooks, self._cursors, self._gates, self._kept)
        of_whole_tables = (self._states, self._owners, self._claimed, self._references)
        # Each by itself: what cannot be read hides nothing beside it.
        for look in (*of_open, *(() if self.newest else of_whole_tables)):
            await self._confirmed(found, look)
        for turns in (await self.reads.open_turns(), await self.reads.undated()):
            for turn in self._sensible(found, turns):
                await self._confirmed(found, lambda turn=turn: self._turn(turn), turn.turn)
                found.turns += 1
                await self.rest(1)
            found.turns += len(turns.senseless)
        for message in self._sensible(found, await self.reads.waiting()):
            await self._confirmed(found, lambda message=message: self._message(message), str(message.id))
            found.messages += 1
            await self.rest(1)
        for turn in self._sensible(found, await self.reads.undelivered()):
            await self._confirmed(found, lambda turn=turn: self._turn(turn), turn.turn)
            await self.rest(1)
        await self._ended_turns(found)
        await self._messages(found)
        await self._parts(found)
        await self._pieces(found)
        await self._told_outside(found)
        return found

    async def _ended_turns(self, found: Audited) -> None:
        async for page in _pages(lambda: self.reads.closed_turns(found.mark.turns, PAGE)):
            for turn in self._sensible(found, page):
                await self._confirmed(found, lambda turn=turn: self._turn(turn), turn.turn)
            found.turns += len(page.keys)
            found.mark = replace(found.mark, turns=page.keys[-1])
            await self.rest(len(page.keys))
        found.mark = replace(found.mark, turns=min(found.mark.turns, (self.moment.now - SETTLES_MS, "")))

    async def _messages(self, found: Audited) -> None:
        last: Numbered = ()
        async for page in _pages(lambda: self.reads.messages(found.mark.messages, PAGE)):
            came = {one.id: one.received_at for one in page.rows if one.account != PUT_BACK}
            numbered = (*last, *((key[0], came.get(key[0])) for key in page.keys))
            await self._confirmed(found, lambda rows=numbered: self._numbers("Message", rows, self.reads.stored))
            last = numbered[-1:]
            for message in self._sensible(found, page):
                if message.state.value != "new":
                    await self._confirmed(found, lambda message=message: self._message(message), str(message.id))
            found.messages += len(page.keys)
            found.mark = replace(found.mark, messages=page.keys[-1][0])
            await self.rest(len(page.keys))

    async def _parts(self, found: Audited) -> None:
        open_from = None
        async for page in _pages(lambda: self.reads.parts(found.mark.parts, PAGE)):
            parts = self._sensible(found, page)
            looks = [parts]
            await self._confirmed(found, lambda looks=looks: self._page_of_parts(looks))
            found.parts += len(page.keys)
            found.mark = replace(found.mark, parts=page.keys[-1][0])
            open_from = open_from or next((one.id for one in parts if one.row.state in OPEN), None)
            await self.rest(len(page.keys))
        if open_from is not None:  # what is under way is looked at again when it has arrived
            found.mark = replace(found.mark, parts=max(open_from - 1, found.mark.parts - BEHIND))

    async def _told_outside(self, found: Audited) -> None:
        last: Numbered = ()
        if self.newest:
            found.mark = replace(found.mark, hooks=max(found.mark.hooks, await self.reads.last_hook() - self.newest))
        while page := await self._stored_hooks(found):
            first, end = found.mark.hooks, page[-1].number
            await self._confirmed(found, lambda first=first, end=end: self._page_of_hooks(first, end))
            numbered = (*last, *((one.number, one.row.at) for one in page))
            if not await self.reads.anybody_forgotten():
                await self._confirmed(
                    found,
                    lambda rows=numbered: self._numbers("What is told outside as number", rows, self._hooks_stored),
                )
            found.mark, last = replace(found.mark, hooks=end), numbered[-1:]
            await self.rest(len(page))

    async def _stored_hooks(self, found: Audited) -> Sequence[StoredHook]:
        """The next page. What cannot be read is told, and ends this look."""
        try:
            return await self.reads.hooks_behind(found.mark.hooks, PAGE)
        except Damaged as error:
            found.breaches.append(Breach(Law.UNREADABLE, str(error), "hooks"))
            return ()

    async def _page_of_hooks(self, first: int, end: int) -> list[Breach]:
        page = [one.row for one in await self.reads.hooks_behind(first, PAGE) if one.number <= end]
        return list(of_told(page, await self.reads.turns_named([one.turn for one in page if one.turn]), self.moment))

    async def _hooks_stored(self, numbers: Sequence[int]) -> Collection[int]:
        page = await self.reads.hooks_behind(numbers[0] - 1, len(numbers))
        return {one.number for one in page} & set(numbers)

    async def _numbers(
        self, kind: str, rows: Numbered, stored: Callable[[Sequence[int]], Awaitable[Collection[int]]]
    ) -> list[Breach]:
        """Which numbers between these are missing, and are still."""
        if not self.reads.counts_on:
            return []
        between = [
            number for (one, _), (other, _) in pairwise(rows) for number in range(one + 1, min(other, one + PAGE))
        ]
        there = await stored(between) if between else ()
        return [] if there else list(of_numbers(kind, rows, self.moment))

    async def _pieces(self, found: Audited) -> None:
        while page := await self.reads.pieces(found.mark.pieces, PIECES):
            found.breaches += of_pieces(page)[: MOST - len(found.breaches)]
            found.mark = replace(found.mark, pieces=page[-1].number)
            await self.rest(len(page))

    def _sensible(self, found: Audited, page: EvidencePage[T]) -> Sequence[T]:
        """The rows of a page; of those that stand for nothing, it is told."""
        known = {one.key for one in found.breaches}
        told = (Breach(Law.UNREADABLE, why, where) for where, why in page.senseless)
        found.breaches += [one for one in told if one.key not in known]
        return page.rows

    async def _confirmed(
        self, found: Audited, look: Callable[[], Awaitable[Iterable[Breach]]], where: str = ""
    ) -> None:
        """What is broken now, and a moment later still, at the place of this id."""
        first = await self._seen(look, where)
        if not first or len(found.breaches) >= MOST:
            return
        gone = any(one.law in (Law.UNCLAIMED, Law.HELD) for one in first)
        await asyncio.sleep(self.again_seconds * (PULSE if gone else 1))
        again = {(one.law, one.where) for one in await self._seen(look, where)}
        known = {one.key for one in found.breaches}
        found.breaches += [one for one in first if (one.law, one.where) in again and one.key not in known]

    async def _seen(self, look: Callable[[], Awaitable[Iterable[Breach]]], where: str) -> list[Breach]:
        """What one look finds; that it finds rows of which nobody can make anything is a finding, and the others are looked at all the same.
        SQLite keeps a text also where a number belongs: of such a row a law can make nothing."""
        try:
            return list(await look())
        except Damaged as error:
            return [Breach(Law.UNREADABLE, str(error), where)]
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return [
                Breach(Law.UNREADABLE, f"What is stored there does not fit together: {type(error).__name__}.", where)
            ]

    # ------------------------------------------------------------------ one look each

    async def _turn(self, turn: TurnRow) -> list[Breach]:
        seen = await self.reads.of_turn(turn)
        moment = await self._now() if turn.state is TurnState.OPEN else self.moment
        now = await self.reads.turn(turn.turn)
        if now is None or now.state is not turn.state:
            return []  # it has ended meanwhile, and is looked at as one that has
        files = of_files(seen.parts, _on_disk, seen.session.key if seen.session is not None else "")
        return [*of_turn(seen, moment), *of_shown(seen, moment), *files]

    async def _now(self) -> Viewpoint:
        """The moment, with the processes that live just now."""
        return replace(self.moment, living=await self.reads.living())

    async def _message(self, message: InboxRow) -> list[Breach]:
        now = await self.reads.message(message.id)
        if now is None or now.state is not message.state:
            return []
        around = looks_around(now.state, now.turn, now.lane)
        return list(of_message(await self.reads.of_message(now, look_around=around), self.moment))

    async def _page_of_parts(self, looks: list[Sequence[KeptPart]]) -> list[Breach]:
        """`looks` has the page as it was read; each further look reads it anew."""
        page = looks[-1] if len(looks) == 1 else (await self.reads.parts(looks[0][0].id - 1, len(looks[0]))).rows
        looks.append(page)
        others = await self.reads.same_receipts(page)
        of_turns = [turn for one in page if (turn := behind(one.row.origin)).startswith(TURNS)]
        known = await self.reads.known(of_turns)
        beside = [one for one in page if one.row.origin not in known]  # those of turns are looked at with their turns
        found = [*doubled(page, others), *of_files(beside, _on_disk)]
        for one in beside:
            found += [*of_part(one), *waits(one, one.row.at, self.moment)]
            turn = behind(one.row.origin)  # what is said beside a turn belongs to it
            found += orphan(one) if turn.startswith(TURNS) and turn not in known else ()
        answered = {one.id: number for one in beside if (number := answers_message(one)) is not None}
        stored = await self.reads.stored(tuple(answered.values()))
        for one in beside:
            if (number := answered.get(one.id)) is not None and number not in stored:
                found += unasked(one, number, self.moment)
        return found

    async def _ledger(self) -> list[Breach]:
        return list(of_ledger(await self.reads.ledger(self.newest), await self._now()))

    async def _times(self) -> list[Breach]:
        overdue, kept = await self.reads.overdue(self.moment.now - self.moment.late), await self.reads.to_come()
        return [*of_times(overdue, self.moment), *of_times_to_come(kept, self.moment)]

    async def _hooks(self) -> list[Breach]:
        before, ahead = self.moment.now - self.moment.late, self.moment.ahead + LONGEST_PAUSE_MS
        return list(of_hooks(await self.reads.hooks(before, self.newest, ahead), self.moment))

    async def _kept(self) -> list[Breach]:
        unread = of_unread(await self.reads.untold(), self.moment)
        return [*unread, *of_forgetting(await self.reads.forgetting(), self.moment)]

    async def _gates(self) -> list[Breach]:
        return list(of_gates(await self.reads.gates(self.moment.ahead), self.moment))

    async def _claimed(self) -> list[Breach]:
        return list(of_claimed(await self.reads.claimed(), self.moment))

    async def _states(self) -> list[Breach]:
        return of_states(await self.reads.in_no_state())

    async def _owners(self) -> list[Breach]:
        return list(of_owners(await self.reads.owned_by_nobody()))

    async def _references(self) -> list[Breach]:
        return list(of_references(await self.reads.miscounted()))

    async def _cursors(self) -> list[Breach]:
        after, found = ("", ""), list[Breach]()
        while page := await self.reads.cursors(after):
            found += of_cursors(page, self.moment)
            after = page[-1].account, page[-1].channel
            if len(page) < CURSORS:
                break
        return found


def _on_disk(file: str) -> bool:
    return Path(file).exists()


async def _pages(read: Callable[[], Awaitable[EvidencePage[T]]]) -> AsyncGenerator[EvidencePage[T]]:
    """EvidencePage after page, until one is not full, or does not lead on."""
    last: Cursor | None = None
    while True:
        page = await read()
        if page.keys:
            yield page
        if len(page.keys) < PAGE or page.keys[-1] == last:
            return
        last = page.keys[-1]
