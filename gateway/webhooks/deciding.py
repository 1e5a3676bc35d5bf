"""What is sent next, and what follows from an attempt. Pure: it gets the rows, the time and chance, and gives rows.

Theory. Each message has its own pauses (`HOOK`), so that one that its receiver cannot take holds up no other. A receiver has pauses as well
(`HOOK_RECEIVER`): while nothing gets through it is asked one message at a time and ever more slowly, however much waits for it.

Laws (tests/webhooks/test_rules.py).
1. Messages of a conversation are tried for the first time one after the other, in the order in which they were told. What has to be tried again
   does not hold up what comes behind it, so a receiver that was away may get them in another order.
2. Never more than `most` are under way to a receiver, and only one while it fails.
3. A message is given up after `HOOK.attempts` attempts, with its receiver (410), or when its receiver has taken nothing for a day and it is
   older than three: never before it was tried, unless its receiver was. What somebody has sent again is tried once more first, however old.
4. What a receiver asks for (`Retry-After`) is waited for, a day at most, and is no failure of the message. Who asks for no pause has the one of a
   receiver that says nothing: else it would be asked at once, without an end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agent_core.records import dataclass
from agent_core.retry import HOOK, HOOK_RECEIVER
from agent_core.store.webhooks.rows import HookRow, HookState, ReceiverRow, StoredHook

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONGEST_PAUSE_MS = DAY_MS
"""What a receiver may ask for."""
OLD_MS = 3 * DAY_MS
WANTED = "somebody has it sent again"
"""The cause of a message that was given up, until it is tried once more."""
GONE = 410
TOO_MANY = 429
BUSY = 503


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one attempt."""

    status: int = 0
    """Of HTTP; 0: there was no answer."""
    words: str = ""
    """Why there was none."""
    retry_after: str = ""
    """The header."""

    @property
    def taken(self) -> bool:
        """The receiver has it."""
        return 200 <= self.status < 300

    @property
    def why(self) -> str:
        """Why it was not taken, in words."""
        if not self.status:
            return self.words
        if 300 <= self.status < 400:
            return f"it answered {self.status}, and redirects are not followed"
        return f"it answered {self.status}"


@dataclass(frozen=True, slots=True)
class Next:
    """What is to be done for a receiver."""

    send: tuple[StoredHook, ...] = ()
    look_at: int | None = None
    """When to look again at the latest, ms; None: when something else happens."""


def next_up(
    waiting: Sequence[StoredHook], under_way: Collection[HookRow], receiver: ReceiverRow, now: int, most: int
) -> Next:
    """What of `waiting`, which stands in its order, is sent now."""
    if receiver.off:
        return Next()
    if receiver.not_before > now:
        return Next(look_at=receiver.not_before)
    room = (1 if receiver.failures else most) - len(under_way)
    busy = {row.message for row in under_way}
    held = {row.session for row in under_way} - {""}
    chosen: list[StoredHook] = []
    look_at: int | None = None
    for one in waiting:
        row = one.row
        if len(chosen) >= room:
            break
        if row.message in busy:
            continue
        if row.retry_at > now:
            look_at = row.retry_at if look_at is None else min(look_at, row.retry_at)
            continue
        if row.session not in held:
            chosen.append(one)
        if row.session:
            held.add(row.session)
    return Next(tuple(chosen), look_at)


def settled(
    row: HookRow, receiver: ReceiverRow, attempt: Attempt, now: int, chance: float
) -> tuple[HookRow, ReceiverRow]:
    """The message and its receiver after an attempt. `chance` lies between 0 and 1."""
    if attempt.taken:
        sent = replace(row, state=HookState.SENT, attempt=row.attempt + 1, done_at=now, cause="")
        return sent, replace(receiver, failures=0, failing_since=0, not_before=0, at=now)
    if attempt.status == GONE:
        row = replace(row, attempt=row.attempt + 1)
        return given_up(row, attempt.why, now), replace(receiver, off=f"{attempt.why} (gone)", at=now)
    asked = pause_ms(attempt.retry_after, now) if attempt.status in (TOO_MANY, BUSY) else None
    pause = max(HOOK_RECEIVER.ms(receiver.failures + 1, chance), asked or 0)
    failing = replace(
        receiver, failures=receiver.failures + 1, failing_since=receiver.failing_since or now, at=now, not_before=now + pause,
    )  # fmt: skip
    if asked is not None:
        return replace(row, retry_at=now + pause, cause=attempt.why), failing
    tried = row.attempt + 1
    failed = replace(row, attempt=tried, cause=attempt.why, retry_at=now + HOOK.ms(tried, chance))
    return (given_up(failed, attempt.why, now) if HOOK.over(tried) else failed), failing


def given_up(row: HookRow, why: str, now: int) -> HookRow:
    """It is not tried any more."""
    return replace(row, state=HookState.GIVEN_UP, cause=why, retry_at=0, done_at=now)


def again(row: HookRow, now: int) -> HookRow:
    """Somebody has it sent again: under the same id, as if for the first time."""
    return replace(row, state=HookState.WAITING, attempt=0, retry_at=now, cause=WANTED, done_at=0)


def too_old(waiting: Sequence[StoredHook], receiver: ReceiverRow, now: int) -> list[HookRow]:
    """What is given up because its receiver has taken nothing for so long."""
    if not receiver.failing_since or now - receiver.failing_since < DAY_MS:
        return []
    why = "its receiver has taken nothing for more than a day"
    return [given_up(one.row, why, now) for one in waiting if now - one.row.at > OLD_MS and one.row.cause != WANTED]


def pause_ms(header: str, now: int) -> int | None:
    """What a ``Retry-After`` asks for: seconds or a date; None if it says nothing."""
    header = header.strip()[:100]
    if header.isascii() and header.isdigit():
        return min(int(header[:9]) * 1000, LONGEST_PAUSE_MS)
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        left = round((moment - datetime.fromtimestamp(now / 1000, UTC)).total_seconds() * 1000)
    except (OverflowError, ValueError, OSError):
        return None
    return min(max(0, left), LONGEST_PAUSE_MS)
