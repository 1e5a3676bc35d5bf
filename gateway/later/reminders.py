"""The tools by which the model sets something for later, shows it and takes it back.

What a call says is what is stored: its words are made from the row. A call that is begun again finds its own row, by its key, and stores no second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.contract.base import FromApi, Inbound, SessionKey
from adapters.contract.chat import ChatOrigin
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.store.schedules.rows import ScheduleRow, ScheduleState
from agent_core.store.store import Conflict, StorageUnavailable
from agent_core.tools.base import NotPossible, Tool, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from gateway.later.followups import bare
from gateway.later.parts import Later
from gateway.later.tasks import StartTask, Tasks, task_line, task_planted
from gateway.later.zones import SETTING, TIMEZONE, ZoneSaid, zone_for, zone_words
from gateway.limits.whose import memory_of, shown_in
from gateway.schedule import reminding, schedules, times, toolspecs
from gateway.schedule.reminding import NotUnderstood
from gateway.schedule.schedules import ASKED, ASKED_KINDS, TASK, Plan, ScheduleKind, UnreadablePlan
from gateway.schedule.times import BadTime, Rule, moment

PROMPT_SHORTEST_SECONDS = 600
"""Between two occurrences of a prompt: each is a turn."""
LOOKED_AT = 60
"""So many occurrences of a repeated prompt are looked at for that."""
AWAY = "The storage cannot be reached just now, so it is not known whether that is stored. Look with list_scheduled before you say that it is."
CHANGED = "What is set here was changed by somebody else at the same moment. Nothing was done; look with list_scheduled and try again."


@dataclass(frozen=True, slots=True)
class SetLater:
    """Sets a reminder, or a prompt."""

    later: Later
    spec: ToolSpec
    kind: ScheduleKind

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        words = str(arguments["what" if self.kind is ScheduleKind.REMINDER else "prompt"]).strip()
        inbound = await self.later.seen_by(context.turn)
        said = await zone_for(self.later.store, inbound, self.later.zone)
        known = await self.later.store.schedules.one(f"{ASKED}{context.key}")
        if known is not None:
            return _ok(stored_words(known, said, self.later.clock.now_ms()))
        now = self.later.clock.now_ms()
        rule = rule_of(str(arguments["when"]), now, said, self.kind)
        if not words:
            raise NotPossible("There are no words in it. Nothing is set.")
        plan = plan_of(inbound, words, said.zone, context)
        try:
            row = await self._put(inbound.session, context, rule, plan, now)
        except Conflict:
            raise NotPossible(CHANGED) from None
        except StorageUnavailable:
            return ToolOutcome(ToolStatus.FAILED, AWAY)
        self.later.parts.stored()
        return _ok(stored_words(row, said, now))

    async def _put(self, key: SessionKey, context: ToolContext, rule: Rule, plan: Plan, now: int) -> ScheduleRow:
        async with self.later.parts.alone(key.text()):
            rows = await self.later.store.schedules.of(key.text(), *ASKED_KINDS)
            mine = [row for row in rows if row.number]
            there = sum(row.kind != TASK for row in mine)
            if there >= self.later.most:
                raise NotPossible(
                    f"{there} things are set here already, and no more are possible. Nothing was set. cancel_scheduled takes one back."
                )
            number = max((row.number for row in mine), default=0) + 1
            row = schedules.reminder(number, context.key, rule, plan, key, now, now, self.kind)
            if row is None:
                raise NotPossible("That time is over. Nothing is set.")
            await self.later.store.schedules.put(row, context.turn)
            return row


@dataclass(frozen=True, slots=True)
class ListScheduled:
    """Shows what is set."""

    later: Later
    spec: ToolSpec = toolspecs.LIST_SCHEDULED

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:  # noqa: ARG002
        inbound = await self.later.asked_by(context.turn)
        said = await zone_for(self.later.store, inbound, self.later.zone)
        rows = await self.later.store.schedules.of(inbound.session.text(), *ASKED_KINDS)
        lines = [_line(row, self.later.clock.now_ms()) for row in rows]
        unread = (
            ["Some cannot be read just now: the storage is damaged."] if self.later.store.left_out("schedules") else []
        )
        now = moment(self.later.clock.now_ms(), said.zone)
        text = "\n".join([*(lines or ["Nothing is set here."]), *unread, f"Now it is {now}. {zone_words(said)}"])
        return ToolOutcome(ToolStatus.OK, text, foreign=any(_planted(row) for row in rows))


@dataclass(frozen=True, slots=True)
class CancelScheduled:
    """Takes one back, or pauses it, or lets it go on."""

    later: Later
    tasks: Tasks
    spec: ToolSpec = toolspecs.CANCEL_SCHEDULED

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        number, action = arguments["number"], str(arguments.get("action") or "cancel")
        inbound = await self.later.asked_by(context.turn)
        key, now = inbound.session.text(), self.later.clock.now_ms()
        try:
            async with self.later.parts.alone(key):
                rows = await self.later.store.schedules.of(key, *ASKED_KINDS)
                row = next((one for one in rows if one.number == number), None)
                if row is None:
                    raise NotPossible(
                        f"There is no number {number} here. Nothing was changed; list_scheduled shows what there is."
                    )
                if row.kind == TASK:
                    return await self._cancel_task(row, action)
                changed = changed_row(row, action, now)
                if changed is not None:
                    await self.later.store.schedules.put(changed)
        except Conflict:
            raise NotPossible(CHANGED) from None
        except StorageUnavailable:
            return ToolOutcome(ToolStatus.FAILED, AWAY)
        self.later.parts.stored()
        return ToolOutcome(ToolStatus.OK, f"{_DONE[action]}: {_line(changed or row)}", foreign=_planted(row))

    async def _cancel_task(self, row: ScheduleRow, action: str) -> ToolOutcome:
        if action != "cancel":
            raise NotPossible("A task that runs can only be cancelled. Nothing was changed.")
        await self.tasks.cancel(row)
        return _ok(f"Task {row.number} is being stopped; this conversation is told when it has ended.")


_DONE = {"cancel": "Taken back", "pause": "Paused", "resume": "Goes on"}


def changed_row(row: ScheduleRow, action: str, now: int) -> ScheduleRow | None:
    """What becomes of it; None if it is so already. Raises `NotPossible`. Pure."""
    match action:
        case "pause":
            return None if row.state is ScheduleState.PAUSED else schedules.paused(row, now)
        case "resume":
            if row.state is ScheduleState.ACTIVE:
                return None
            try:
                going = schedules.resumed(row, times.decode(row.rule), now)
            except BadTime as error:
                raise NotPossible(f"{error} Nothing was changed.") from None
            if going is None:
                raise NotPossible(
                    "Its time has passed while it was paused. It stays paused; cancel it, and set a new one."
                )
            return going
        case _:
            return schedules.cancelled(row, now)


@dataclass(frozen=True, slots=True)
class SetTimezone:
    """Keeps a person's time zone."""

    later: Later
    spec: ToolSpec = toolspecs.SET_TIMEZONE

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        inbound = await self.later.asked_by(context.turn)
        try:
            zone = times.zone_named(str(arguments["zone"]))
        except BadTime as error:
            raise NotPossible(f"{error} Nothing was kept.") from None
        now = self.later.clock.now_ms()
        await self.later.store.memory.put(memory_of(inbound), SETTING, TIMEZONE, zone, at_ms=now)
        return _ok(
            f"Kept: times of day here are those of {zone} from now on; it is {moment(now, zone)}. What is set already stays as it is."
        )


