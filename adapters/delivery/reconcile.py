"""Wanted parts against deliveries: what has to be done to a surface so that it shows what it should. Pure.

Theory. A surface has rows (`DeliveryRow`), each a part: as it should be, and how far that got. `plan` puts what is wanted into
the rows. `next_step` says what to do first. `begun` and `settled` say what becomes of a row by a call, `adapters.delivery.aftermath` what by
one that failed, `by_hand` what by an operator. Nobody else changes rows.

Laws (tests/adapters/test_reconcile.py).
1. A final part is created only when all parts before it are there (or can never be): what people see is in order.
2. A part has one identity: as long as its message exists it is edited, never created again.
3. A part whose creation has an unknown outcome is settled first by the platform's own means; only where there is none is it
   sent again, and then with a label.
4. What is refused for its form goes plain, what is too long goes in more parts, what cannot be changed any more is sent anew, and
   a file that is refused goes as text: only what is refused in every form fails, with its cause.
5. Applied to a platform that answers at last, the steps end, and then the surface shows exactly the parts that are wanted.
6. A message that grows is only ever added to while it is known what stands there. After an outcome that is not known, after a
   restart, or if what is wanted is no longer what stands there and more, it is finished and then edited: the end is the same.
7. A row stays of its kind: what no edit can make of its message (`Traits.fixed`) gets a row of its own, and the message goes when
   that is there.
8. What cannot be understood in a platform's answers has a bound of tries, and what fails for longer than `BLOCKS_MS` keeps nothing
   else back.
9. Where a platform gave a chat another id, its messages stay behind, and the same numbers mean others: none of them is touched in the new
   chat. What changes is sent there as a message of its own, and what waits for an answer is asked there.

Names. What comes in the place of a part has names below its own (`b>0` for part 0 of bubble `b`) and stands in its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias, assert_never

from adapters.contract.chat import GROWS, Ability, Cause, Content, ContentKind, Flow, Traits
from adapters.contract.contents import encode
from adapters.contract.pacing import Urgency
from adapters.delivery.parts import STATUS_BUBBLE, WantedPart
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import BY_HAND, DeliveryRow, DeliveryState, made_here

KEYED_MS = 120_000
"""For how long a platform surely remembers a key (durability: Discord says "past few minutes")."""
BLOCKS_MS = 60_000
"""What fails for longer does not keep back what comes after it."""
PROBE_MS = 5_000
"""Before something else goes past it, it is tried once more, if its last try is longer ago."""

Name: TypeAlias = tuple[str, str, int]
"""Origin, bubble and part: names a row on its surface."""
Flows: TypeAlias = Callable[[Content, bool], Flow]
"""(Content, whether it is final) to what a message that grows holds of it."""
_GROWING_KINDS = (ContentKind.TEXT, ContentKind.TOOLS)
_BELOW = re.compile(r"((?:>\d+)*)\Z")
LEFTOVER = 1_000
"""From this number on, parts below another are messages that it has left, and that go."""


@dataclass(frozen=True, slots=True)
class Part:
    """A row with its content read."""

    row: DeliveryRow
    content: Content
    there: Flow | None = None
    """What stands on its message, while that grows; None if it is not known."""
    tried: Content | None = None
    """What the last call that creates it was to show: what it is looked for by, although something else is wanted meanwhile."""

    @property
    def left_behind(self) -> bool:
        """Its message is in the chat that this one was, under another id."""
        return self.row.platform_id is not None and not made_here(self.row)

    @property
    def passing(self) -> bool:
        """It says that something goes on, or asks: true only while its turn runs."""
        kind = self.content.kind
        return kind is ContentKind.STATUS or (kind is ContentKind.APPROVAL and bool(self.content.buttons))

    @property
    def grows(self) -> bool:
        """Its message is one that grows."""
        return self.row.platform_id is not None and self.row.platform_id.startswith(GROWS)

    @property
    def name(self) -> Name:
        return self.row.origin, self.row.bubble, self.row.part

    @property
    def stands(self) -> bool:
        """It is to be there, and its message is."""
        return self.row.platform_id is not None and not self.row.gone

    @property
    def order(self) -> tuple[int, tuple[int, ...]]:
        """What is below another part comes after it, and before the next."""
        return self.row.place, (*_path(self.row.bubble), self.row.part)

    @property
    def open(self) -> bool:
        """Something is still to be done about it."""
        return self.row.state in (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)

    @property
    def over(self) -> bool:
        """It is a status that is not true any more: its message goes first, so that nobody reads “waiting” beneath an answer."""
        return self.content.kind is ContentKind.STATUS and self.row.gone

    @property
    def urgency(self) -> Urgency:
        if self.over:
            return Urgency.FINAL
        if self.content.kind is ContentKind.STATUS or self.row.gone:
            return Urgency.STATUS
        if self.row.final:
            return Urgency.FINAL
        return Urgency.COSMETIC if self.row.platform_id is not None else Urgency.STATUS


@dataclass(frozen=True, slots=True)
class Create:
    """Send a new message. One that is `repeated` may be there already; `look_up` first, where that can be done."""

    part: Part
    repeated: bool = False
    look_up: bool = False
    first: Flow | None = None
    """It is created as a message that grows, beginning with this."""


@dataclass(frozen=True, slots=True)
class Edit:
    part: Part


@dataclass(frozen=True, slots=True)
class GrowBy:
    """Make its message grow by this; nothing has to be called if there is nothing in it."""

    part: Part
    more: Flow


@dataclass(frozen=True, slots=True)
class FinishGrowing:
    """End the growing of its message, with `more` as its end; without, it is edited afterwards."""

    part: Part
    more: Flow | None


@dataclass(frozen=True, slots=True)
class Delete:
    part: Part
    leave: bool = False
    """Nothing is to be called: the message stays, because nothing better is there, or is none of this part's any more."""


