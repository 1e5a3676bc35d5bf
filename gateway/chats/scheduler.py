"""The one task that claims what is due. It decides nothing (`gateway.schedule.schedules` does) and keeps nothing: after a crash, or beside
another node, whoever comes next sees in the database what is still to be claimed.

Law: one schedule that cannot be read or claimed holds up no other. It is set aside, told of once, and tried again when it is another (its `rev`), or
all that is stored was found sound.

A claim is committed together with a command in the chat's inbox, which then goes the way of all commands. A node claims only
for conversations that it owns or can own, so that what it claims is carried out by itself or by who takes over from it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import structlog

from adapters.contract.base import FromApi, FromChat, SessionKey
from adapters.contract.chat import CallFailed, ChatAddress
from adapters.contract.notaccepted import NotAccepted
from agent_core.bell import Bell
from agent_core.ports import Clock
from agent_core.store.schedules.rows import Claimed, ScheduleRow
from agent_core.store.store import Conflict, Damaged, Fenced, OwnedElsewhere, StorageUnavailable, Store
from gateway.chats.commandintake import CommandIntake
from gateway.config.schedule import Schedule, ScheduleEntry
from gateway.later.parts import PAGE
from gateway.people.access import PersonStanding
from gateway.people.members import Members, account_of
from gateway.people.routing import Command
from gateway.schedule import schedules, times
from gateway.schedule.schedules import Happening, Plan, ScheduleKind, UnreadablePlan
from gateway.schedule.times import BadTime
from gateway.sessions.accepting import Accepting

log = structlog.get_logger("schedule")

LONGEST_SLEEP_SECONDS = 30.0
"""So long a clock that was put forward, or a reminder of which another node said nothing, may go unnoticed."""
RETRY_SECONDS = 5.0
"""When something is due and could not be claimed."""
JUMP_SECONDS = 5.0
"""So much apart from each other, the two clocks of the machine tell that one was set."""

Resolve = Callable[[str], Awaitable[ChatAddress]]
"""The address that an operator's words name. Raises `LookupError` in words, or `CallFailed`."""
OnPage = Callable[[FromApi, str, str, str, str], Awaitable[bool]]
"""Tells a conversation of the web page something, by a message of it, a key, one line and words, or what is said where no turn can be had. False if there is
nobody to be told. Raises `StorageUnavailable`."""


def machine_zone(environ: Mapping[str, str], root: Path = Path("/")) -> str:
    """The name of the machine's time zone; UTC if it has none that the tz database knows."""
    named = [environ.get("TZ", "").removeprefix(":")]
    try:
        _, found, name = str((root / "etc/localtime").resolve()).partition("/zoneinfo/")
        named.append(name if found else "")
        named.append((root / "etc/timezone").read_text("utf-8").strip())
    except (OSError, UnicodeDecodeError):
        pass
    for name in filter(None, named):
        with suppress(BadTime):
            return times.zone_named(name.removeprefix("posix/"))
    return "UTC"


def zone_in_force(section: Schedule) -> str:
    """The zone whose clocks people mean."""
    return section.timezone or machine_zone(os.environ)