def time_tools(later: Later, tasks: Tasks, chats: Mapping[str, str]) -> Sequence[Tool]:
    """All of them; `chats` are those that may be written to."""
    more: list[Tool] = [StartTask(tasks)] if tasks.limits.at_once else []
    if chats:
        from gateway.later.sending import SendMessage

        more.append(SendMessage(later, chats))
    return (
        SetLater(later, toolspecs.REMIND, ScheduleKind.REMINDER),
        SetLater(later, toolspecs.SCHEDULE, ScheduleKind.PROMPT),
        ListScheduled(later),
        CancelScheduled(later, tasks),
        SetTimezone(later),
        *more,
    )


def rule_of(when: str, now: int, said: ZoneSaid, kind: ScheduleKind) -> Rule:
    """The rule that a call's `when` means. Raises `NotPossible` in words that help to say it better. Pure."""
    rule = reminding.when(when, now, said.zone)
    clock = f"Now it is {moment(now, said.zone)}."
    if isinstance(rule, NotUnderstood):
        raise NotPossible(f"{rule.words} Nothing is set. {clock} Write one of the forms that `when` describes.")
    first = times.next_after(rule, now)
    if first is None or first - now > reminding.MOST_AHEAD_DAYS * 86_400_000:
        raise NotPossible(f"That is never, or more than five years ahead. Nothing is set. {clock}")
    if kind is ScheduleKind.PROMPT and too_often(rule, first):
        raise NotPossible(
            f"A prompt can come every {PROMPT_SHORTEST_SECONDS // 60} minutes at most; remind can be more often. Nothing is set."
        )
    return rule


