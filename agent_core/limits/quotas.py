"""How much may be kept: whether there is room for more, and who has what. Pure.

Theory. Whatever is to be kept is held first: `QuotaLedger.hold` looks at what is there, at what is being written just now, and at the limits,
and either takes the room or gives back why there is none. Only then is it written. Who has written `settle`s, who could not
`drop`s. So two that write at the same moment cannot both have the last place. What is there is counted by whoever asks
(`recounted`), from what really lies there; the ledger only carries it on from one count to the next.

Laws (tests/agent_core/test_quotas.py): what is held and counted never goes over a limit by anything that was let in; nothing is ever
below zero; what is dropped leaves no trace; what takes nothing more is always let in, so that who is over a limit can remove
things; what was removed gives room.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias, assert_never

from agent_core.records import dataclass
from agent_core.text.tongue import number, sentence, speak, speak_many

AT_ONCE = 1_000
"""Of so many holders it is noted at once what they have."""
BLOCK = 4096
"""Files are counted in whole blocks of this size, as a disk keeps them: many small ones are not for nothing."""


class QuotaKind(StrEnum):
    """What is counted."""

    WORKSPACE = "workspace"
    """Files that tools and people have put down, bytes."""
    FILES = "files"
    """How many they are, folders among them."""
    MEMORY = "memory"
    """What is remembered, and to-do lists, bytes."""
    SPOOL = "spool"
    """Files on their way to people, bytes."""
    INCOMING = "incoming"
    """What came in a day beside plain text: files and pictures, bytes."""
    SESSIONS = "sessions"
    """Conversations that a client of the API has begun in a day."""
    WHOLE = "whole"
    """Everything in the state directory, bytes."""


KEPT = (QuotaKind.WORKSPACE, QuotaKind.FILES, QuotaKind.MEMORY, QuotaKind.SPOOL)
"""What the ledger holds and counts; what is counted by the day is decided in the database."""
ON_DISK = (QuotaKind.WORKSPACE, QuotaKind.SPOOL, QuotaKind.MEMORY)
"""What takes from the room of everybody."""

Amounts: TypeAlias = Mapping[QuotaKind, int]


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """How much there may be; 0 is no limit."""

    each: Amounts = field(default_factory=dict[QuotaKind, int])
    """Of one holder: a person, a group, a user of the API."""
    whole: int = 0
    """Of everybody together, bytes."""


@dataclass(frozen=True, slots=True)
class Full:
    """There is no room."""

    kind: QuotaKind
    used: int
    limit: int
    adding: int


def written(full: Full) -> list[str | int]:
    """As it stands in a journal."""
    return [full.kind.value, full.used, full.limit, full.adding]


def read_full(value: object) -> Full | None:
    """What `written` wrote; None for anything else."""
    match value:
        case [str(kind), int(used), int(limit), int(adding)] if kind in set(QuotaKind):
            return Full(QuotaKind(kind), used, limit, adding)
        case _:
            return None


def room(used: Amounts, adding: Amounts, limits: Amounts) -> Full | None:
    """Why there is no room for `adding` beside what is there; None if there is."""
    for kind, more in adding.items():
        limit, there = limits.get(kind, 0), used.get(kind, 0)
        if more > 0 and limit and there + more > limit:
            return Full(kind, there, limit, more)
    return None


def blocks(size: int) -> int:
    """What a file of this size counts as, bytes."""
    return -(-max(0, size) // BLOCK) * BLOCK


@dataclass(slots=True)
class _Held:
    holder: str
    adding: Amounts


class QuotaLedger:
    """Who has what. One for each gateway; nothing in it waits, so what it decides is decided at once."""

    def __init__(self, limits: QuotaLimits) -> None:
        self.limits = limits
        self._counted: dict[str, dict[QuotaKind, int]] = {}
        self._totals: dict[QuotaKind, int] = dict.fromkeys(KEPT, 0)
        """Of all that is counted: there may be as many holders as people, and who asks how much there is waits on the loop."""
        self._largest: list[tuple[int, str]] = []
        """What each of them takes of the disk, as a negative number, in order."""
        self._held: dict[int, _Held] = {}
        self._number = 0
        self._whole = 0
        self._since = 0
        """What was settled since a count of the whole began."""
        self._touched: set[str] = set()
        """Whose figures have changed since then."""
        self._moves: dict[str, int] = {}

    # ------------------------------------------------------------------ looking

    def used(self, holder: str) -> dict[QuotaKind, int]:
        """What a holder has, with what is being written just now."""
        found = dict(self._counted.get(holder, {}))
        for held in self._held.values():
            if held.holder == holder:
                _add(found, _growing(held.adding))
        return found

    def whole(self) -> int:
        """What everybody has together, bytes."""
        return self._whole + sum(_on_disk(_growing(held.adding)) for held in self._held.values())

    def totals(self) -> dict[QuotaKind, int]:
        """What all holders that are known have."""
        found = dict(self._totals)
        for held in self._held.values():
            if held.holder in self._counted:
                _add(found, _growing(held.adding))
        return found

    def told(self) -> int:
        """The whole as it is told: not less than its parts, which are counted at other times."""
        return max(self.whole(), _on_disk(self.totals()))

    def most(self, number: int) -> list[tuple[str, dict[QuotaKind, int]]]:
        """Those who take most of the disk, the first one most of all."""
        return [(holder, self.used(holder)) for _, holder in self._largest[:number]]

    def whole_room(self, more: int) -> Full | None:
        """Why `more` bytes have no room in the whole."""
        return room({QuotaKind.WHOLE: self.whole()}, {QuotaKind.WHOLE: more}, {QuotaKind.WHOLE: self.limits.whole})

    # ------------------------------------------------------------------ writing

    def hold(self, holder: str, adding: Amounts) -> int | Full:
        """Take room; the number names what is held, until it is settled or dropped."""
        full = room(self.used(holder), adding, self.limits.each) or self.whole_room(_on_disk(_growing(adding)))
        if full is not None:
            return full
        self._number += 1
        self._held[self._number] = _Held(holder, dict(adding))
        self._move(holder)
        return self._number

    def settle(self, number: int) -> None:
        """It is written: what was held is there."""
        held = self._held.pop(number)
        counted = self._counted.get(held.holder, {})
        self._count(held.holder, {kind: counted.get(kind, 0) + amount for kind, amount in held.adding.items()})
        more = _on_disk(held.adding)
        self._whole = max(0, self._whole + more)
        self._since += more
        self._move(held.holder)

    def drop(self, number: int) -> None:
        """It is not written: the room is free again."""
        self._move(self._held.pop(number).holder)

    def _move(self, holder: str) -> None:
        self._touched.add(holder)
        self._moves[holder] = self._moves.get(holder, 0) + 1

    # ------------------------------------------------------------------ counting

    def known(self, holder: str, kinds: Iterable[QuotaKind]) -> bool:
        """Whether it was counted what a holder has of these."""
        counted = self._counted.get(holder, {})
        return all(kind in counted for kind in kinds)

    def quiet(self, holder: str) -> int | None:
        """None while something is being written for a holder; else a number that is the same again as long as nothing is."""
        if any(held.holder == holder for held in self._held.values()):
            return None
        return self._moves.get(holder, 0)

    def recounted(self, holder: str, found: Amounts) -> None:
        """What a holder really has of these kinds."""
        counted = self._counted.get(holder, {})
        # What was not known of a holder is in the whole already, or will be when that is counted.
        more = _on_disk({kind: amount - counted[kind] for kind, amount in found.items() if kind in counted})
        self._count(holder, found)
        self._whole = max(0, self._whole + more)

    def _count(self, holder: str, amounts: Amounts) -> None:
        """So much of these it has from now on."""
        self._unlist(holder)
        counted = self._counted.setdefault(holder, {})
        for kind, amount in amounts.items():
            now = max(0, amount)
            self._totals[kind] = self._totals.get(kind, 0) + now - counted.get(kind, 0)
            counted[kind] = now
        insort(self._largest, (-_on_disk(counted), holder))

    def _unlist(self, holder: str) -> None:
        if (counted := self._counted.get(holder)) is not None:
            del self._largest[bisect_left(self._largest, (-_on_disk(counted), holder))]

    def begin_count(self) -> None:
        self._since, self._touched = 0, set()

    def end_count(self, whole: int, found: Mapping[str, Amounts]) -> Iterator[None]:
        """What a count of everything found. Who has written meanwhile keeps the figures that they have. There may be as many holders as people: after
        some of them, others may go on; it is over when nothing comes any more."""
        for place, holder in enumerate([*{*self._counted, *found}], 1):
            now = {kind: found.get(holder, {}).get(kind, 0) for kind in KEPT}
            if holder not in self._touched and self._counted.get(holder) != now:
                self._count(holder, now)
            if holder not in self._touched and not any(now.values()):
                self._unlist(holder)
                del self._counted[holder]
            if not place % AT_ONCE:
                yield
        self._moves = {holder: number for holder, number in self._moves.items() if holder in self._counted}
        self._whole = max(0, whole + self._since)


def _add(to: dict[QuotaKind, int], more: Amounts) -> None:
    for kind, amount in more.items():
        to[kind] = max(0, to.get(kind, 0) + amount)


def _growing(adding: Amounts) -> Amounts:
    """Of what is held only what grows counts: what is to be removed is still there."""
    return {kind: more for kind, more in adding.items() if more > 0}


def _on_disk(amounts: Amounts) -> int:
    return sum(amounts.get(kind, 0) for kind in ON_DISK)


# ---------------------------------------------------------------------- words


def size_words(size: int) -> str:
    """Bytes for people."""
    if size < 1024:
        return speak("{size} bytes", size=size)
    value, units = size / 1024, ["KB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{number(value)} {units[0]}" if value >= 100 else f"{_short(value)} {units[0]}"


def _short(value: float) -> str:
    whole, _, rest = f"{value:.3g}".partition(".")
    return number(float(f"{whole}.{rest or 0}"), len(rest))


def amount_words(kind: QuotaKind, amount: int) -> str:
    """So much of a kind."""
    match kind:
        case QuotaKind.FILES:
            return speak_many("{count} file", "{count} files", amount, count=number(amount))
        case QuotaKind.SESSIONS:
            return speak_many("{count} conversation", "{count} conversations", amount, count=number(amount))
        case QuotaKind.WORKSPACE | QuotaKind.MEMORY | QuotaKind.SPOOL | QuotaKind.INCOMING | QuotaKind.WHOLE:
            return size_words(amount)
        case _:
            assert_never(kind)


def used_words(kind: QuotaKind, amount: int) -> str:
    """So much of a kind, before "of" and its limit: that says what is counted."""
    match kind:
        case QuotaKind.FILES | QuotaKind.SESSIONS:
            return number(amount)
        case _:
            return amount_words(kind, amount)


def for_model(full: Full) -> str:
    """What the model reads in place of a result: what is full, how much there is, what can be removed."""
    of = f"{used_words(full.kind, full.used)} of {amount_words(full.kind, full.limit)}"
    more = amount_words(full.kind, full.adding)
    match full.kind:
        case QuotaKind.WORKSPACE:
            return (
                f"The workspace is full: {of} are used, files in other conversations of the person included, and this needs {more} more. "
                "Nothing was written. Look with list_files what is here, and remove with delete_file what is not needed any more, or "
                "write less; files of other conversations can only be removed there."
            )
        case QuotaKind.FILES:
            return (
                f"The workspace holds too many files: {of} are there (folders count, and so do other conversations of the person), and this adds {more}. "
                "Nothing was written. Put several texts into one file, or remove some with delete_file."
            )
        case QuotaKind.MEMORY:
            return (
                f"The memory is full: {of} are used, and this needs {more} more. Nothing was kept. See with recall what is kept, and "
                "remove with forget what is not needed any more, or keep fewer words."
            )
        case QuotaKind.SPOOL:
            return (
                f"Too much is on its way to people already: {of}, and this file adds {more}. It was not sent. It can be sent later, "
                "when the others are delivered, or as a shorter file."
            )
        case QuotaKind.INCOMING | QuotaKind.SESSIONS:
            return for_person(full)
        case QuotaKind.WHOLE:
            return (
                "The gateway keeps as much as whoever runs it allows, for everybody together. Nothing was written. Go on without "
                "files and without keeping anything, and tell the person."
            )
        case _:
            assert_never(full.kind)


FILES_BY_COMMAND = sentence("{/files} shows them and deletes what you do not need.")


def for_person(full: Full) -> str:
    """What a person reads: what was not done, and what to do."""
    of = speak("{used} of {limit}", used=used_words(full.kind, full.used), limit=amount_words(full.kind, full.limit))
    match full.kind:
        case QuotaKind.WORKSPACE | QuotaKind.FILES:
            return speak(
                "There is no more room for your files ({of} are used), so not everything was written. {files_by_command}",
                of=of,
                files_by_command=speak(FILES_BY_COMMAND),
            )
        case QuotaKind.MEMORY:
            return speak(
                "What I remember for you has reached its limit ({of}), so something was not kept. Tell me what I may forget, or to shorten the to-do list.",
                of=of,
            )
        case QuotaKind.SPOOL:
            return speak(
                "Too many files are on their way to you already ({of}), so one was not sent. Ask for it again later.",
                of=of,
            )
        case QuotaKind.INCOMING:
            return speak(
                "You have sent as many files and pictures today as you may ({of}). Text is welcome; send the rest tomorrow (UTC), or ask whoever runs the gateway for more.",
                of=of,
            )
        case QuotaKind.SESSIONS:
            return speak(
                "You have begun as many conversations today as you may ({of}). Go on in one of them, or begin a new one tomorrow (UTC).",
                of=of,
            )
        case QuotaKind.WHOLE:
            return speak(
                "The gateway has no more room for files, for anybody. Text works as always; files, and what I should remember, are not kept until whoever runs it makes room."
            )
        case _:
            assert_never(full.kind)