class Scheduler:
    """`run` it in a task of its own; `wake` it when a schedule was stored. Make it inside the event loop."""

    def __init__(
        self,
        section: Schedule,
        zone: str,
        store: Store,
        accepting: Accepting,
        members: Members,
        commands: CommandIntake,
        bell: Bell,
        clock: Clock,
        resolve: Resolve,
        on_page: OnPage,
    ) -> None:
        self._store = store
        self._accepting = accepting
        self._members = members
        self._commands = commands
        self._clock = clock
        self._resolve = resolve
        self._on_page = on_page
        self._zone = zone
        self._bell = bell
        self._unsynced: dict[str, ScheduleEntry] = {entry.name: entry for entry in section.entries}
        """Configured entries whose rows are not as configured yet."""
        self._names = frozenset(self._unsynced)
        self._swept = False
        self._aside: dict[str, tuple[int, int]] = {}
        """What was set aside: its `rev`, and how often all had been found sound by then."""
        self._said: set[str] = set()
        """What was logged once and need not be again."""
        self._clocks = (clock.now_ms() / 1000, clock.monotonic())

    def wake(self) -> None:
        """There may be something sooner than was thought."""
        self._bell.ring()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    seconds = await self._pass()
                except StorageUnavailable as error:
                    log.warning("schedule.storage_unavailable", error=str(error))
                    seconds = RETRY_SECONDS
                except Exception:
                    log.exception("schedule.failed")
                    seconds = LONGEST_SLEEP_SECONDS
                await self._bell.wait(seconds)
        finally:
            self._bell.close()

    async def _pass(self) -> float:
        """Claim everything that is due; the seconds until it has to be looked again."""
        self._notice_jumps()
        await self._sync()
        looked = self._clock.now_ms()
        for row in await self._store.schedules.due(looked):
            if self._aside.get(row.schedule) == self._seen(row):
                continue
            try:
                await self._settle(row)
            except (
                Conflict,
                Fenced,
                OwnedElsewhere,
                NotAccepted,
            ) as error:  # not accepted: it stays due, and holds up no other
                log.info("schedule.not_claimed", schedule=row.schedule, why=str(error))
            except Damaged as error:
                await self._meet(row, error)
            except StorageUnavailable:
                raise
            except Exception:
                log.exception("schedule.failed", schedule=row.schedule)
        await self._sync()  # an entry with another rule gets it as soon as the old one is settled
        try:
            next_at = await self._store.schedules.next_occurrence(self._aside)
        except Damaged:  # what can be read was looked at, and is again
            return RETRY_SECONDS
        if next_at is None:
            return LONGEST_SLEEP_SECONDS
        left = (next_at - self._clock.now_ms()) / 1000
        # What has come due since the look was not tried yet; what was due by then was, and in vain.
        return min(LONGEST_SLEEP_SECONDS, max(0.01, left)) if next_at > looked else RETRY_SECONDS

    def _notice_jumps(self) -> None:
        """Say so when the wall clock was set. It needs no other care: what is due is always asked of the clock as it is."""
        wall, steady = self._clock.now_ms() / 1000, self._clock.monotonic()
        jumped = (wall - self._clocks[0]) - (steady - self._clocks[1])
        self._clocks = (wall, steady)
        if abs(jumped) > JUMP_SECONDS:
            log.warning("schedule.clock_jumped", seconds=round(jumped))

    # ------------------------------------------------------------------ claiming

    async def _settle(self, row: ScheduleRow) -> None:
        """Claim what is due of a schedule, one claim after the other."""
        if row.surface.startswith(f"{PAGE}/"):
            await self._settle_page(row)
            return
        try:
            plan, rule = schedules.decode(row)
        except UnreadablePlan as error:
            self._set_aside(row, str(error))
            return
        account = account_of(plan.origin.address)
        if account not in self._members.accounts:
            if self._first(f"account {row.schedule}"):
                log.warning("schedule.no_account", schedule=row.schedule, account=account)
            return  # it stays due, and is told as late or missed when the account is there again
        if not plan.configured and self._members.standing_of(plan.origin) is PersonStanding.STRANGER:
            await self._store.schedules.put(schedules.cancelled(row, self._clock.now_ms()))
            log.warning("schedule.cancelled", schedule=row.schedule, why="who asked for it may not talk any more")
            return
        while True:
            now = self._clock.now_ms()
            claim = schedules.decide(rule, row.next_at, plan.if_missed, plan.late_seconds, now)
            if claim is None:
                return
            found, happening = schedules.claimed(row, plan, claim, now)
            key = SessionKey.of(row.session_key)
            await self._own(key)
            inbound = FromChat(
                account=account,
                platform_key=schedules.key_of(happening),
                session=key,
                input=(),
                surface=key.platform,
                memory_scope=plan.memory_scope or row.session_key,
                can_approve=True,
                chat=plan.origin,
            )
            command = Command("happen", schedules.encode_happening(happening))
            accepted, _ = await self._commands.take(inbound, command, claim=found)
            if accepted.duplicate:
                raise Conflict(f"The occurrence {inbound.platform_key} is known already.")
            row = self._claimed(found.schedule, happening, accepted.inbox_id)

    async def _settle_page(self, row: ScheduleRow) -> None:
        """The same where there is no chat: the conversation of a web page is told by a turn, which the page shows. Its key is the occurrence's,
        so that it is begun once, whatever happens before the claim is stored."""
        try:
            plan, rule = schedules.decode(row)
        except UnreadablePlan as error:
            self._set_aside(row, str(error))
            return
        while plan.page is not None:
            now = self._clock.now_ms()
            claim = schedules.decide(rule, row.next_at, plan.if_missed, plan.late_seconds, now)
            if claim is None:
                return
            found, happening = schedules.claimed(row, plan, claim, now)
            if happening.kind is ScheduleKind.REMINDER:
                await self._remind_page(row, plan.page, found, happening)
                row = found.schedule
                continue
            title, words = schedules.page_words(happening)
            otherwise = schedules.missed_words(happening)
            told = await self._on_page(plan.page, schedules.key_of(happening), title, words, otherwise)
            row = found.schedule if told else schedules.cancelled(row, now)
            await self._store.schedules.put(row)
            self._claimed(row, happening, 0)
            if not told:
                return

    async def _remind_page(self, row: ScheduleRow, page: FromApi, found: Claimed, happening: Happening) -> None:
        """A reminder is said by the gateway itself, as in a chat: no model is needed for it, and none can leave it out."""
        await self._own(SessionKey.of(row.session_key))
        said = replace(page, platform_key=schedules.key_of(happening), input=(), digest="")
        command = Command("happen", schedules.encode_happening(happening))
        accepted, _ = await self._commands.take(said, command, claim=found)
        if accepted.duplicate:
            raise Conflict(f"The occurrence {said.platform_key} is known already.")
        self._claimed(found.schedule, happening, accepted.inbox_id)

    def _claimed(self, row: ScheduleRow, happening: Happening, inbox: int) -> ScheduleRow:
        """The row as it is stored now, after a claim: whatever was said of it before, it can be read and written."""
        log.info(
            "schedule.claimed", schedule=row.schedule, outcome=happening.outcome.value, due=happening.due,
            count=happening.count, late_seconds=round(happening.late_ms / 1000), inbox=inbox,
        )  # fmt: skip
        if self._aside.pop(row.schedule, None) is not None:
            self._accepting.aside.schedules.pop(row.schedule, None)
        return row

    def _seen(self, row: ScheduleRow) -> tuple[int, int]:
        return row.rev, self._accepting.aside.damage.sounds

    async def _meet(self, row: ScheduleRow, error: Damaged) -> None:
        """Rows that a claim needs cannot be read or written: its own, or its conversation's. Raises `Damaged` if everybody's cannot."""
        aside = self._accepting.aside
        aside.check()
        if self._first(f"damaged {row.schedule} {aside.damage.sounds}"):
            try:
                await self._store.schedules.put(replace(row, rev=row.rev + 1, at=self._clock.now_ms()))
            except Damaged:
                pass
            else:
                await aside.put_key(row.session_key, error)
                return  # it can be written, so it is the conversation: it happens in the one that begins in its place
        self._set_aside(row, str(error))

    def _set_aside(self, row: ScheduleRow, words: str) -> None:
        self._aside[row.schedule] = self._seen(row)
        try:
            origin = schedules.decode(row)[0].origin
        except UnreadablePlan:
            origin = None
        self._accepting.aside.schedule(row.schedule, words, origin)

    async def _own(self, key: SessionKey) -> None:
        """Make sure that the conversation is ours, if there is one. Raises OwnedElsewhere."""
        if not self._accepting.portion.mine(key.text()):
            return  # it is stored there, and its owner carries it out
        known = await self._store.sessions.by_key(key.text())
        if known is not None:
            self._accepting.queues.release(await self._accepting.owned(key.text(), known.session))

    def _first(self, what: str) -> bool:
        """Whether this was not said yet."""
        new = what not in self._said
        self._said.add(what)
        return new

    # ------------------------------------------------------------------ the configuration

    async def _sync(self) -> None:
        """Bring the rows of configured entries to what the configuration says."""
        if not self._unsynced and self._swept:
            return
        rows = {row.schedule: row for row in await self._store.schedules.named(schedules.CONFIGURED)}
        now = self._clock.now_ms()
        if not self._swept:
            wanted = {f"{schedules.CONFIGURED}{name}" for name in self._names}
            for row in rows.values():
                if row.schedule not in wanted and row.next_at is not None:
                    try:
                        await self._store.schedules.put(schedules.cancelled(row, now))
                    except Damaged as error:
                        self._set_aside(row, str(error))
                        continue
                    log.info("schedule.removed", schedule=row.schedule)
            self._swept = True
        for name, entry in list(self._unsynced.items()):
            try:
                address = await self._resolve(entry.chat)
            except (LookupError, CallFailed) as error:
                if self._first(f"chat {name}"):
                    log.warning("schedule.no_chat", schedule=name, words=str(error))
                continue
            rule = entry.rule(self._zone)
            plan = Plan(
                words=entry.prompt,
                origin=schedules.scheduled_origin(address),
                zone=entry.timezone or self._zone,
                name=name,
                if_missed=entry.if_missed,
                late_seconds=entry.late_seconds,
            )
            known = rows.get(f"{schedules.CONFIGURED}{name}")
            row = schedules.synced(known, rule, plan, now)
            if row is not None:
                try:
                    await self._store.schedules.put(row)
                except Conflict:
                    continue  # another node was quicker, or an occurrence: look again
                except Damaged as error:
                    if self._first(f"damaged {name}"):
                        self._set_aside(row, str(error))
                    continue
                log.info("schedule.configured", schedule=row.schedule, next_at=row.next_at)
            current = row or known
            if current is not None and current.rule == times.encode(rule):
                del self._unsynced[name]