@dataclass(frozen=True, slots=True)
class LookLater:
    """Nothing can be done now; look again after so many milliseconds. None: nothing is to be done at all."""

    ms: int | None


Step: TypeAlias = Create | Edit | GrowBy | FinishGrowing | Delete | LookLater


@dataclass(frozen=True, slots=True)
class PartFailure:
    """How a part that has failed stands; see `adapters.delivery.aftermath`."""

    left: int
    """Until its next try, ms."""
    late: bool = False
    """It has failed for longer than `BLOCKS_MS`."""
    since: int = 0
    """Since its last failure, ms."""


_ANY = Traits(drafts=False)

# ---------------------------------------------------------------------- planning


def plan(
    parts: Mapping[Name, Part],
    wanted: Sequence[WantedPart],
    surface: str,
    origin: str,
    place: int,
    untouched: Sequence[str] = (),
    traits: Traits = _ANY,
) -> list[Part]:
    """The rows of `origin` that have to be other than they are. New ones get places from `place` on."""
    changed: list[Part] = []
    mine = {name: part for name, part in parts.items() if name[0] == origin}
    keep: set[Name] = set()
    for one in wanted:
        if one.fleeting:
            continue
        fitting = _of_its_kind(mine, origin, one, traits)
        name = (origin, fitting.bubble, fitting.part)
        keep.add(name)
        known = mine.get(name)
        made = new_part(fitting, surface, origin, place) if known is None else _changed(known, fitting)
        place += known is None
        if made is not None:
            changed.append(made)
    status, place = _status(mine, changed, wanted, surface, origin, place)
    changed += status
    keep |= {part.name for part in status if not part.row.gone}
    keep |= {name for name in mine if name[1] == STATUS_BUBBLE or name[1] in untouched}
    same = keep - {part.name for part in changed}
    keep |= {name for name in mine if _above(name) in same or _bubble(name) in untouched}
    changed += [gone for name, part in mine.items() if name not in keep and (gone := _gone(part)) is not None]
    return changed


def _of_its_kind(mine: Mapping[Name, Part], origin: str, one: WantedPart, traits: Traits) -> WantedPart:
    """The same for a row that can show it: one whose message no edit makes of this kind is left alone, and so goes."""
    known = mine.get((origin, one.bubble, one.part))
    if known is None or traits.turns_into(known.content.kind, one.content.kind):
        return one
    return replace(one, bubble=f"{one.bubble}.{one.content.kind.value}")


