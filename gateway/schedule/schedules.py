"""What is to be done about a schedule at a given time. Pure.

Theory. A schedule has a rule and `next_at`, the first occurrence that was not claimed. `decide` looks at the clock and says
what to claim next: an occurrence that runs, or all in a row that are missed; each claim moves `next_at` on, and is committed
together with what comes of it, so after a crash `decide` is simply asked again. It never claims what is not due, so a clock
that is put back only makes it wait.

Laws (tests/gateway/test_schedules.py): whatever the clock does, no occurrence is claimed twice, none is passed over, none
before its time; after an outage at most one runs late, and the rest is one claim of missed ones.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core import storedjson
from agent_core.records import dataclass
from agent_core.rules.taint import PLANTED
from agent_core.store.schedules.rows import Claimed, OccurrenceOutcome, OccurrenceRow, ScheduleRow, ScheduleState
from agent_core.text.tongue import number, sentence, speak, speaking
from gateway.schedule import times
from gateway.schedule.times import MOST_COUNTED, BadTime, IfMissed, Rule, moment, span

if TYPE_CHECKING:
    from pydantic import TypeAdapter

AGAIN = sentence("an older copy of my memory was put back since, so you may see this twice.")
MAYBE_DONE = sentence(
    "An older copy of my memory was put back since, so I do not know whether it was done then; it is not done now."
)
NOT_DONE = sentence("I could not do it then, and it is not done now.")
BRIEF_CHARS = 100
"""So much of a prompt is shown where it is named."""
ON_TIME_MS = 60_000
"""So late still counts as on time: the task that looks sleeps for half a minute at most, and a machine may be busy."""
CONFIGURED = "config:"
"""How the ids of configured schedules begin; the entry's name follows."""
TASK = "task"
"""The kind of a row that is a task which runs, and has no time."""
ASKED = "remind:"
"""How the ids of those begin that people asked for; the message or the call that asked follows."""


class ScheduleKind(StrEnum):
    """What a schedule makes happen."""

    REMINDER = "reminder"
    """Words of the gateway, which a person asked for."""
    PROMPT = "prompt"
    """A turn, which the configuration asks for."""


ASKED_KINDS = (ScheduleKind.REMINDER.value, ScheduleKind.PROMPT.value, TASK)
"""What has a number in its conversation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens; stored with the schedule."""

    words: str
    """The reminder's words, or the prompt."""
    origin: ChatOrigin
    zone: str
    """By whose clocks times are told."""
    name: str = ""
    """Of a configured entry."""
    if_missed: IfMissed = IfMissed.RUN
    late_seconds: int = 0
    """How late it may run; 0: however late."""
    doubtful_to: int = 0
    """A backup was put back then: what was due up to that time may have happened already (`doubted`)."""
    memory_scope: str = ""
    """In whose name a person's prompt is asked; empty: in its conversation's."""
    page: FromApi | None = None
    """The message of a web page that asked for it, which is no chat: it is told there."""
    tainted: bool = False
    """The turn that set it had read words of others, so that these may be theirs: so has the turn that it becomes."""

    @property
    def configured(self) -> bool:
        """The configuration asks for it, no person."""
        return bool(self.name)


@dataclass(frozen=True, slots=True)
class Happening:
    """A claimed occurrence, as the command that carries it out gets it."""

    kind: ScheduleKind
    schedule: str
    outcome: OccurrenceOutcome
    due: int
    last: int
    count: int
    late_ms: int
    """How late it was when it was claimed."""
    plan: Plan


@dataclass(frozen=True, slots=True)
class OccurrenceClaim:
    """These occurrences are claimed now."""

    outcome: OccurrenceOutcome
    due: int
    last: int
    count: int
    next_at: int | None
    """The first occurrence that is not claimed then."""


