"""Carries out ``/remind``, what is scheduled and due, and what whoever runs the gateway says in a chat.

All three are commands like the others: stored in the inbox first, done in the commit that stores what is said, and taken up by
the next process if this one dies in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import assert_never

import structlog

from adapters.contract.base import FromApi
from adapters.contract.chat import Content, ContentKind
from adapters.contract.notaccepted import NotAccepted
from adapters.delivery.parts import content_of
from adapters.text.styled import Styled
from agent_core.failures.notices import say
from agent_core.ports import Clock
from agent_core.store.schedules.rows import OccurrenceOutcome, ScheduleRow
from agent_core.store.store import Store
from agent_core.text.tongue import sentence, speak, speak_many
from gateway.commands.carrying import CommandReply, Handler, Request
from gateway.commands.messages import Messages
from gateway.commands.posts import decode_post
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.later.followups import bare
from gateway.later.zones import SETTING, TIMEZONE, zone_for, zone_words
from gateway.limits.whose import memory_of
from gateway.queues.queues import Queues
from gateway.schedule import reminding, schedules
from gateway.schedule.reminding import Cancel, NewReminder, NotUnderstood, ShowAll
from gateway.schedule.schedules import ASKED_KINDS, TASK, Happening, Plan, ScheduleKind, UnreadablePlan
from gateway.schedule.times import BadTime, Rule, moment, zone_named

log = structlog.get_logger("schedule")

UNREAD = sentence(
    "Some reminders cannot be read just now, because the storage is damaged: one that is missing here may be among them."
)
MOST_REMINDERS = 50
"""Of one conversation."""
AWAY_SECONDS = 1.0
"""Pause before a prompt is offered again that could not be stored."""


class TimedCommands:
    """Their handlers. `zone` is the zone whose clocks people mean."""

    def __init__(
        self,
        queues: Queues,
        store: Store,
        outbox: Outbox,
        messages: Messages,
        clock: Clock,
        zone: str,
        most: int = MOST_REMINDERS,
    ) -> None:
        """`most` reminders may be set in one conversation."""
        self._queues = queues
        self._store = store
        self._outbox = outbox
        self._messages = messages
        self._clock = clock
        self._zone = zone
        self._most = most

    def handlers(self) -> Mapping[str, Handler]:
        """By the command's name."""
        return {"remind": self._remind, "timezone": self._timezone, "happen": self._happen, "post": self._post}

    # ------------------------------------------------------------------ reminders

    async def _remind(self, request: Request) -> CommandReply:
        zone = (await zone_for(self._store, request.inbound, self._zone)).zone
        wanted = reminding.meaning(request.words, request.received_at, zone)
        rows = await self._store.schedules.of(request.key, *ASKED_KINDS)
        match wanted:
            case NotUnderstood(words):
                return CommandReply(
                    words + "\n" + speak("Times are those of {zone}; {/timezone} changes that.", zone=zone)
                )
            case ShowAll():
                unread = f"\n{speak(UNREAD)}" if self._store.left_out("schedules") else ""
                return CommandReply(
                    f"{schedules.list_words(_readable([row for row in rows if row.kind != TASK]), zone)}{unread}"
                )
            case Cancel(number):
                return self._cancel([row for row in rows if row.number and row.kind != TASK], number)
            case NewReminder(rule, words):
                return self._set(request, [row for row in rows if row.number], rule, words, zone)
            case _:
                assert_never(wanted)

    async def _timezone(self, request: Request) -> CommandReply:
        named, now = request.words.strip(), self._clock.now_ms()
        scope = memory_of(request.inbound)
        if named in ("reset", "none"):
            await self._store.memory.delete(scope, SETTING, TIMEZONE)
        elif named:
            try:
                named = zone_named(named)
            except BadTime as error:
                return CommandReply(say(str(error), speak("Nothing was changed.")))
            await self._store.memory.put(scope, SETTING, TIMEZONE, named, at_ms=now)
        said = await zone_for(self._store, request.inbound, self._zone)
        return CommandReply(
            say(zone_words(said), speak("Here it is {now}.", now=moment(now, said.zone)))
            + "\n"
            + speak(
                "{/timezone Europe/Berlin} sets another, {/timezone reset} takes it back. What is set already stays as it is."
            )
        )

    def _set(self, request: Request, rows: list[ScheduleRow], rule: Rule, words: str, zone: str) -> CommandReply:
        there = sum(row.kind != TASK for row in rows)
        if there >= self._most:
            return CommandReply(
                speak(
                    "There are {count} reminders here already, and no more are possible. {/remind} shows them, {/remind cancel NUMBER} takes one back.",
                    count=there,
                )
            )
        number = max((row.number for row in rows), default=0) + 1
        page = bare(request.inbound) if isinstance(request.inbound, FromApi) else None
        scope = request.inbound.memory_scope if page is not None else ""
        plan = Plan(words, request.origin, zone, memory_scope=scope, page=page)
        now = self._clock.now_ms()
        row = schedules.reminder(
            number, str(request.inbox_id), rule, plan, request.inbound.session, request.received_at, now
        )
        if row is None or row.next_at is None:
            return CommandReply(speak("That time is over, so nothing is set."))
        return CommandReply(reminding.confirmed(number, row.next_at, rule, words, zone), schedules=(row,))

    def _cancel(self, rows: list[ScheduleRow], number: int | None) -> CommandReply:
        now = self._clock.now_ms()
        gone = [row for row in rows if number is None or row.number == number]
        if not gone:
            return CommandReply(
                speak("There is no reminder {number} here.", number=number)
                if number is not None
                else speak("There are no reminders here.")
            )
        words = (
            speak("Reminder {number} is taken back.", number=number)
            if number is not None
            else speak_many("{count} reminder is taken back.", "{count} reminders are taken back.", len(gone))
        )
        return CommandReply(words, schedules=tuple(schedules.cancelled(row, now) for row in gone))

    # ------------------------------------------------------------------ what is due

    async def _happen(self, request: Request) -> CommandReply:
        try:
            happening = schedules.decode_happening(request.words)
        except UnreadablePlan as error:
            log.exception("schedule.unreadable", inbox=request.inbox_id)
            return CommandReply(say("⚠️", str(error), speak("It is not done.")))
        if happening.outcome is OccurrenceOutcome.MISSED:
            return CommandReply(schedules.missed_words(happening))
        match happening.kind:
            case ScheduleKind.REMINDER:
                return CommandReply(schedules.reminder_words(happening))
            case ScheduleKind.PROMPT:
                return await self._prompt(request, happening)
            case _:
                assert_never(happening.kind)

    async def _prompt(self, request: Request, happening: Happening) -> CommandReply:
        """Put the prompt into the conversation's queue, as a message that no person wrote."""
        name = f"scheduled:{happening.schedule}:"
        key = f"{name}{happening.due}"
        told = Content(ContentKind.ASIDE, Styled(schedules.announcement(happening)), silent=True)
        done = await self._store.inbox.by_key(request.inbound.account, key)
        queue = self._queues.known(request.key)
        waiting = queue.waiting if queue is not None else []
        if done is None and any(message.inbound.platform_key.startswith(name) for message in waiting):
            return CommandReply(
                say(schedules.missed_words(happening), speak("(The one before it still waits for its turn.)"))
            )
        # Proposed before the prompt is taken, so that its place is before the answer's.
        self._outbox.words.propose(request.origin.address, request.owner, f"inbox:{request.inbox_id}", [told])
        while True:
            try:
                words, foreign = schedules.prompt_words(happening), schedules.prompt_foreign(happening)
                await self._messages.submit(request.inbound, key, words, SessionPolicy.QUEUE, foreign=foreign)
            except NotAccepted as refused:
                if refused.code.passes:
                    await asyncio.sleep(AWAY_SECONDS)  # at a shutdown it is left, and the next process takes it up
                    continue
                return CommandReply(f"{schedules.missed_words(happening)} ({refused})")
            return CommandReply("", contents=(told,))

    # ------------------------------------------------------------------ the operator's words

    async def _post(self, request: Request) -> CommandReply:
        try:
            post = decode_post(request.words)
        except ValueError:
            log.exception("post.unreadable", inbox=request.inbox_id)
            return CommandReply(
                speak("⚠️ A message was stored here by another version of this program and cannot be shown.")
            )
        if isinstance(request.inbound, FromApi):
            return CommandReply(post.text)
        port = self._outbox.port_of(request.origin.address)
        pieces = await self._outbox.forming.final(port.parts, post.text) if post.text.strip() else ()
        files = [Content(ContentKind.FILE, Styled(), file=str(path), file_name=name) for path, name in post.files]
        return CommandReply("", contents=(*(content_of(piece) for piece in pieces), *files))


def _readable(rows: list[ScheduleRow]) -> tuple[tuple[ScheduleRow, Plan, Rule], ...]:
    found: list[tuple[ScheduleRow, Plan, Rule]] = []
    for row in rows:
        try:
            found.append((row, *schedules.decode(row)))
        except UnreadablePlan:
            log.exception("schedule.unreadable", schedule=row.schedule)
    return tuple(found)