def _path(bubble: str) -> tuple[int, ...]:
    """The numbers of the parts that a bubble's name is below, from the top."""
    found = _BELOW.search(bubble)
    return tuple(int(number) for number in found.group(1).split(">")[1:]) if found else ()


def _bubble(name: Name) -> str:
    """The bubble at the top of a name."""
    return _BELOW.sub("", name[1], count=1)


def _above(name: Name) -> Name | None:
    """The part at the top of a name that is below others."""
    path = _path(name[1])
    return (name[0], _bubble(name), path[0]) if path else None


def want_hash(want: bytes) -> str:
    """What tells two contents apart."""
    return hashlib.blake2b(want, digest_size=8).hexdigest()


def is_print_of(told: str, want: bytes) -> bool:
    """Whether a fingerprint is that of a content; those of answers to commands of the page were longer once."""
    return hashlib.blake2b(want, digest_size=max(1, min(64, len(told) // 2))).hexdigest() == told


def new_part(one: WantedPart, surface: str, origin: str, place: int) -> Part:
    """A part that was not there."""
    want = encode(one.content)
    row = DeliveryRow(
        surface=surface,
        origin=origin,
        bubble=one.bubble,
        part=one.part,
        place=place,
        want=want,
        want_hash=want_hash(want),
        key=_key(surface, origin, one.bubble, one.part),
        final=one.final,
    )
    return Part(row, one.content)


def _key(surface: str, origin: str, bubble: str, part: int) -> str:
    return f"{surface}/{origin}/{bubble}/{part}"


def _own_key(row: DeliveryRow) -> str:
    """One of the chat where it is shown: in a chat with another id, nothing was sent under the old one."""
    return row.key if made_here(row) else _key(row.surface, row.origin, row.bubble, row.part)


def _changed(known: Part, one: WantedPart) -> Part | None:
    row = known.row
    replies = known.content.reply_to
    if row.platform_id is not None and one.content.reply_to != replies:  # no edit changes that
        one = replace(one, content=replace(one.content, reply_to=replies))
    want = row.want if known.content == one.content else encode(one.content)
    same = want == row.want and not row.gone
    if same and row.final == one.final:
        return None
    # What was refused on its way may be taken as it is at the end.
    dropped = row.state is DeliveryState.FAILED and not row.final and one.final
    reopened = dropped or row.state in (DeliveryState.SENT, DeliveryState.SKIPPED)
    if same and row.state is not DeliveryState.SKIPPED and not dropped:
        unfinished = reopened and known.grows and one.final
        state = DeliveryState.WANTED if unfinished else row.state
        return replace(known, row=replace(row, final=one.final, state=state))
    made = replace(
        row,
        want=want,
        want_hash=want_hash(want),
        rev=row.rev + 1,
        final=one.final,
        gone=False,
        plain=False,
        state=DeliveryState.WANTED if reopened else row.state,
        attempt=0 if dropped else row.attempt,
    )
    return replace(known, row=made, content=one.content)


def _gone(part: Part) -> Part | None:
    """A part that should not be there (any more)."""
    row = part.row
    if row.gone or row.state in (DeliveryState.SKIPPED, DeliveryState.FAILED):
        return None
    never = row.platform_id is None and row.state is DeliveryState.WANTED and not row.labelled
    state = DeliveryState.SKIPPED if never else (DeliveryState.WANTED if row.state is DeliveryState.SENT else row.state)
    return replace(part, row=replace(row, gone=True, state=state))


def _status(
    mine: Mapping[Name, Part], changed: Sequence[Part], wanted: Sequence[WantedPart], surface: str, origin: str, place: int,
) -> tuple[list[Part], int]:  # fmt: skip
    """The status is the last message, or goes: an older one is taken away, and a new one is made behind the rest."""
    want = next((one for one in wanted if one.fleeting), None)
    statuses = [part for name, part in mine.items() if name[1] == STATUS_BUBBLE]
    current = max((s for s in statuses if not s.row.gone), key=lambda s: s.row.part, default=None)
    last = max((p.row.place for p in (*mine.values(), *changed) if p.row.bubble != STATUS_BUBBLE), default=-1)
    if current is not None and want is not None and current.row.place > last:
        made = _changed(current, want)
        return ([made] if made is not None else []), place
    out = [gone] if current is not None and (gone := _gone(current)) is not None else []
    if want is None:
        return out, place
    number = max((s.row.part for s in statuses), default=-1) + 1
    return [*out, new_part(replace(want, part=number), surface, origin, place)], place + 1


# ---------------------------------------------------------------------- choosing


def next_step(
    parts: Iterable[Part],
    ability: Ability,
    waits: Mapping[Urgency, int],
    now: int,
    flows: Flows | None = None,
    pauses: Mapping[Name, PartFailure] | None = None,
) -> Step:
    """What to do first. `waits` says how long the gates keep back each urgency, in milliseconds.

    With `flows`, text on its way is shown by messages that grow. Without `pauses`, a part's own time for its next try counts.
    """
    every = list(parts)
    todo = sorted((part for part in every if part.open), key=lambda part: part.order)
    found: list[tuple[tuple[int, bool, tuple[int, tuple[int, ...]]], Step]] = []
    shortest: int | None = None
    blocked = False
    for part in todo:
        step = _leaving(_step(part, ability, now, flows), every)
        ordered = isinstance(step, Create) or (not isinstance(step, Delete) and part.row.final)
        ordered = ordered and not part.row.gone  # what is only looked for keeps nothing back
        pause = pauses.get(part.name) if pauses is not None else PartFailure((part.row.retry_at or 0) - now)
        left = pause.left if pause is not None else 0
        if pause is not None and pause.late and _comes_after(part, todo):
            left = min(left, PROBE_MS - pause.since)
        wait = max(left, waits[part.urgency])
        if (ordered and blocked) or (isinstance(step, Delete) and not step.leave and _replaced_later(part, todo)):
            continue
        if wait <= 0:
            found.append(((-part.urgency, not part.over, part.order), step))
        else:
            shortest = wait if shortest is None else min(shortest, wait)
        keeps_back = pause is None or not pause.late or left <= 0
        blocked = blocked or (ordered and keeps_back)
    if found:
        return min(found, key=lambda one: one[0])[1]
    return LookLater(shortest)


def _comes_after(part: Part, todo: Sequence[Part]) -> bool:
    """Something that is to stay waits behind this."""
    return any(one.row.final and not one.row.gone and one.order > part.order for one in todo)


def _replaced_later(part: Part, todo: Sequence[Part]) -> bool:
    """What was said goes when what is said instead is there; a status goes at once."""
    if part.content.kind is ContentKind.STATUS:
        return False
    return any(
        one.row.origin == part.row.origin and one.row.final and not one.row.gone and one.row.platform_id is None
        for one in todo
    )


def _leaving(step: Step, parts: Sequence[Part]) -> Step:
    """A message that a part has left stays if nothing came in its place, or if it was found to be that part's after all."""
    if not isinstance(step, Delete) or step.part.row.platform_id is None:
        return step
    row, above = step.part.row, _above(step.part.name)
    other = next((one for one in parts if one.stands and one.row.platform_id == row.platform_id), None)
    failed_above = row.part >= LEFTOVER and any(
        one.name == above and one.row.state is DeliveryState.FAILED for one in parts
    )
    return Delete(step.part, leave=True) if other is not None or failed_above else step


def _step(
    part: Part, ability: Ability, now: int, flows: Flows | None
) -> Create | Edit | GrowBy | FinishGrowing | Delete:
    row = part.row
    if part.left_behind:
        return Delete(part, leave=True)
    if part.grows:
        return _growth(part, flows)
    open_outcome = row.platform_id is None and (row.state is not DeliveryState.WANTED or row.labelled)
    if open_outcome and not (row.gone and ability is Ability.NONE):
        return _resolved(part, ability, now)
    if row.gone:
        return Delete(part)
    if row.platform_id is not None:
        return Edit(part)
    grows = flows is not None and not row.final and not row.plain and part.content.kind in _GROWING_KINDS
    return Create(part, first=flows(part.content, False) if flows is not None and grows else None)


def _growth(part: Part, flows: Flows | None) -> GrowBy | FinishGrowing:
    """What is to be done with a message that grows."""
    if part.row.gone or flows is None or part.there is None:
        return FinishGrowing(part, None)
    more = part.there.to(flows(part.content, part.row.final))
    return GrowBy(part, more) if more is not None and not part.row.final else FinishGrowing(part, more)


def _resolved(part: Part, ability: Ability, now: int) -> Create:
    """How an unknown outcome is settled. What should not be there is only looked for."""
    match ability:
        case Ability.KEYED if part.row.gone:
            return Create(part, repeated=True, look_up=True)
        case Ability.LOOK_UP:
            return Create(part, repeated=True, look_up=True)
        case Ability.KEYED:
            fresh = part.row.sending_at is not None and 0 <= now - part.row.sending_at < KEYED_MS
            return Create(part, repeated=True, look_up=not fresh or part.row.attempt > 1)
        case Ability.NONE:
            return Create(part, repeated=True)
        case _:
            assert_never(ability)


# ---------------------------------------------------------------------- what a call did


def begun(part: Part, now: int, *, repeated: bool) -> Part:
    """A part that is about to be created: stored like this before the call."""
    row = part.row
    made = replace(
        row,
        state=DeliveryState.SENDING,
        attempt=row.attempt + 1,
        sending_at=row.sending_at if repeated and row.sending_at else now,
        retry_at=None,
        labelled=repeated,
        key=_own_key(row),
        at=now,
    )
    # What an earlier process tried is not known: what is found under its key may be an earlier state.
    return replace(part, row=made, tried=part.tried if repeated else part.content)


def sent_by(step: Create, ability: Ability, traits: Traits) -> Content | None:
    """What the message of a `Create` shows; None if it may have been made before, when something else was wanted.

    What no edit can change is as it was made, and was never wanted otherwise. Of several tries nobody knows which one made it.
    """
    content = step.part.content
    if not step.repeated or ability is Ability.NONE or content.kind in traits.fixed:
        return content
    return step.part.tried if step.part.row.attempt <= 1 else None


def settled(
    part: Part, platform_id: str, sent: Content | None, ability: Ability, now: int, there: Flow | None = None
) -> Part:
    """It is there, showing `sent` (None: an earlier state). If something else is wanted by now, that is still to be done.

    `there` is what stands on a message that grows.
    """
    grows = platform_id.startswith(GROWS)
    same = part.content == sent and not part.row.gone and not (grows and part.row.final)
    made = replace(
        part.row,
        state=DeliveryState.SENT if same else DeliveryState.WANTED,
        platform_id=platform_id,
        attempt=0,
        retry_at=None,
        labelled=part.row.labelled and ability is Ability.NONE,
        cause=part.row.cause if part.row.cause == Cause.NO_THREAD.value else "",
        at=now,
    )
    return Part(made, part.content, there if grows else None)


def ungrown(part: Part) -> Part:
    """The platform has no growing messages here after all: it is created as any other."""
    return replace(part, row=replace(part.row, state=DeliveryState.WANTED, retry_at=None, attempt=0), tried=None)


def finished(part: Part, sent: Content | None, ability: Ability, now: int) -> Part:
    """Its message does not grow any more, and shows `sent` (None: it is to be edited)."""
    return settled(part, (part.row.platform_id or "").removeprefix(GROWS), sent, ability, now)


def removed(part: Part, now: int) -> Part:
    """Its message is not there (any more)."""
    state = DeliveryState.SKIPPED if part.row.gone or not part.row.final else DeliveryState.WANTED
    # What is created in its place is another message, so it needs another key.
    key = _own_key(part.row) if part.left_behind else f"{part.row.key}'"
    part = _replying_to_nothing(part) if part.left_behind else part
    made = replace(part.row, state=state, platform_id=None, retry_at=None, labelled=False, key=key, at=now)
    return replace(part, row=made, there=None, tried=None)


# ---------------------------------------------------------------------- what an operator does


class Hand(StrEnum):
    """What somebody who runs the gateway can do to a part that waits, or was refused."""

    RETRY = "retry"
    DROP = "drop"
    REDIRECT = "redirect"
    """Its content is sent to another chat instead."""


MOVABLE = (ContentKind.TEXT, ContentKind.NOTICE, ContentKind.FILE, ContentKind.ASIDE)


def objection(part: Part, hand: Hand) -> str:
    """Why this cannot be done to the part as it is, for a person; empty if it can."""
    row = part.row
    if row.state in (DeliveryState.SENT, DeliveryState.SKIPPED):
        return "It does not wait any more: it was sent, or is not wanted."
    if row.state is DeliveryState.SENDING:
        return "It is being sent at this moment. Look again in some seconds."
    if not row.final:
        return "Its turn still runs and changes it. It can be seen to when the turn has ended."
    match hand:
        case Hand.RETRY if row.state is not DeliveryState.FAILED and row.retry_at is None:
            return "It is due already: nothing but what it waits for keeps it back."
        case Hand.REDIRECT if row.gone or part.content.kind not in MOVABLE:
            return "It means something in its own chat only."
        case Hand.RETRY | Hand.DROP | Hand.REDIRECT:
            return ""
        case _:
            assert_never(hand)


def by_hand(part: Part, hand: Hand, now: int, elsewhere: str = "") -> Part:
    """What becomes of a part to which there is no `objection`. `elsewhere` is where its content goes instead."""
    row = part.row
    match hand:
        case Hand.RETRY:
            refused = row.state is DeliveryState.FAILED
            state = DeliveryState.WANTED if refused else row.state
            made = replace(row, state=state, retry_at=None, attempt=0, cause="" if refused else row.cause, at=now)
        case Hand.DROP | Hand.REDIRECT:
            words = f"{BY_HAND}dropped" if hand is Hand.DROP else f"{BY_HAND}sent to {elsewhere} instead"
            there = row.platform_id is not None  # then what stands there stays
            made = replace(row, state=DeliveryState.SKIPPED, gone=not there, retry_at=None, cause=words, at=now)
        case _:
            assert_never(hand)
    return replace(part, row=made)


def moved(part: Part, surface: str) -> Part:
    """The chat has another id: the part is one of `surface` now."""
    return _of_its_chat(replace(part, row=replace(part.row, surface=surface, retry_at=None)))


def _replying_to_nothing(part: Part) -> Part:
    """Where a chat has another id, the number of the message is another one's."""
    content = replace(part.content, reply_to="")
    want = encode(content)
    return replace(part, row=replace(part.row, want=want, want_hash=want_hash(want)), content=content)


def _of_its_chat(part: Part) -> Part:
    """What waits for an answer is asked where the chat is now, and what is not sent yet replies to nothing of the chat that was."""
    row = part.row
    if row.platform_id is None and part.content.reply_to and not made_here(row):
        return _replying_to_nothing(part)
    asks = part.left_behind and bool(part.content.buttons) and part.content.kind is ContentKind.APPROVAL
    unasked = asks and row.state is DeliveryState.SENT and not row.gone
    return replace(part, row=replace(row, state=DeliveryState.WANTED)) if unasked else part


def joined(there: Part, was: Part) -> Part:
    """One part that is known under both ids of a chat: it is the one `there`, and as it was wanted last under the other."""
    row = was.row
    if row.gone:
        return _gone(there) or there
    content = replace(was.content, reply_to=there.content.reply_to)
    return _changed(there, WantedPart(row.bubble, row.part, content, final=row.final)) or there


def loaded(part: Part, *, over: bool = False) -> Part:
    """A part as a new process finds it: what was being sent has an unknown outcome.

    With `over`, nothing runs any more that could change it: what was only on its way is not carried out.
    """
    part = _of_its_chat(part)
    row = part.row
    if row.state is DeliveryState.SENDING:
        part = replace(part, row=replace(row, state=DeliveryState.UNKNOWN))
    if not over or row.final or row.gone:
        return part
    if part.content.kind is ContentKind.STATUS or row.platform_id is None:
        return _gone(part) or part
    return replace(part, row=replace(row, state=DeliveryState.SENT)) if part.open else part
