"""A surface: one chat (or thread), what it should show, and the one task that makes it so.

Everything that goes to a chat goes through this task, one call after the other: parts, edits, drafts, typing. So nothing of a
turn can overtake its final part, and one gate is enough. What is to be done is decided by `adapters.delivery.reconcile`; here it is
done, and stored before and after.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog

from adapters.contract.chat import (
    Ability,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Doing,
    Fate,
    Flow,
    Piece,
)
from adapters.contract.contents import decode
from adapters.contract.files import spelled_out
from adapters.delivery.aftermath import Instead, Patience, behind, failed, patience, within
from adapters.delivery.pacing import Urgency
from adapters.delivery.parts import Draft, Picture
from adapters.delivery.reconcile import (
    Append,
    Create,
    Delete,
    Edit,
    Finish,
    Name,
    Part,
    Step,
    Wait,
    begun,
    finished,
    loaded,
    next_step,
    plan,
    removed,
    sent_by,
    settled,
    ungrown,
)
from adapters.delivery.substitutes import instead_of, text_of_file
from agent_core.ports import Clock
from agent_core.signals import FirstSign, PartSent, SendFailed, Tell
from agent_core.store.deliveries.rows import INSTEAD, Delivery, DeliveryRow, DeliveryState
from agent_core.store.store import Fenced, StorageUnavailable
from agent_core.turn.view import BubbleKind, View
from gateway.delivery.amending import Amendments
from gateway.delivery.book import Book
from gateway.delivery.calls import CALL_SECONDS, COSMETIC_SECONDS, UPLOAD_SECONDS, called
from gateway.delivery.doings import Doings
from gateway.delivery.dressing import as_sent
from gateway.delivery.forming import Forming
from gateway.delivery.owners import Owner, stands
from gateway.delivery.pacedbell import ThrottledBell
from gateway.delivery.turnoutlet import TurnOutlet

log = structlog.get_logger("delivery")

LINGER_SECONDS = 60.0
"""How long a surface that has nothing to do is kept: the next message often comes soon."""
DRAFT_REFRESH_SECONDS = 20.0  # drafts fade after 30 s (Bot API, sendMessageDraft)
TROUBLE_SECONDS = 5.0
OLDEST_MS = 7 * 24 * 3_600_000
"""No part is taken to wait for longer."""
BLOCKED_CAUSES = (Cause.BLOCKED, Cause.NO_RIGHTS, Cause.NO_CHAT)
"""They are of the whole chat."""


class SurfaceHost(Protocol):
    """What a surface needs of the outbox."""

    def waits(self, surface: str) -> Mapping[Urgency, int]: ...

    def passed(self, surface: str) -> None: ...

    async def too_fast(self, surface: str, seconds: float) -> None: ...

    @property
    def next_place(self) -> int: ...

    def placed(self, place: int) -> None: ...

    async def store_parts(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None: ...

    def may_send(self) -> bool: ...

    def delivered(self, surface: str) -> None: ...

    async def given_up(self, surface: Surface, part: Part, error: CallFailed) -> None: ...

    async def moved(self, address: ChatAddress, new_chat: str) -> None: ...

    def forget(self, surface: Surface) -> None: ...

    @property
    def tell(self) -> Tell: ...

    @property
    def forming(self) -> Forming: ...


class Surface:
    """One chat. Made by `gateway.delivery.outbox.Outbox`, whose task group owns `run`."""

    def __init__(
        self, address: ChatAddress, port: ChatPort, host: SurfaceHost, clock: Clock, chance: random.Random
    ) -> None:
        self.address = address
        self.name = address.text()
        self.port = port
        self.traits = port.traits(address)
        self.bell = ThrottledBell(self.traits.preview_seconds)
        self.parts: dict[Name, Part] = {}
        self.owners: dict[str, Owner] = {}
        """By origin."""
        self.outlets: list[TurnOutlet] = []
        self._unseen: dict[str, int] = {}
        """Turn → when it was opened: over before the chat was shown anything of it."""
        self._held: set[str] = set()
        """Origins whose parts are not stored yet as they are here: nothing new of them goes out."""
        self.wanted_at: dict[Name, int] = {}
        """Since when the parts that are to stay are to be as they are not yet, ms of the monotonic clock."""
        self._awaited: set[str] = set()
        """Turns of an earlier process that go on, and are not shown here yet."""
        self._host = host
        self.forming = host.forming
        self._clock = clock
        self._chance = chance
        long_ago = -(10**9)
        self._preview_at = self._typing_at = self._status_at = long_ago
        self._draft: Draft | None = None
        self._draft_shown: Draft | None = None
        self._draft_at = long_ago
        self._doings = Doings(address, port, clock, self.bell.ring)
        self._idle_since: int | None = None
        self._closed = False
        self.amendments = Amendments(self.bell)
        self.book = Book()
        self._patience: dict[Name, Patience] = {}
        """Of parts whose last call failed."""

    def _steady(self) -> int:
        """Milliseconds that never go back: what lasts within this process is counted by them."""
        return round(self._clock.monotonic() * 1000)

    # ------------------------------------------------------------------ from outside

    def add(self, outlet: TurnOutlet) -> None:
        self.outlets.append(outlet)
        self.owners[outlet.turn] = outlet.owner
        self._awaited.discard(outlet.turn)
        self.bell.ring()

    def drop(self, outlet: TurnOutlet) -> None:
        if outlet in self.outlets:
            self.outlets.remove(outlet)
            if not outlet.seen and outlet.driver is not None:
                self._unseen[outlet.turn] = outlet.driver.opened_at
            self._draft = None
            self.bell.ring()

    def restore(
        self, found: Sequence[Delivery], owner: Owner, going_on: Collection[str] = (), *, over: bool = True
    ) -> None:
        """Parts that an earlier process left open, and all parts of turns that are going on.

        Unless it is `over`, what is on its way may still be changed.
        """
        self._awaited.update(one.row.origin for one in found if one.row.origin in going_on)
        for one in found:
            ended = over and one.row.origin not in going_on
            part = loaded(Part(one.row, decode(one.row.want)), over=ended)
            self.book.found(one.row)
            self.parts.setdefault(part.name, part)
            if part.open:
                age = within(self._clock.now_ms(), part.row.at or self._clock.now_ms(), OLDEST_MS)
                self.wanted_at.setdefault(part.name, self._steady() - age)
            self.owners[one.row.origin] = owner
        self.bell.ring()

    def propose(self, origin: str, owner: Owner, planned: Sequence[Part]) -> list[DeliveryRow]:
        """Take parts in that are about to be stored; `release` the origin when they are."""
        self.owners[origin] = owner
        self._held.add(origin)
        self._take(planned)
        rows = [part.row for part in self.parts.values() if part.row.origin == origin and part.open]
        self.book.offer(origin, rows)
        return rows

    def closing(self, outlet: TurnOutlet, view: View) -> list[DeliveryRow]:
        """The parts of a turn that ends, or is left open: everything of it that is not stored as it is, or not as it should be yet."""
        shown = outlet.picture(view)
        self._held.add(outlet.turn)
        self._awaited.discard(outlet.turn)
        self.owners[outlet.turn] = outlet.owner
        self._draft = None
        before = {name: part for name, part in self.parts.items() if name[0] == outlet.turn}
        self._take(plan(self.parts, shown.wanted, self.name, outlet.turn, self._host.next_place, traits=self.traits))
        mine = {name: part for name, part in self.parts.items() if name[0] == outlet.turn}
        for name, part in mine.items():
            if before.get(name) != part:
                self._log_sent(part)  # the last state on the way is the final one: no call comes after it
        rows = [part.row for part in mine.values() if part.open or self.book.unlike(part)]
        self.book.offer(outlet.turn, rows)
        return rows

    def take_back(self, origin: str) -> None:
        """Nothing of `origin` should be seen any more."""
        self._take(plan(self.parts, (), self.name, origin, self._host.next_place))
        self.bell.ring()

    def hand_over(self, other: Surface) -> None:
        """The chat has another id: `other` shows everything from now on."""
        for part in self.parts.values():
            moved = replace(part, row=replace(part.row, surface=other.name, retry_at=None))
            other.parts.setdefault(moved.name, moved)
            other.wanted_at.setdefault(moved.name, self.wanted_at.get(moved.name, part.row.at))
        self.book.hand_over(other.book, other.name)
        other.owners.update(self.owners)
        other._held.update(self._held)
        other._awaited.update(self._awaited)
        for outlet in self.outlets:
            if outlet.driver is not None:
                outlet.driver.unsubscribe(self.bell)
                outlet.driver.subscribe(other.bell)
            outlet.surface = other
            other.outlets.append(outlet)
        self._forget_all()
        self.outlets = []
        self._closed = True
        self.bell.ring()
        other.bell.ring()

    def release(self, origin: str, *, stored: bool = True) -> None:
        """The parts of `origin` are stored, or cannot be."""
        self._held.discard(origin)
        self.book.answered(origin, stored=stored)
        self.bell.ring()

    def _take(self, planned: Sequence[Part]) -> None:
        for part in planned:
            self.parts[part.name] = part
            if part.row.final and part.open:
                self.wanted_at.setdefault(part.name, self._steady())
            self._host.placed(part.row.place)

    @property
    def waiting(self) -> list[Part]:
        """Parts that are not as they should be."""
        return [part for part in self.parts.values() if part.open]

    def oldest_wanted_at(self) -> int | None:
        """Since when the oldest part waits that is to stay, ms of the monotonic clock; None if none does."""
        return min((self.wanted_at[p.name] for p in self.waiting if p.name in self.wanted_at), default=None)

    def _shown(self, outlets: Sequence[TurnOutlet]) -> None:
        """The chat shows something of these turns."""
        for outlet in outlets:
            if not outlet.seen and outlet.driver is not None:
                self._first_sign(outlet.driver.opened_at)
            outlet.seen = True

    def _first_sign(self, opened_at: int) -> None:
        after = max(0, self._clock.now_ms() - opened_at)
        self._host.tell(FirstSign(surface=self.address.platform, after_ms=after))

    # ------------------------------------------------------------------ the loop

    async def run(self) -> None:
        """Make the chat show what it should, until there has been nothing to do for a while."""
        try:
            await self._run()
        finally:
            await self._doings.end()
            self.bell.close()

    async def _run(self) -> None:
        while True:
            try:
                if not await self._once():
                    return
            except Fenced:
                log.warning("surface.overtaken", chat=self.name)
                self._forget_all()
            except StorageUnavailable as error:
                log.warning("surface.storage_unavailable", chat=self.name, error=str(error))
                await self.bell.wait(TROUBLE_SECONDS)
            except Exception:
                log.exception("surface.failed", chat=self.name)
                await asyncio.sleep(TROUBLE_SECONDS)

    def _forget_all(self) -> None:
        self.parts.clear()
        self.wanted_at.clear()
        self.owners.clear()
        self._held.clear()
        self.book.forget_all()
        self._patience.clear()

    async def _once(self) -> bool:
        """One step. False if the surface is not needed any more."""
        if self._closed:
            return False
        await self.amendments.carry_out(self.parts, self._held)
        now, waits = self._steady(), self._host.waits(self.name)
        await self._look(now, waits)
        may_send = self._host.may_send()
        step = self._next(waits) if may_send else Wait(1_000)
        if self.traits.sessions and may_send:
            self._doings.show(self._doing(), last_word_waits=any(part.row.final for part in self.waiting))
        if not isinstance(step, Wait):
            self._idle_since = None
            await self._do(step)
            return True
        if may_send and await self._cosmetic(now, waits[Urgency.COSMETIC]):
            return True
        if await self._pay():
            return True
        return await self._rest(now, step)

    def _next(self, waits: Mapping[Urgency, int]) -> Step:
        """What to do first."""
        ready = [
            part
            for part in self.parts.values()
            if part.open
            and part.row.origin not in self._held
            and (part.row.final or part.row.origin not in self._awaited)
        ]
        wall, steady = self._clock.now_ms(), self._steady()
        found = {part.name: patience(self._patience.get(part.name), part.row, wall, steady) for part in ready}
        self._patience = {name: one for name, one in found.items() if one is not None}
        pauses = {name: one.pause(steady) for name, one in self._patience.items()}
        flows = self._flow if self.traits.streams else None
        return next_step(ready, self.port.ability, waits, wall, flows, pauses)

    async def _pay(self) -> bool:
        """Store what is not stored as it is, and will not come to be so by itself. Whether there was any."""
        running = {outlet.turn for outlet in self.outlets} | self._awaited | self._held
        owed = self.book.owed(self.parts.values(), running)
        for owner in {self.owners[part.row.origin] for part in owed}:
            rows = [part.row for part in owed if self.owners[part.row.origin] == owner]
            await self._host.store_parts(owner, rows)
            self.book.stored(rows)
        return bool(owed)

    async def _rest(self, now: int, step: Wait) -> bool:
        busy = bool(self.outlets or self.waiting or self._held)
        if busy:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
            self._sweep()
        elif now - self._idle_since >= LINGER_SECONDS * 1000 and not any(map(stands, self.parts.values())):
            self._host.forget(self)
            return False
        limit = self.traits.preview_seconds if self.outlets else (LINGER_SECONDS if not busy else 30.0)
        await self.bell.wait(max(0.02, min(limit, (step.ms if step.ms is not None else limit * 1000) / 1000)))
        return True

    def _sweep(self) -> None:
        """Settled parts need not be remembered once nothing of their turn runs any more."""
        running = {outlet.turn for outlet in self.outlets} | self._awaited
        for name in [
            name for name, part in self.parts.items() if not part.open and name[0] not in running and not stands(part)
        ]:
            del self.parts[name]
        self.book.keep_only(self.parts)
        self.wanted_at = {name: at for name, at in self.wanted_at.items() if name in self.parts}
        origins = {name[0] for name in self.parts} | running
        self.owners = {origin: owner for origin, owner in self.owners.items() if origin in origins}

    async def _look(self, now: int, waits: Mapping[Urgency, int]) -> None:
        """Put what the running turns show into the parts."""
        due = now - self._preview_at >= self.traits.preview_seconds * 1000 and waits[Urgency.COSMETIC] <= 0
        for outlet in list(self.outlets):
            if outlet.driver is None or outlet.turn in self._held:
                continue
            view = outlet.driver.current_view()
            if not view.open:
                continue  # it is being closed, and then its parts come by `closing`
            ready = await outlet.texts.prepare(lambda parts, o=outlet, v=view: o.picture(v, parts, growing=due))
            if outlet not in self.outlets or outlet.turn in self._held:
                continue  # it ended meanwhile
            shown = outlet.picture(view, growing=due and ready)
            self._take(self._timely(shown, outlet.turn, now))
            if due and ready:
                self._draft = shown.draft

    def _timely(self, shown: Picture, turn: str, now: int) -> list[Part]:
        """What changes by `shown`, without a status that was changed only just now."""
        place = self._host.next_place
        planned = plan(self.parts, shown.wanted, self.name, turn, place, shown.untouched, self.traits)
        fresh = now - self._status_at < self.traits.status_seconds * 1000
        return [
            part
            for part in planned
            if part.content.kind is not ContentKind.STATUS or part.row.gone or part.row.platform_id is None or not fresh
        ]

    # ------------------------------------------------------------------ doing

    async def _do(self, step: Step) -> None:
        match step:
            case Create():
                await self._create(step)
            case Edit():
                await self._edit(step)
            case Append():
                await self._append(step)
            case Finish():
                await self._finish(step)
            case Delete():
                await self._delete(step)
            case Wait():
                pass

    async def _keep(self, part: Part, *others: Part) -> None:
        """Store a part as it is now, and what has come in its place."""
        rows = [part.row, *(other.row for other in others)]
        self._take([part, *others])
        await self._host.store_parts(self.owners[part.row.origin], rows)
        self.book.stored(rows)

    async def _keep_begun(self, before: Part, repeated: bool) -> Part:
        """Store that a part is about to be created. If that cannot be done, nothing was begun."""
        part = begun(before, self._clock.now_ms(), repeated=repeated)
        try:
            await self._keep(part)
        except StorageUnavailable:
            row, current = before.row, self.parts.get(part.name, part)
            back = replace(
                current.row, state=row.state, attempt=row.attempt, sending_at=row.sending_at, labelled=row.labelled
            )
            self.parts[part.name] = replace(current, row=back)
            raise
        return part

    async def _create(self, step: Create) -> None:
        now = self._clock.now_ms()
        part = step.part
        # Where a thread is the place to grow in, there is none without it.
        first = step.first if not self.traits.replies or self._as_sent(part).reply_to else None
        unknown = part.row.state is DeliveryState.UNKNOWN
        if unknown and part.content.kind is ContentKind.STATUS and self.port.ability is Ability.NONE:
            await self._keep(replace(part, row=replace(part.row, state=DeliveryState.SKIPPED, gone=True)))
            return
        if part.content.kind is not ContentKind.STATUS and part.row.final:
            self._draft = None
        part = await self._keep_begun(part, step.repeated)
        if not self._host.may_send():
            return
        sent = sent_by(step, self.port.ability, self.traits)
        try:
            found = None
            if step.look_up:
                since = min(part.row.sending_at or now, now) - 60_000
                sought = self._as_sent(replace(part, content=part.tried or part.content))
                found = await self._told(self.port.find(self._target(part), sought, part.row.key, since))
            if found is None and part.row.gone:
                await self._keep(removed(self.parts.get(part.name, part), self._clock.now_ms()))
                return
            seconds = UPLOAD_SECONDS if part.content.kind is ContentKind.FILE else CALL_SECONDS
            platform_id = found or await self._call(self._made(part, first), seconds)
        except CallFailed as error:
            if (
                first is not None
                and error.fate is Fate.REFUSED
                and error.cause not in (Cause.NO_THREAD, Cause.NOT_LET_IN)
            ):
                # Whether the stream or the chat is refused is told by the ordinary call.
                log.info("surface.no_streams", chat=self.name, words=error.words)
                self.traits = replace(self.traits, streams=False)
                await self._keep(ungrown(self.parts.get(part.name, part)))
                return
            await self._failed(part, error, creating=True)
            return
        self._host.delivered(self.name)
        self._shown([outlet for outlet in self.outlets if outlet.turn == part.row.origin])
        if (opened_at := self._unseen.pop(part.row.origin, None)) is not None:
            self._first_sign(opened_at)
        if first is not None:
            self._preview_at = self._steady()
        self._status_shown(part)
        current = self.parts.get(part.name, part)
        there = first if found is None else None
        done = settled(current, platform_id, sent, self.port.ability, self._clock.now_ms(), there)
        await self._keep(done)
        self._log_sent(done)
        if step.repeated:
            log.info(
                "delivery.settled", chat=self.name, origin=part.row.origin, part=part.row.key, found=found is not None
            )

    def _status_shown(self, part: Part) -> None:
        if part.content.kind is ContentKind.STATUS:
            self._status_at = self._steady()

    def _made(self, part: Part, first: Flow | None) -> Awaitable[str]:
        """The call that creates a part."""
        if first is None:
            return self.port.create(self._target(part), self._as_sent(part), part.row.key)
        person = next((outlet.person for outlet in self.outlets if outlet.turn == part.row.origin), "")
        return self.port.start(self._target(part), self._as_sent(part), first, person)

    def _flow(self, content: Content, final: bool) -> Flow:
        return self.port.flow(content, final=final)

    async def _append(self, step: Append) -> None:
        """A state on the way: it is not stored."""
        part, sent = step.part, step.part.content
        assert part.row.platform_id is not None
        assert part.there is not None
        now, self._preview_at = self._clock.now_ms(), self._steady()
        there = part.there + step.more
        if step.more:
            try:
                await self._call(self.port.append(self._target(part), part.row.platform_id, step.more))
            except CallFailed as error:
                await self._failed(part, error, creating=False)
                return
            self._host.delivered(self.name)
        current = self.parts.get(part.name, part)
        self.parts[part.name] = settled(current, part.row.platform_id, sent, self.port.ability, now, there)

    async def _finish(self, step: Finish) -> None:
        part = step.part
        assert part.row.platform_id is not None
        try:
            await self._call(
                self.port.finish(self._target(part), part.row.platform_id, self._as_sent(part), step.more, part.row.key)
            )
        except CallFailed as error:
            await self._failed(part, error, creating=False)
            return
        self._host.delivered(self.name)
        sent = part.content if step.more is not None else None
        current = self.parts.get(part.name, part)
        done = finished(current, sent, self.port.ability, self._clock.now_ms())
        await self._keep(done)
        self._log_sent(done)

    async def _edit(self, step: Edit) -> None:
        part, sent = step.part, step.part.content
        assert part.row.platform_id is not None
        if not part.row.final:
            self._preview_at = self._steady()
        try:
            await self._call(self.port.edit(self._target(part), part.row.platform_id, self._as_sent(part)))
        except CallFailed as error:
            await self._failed(part, error, creating=False)
            return
        self._host.delivered(self.name)
        self._status_shown(part)
        done = settled(
            self.parts.get(part.name, part), part.row.platform_id, sent, self.port.ability, self._clock.now_ms()
        )
        if part.row.final:
            await self._keep(done)
            self._log_sent(done)
        else:  # a state on the way need not be stored: after a restart the turn shows it anew
            self.parts[done.name] = done

    async def _delete(self, step: Delete) -> None:
        part = step.part
        try:
            if (
                part.row.platform_id is not None and not step.leave
            ):  # else it is not there, or nobody can know which it is
                await self._call(self.port.delete(self._target(part), part.row.platform_id))
        except CallFailed as error:
            if not (error.fate is Fate.REFUSED and error.cause in (Cause.NO_MESSAGE, Cause.UNEDITABLE)):
                await self._failed(part, error, creating=False)
                return
        current = self.parts.get(part.name, part)  # what is wanted may be another thing since the call began
        await self._keep(removed(current, self._clock.now_ms()))

    async def _call(self, call: Awaitable[str | None], seconds: float = CALL_SECONDS) -> str:
        """A call that counts against the limits; raises `CallFailed` and nothing else."""
        self._host.passed(self.name)
        return await self._told(call, seconds) or ""

    async def _told(self, call: Awaitable[str | None], seconds: float = CALL_SECONDS) -> str | None:
        return await called(call, self.address.platform.capitalize(), seconds)

    async def _instead(self, content: Content) -> Instead:
        """What may be shown in place of a content that was refused."""
        spelled: Sequence[Piece] = ()
        if text := text_of_file(await spelled_out(content)):
            spelled = await self.forming.growing(self.port.parts, text) or self.port.parts(
                text, growing=False, plain=True
            )
        return partial(instead_of, spelled=spelled, shorter=self.port.shorter, replies=self.traits.replies)

    async def _failed(self, part: Part, error: CallFailed, *, creating: bool) -> None:
        instead = await self._instead(part.content)
        before, ability, share = self.parts.get(part.name, part), self.port.ability, self._chance.random()
        current, *others = failed(
            before, error, ability,
            creating=creating, now=self._clock.now_ms(), share=share, instead=instead,
        )  # fmt: skip
        if error.fate is Fate.TOO_FAST:
            await self._host.too_fast(self.name, error.retry_after)
        follow = behind(before, [current, *others], self.parts.values(), self._clock.now_ms())
        await self._keep(current, *others, *follow)
        given_up = current.row.state is DeliveryState.FAILED
        if given_up:
            self.wanted_at.pop(part.name, None)
            self._unseen.pop(part.row.origin, None)
        fate, cause = error.fate.value, error.cause.value
        self._host.tell(SendFailed(platform=self.address.platform, fate=fate, cause=cause, final=given_up))
        if error.cause is Cause.MOVED and error.moved_to:
            await self._host.moved(self.address, error.moved_to)
        elif given_up and (current.row.final or error.cause in BLOCKED_CAUSES):
            await self._host.given_up(self, current, error)
        elif current.row.cause.startswith(INSTEAD):
            log.warning(
                "delivery.instead", chat=self.name, origin=part.row.origin, part=part.row.key, cause=cause or None,
                how=current.row.cause.removeprefix(INSTEAD), parts=len(others),
            )  # fmt: skip
        elif not (error.fate is Fate.REFUSED and error.cause in (Cause.UNCHANGED, Cause.NO_MESSAGE)):
            log.info(
                "delivery.retried", chat=self.name, origin=part.row.origin, part=part.row.key, fate=fate, cause=cause or None,
                attempt=current.row.attempt, words=error.words,
            )  # fmt: skip

    def _log_sent(self, part: Part) -> None:
        """The receipt of a part that will not change any more; a status, which comes and goes, has none."""
        row = part.row
        lasting = row.final and not row.gone and part.content.kind is not ContentKind.STATUS
        if row.state is DeliveryState.SENT and lasting:
            log.info("delivery.sent", chat=self.name, origin=row.origin, part=row.key, platform_id=row.platform_id)
            kind, now = part.content.kind.value, self._clock.now_ms()
            waited = self._steady() - self.wanted_at.pop(part.name, self._steady())
            sent = PartSent(
                platform=self.address.platform, origin=row.origin, kind=kind, wanted_at=now - waited, sent_at=now
            )
            self._host.tell(sent)

    def _target(self, part: Part) -> ChatAddress:
        return replace(self.address, thread="") if part.row.cause == Cause.NO_THREAD.value else self.address

    def _as_sent(self, part: Part) -> Content:
        return as_sent(part, self.address, self.port.ability, self.traits)

    # ------------------------------------------------------------------ cosmetics

    async def _cosmetic(self, now: int, wait: int) -> bool:
        """Show text on its way, or that we type; never while something that must be seen is under way."""
        if wait > 0 or not self.outlets or any(part.urgency is Urgency.FINAL for part in self.waiting):
            return False
        if self._draft is not None and await self._show_draft(self._draft, now):
            return True
        return await self._type(now)

    def _doing(self) -> dict[str, tuple[Doing, str]]:
        """What the agent does in each thread."""
        running: dict[str, tuple[Doing, str]] = {}
        for outlet in self.outlets:
            thread = self.address.thread or outlet.reply_to
            if outlet.driver is None or not thread:
                continue
            asks = any(b.kind is BubbleKind.APPROVAL for b in outlet.driver.current_view().bubbles)
            running[thread] = (Doing.WAITING if asks else Doing.WORKING, outlet.person)
        return running

    async def _show_draft(self, draft: Draft, now: int) -> bool:
        fresh = now - self._draft_at < DRAFT_REFRESH_SECONDS * 1000
        if (draft == self._draft_shown and fresh) or now - self._draft_at < self.traits.preview_seconds * 1000:
            return False
        self._draft_at = self._preview_at = now
        self._draft_shown = draft
        error = await self._try(self.port.draft(self.address, draft.number, draft.body))
        if error is None:
            self._shown(self.outlets)
        if error is not None and error.fate is Fate.REFUSED:
            log.info("surface.no_drafts", chat=self.name, words=error.words)
            self.traits = replace(self.traits, drafts=False)  # then it is shown by a message that is edited
            self._draft = None
        return True

    async def _type(self, now: int) -> bool:
        """Show that we type, where no text has just been seen to grow."""
        since = max(self._typing_at, self._preview_at if self._draft is not None else 0)
        if not self.traits.typing_seconds or now - since < self.traits.typing_seconds * 1000:
            return False
        if not any(outlet.driver is not None and outlet.turn not in self._held for outlet in self.outlets):
            return False
        self._typing_at = now
        if await self._try(self.port.typing(self.address)) is None:
            self._shown(self.outlets)
        return True

    async def _try(self, call: Awaitable[str | None]) -> CallFailed | None:
        """A call that nobody misses if it fails; why it did."""
        try:
            await self._call(call, COSMETIC_SECONDS)
        except CallFailed as error:
            if error.fate is Fate.TOO_FAST:
                await self._host.too_fast(self.name, error.retry_after)
            return error
        return None