def decide(rule: Rule, next_at: int | None, if_missed: IfMissed, late_seconds: int, now: int) -> OccurrenceClaim | None:
    """What to claim at `now`; None if nothing is due."""
    if next_at is None or next_at > now:
        return None
    last = times.latest(rule, next_at, now)
    late = now - last
    runs = late <= ON_TIME_MS or (if_missed is IfMissed.RUN and (not late_seconds or late <= late_seconds * 1000))
    if runs and last == next_at:
        return OccurrenceClaim(OccurrenceOutcome.RUN, last, last, 1, times.next_after(rule, last))
    if not runs:
        count = times.counted(rule, next_at, last)
        return OccurrenceClaim(OccurrenceOutcome.MISSED, next_at, last, count, times.next_after(rule, last))
    # The last one still runs, in a claim of its own; what was before it is missed.
    before = _before(rule, next_at, last)
    return OccurrenceClaim(OccurrenceOutcome.MISSED, next_at, before, times.counted(rule, next_at, before), last)


def _before(rule: Rule, first: int, last: int) -> int:
    """The occurrence before `last`; `first` is one, and earlier."""
    return times.latest(rule, first, last - 1)


def claimed(row: ScheduleRow, plan: Plan, claim: OccurrenceClaim, now: int) -> tuple[Claimed, Happening]:
    """What is stored by a claim, and what the command that carries it out gets."""
    moved = replace(
        row,
        next_at=claim.next_at,
        done_to=claim.last,
        state=ScheduleState.ACTIVE if claim.next_at is not None else ScheduleState.DONE,
        rev=row.rev + 1,
        at=now,
    )
    noted = OccurrenceRow(row.schedule, claim.due, claim.last, claim.count, claim.outcome, now)
    happening = Happening(
        ScheduleKind(row.kind),
        row.schedule,
        claim.outcome,
        claim.due,
        claim.last,
        claim.count,
        max(0, now - claim.due),
        plan,
    )
    return Claimed(moved, noted), happening


def key_of(happening: Happening) -> str:
    """The key under which an occurrence is accepted: a second one with the same is no new one."""
    return f"schedule:{happening.schedule}:{happening.due}"


# ---------------------------------------------------------------------- making schedules


def reminder(
    number: int,
    name: str,
    rule: Rule,
    plan: Plan,
    key: SessionKey,
    received_at: int,
    now: int,
    kind: ScheduleKind = ScheduleKind.REMINDER,
) -> ScheduleRow | None:
    """A new reminder (or prompt) of a person. `received_at` is when it was asked for, and `name` makes its id. None: it would never happen."""
    first = times.next_after(rule, received_at)
    if first is None:
        return None
    return ScheduleRow(
        schedule=f"{ASKED}{name}",
        kind=kind.value,
        session_key=key.text(),
        surface=plan.origin.address.text(),
        number=number,
        rule=times.encode(rule),
        body=encode(plan),
        next_at=first,
        at=now,
    )


def cancelled(row: ScheduleRow, now: int) -> ScheduleRow:
    """A schedule that does not happen any more."""
    return replace(row, state=ScheduleState.CANCELLED, next_at=None, rev=row.rev + 1, at=now)


def paused(row: ScheduleRow, now: int) -> ScheduleRow:
    """A schedule that does not happen until it goes on."""
    return replace(row, state=ScheduleState.PAUSED, next_at=None, rev=row.rev + 1, at=now)


def resumed(row: ScheduleRow, rule: Rule, now: int) -> ScheduleRow | None:
    """A schedule that goes on with its next occurrence; what it would have been meanwhile is not made up for. None: there is no next one."""
    following = times.next_after(rule, max(now, row.done_to))
    if following is None:
        return None
    return replace(row, state=ScheduleState.ACTIVE, next_at=following, rev=row.rev + 1, at=now)


def doubted(body: bytes, restored_at: int) -> bytes:
    """The stored plan of a schedule, after a backup was put back in which something is due that may have happened since it was made.

    Raises `UnreadablePlan`.
    """
    try:
        return encode(replace(_plans().validate_json(body), doubtful_to=restored_at))
    except ValueError as error:
        raise UnreadablePlan("The plan of a schedule cannot be read.") from error


def scheduled_origin(address: ChatAddress) -> ChatOrigin:
    """Where a configured prompt seems to come from: the chat, and no person of it."""
    return ChatOrigin(address, ChatKind.PRIVATE, ChatPerson("schedule", "scheduled"))


def session_key(address: ChatAddress) -> SessionKey:
    """The conversation of a chat as a whole."""
    return SessionKey(address.platform, address.account, address.chat, address.thread)


