"""What the keeper takes up, and when. Pure: it gets what was found and the time, and says what to do.

Theory. Whatever is open and worked on by nobody alive is an *item*: a conversation with an open turn or a waiting message, a
command, a part of a chat. Each is taken up once it is due. How often that came to nothing because the process died is its
*suspicion*, stored before it is worked on. What is under no suspicion is taken up in a ramp, the oldest first. Suspects come after
that, half of those under the same suspicion at a time, each half when the one before has made progress or has lived for a while.
Those in whose batch the process dies are the first of the next process, so that each death halves them until one is alone: only
what was taken up before, and of which the process died while it was alone, is set aside. (Not the other way, one first and then
more: then each kill from outside would set one of them aside.) So is what a mistake of ours keeps from being taken up again and again.

Laws (tests/gateway/test_takeup.py). Nothing is taken up twice at once. At most `WINDOW` of a kind, suspects apart, are young at any time. While a
batch of suspects is young, nothing else is. The one among N that kills is set aside after at most 3 + log2(N) deaths, the
first of which nobody had taken it up for; nothing else is, unless the process dies just while it is alone. What can be taken up is taken up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from agent_core.records import dataclass
from agent_core.retry import SUSPECTS, TAKE_UP

DEATH = 2
"""By so much suspicion grows when a suspect is taken up."""
LIVED = 1
"""By so much it falls when the process has lived on without its progress: those of whose batch it died come before it, and it is
watched for longer the next time, so that what kills slowly comes to its end all the same."""
LIMIT = 1000
"""Who is under so much suspicion is set aside. Only a suspect that is taken up alone comes to it."""
SETTLE_SECONDS = 1.0
"""So long what is under no suspicion is young, if it makes no progress before."""
OURS_SECONDS = 3.0
"""What belongs to this very process may only just be changing hands within it: it must have been seen for so long."""
LATE_SECONDS = 30.0
"""What stays unclaimed for longer is named."""
BEHIND_SECONDS = 25.0
"""So long at most what is new in a chat waits for a part under suspicion that was wanted before it: within half a minute whoever waits there sees a sign."""
MISTAKES = 7
"""So often a mistake of ours may keep something from being taken up, within a minute: then it is set aside, and its person waits no longer."""

SET_ASIDE = "working on it ended the whole gateway more than once, so it is not tried again"
NOT_TAKEN = "a mistake of ours kept it from being taken up, each time that it was tried"


class LeftKind(StrEnum):
    """What is left behind."""

    SESSION = "conversation"
    COMMAND = "command"
    PART = "delivery"


WINDOW: Mapping[LeftKind, int] = {LeftKind.SESSION: 40, LeftKind.COMMAND: 20, LeftKind.PART: 200}
"""How many of a kind that are under no suspicion are young at most."""


@dataclass(frozen=True, slots=True)
class LeftItem:
    """Something that nobody works on."""

    kind: LeftKind
    name: str
    """What tells it from others of its kind."""
    at: int
    """Since when it exists, ms."""
    suspicion: int = 0
    died: bool = True
    """Whoever had it has died; false if it was left in order."""
    ours: bool = False
    """It belongs to this process, which does not work on it."""

    @property
    def key(self) -> tuple[LeftKind, str]:
        return self.kind, self.name

    @property
    def suspect(self) -> bool:
        return self.suspicion > 0

    def charged(self, *, alone: bool) -> int:
        """The suspicion with which it is taken up."""
        if not self.died or not self.suspect:
            return self.suspicion + self.died
        return self.suspicion + DEATH + (LIMIT if alone else 0)

    @property
    def spared(self) -> int:
        """The suspicion of a suspect when the process has lived with it."""
        return self.suspicion + DEATH - LIVED if self.died else self.suspicion


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item with what became of it here. Times are monotonic seconds."""

    item: LeftItem
    since: float
    tries: int = 0
    not_before: float = 0.0
    taken_at: float | None = None
    """It was taken up then, and is young."""
    alone: bool = False
    mistakes: int = 0
    """How often it could not be taken up by a mistake of ours."""

    @property
    def suspect(self) -> bool:
        return self.item.suspect

    @property
    def hopeless(self) -> bool:
        """It is not tried again."""
        return (self.item.died and self.item.suspicion >= LIMIT) or self.mistakes >= MISTAKES

    def holds_back(self, now: float) -> bool:
        """What comes behind it waits: it is still to be taken up. A suspect is when nothing else is young, which is soon as a rule; after a while it is
        passed. What could not be had holds up nothing."""
        waits = self.taken_at is None and not (self.tries or self.item.ours)
        return waits and (not self.suspect or now - self.since < BEHIND_SECONDS)

    def young(self, now: float) -> bool:
        """It was taken up, and it is not known yet what comes of it."""
        lives = SETTLE_SECONDS
        if self.suspect:
            lives = SUSPECTS.seconds(1 + self.item.suspicion // DEATH + self.alone)
        return self.taken_at is not None and now - self.taken_at < lives


KnownItems = Mapping[tuple[LeftKind, str], KnownItem]


@dataclass(frozen=True, slots=True)
class Round:
    """What is to be done now."""

    take: Sequence[LeftItem] = ()
    aside: Sequence[LeftItem] = ()

    @property
    def alone(self) -> bool:
        """What is taken up is a suspect, and the only one."""
        return len(self.take) == 1 and self.take[0].suspect


def found(known: KnownItems, items: Iterable[LeftItem], now: float) -> dict[tuple[LeftKind, str], KnownItem]:
    """What is known after a look: what is new is in, what others have taken is out. Who had something at first is remembered."""
    seen = {item.key: item for item in items}
    kept = {key: one for key, one in known.items() if key in seen or one.taken_at is not None}
    for key, item in seen.items():
        one = kept.get(key)
        if one is None:
            kept[key] = KnownItem(item, now)
        elif one.taken_at is None:
            kept[key] = replace(one, item=replace(item, died=one.item.died, ours=one.item.ours))
    return kept


def due(known: KnownItems, now: float, wanted: frozenset[str] = frozenset()) -> Round:
    """What is taken up or set aside now. `wanted` are the names of those that somebody waits for: they come first."""
    open_ = [one for one in known.values() if one.taken_at is None]
    ready = [one for one in open_ if one.not_before <= now and (not one.item.ours or now - one.since >= OURS_SECONDS)]
    aside = [one.item for one in ready if one.hopeless]
    ready = [one for one in ready if one.item not in aside]
    young = [one for one in known.values() if one.young(now)]
    if any(one.suspect for one in young):
        return Round((), tuple(aside))
    take: list[LeftItem] = []
    innocent = sorted(
        (one.item for one in ready if not one.suspect), key=lambda i: (i.name not in wanted, i.at, i.name)
    )
    for kind, most in WINDOW.items():
        room = most - sum(one.item.kind is kind for one in young)
        take += [item for item in innocent if item.kind is kind][: max(0, room)]
    if take or young or aside:
        return Round(tuple(take), tuple(aside))
    suspects = sorted((one.item for one in ready), key=lambda i: (-i.suspicion, i.name not in wanted, i.at, i.name))
    together = [item for item in suspects if item.suspicion == suspects[0].suspicion]
    return Round(tuple(together[: -(-len(together) // 2)]))


def again(known: KnownItem, now: float, *, mistake: bool = False) -> KnownItem:
    """It could not be taken up; by a `mistake` of ours, and not because the storage or its owner is in the way."""
    tries, mistakes = known.tries + 1, known.mistakes + mistake
    return replace(known, tries=tries, not_before=now + TAKE_UP.seconds(tries), taken_at=None, mistakes=mistakes)


def late(known: KnownItems, now: float) -> dict[LeftKind, int]:
    """How many of each kind are unclaimed for longer than they may be."""
    counts = dict.fromkeys(LeftKind, 0)
    for one in known.values():
        if one.taken_at is None and now - one.since >= LATE_SECONDS:
            counts[one.item.kind] += 1
    return counts


def late_words(counts: Mapping[LeftKind, int]) -> str:
    """What stays unclaimed, in words; empty if nothing does."""
    said = [f"{count} {_named(kind, count)}" for kind, count in counts.items() if count]
    if not said:
        return ""
    return (
        f"{' and '.join(said)} of an earlier process could not be taken up for more than {LATE_SECONDS:.0f} s. They are tried again; "
        "the log says why (keeper.*)."
    )


def _named(kind: LeftKind, count: int) -> str:
    if count == 1:
        return kind.value
    return "deliveries" if kind is LeftKind.PART else f"{kind.value}s"
