"""A surface: one chat (or thread), what it should show, and the one task that makes it so.

Everything that goes to a chat goes through this task, one call after the other: parts, edits, drafts, typing. So nothing of a
turn can overtake its final part, and one gate is enough. What is to be done is decided by `adapters.reconcile`; here it is
done, and stored before and after.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from adapters.chat import (
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
)
from adapters.contents import decode
from adapters.pacing import Urgency
from adapters.parts import Draft, Parts, Picture, picture
from adapters.reconcile import (
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
    failed,
    finished,
    loaded,
    next_step,
    plan,
    removed,
    settled,
    ungrown,
)
from agent_core.driver import TurnDriver
from agent_core.ports import Clock
from agent_core.signals import FirstSign, PartSent, SendFailed, Tell
from agent_core.store.rows import Delivery, DeliveryRow, DeliveryState
from agent_core.store.store import Fenced, StorageUnavailable
from agent_core.view import BubbleKind, View
from gateway.amending import Amendments
from gateway.dressing import dressed
from gateway.forming import Forming, Texts
from gateway.owners import Owner
from gateway.pacedbell import PacedBell

log = structlog.get_logger("delivery")

LINGER_SECONDS = 60.0
"""How long a surface that has nothing to do is kept: the next message often comes soon."""
DRAFT_REFRESH_SECONDS = 20.0  # drafts fade after 30 s (Bot API, sendMessageDraft)
TROUBLE_SECONDS = 5.0
STANDING = "queue:"
"""Origins of words that are true until they are taken back, also while nothing else goes on in the chat."""
DOING_PAUSE_SECONDS = 5.0  # after what the agent does could not be shown


class Desk(Protocol):
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


@dataclass(eq=False, slots=True)
class TurnOutlet:
    """A running turn on a surface. Implements `agent_core.watcher.Outlet`."""

    find: Callable[[], Surface]
    turn: str
    owner: Owner
    reply_to: str
    person: str = ""
    """Who asked."""
    driver: TurnDriver | None = None
    surface: Surface = field(init=False)
    texts: Texts = field(init=False)
    seen: bool = False
    """The chat was shown something of the turn."""

    def __post_init__(self) -> None:
        self.surface = self.find()
        self.texts = Texts(lambda: self.surface.port.parts, lambda: self.surface.forming)

    def attach(self, driver: TurnDriver) -> None:
        """Show this turn from now on. A surface that had nothing to do may have been forgotten meanwhile."""
        self.surface = self.find()
        self.driver = driver
        self.surface.add(self)
        driver.subscribe(self.surface.bell)

    def left(self) -> None:
        """See `agent_core.watcher.Outlet`."""
        if self.driver is not None:
            self.driver.unsubscribe(self.surface.bell)
        self.surface.drop(self)

    def closing(self, view: View) -> Sequence[DeliveryRow]:
        """See `agent_core.watcher.Outlet`."""
        return self.surface.closing(self, view)

    def closed(self) -> None:
        """See `agent_core.watcher.Outlet`."""
        self.surface.release(self.turn)
        self.left()

    async def prepare(self, view: View) -> None:
        """See `agent_core.driver.Outlet`."""
        await self.texts.prepare(lambda parts: self.picture(view, parts))

    def picture(self, view: View, parts: Parts | None = None, *, growing: bool = True) -> Picture:
        """What the chat should show of a view; its texts were prepared, or are formatted by `parts`."""
        left = self.driver is not None and self.driver.turn.left  # then nothing may fade with a draft
        traits, form = self.surface.traits, parts or self.texts.pieces
        traits = replace(traits, drafts=traits.drafts and not left)
        return picture(view, self.turn, form, traits=traits, reply_to=self.reply_to, growing=growing)


class Surface:
    """One chat. Made by `gateway.outbox.Outbox`, whose task group owns `run`."""

    def __init__(self, address: ChatAddress, port: ChatPort, desk: Desk, clock: Clock, chance: random.Random) -> None:
        self.address = address
        self.name = address.text()
        self.port = port
        self.traits = port.traits(address)
        self.bell = PacedBell(self.traits.preview_seconds)
        self.parts: dict[Name, Part] = {}
        self.owners: dict[str, Owner] = {}
        """By origin."""
        self.outlets: list[TurnOutlet] = []
        self._unseen: dict[str, int] = {}
        """Turn → when it was opened: over before the chat was shown anything of it."""
        self._held: set[str] = set()
        """Origins whose parts are not stored yet as they are here: nothing new of them goes out."""
        self.wanted_at: dict[Name, int] = {}
        """Since when the parts that are to stay are to be as they are not yet, ms."""
        self._awaited: set[str] = set()
        """Turns of an earlier process that go on, and are not shown here yet."""
        self._desk = desk
        self.forming = desk.forming
        self._clock = clock
        self._chance = chance
        self._preview_at = 0
        self._typing_at = 0
        self._draft: Draft | None = None
        self._draft_shown: Draft | None = None
        self._draft_at = 0
        self._doing: dict[str, tuple[Doing, str]] = {}
        """What is shown of the agent's doing by thread, and for whom."""
        self._telling: asyncio.Task[None] | None = None
        self._telling_from = 0
        self._idle_since: int | None = None
        self._closed = False
        self.amendments = Amendments(self.bell)

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

    def restore(self, found: Sequence[Delivery], owner: Owner, going_on: Collection[str] = ()) -> None:
        """Parts that an earlier process left open, and all parts of turns that are going on."""
        self._awaited.update(one.row.origin for one in found if one.row.origin in going_on)
        for one in found:
            part = loaded(Part(one.row, decode(one.row.want)))
            self.parts.setdefault(part.name, part)
            self.wanted_at.setdefault(part.name, part.row.at or self._clock.now_ms())
            self.owners[one.row.origin] = owner
        self.bell.ring()

    def propose(self, origin: str, owner: Owner, planned: Sequence[Part]) -> list[DeliveryRow]:
        """Take parts in that are about to be stored; `release` the origin when they are."""
        self.owners[origin] = owner
        self._held.add(origin)
        self._take(planned)
        return [part.row for part in self.parts.values() if part.row.origin == origin and part.open]

    def closing(self, outlet: TurnOutlet, view: View) -> list[DeliveryRow]:
        """The parts of a turn that ends, or is left open: everything of it that is not as it should be yet."""
        shown = outlet.picture(view)
        before = {name: part for name, part in self.parts.items() if name[0] == outlet.turn}
        self._held.add(outlet.turn)
        self.owners[outlet.turn] = outlet.owner
        self._draft = None
        self._take(plan(self.parts, shown.wanted, self.name, outlet.turn, self._desk.next_place))
        mine = {name: part for name, part in self.parts.items() if name[0] == outlet.turn}
        changed = [part for name, part in mine.items() if part.open or before.get(name) != part]
        for part in changed:
            self._log_sent(part)  # the last state on the way is the final one: no call comes after it
        return [part.row for part in changed]

    def take_back(self, origin: str) -> None:
        """Nothing of `origin` should be seen any more."""
        self._take(plan(self.parts, (), self.name, origin, self._desk.next_place))
        self.bell.ring()

    def hand_over(self, other: Surface) -> None:
        """The chat has another id: `other` shows everything from now on."""
        for part in self.parts.values():
            moved = replace(part, row=replace(part.row, surface=other.name, retry_at=None))
            other.parts.setdefault(moved.name, moved)
            other.wanted_at.setdefault(moved.name, self.wanted_at.get(moved.name, part.row.at))
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

    def release(self, origin: str) -> None:
        """The parts of `origin` are stored."""
        self._held.discard(origin)
        self.bell.ring()

    def _take(self, planned: Sequence[Part]) -> None:
        for part in planned:
            self.parts[part.name] = part
            if part.row.final and part.open:
                self.wanted_at.setdefault(part.name, self._clock.now_ms())
            self._desk.placed(part.row.place)

    @property
    def waiting(self) -> list[Part]:
        """Parts that are not as they should be."""
        return [part for part in self.parts.values() if part.open]

    def oldest_wanted_at(self) -> int | None:
        """Since when the oldest part waits that is to stay, ms; None if none does."""
        return min((self.wanted_at[p.name] for p in self.waiting if p.name in self.wanted_at), default=None)

    def _shown(self, outlets: Sequence[TurnOutlet]) -> None:
        """The chat shows something of these turns."""
        for outlet in outlets:
            if not outlet.seen and outlet.driver is not None:
                self._first_sign(outlet.driver.opened_at)
            outlet.seen = True

    def _first_sign(self, opened_at: int) -> None:
        after = max(0, self._clock.now_ms() - opened_at)
        self._desk.tell(FirstSign(surface=self.address.platform, after_ms=after))

    # ------------------------------------------------------------------ the loop

    async def run(self) -> None:
        """Make the chat show what it should, until there has been nothing to do for a while."""
        try:
            await self._run()
        finally:
            if (telling := self._telling) is not None:
                telling.cancel()
                await asyncio.wait({telling})
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

    async def _once(self) -> bool:
        """One step. False if the surface is not needed any more."""
        if self._closed:
            return False
        await self.amendments.carry_out(self.parts, self._held)
        now = self._clock.now_ms()
        waits = self._desk.waits(self.name)
        await self._look(now, waits)
        ready = [part for part in self.parts.values() if part.open and part.row.origin not in self._held]
        flows = self._flow if self.traits.streams else None
        step = next_step(ready, self.port.ability, waits, now, flows) if self._desk.may_send() else Wait(1_000)
        if self.traits.sessions and self._desk.may_send():
            self._show_doing(now)
        if not isinstance(step, Wait):
            self._idle_since = None
            await self._do(step)
            return True
        if self._desk.may_send() and await self._cosmetic(now, waits[Urgency.COSMETIC]):
            return True
        return await self._rest(now, step)

    async def _rest(self, now: int, step: Wait) -> bool:
        busy = bool(self.outlets or self.waiting or self._held)
        if busy:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
            self._sweep()
        elif now - self._idle_since >= LINGER_SECONDS * 1000 and not any(map(_stands, self.parts.values())):
            self._desk.forget(self)
            return False
        limit = self.traits.preview_seconds if self.outlets else (LINGER_SECONDS if not busy else 30.0)
        await self.bell.wait(max(0.02, min(limit, (step.ms if step.ms is not None else limit * 1000) / 1000)))
        return True

    def _sweep(self) -> None:
        """Settled parts need not be remembered once nothing of their turn runs any more."""
        running = {outlet.turn for outlet in self.outlets} | self._awaited
        for name in [
            name for name, part in self.parts.items() if not part.open and name[0] not in running and not _stands(part)
        ]:
            del self.parts[name]
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
        planned = plan(self.parts, shown.wanted, self.name, turn, self._desk.next_place, shown.untouched)
        fresh = round(self.traits.status_seconds * 1000)
        return [
            part
            for part in planned
            if part.content.kind is not ContentKind.STATUS
            or part.row.gone
            or part.row.platform_id is None
            or now - part.row.at >= fresh
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

    async def _keep(self, part: Part) -> None:
        """Store a part as it is now."""
        self.parts[part.name] = part
        await self._desk.store_parts(self.owners[part.row.origin], [part.row])

    async def _create(self, step: Create) -> None:
        now = self._clock.now_ms()
        part = step.part
        # Where a thread is the place to grow in, there is none without it.
        first = step.first if not self.traits.replies or self._dressed(part).reply_to else None
        unknown = part.row.state is DeliveryState.UNKNOWN
        if unknown and part.content.kind is ContentKind.STATUS and self.port.ability is Ability.NONE:
            await self._keep(replace(part, row=replace(part.row, state=DeliveryState.SKIPPED, gone=True)))
            return
        if part.content.kind is not ContentKind.STATUS and part.row.final:
            self._draft = None
        part = begun(part, now, repeated=step.repeated)
        await self._keep(part)
        if not self._desk.may_send():
            return
        # A repeated call may have found the message as it was made first, with what was wanted then.
        sent = None if step.repeated and self.port.ability is not Ability.NONE else part.content
        try:
            found = None
            if step.look_up:
                found = await self.port.find(
                    self._target(part), self._dressed(part), part.row.key, (part.row.sending_at or now) - 60_000
                )
            if found is None and part.row.gone:
                await self._keep(removed(self.parts.get(part.name, part), self._clock.now_ms()))
                return
            platform_id = found or await self._call(self._made(part, first))
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
        self._desk.delivered(self.name)
        self._shown([outlet for outlet in self.outlets if outlet.turn == part.row.origin])
        if (opened_at := self._unseen.pop(part.row.origin, None)) is not None:
            self._first_sign(opened_at)
        if first is not None:
            self._preview_at = self._clock.now_ms()
        current = self.parts.get(part.name, part)
        there = first if found is None else None
        done = settled(current, platform_id, sent, self.port.ability, self._clock.now_ms(), there)
        await self._keep(done)
        self._log_sent(done)
        if step.repeated:
            log.info(
                "delivery.settled", chat=self.name, origin=part.row.origin, part=part.row.key, found=found is not None
            )

    def _made(self, part: Part, first: Flow | None) -> Awaitable[str]:
        """The call that creates a part."""
        if first is None:
            return self.port.create(self._target(part), self._dressed(part), part.row.key)
        person = next((outlet.person for outlet in self.outlets if outlet.turn == part.row.origin), "")
        return self.port.start(self._target(part), self._dressed(part), first, person)

    def _flow(self, content: Content, final: bool) -> Flow:
        return self.port.flow(content, final=final)

    async def _append(self, step: Append) -> None:
        """A state on the way: it is not stored."""
        part, sent = step.part, step.part.content
        assert part.row.platform_id is not None
        assert part.there is not None
        now = self._preview_at = self._clock.now_ms()
        there = part.there + step.more
        if step.more:
            try:
                await self._call(self.port.append(self._target(part), part.row.platform_id, step.more))
            except CallFailed as error:
                await self._failed(part, error, creating=False)
                return
            self._desk.delivered(self.name)
        current = self.parts.get(part.name, part)
        self.parts[part.name] = settled(current, part.row.platform_id, sent, self.port.ability, now, there)

    async def _finish(self, step: Finish) -> None:
        part = step.part
        assert part.row.platform_id is not None
        try:
            await self._call(
                self.port.finish(self._target(part), part.row.platform_id, self._dressed(part), step.more, part.row.key)
            )
        except CallFailed as error:
            await self._failed(part, error, creating=False)
            return
        self._desk.delivered(self.name)
        sent = part.content if step.more is not None else None
        current = self.parts.get(part.name, part)
        done = finished(current, sent, self.port.ability, self._clock.now_ms())
        await self._keep(done)
        self._log_sent(done)

    async def _edit(self, step: Edit) -> None:
        part, sent = step.part, step.part.content
        assert part.row.platform_id is not None
        if not part.row.final:
            self._preview_at = self._clock.now_ms()
        try:
            await self._call(self.port.edit(self._target(part), part.row.platform_id, self._dressed(part)))
        except CallFailed as error:
            await self._failed(part, error, creating=False)
            return
        self._desk.delivered(self.name)
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
            if part.row.platform_id is not None:  # else it is not there, or nobody can know which it is
                await self._call(self.port.delete(self._target(part), part.row.platform_id))
        except CallFailed as error:
            if not (error.fate is Fate.REFUSED and error.cause in (Cause.NO_MESSAGE, Cause.UNEDITABLE)):
                await self._failed(part, error, creating=False)
                return
        await self._keep(removed(part, self._clock.now_ms()))

    async def _call(self, call: Awaitable[str | None]) -> str:
        self._desk.passed(self.name)
        return await call or ""

    async def _failed(self, part: Part, error: CallFailed, *, creating: bool) -> None:
        now = self._clock.now_ms()
        current = self.parts.get(part.name, part)
        current = failed(current, error, self.port.ability, creating=creating, now=now, share=self._chance.random())
        if error.fate is Fate.TOO_FAST:
            await self._desk.too_fast(self.name, error.retry_after)
        await self._keep(current)
        if given_up := current.row.state is DeliveryState.FAILED:
            self.wanted_at.pop(part.name, None)
            self._unseen.pop(part.row.origin, None)
        fate, cause = error.fate.value, error.cause.value
        self._desk.tell(SendFailed(platform=self.address.platform, fate=fate, cause=cause, final=given_up))
        if error.cause is Cause.MOVED and error.moved_to:
            await self._desk.moved(self.address, error.moved_to)
        elif given_up:
            await self._desk.given_up(self, current, error)
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
            wanted_at = self.wanted_at.pop(part.name, now)
            sent = PartSent(
                platform=self.address.platform, origin=row.origin, kind=kind, wanted_at=wanted_at, sent_at=now
            )
            self._desk.tell(sent)

    def _target(self, part: Part) -> ChatAddress:
        return replace(self.address, thread="") if part.row.cause == Cause.NO_THREAD.value else self.address

    def _dressed(self, part: Part) -> Content:
        return dressed(part, self.address, self.port.ability, self.traits)

    # ------------------------------------------------------------------ cosmetics

    async def _cosmetic(self, now: int, wait: int) -> bool:
        """Show text on its way, or that we type; never while something that must be seen is under way."""
        if wait > 0 or not self.outlets or any(part.urgency is Urgency.FINAL for part in self.waiting):
            return False
        if self._draft is not None:
            return await self._show_draft(self._draft, now)
        return await self._type(now)

    def _wanted_doing(self) -> dict[str, tuple[Doing, str]]:
        """What the agent does in each thread."""
        wanted = {thread: (Doing.READY, person) for thread, (_, person) in self._doing.items()}
        for outlet in self.outlets:
            thread = self.address.thread or outlet.reply_to
            if outlet.driver is None or not thread:
                continue
            asks = any(b.kind is BubbleKind.APPROVAL for b in outlet.driver.current_view().bubbles)
            wanted[thread] = (Doing.WAITING if asks else Doing.WORKING, outlet.person)
        return wanted

    def _show_doing(self, now: int) -> None:
        """Show what the agent does, where that has changed: beside the deliveries, which never wait for it."""
        if self._telling is not None or now < self._telling_from:
            return
        for thread, (doing, person) in self._wanted_doing().items():
            shown = self._doing.get(thread, (Doing.READY, ""))[0]
            if shown is doing:
                if doing is Doing.READY:
                    self._doing.pop(thread, None)
            elif doing is not Doing.READY or not any(part.row.final for part in self.waiting):
                # What was said last comes before the word that it was the last.
                self._telling = asyncio.create_task(self._tell_doing(thread, doing, person))
                return

    async def _tell_doing(self, thread: str, doing: Doing, person: str) -> None:
        try:
            await self.port.doing(self.address, thread, doing, person)
            self._doing[thread] = (doing, person)
        except CallFailed as error:
            if error.fate is Fate.REFUSED:
                self.traits = replace(self.traits, sessions=False)
            self._telling_from = self._clock.now_ms() + round(1000 * max(error.retry_after, DOING_PAUSE_SECONDS))
        except Exception:
            log.exception("surface.failed", chat=self.name)
            self.traits = replace(self.traits, sessions=False)
        finally:
            self._telling = None
            self.bell.ring()

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
        if not self.traits.typing_seconds or now - self._typing_at < self.traits.typing_seconds * 1000:
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
            await self._call(call)
        except CallFailed as error:
            if error.fate is Fate.TOO_FAST:
                await self._desk.too_fast(self.name, error.retry_after)
            return error
        return None


def _stands(part: Part) -> bool:
    return part.row.origin.startswith(STANDING) and not part.row.gone