def synced(known: ScheduleRow | None, rule: Rule, plan: Plan, now: int) -> ScheduleRow | None:
    """The row of a configured entry as it has to be; None if it is so already.

    What was due by the rule as it was is settled first: until then the row keeps its old rule.
    """
    address = plan.origin.address
    plan = _still_doubted(known, plan)
    wanted = ScheduleRow(
        schedule=f"{CONFIGURED}{plan.name}",
        kind=ScheduleKind.PROMPT.value,
        session_key=session_key(address).text(),
        surface=address.text(),
        number=0,
        rule=times.encode(rule),
        body=encode(plan),
        next_at=times.next_after(rule, now),
        at=now,
    )
    if known is None:
        return wanted
    fresh = known.state is not ScheduleState.ACTIVE or known.next_at is None
    if fresh or (known.rule != wanted.rule and (known.next_at or 0) > now):
        # Nothing up to `done_to` is claimed again, whatever the clock or the configuration did meanwhile.
        row = replace(wanted, done_to=known.done_to, next_at=times.next_after(rule, max(now, known.done_to)))
    else:
        row = replace(wanted, rule=known.rule, next_at=known.next_at, done_to=known.done_to)
    row = replace(row, rev=known.rev, at=known.at)
    return None if row == known else replace(row, rev=known.rev + 1, at=now)


def _still_doubted(known: ScheduleRow | None, plan: Plan) -> Plan:
    """What may have happened before a restore stays that until it is settled, whatever the configuration says now."""
    try:
        doubtful_to = _plans().validate_json(known.body).doubtful_to if known is not None else 0
    except ValueError:
        return plan
    due = known is not None and known.next_at is not None and known.next_at <= doubtful_to
    return replace(plan, doubtful_to=doubtful_to) if due else plan


# ---------------------------------------------------------------------- words


