"""What becomes of a part by a call that failed: the remedies of a delivery, in one place. Pure.

Theory. A failure has a fate and a cause (`adapters.contract.chat.CallFailed`). What did not happen is tried again; what may have happened is
settled by the platform's means first (`adapters.delivery.reconcile`). What was refused goes in the next form: without its markup (also if
nobody knows why it was refused), in more parts, as text instead of a file, as another message. At the end of all forms stands a failed part
with its cause.

Laws (tests/adapters/test_aftermath.py).
1. A final part that is refused is there in another form, or has failed: its words are in the rows that come of it.
2. An edit that is refused takes nothing away: the part is sent as a new message, and the old one goes when that is there.
3. What cannot be understood in the answers is tried `MOST_UNREADABLE` times at most, what does not get to the platform `MOST_SHIELDED`
   times; without means to find out, it is created twice at most, the second time with a label, and not before the platform itself answers.
4. What is read after a message that had to be sent anew is sent anew behind it: the order of an answer is that of its parts.

How long a part that failed waits for its next try is counted within this process (`RetryPatience`). What is stored is a time of the wall clock, for
the next process. A wall clock may be put back or forward at any time, so within a process a pause is counted by the monotonic clock from the
moment at which the stored time is first seen; what an earlier process has stored is believed only up to the pause that it meant.

Laws (tests/adapters/test_patience.py): a pause lasts no longer than it was meant, nor than `LONGEST_MS`, whatever the wall clock
does; without a jump it lasts as long as it was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from adapters.contract.chat import Ability, CallFailed, Cause, Content, ContentKind, Fate
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import BLOCKS_MS, LEFTOVER, Part, PartFailure, finished, new_part, removed, settled
from agent_core.records import dataclass
from agent_core.retry import DELIVERY
from agent_core.store.deliveries.rows import INSTEAD, DeliveryRow, DeliveryState
from agent_core.text.tongue import clause

NOT_LET_IN_MS = 60_000
"""Pause after a call that was refused because of the bot itself."""
MOST_UNREADABLE = 4
"""How often something is tried whose answers cannot be understood."""
MOST_SHIELDED = 24
"""How often something is tried that does not get to the platform, because what stands before it says no: an hour, most of it in pauses of five
minutes. What it takes amiss may be the text."""
MOST_MOVES = 4
"""A platform that sends a part from chat to chat, or back to its own, has no place for it."""
MOST_ANEW = 2
"""How often a part is sent as another message because nobody can tell whether it was changed."""
MOST_UPLOADS = 6
"""How often a file is tried that could go as text: half a minute."""

Instead: TypeAlias = Callable[[Content, Cause], Sequence[Content]]
"""What may be shown in place of a content that was refused for this cause; nothing if there is no such thing."""


def nothing(content: Content, cause: Cause) -> Sequence[Content]:
    """There is nothing to show instead."""
    del content, cause
    return ()


NOT_AS_FILE = clause("as text, because the file could not be sent: {why}")
FILE_REFUSED = clause("as text, because the file was refused: {why}")
IN_PARTS = clause("in {count} parts, because it was too long")


def failed(
    part: Part,
    error: CallFailed,
    ability: Ability,
    *,
    creating: bool,
    now: int,
    share: float,
    instead: Instead = nothing,
) -> list[Part]:
    """What becomes of a part by a call that failed, and after it what comes in its place. `share` in [0, 1) is the jitter."""
    if error.cause is not Cause.UNCHANGED:  # it is as it should be
        attempt = part.row.attempt if creating else part.row.attempt + 1
        row = replace(part.row, failures=part.row.failures + 1, trouble=error.words, attempt=attempt)
        part = replace(part, row=row)
    row = part.row
    later = now + DELIVERY.ms(max(1, row.attempt), share)
    match error.fate:
        case Fate.TOO_FAST:
            made = replace(row, state=DeliveryState.WANTED, attempt=max(0, row.attempt - 1))
        case Fate.NOT_SENT | Fate.UNKNOWN if _enough(part, error, ability, creating=creating, instead=instead):
            return _given_up(part, error, ability, now, creating=creating, instead=instead)
        case Fate.NOT_SENT:
            made = replace(row, state=DeliveryState.WANTED, retry_at=later)
        case Fate.UNKNOWN:
            made = replace(row, state=DeliveryState.UNKNOWN if creating else DeliveryState.WANTED, retry_at=later)
        case Fate.REFUSED:
            return _refused(part, error, ability, now, instead)
        case _:
            assert_never(error.fate)
    # What stands on a message that grows is not known after a call that may have been made.
    there = None if error.fate is Fate.UNKNOWN else part.there
    return [replace(part, row=replace(made, cause=error.words, at=now), there=there)]


def behind(before: Part, made: Sequence[Part], parts: Iterable[Part], now: int) -> list[Part]:
    """What stands behind a part whose message is lost, or became too short for it: sent anew, so that people read it in order.

    `made` has come of `before`; `parts` are all of its surface.
    """
    creates = [one for one in made if one.open and one.row.final and not one.row.gone and one.row.platform_id is None]
    if not before.stands or not creates:
        return []
    last, names = max(one.order for one in creates), {one.name for one in made}
    out: list[Part] = []
    for one in sorted(parts, key=lambda part: part.order):
        after = one.row.origin == before.row.origin and one.order > last and one.name not in names
        if after and one.stands and one.content.kind in _WORDS:
            out += _anew(one, now, leaves=True)
    return out


_WORDS = (ContentKind.TEXT, ContentKind.FILE, ContentKind.NOTICE)


def _enough(part: Part, error: CallFailed, ability: Ability, *, creating: bool, instead: Instead) -> bool:
    """It was tried as often as makes sense: each try may have been done, or the file may go as text."""
    row = part.row
    twice = creating and ability is Ability.NONE and row.labelled and error.fate is Fate.UNKNOWN
    if error.cause is Cause.UNREADABLE:
        return twice or (row.attempt >= MOST_UNREADABLE and row.cause == error.words)
    if error.cause is Cause.SHIELDED:
        return twice or row.attempt >= MOST_SHIELDED
    upload = creating and part.content.kind is ContentKind.FILE and not row.gone
    return upload and row.attempt >= MOST_UPLOADS and bool(instead(part.content, Cause.FILE))


def _given_up(
    part: Part, error: CallFailed, ability: Ability, now: int, *, creating: bool, instead: Instead
) -> list[Part]:
    """It is not known whether it was done, and that will not be known."""
    row = part.row
    if part.grows:
        return [finished(replace(part, row=replace(row, attempt=0)), None, ability, now)]
    if row.gone:
        return [_ended(part, DeliveryState.SKIPPED, error.words, now)]
    if creating and part.content.kind is ContentKind.FILE and (contents := instead(part.content, Cause.FILE)):
        return _replaced(part, contents, NOT_AS_FILE.format(why=error.words), now)
    if not creating and row.final and row.platform_id is not None and row.key.count("'") < MOST_ANEW:
        return _anew(part, now, leaves=True, unsure=True)
    return [_ended(part, DeliveryState.FAILED, error.words, now)]


def _ended(part: Part, state: DeliveryState, words: str, now: int) -> Part:
    return replace(part, row=replace(part.row, state=state, retry_at=None, cause=words, at=now))


def _refused(part: Part, error: CallFailed, ability: Ability, now: int, instead: Instead) -> list[Part]:
    row = part.row
    if part.grows and error.cause in _ENDS_GROWING:
        # It is finished without more, or, if that is refused, taken for finished.
        known = part.there is not None and error.cause is not Cause.NOT_GROWING
        unfinished = replace(part, there=None, row=replace(row, state=DeliveryState.WANTED))
        return [unfinished if known else finished(part, None, ability, now)]
    match error.cause:
        case Cause.UNCHANGED if row.platform_id is not None:
            return [settled(part, row.platform_id, part.content, ability, now)]
        case Cause.NO_MESSAGE if row.platform_id is not None:
            # Most say so when it was deleted, but not all mean it: whether it is gone is told by having it deleted.
            return _anew(part, now, leaves=row.final and not row.gone)
        case Cause.NO_MESSAGE if row.labelled and ability is Ability.KEYED:
            # The repeated call is known by its key, and its message is not there any more: it was sent, and taken away.
            made = replace(row, state=DeliveryState.SKIPPED, gone=True, retry_at=None)
        case Cause.TOO_LONG if row.final and not row.gone and (contents := instead(part.content, error.cause)):
            return _replaced(part, contents, IN_PARTS.format(count=len(contents)), now)
        case Cause.FORM | Cause.TOO_LONG if not row.plain:
            made = replace(row, state=DeliveryState.WANTED, plain=True, retry_at=None)
        case Cause.OTHER if _may_go_barer(part):
            # Nobody knows these words: without marks, buttons and reply it may still be taken.
            made = replace(row, state=DeliveryState.WANTED, plain=True, retry_at=None)
        case Cause.NO_THREAD if row.cause != Cause.NO_THREAD.value:
            made = replace(row, state=DeliveryState.WANTED, retry_at=None, cause=Cause.NO_THREAD.value, at=now)
            return [replace(part, row=made)]
        case Cause.MOVED if row.failures <= MOST_MOVES:
            made = replace(row, state=DeliveryState.WANTED, retry_at=now + 1_000)
        case Cause.NOT_LET_IN if not row.gone:
            made = replace(row, state=DeliveryState.WANTED, retry_at=now + NOT_LET_IN_MS)
        case _ if row.gone:
            made = replace(row, state=DeliveryState.SKIPPED, retry_at=None)
        case _ if row.platform_id is not None and row.final and error.cause not in _OF_THE_CHAT:
            return _anew(part, now, leaves=True)
        case _ if (
            part.content.kind is ContentKind.FILE
            and error.cause not in _OF_THE_CHAT
            and (contents := instead(part.content, Cause.FILE))
        ):
            return _replaced(part, contents, FILE_REFUSED.format(why=error.words), now)
        case _:
            made = replace(row, state=DeliveryState.FAILED, retry_at=None)
    return [replace(part, row=replace(made, cause=error.words, at=now))]


def _may_go_barer(part: Part) -> bool:
    row, words = part.row, part.content.kind is not ContentKind.FILE
    return words and row.final and not row.gone and not row.plain and row.platform_id is None


_ENDS_GROWING = (Cause.NOT_GROWING, Cause.FORM, Cause.TOO_LONG, Cause.OTHER, Cause.UNCHANGED, Cause.UNEDITABLE)
_OF_THE_CHAT = (Cause.BLOCKED, Cause.NO_CHAT)
"""Nothing at all can be sent there."""


def _anew(part: Part, now: int, *, leaves: bool, unsure: bool = False) -> list[Part]:
    """Its message cannot be changed any more: it is sent as another one. `leaves` if the old one may still be there, and is to go.

    `unsure` if the old one may show it already.
    """
    made = removed(part, now)
    # Under its new key nothing was sent before, and what is found is found by what it shows.
    made = replace(made, row=replace(made.row, attempt=0, labelled=unsure), tried=part.content if unsure else None)
    if not leaves:
        return [made]
    number = LEFTOVER + made.row.key.count("'")
    row = replace(
        part.row, bubble=f"{part.row.bubble}>{part.row.part}", part=number, key=f"{part.row.key}>{number}",
        gone=True, final=True, state=DeliveryState.WANTED, attempt=0, retry_at=None, cause="", at=now,
    )  # fmt: skip
    return [made, Part(row, part.content)]


def _replaced(part: Part, contents: Sequence[Content], how: str, now: int) -> list[Part]:
    """Other contents come in its place; the first gets its message, if there is one."""
    row = part.row
    bubble = f"{row.bubble}>{row.part}"
    over = replace(
        row, state=DeliveryState.SKIPPED, platform_id=None, retry_at=None, attempt=0, cause=f"{INSTEAD}{how}", at=now
    )
    made = [replace(part, row=over, there=None)]
    for number, content in enumerate(contents):
        wanted = WantedPart(bubble, number, content, final=True)
        below = new_part(wanted, row.surface, row.origin, row.place)
        there = row.platform_id if number == 0 else None
        made.append(replace(below, row=replace(below.row, platform_id=there, plain=row.plain, at=now)))
    return made


LONGEST_MS = round(DELIVERY.most * 1000)
"""The longest pause between two tries of a part."""


def within(until: int, now: int, longest: int) -> int:
    """How long it is until a stored time, which is never further away than `longest`; all in milliseconds."""
    return max(0, min(until - now, longest))


@dataclass(frozen=True, slots=True)
class RetryPatience:
    """A part that has failed; times are milliseconds of the monotonic clock."""

    stored: int
    """The time of the wall clock from which it was made."""
    due: int
    failed: int
    """When it failed the last time."""
    first: int
    """When it failed first, without a success since."""

    def pause(self, steady: int) -> PartFailure:
        """How it stands now."""
        return PartFailure(max(0, self.due - steady), steady - self.first >= BLOCKS_MS, max(0, steady - self.failed))


def patience(known: RetryPatience | None, row: DeliveryRow, wall: int, steady: int) -> RetryPatience | None:
    """What is known of a row's pause, as it is now; None if it has none."""
    if row.retry_at is None:
        return None
    if known is not None and known.stored == row.retry_at:
        return known
    meant = min(LONGEST_MS, row.retry_at - row.at) if row.at else LONGEST_MS
    left = within(row.retry_at, wall, max(0, meant))
    return RetryPatience(row.retry_at, steady + left, steady, known.first if known is not None else steady)