def too_often(rule: Rule, first: int) -> bool:
    """Whether two occurrences are nearer to each other than a prompt's may be. Pure."""
    at: int | None = first
    for _ in range(LOOKED_AT):
        following = times.next_after(rule, at)
        if following is None:
            return False
        if following - at < PROMPT_SHORTEST_SECONDS * 1000:
            return True
        at = following
    return False


def stored_words(row: ScheduleRow, said: ZoneSaid, now: int) -> str:
    """What is stored, for the model to pass on. Pure."""
    if row.state in (ScheduleState.CANCELLED, ScheduleState.DONE) or row.next_at is None:
        return f"It was set before by this same call, as number {row.number}, and is {row.state.value} now. Nothing new is set."
    plan, rule = schedules.decode(row)
    what = "Reminder" if row.kind == ScheduleKind.REMINDER else "Scheduled prompt"
    when = f"on {moment(row.next_at, plan.zone)}, that is in {times.span(max(0, row.next_at - now) // 1000)}"
    again = (
        ""
        if isinstance(rule, times.Once)
        else f", then {schedules.often(rule)}; the next after it: {_next(rule, row.next_at, plan.zone)}"
    )
    place = "on this page" if plan.page is not None else "in this chat"
    hint = "" if said.sure else " If that is not theirs, ask, keep it with set_timezone, and set this anew."
    return f"Stored. {what} {row.number} comes {place} {when}{again}: {plan.words}\n{zone_words(said)}{hint}"


def _next(rule: Rule, after: int, zone: str) -> str:
    following = times.next_after(rule, after)
    return moment(following, zone) if following is not None else "none"


def origin_of(inbound: Inbound) -> ChatOrigin:
    """Where it is told: the chat, and nothing of the message; of the web page a name that stands for it. Pure."""
    chat = shown_in(inbound)
    return ChatOrigin(chat.address, chat.kind, chat.person, root=chat.root)


def plan_of(inbound: Inbound, words: str, zone: str, context: ToolContext) -> Plan:
    """What a call wants to happen later. Pure."""
    return Plan(
        words, origin_of(inbound), zone, memory_scope=inbound.memory_scope, page=page_of(inbound), tainted=context.tainted
    )  # fmt: skip


def page_of(inbound: Inbound) -> FromApi | None:
    """The message, if it is of the web page, without what was said in it. Pure."""
    return bare(inbound) if isinstance(inbound, FromApi) else None


def _line(row: ScheduleRow, now: int = 0) -> str:
    if row.kind == TASK:
        return task_line(row, now)
    try:
        plan, rule = schedules.decode(row)
    except UnreadablePlan:
        return f"{row.number}. (cannot be read)"
    return schedules.line(row, plan, rule)


def _planted(row: ScheduleRow) -> bool:
    """Whether its words may be those of others: a turn set it that had read some. Whoever reads it later has read them as well. Pure."""
    if row.kind == TASK:
        return task_planted(row)
    try:
        return schedules.decode(row)[0].tainted
    except UnreadablePlan:
        return False  # none of its words are shown


def _ok(text: str) -> ToolOutcome:
    return ToolOutcome(ToolStatus.OK, text, foreign=False)