def _late(happening: Happening) -> str:
    if _doubtful(happening):
        return speak("It was due on {when}; {why}", when=moment(happening.due, happening.plan.zone), why=speak(AGAIN))
    if happening.late_ms <= ON_TIME_MS:
        return ""
    when = moment(happening.due, happening.plan.zone)
    late = span(happening.late_ms // 1000)
    return speak("It was due on {when}; I could not do it then, so it comes {late} late.", when=when, late=late)


def _doubtful(happening: Happening) -> bool:
    return happening.due <= happening.plan.doubtful_to


def missed_words(happening: Happening) -> str:
    """One line about what was missed."""
    zone = happening.plan.zone
    what = happening.plan.name or (
        _brief(happening.plan.words) if happening.kind is ScheduleKind.PROMPT else happening.plan.words
    )
    why = speak(MAYBE_DONE if _doubtful(happening) else NOT_DONE)
    if happening.count == 1:
        return speak("⏰ Missed: “{what}”, due on {when}. {why}", what=what, when=moment(happening.due, zone), why=why)
    often = number(happening.count)
    if happening.count > MOST_COUNTED:
        often = speak("more than {count}", count=number(MOST_COUNTED))
    first, last = moment(happening.due, zone), moment(happening.last, zone)
    return speak(
        "⏰ Missed: “{what}”, {count} times from {first} to {last}. {why}",
        what=what, count=often, first=first, last=last, why=why,
    )  # fmt: skip


def reminder_words(happening: Happening) -> str:
    """A reminder, in the gateway's words."""
    late = _late(happening)
    return speak("⏰ Reminder: {words}", words=happening.plan.words) + (f"\n({late})" if late else "")


def announcement(happening: Happening) -> str:
    """What the chat is told before a scheduled prompt is answered."""
    late = _late(happening)
    what = happening.plan.name or _brief(happening.plan.words)
    return speak("⏰ Scheduled: {what}", what=what) + (f"\n{late}" if late else "")


def prompt_words(happening: Happening) -> str:
    """The prompt as the model gets it: it must know that no person wrote it."""
    with speaking(""):  # the model reads English
        due = moment(happening.due, happening.plan.zone)
    if not happening.plan.configured:
        return (
            f"[Scheduled: {happening.plan.origin.person.name} had you set this earlier; it was due on {due}. Nobody wrote it just now, and perhaps "
            f"nobody reads along.]\n\n{happening.plan.words}"
        )
    return (
        f"[Scheduled task “{happening.plan.name}”, due on {due}. The configuration asks for it; no person wrote this, "
        f"and perhaps nobody reads along just now.]\n\n{happening.plan.words}"
    )


def prompt_foreign(happening: Happening) -> str:
    """Whose words stand in it that may be no person's; empty: nobody's."""
    return PLANTED if happening.plan.tainted else ""


def page_words(happening: Happening) -> tuple[str, str]:
    """(one line, what the model is told) where it is told by a turn of a web page's conversation."""
    if happening.outcome is OccurrenceOutcome.MISSED:
        return missed_words(happening), "Tell the person that it was missed."
    if happening.kind is ScheduleKind.REMINDER:
        return reminder_words(happening), "Its time has come: tell the person, in one line."
    return announcement(happening), prompt_words(happening)


def list_words(rows: tuple[tuple[ScheduleRow, Plan, Rule], ...], zone: str) -> str:
    """The reminders of a chat."""
    if not rows:
        return speak(
            "There are no reminders here. Set one: {/remind in 20 minutes tea} (times are those of {zone})", zone=zone
        )
    lines = [line(row, plan, rule) for row, plan, rule in rows]
    return "\n".join([*lines, speak("Take one back: {/remind cancel NUMBER}")])


DONE_HERE = sentence("I do this: {what}")
DONE_FOR_OPERATOR = sentence("I do this (set by whoever runs the gateway): {what}")


def line(row: ScheduleRow, plan: Plan, rule: Rule) -> str:
    """One of them."""
    again = "" if isinstance(rule, times.Once) else f", {often(rule)}"
    when = speak("paused") if row.state is ScheduleState.PAUSED else speak("no more")
    when = moment(row.next_at, plan.zone) if row.next_at is not None else when
    what = plan.words
    if row.kind == ScheduleKind.PROMPT:
        form = DONE_HERE if row.number else DONE_FOR_OPERATOR
        what = speak(form, what=plan.name or _brief(plan.words))
    return f"{row.number or '–'}. {when}{again}: {what}"


def often(rule: Rule) -> str:
    """How often a rule happens, for people."""
    match rule:
        case times.Once():
            return speak("once")
        case times.Every(seconds):
            return speak("every {duration}", duration=span(seconds))
        case times.Cron(expression):
            return speak("again and again (cron {expression})", expression=expression)
        case _:
            assert_never(rule)


def _brief(words: str) -> str:
    flat = " ".join(words.split())
    return flat if len(flat) <= BRIEF_CHARS else f"{flat[:BRIEF_CHARS]}…"


# ---------------------------------------------------------------------- the stored forms


class UnreadablePlan(Exception):
    """A stored plan or happening that this program cannot read."""


@functools.cache
def _plans() -> TypeAdapter[Plan]:
    from pydantic import TypeAdapter

    return TypeAdapter(Plan)


@functools.cache
def _happenings() -> TypeAdapter[Happening]:
    from pydantic import TypeAdapter

    return TypeAdapter(Happening)


def encode(plan: Plan) -> bytes:
    """A plan as a schedule's body."""
    return storedjson.dumps(plan)


def decode(row: ScheduleRow) -> tuple[Plan, Rule]:
    """The plan and the rule of a schedule; its address is that of the row, which follows a chat that moves.

    Raises `UnreadablePlan`.
    """
    try:
        plan = _plans().validate_json(row.body)
        rule, address, asked = times.decode(row.rule), ChatAddress.of(row.surface), plan.origin
        SessionKey.of(row.session_key)
        if row.kind != TASK:
            ScheduleKind(row.kind)
    except (ValueError, TypeError, BadTime) as error:
        raise UnreadablePlan(f"The schedule {row.schedule} cannot be read: {type(error).__name__}.") from error
    # In a chat with another id the same number is another message.
    message = asked.message if asked.address.chat == address.chat else ""
    return replace(plan, origin=replace(asked, address=address, message=message)), rule


def encode_happening(happening: Happening) -> str:
    """A happening as the words of its command."""
    return storedjson.dumps(happening).decode()


def decode_happening(text: str) -> Happening:
    """Back from those words. Raises `UnreadablePlan`."""
    try:
        return _happenings().validate_json(text)
    except ValueError as error:
        raise UnreadablePlan("A scheduled occurrence was stored by another version of this program.") from error
