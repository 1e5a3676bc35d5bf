"""A surface: one chat (or thread), what it should show, and the one task that makes it so.

Everything that goes to a chat goes through this task, one call after the other: parts, edits, drafts, typing. So nothing of a
turn can overtake its final part, and one gate is enough. What is to be done is decided by `adapters.delivery.reconcile`; it is
carried out by `Sender`, and stored before and after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping

import structlog

from adapters.contract.chat import ChatAddress, ChatPort, ContentKind
from adapters.contract.pacing import Urgency
from adapters.delivery.aftermath import RetryPatience, patience
from adapters.delivery.parts import Picture
from adapters.delivery.reconcile import LookLater, Name, Part, Step, next_step
from agent_core.bell import Bell
from agent_core.ports import steady_ms
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.store import Damaged, Fenced, StorageUnavailable
from agent_core.turn.view import View
from gateway.delivery.calls import ChatCalls
from gateway.delivery.cosmetics import Cosmetics, Doings, doing_of
from gateway.delivery.ledger import Ledger
from gateway.delivery.sender import Sender, Shared
from gateway.delivery.turnoutlet import FirstSigns, TurnOutlet

log = structlog.get_logger("delivery")

LINGER_SECONDS = 60.0
"""How long a surface that has nothing to do is kept: the next message often comes soon."""
TROUBLE_SECONDS = 5.0
NOT_YET_MS = 200
"""After so long it is asked again whether anything may be sent."""
AMEND_SECONDS = 15.0
"""How long somebody waits for a call that is under way; platforms answer sooner, or never."""


Change = Callable[[Part], Awaitable[Part]]
"""Gives a part as it is to be, stored already; raises if it is to stay as it is."""
Load = Callable[[], Awaitable[None]]
"""Has a part known as it is stored, if it is not known."""


class ThrottledBell(Bell):
    """A bell that text rings rarely: a chat takes a new state only so often."""

    __slots__ = ("_later", "seconds")

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self._later: asyncio.TimerHandle | None = None

    def ring_in_frame(self) -> None:
        if self._later is None:
            self._later = self._loop.call_later(self.seconds / 4, self._now)

    def _now(self) -> None:
        self._later = None
        self.ring()

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        super().close()


@dataclass(frozen=True, slots=True)
class _Asked:
    name: Name
    load: Load
    change: Change
    done: asyncio.Future[Part]


class Amendments:
    """Changes to parts by hand: carried out by the surface's own task between two calls, so that nothing of them is under way."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._asked: list[_Asked] = []

    async def ask(self, name: Name, load: Load, change: Change) -> Part:
        """Have a part changed. Raises what `change` raises, LookupError if the part is gone, TimeoutError if a call takes too long."""
        asked = _Asked(name, load, change, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        self._bell.ring()
        async with asyncio.timeout(AMEND_SECONDS):
            return await asked.done

    async def carry_out(self, parts: MutableMapping[Name, Part], held: Collection[str]) -> None:
        """Called by the surface's task. What is being stored just now (`held` origins) is left for later."""
        for asked in [one for one in self._asked if one.name[0] not in held]:
            self._asked.remove(asked)
            if asked.done.done():
                continue  # nobody waits for it any more
            try:
                await asked.load()  # here, where it cannot be sent between the question and its answer
                parts[asked.name] = made = await asked.change(parts[asked.name])
            except Exception as error:  # noqa: BLE001 - whoever asked is told; the surface goes on
                if not asked.done.done():
                    asked.done.set_exception(error)
            else:
                if not asked.done.done():
                    asked.done.set_result(made)


class Surface:
    """One chat. Made by `gateway.delivery.surfaces.Surfaces`, whose task group owns `run`."""

    def __init__(self, address: ChatAddress, port: ChatPort, shared: Shared, forget: Callable[[Surface], None]) -> None:
        clock = shared.clock
        self.address = address
        self.name = address.text()
        self.calls = ChatCalls(address, port, shared.gates, shared.forming)
        self.bell = ThrottledBell(self.calls.traits.preview_seconds)
        self.ledger = Ledger(self.name, shared.records, clock, self.bell.ring)
        self.amendments = Amendments(self.bell)
        self._outlets: list[TurnOutlet] = []
        self._signs = FirstSigns(address.platform, clock, shared.tell)
        self._cosmetics = Cosmetics(self.calls, self._signs, clock)
        self._doings = Doings(address, port, clock, self.bell.ring)
        self._sender = Sender(self.calls, self.ledger, self._cosmetics, self._signs, self._outlets, shared)
        self._shared = shared
        self._forget = forget
        self._patience: dict[Name, RetryPatience] = {}
        """Of parts whose last call failed."""
        self._idle_since: int | None = None
        self._closed = False
        self._damaged_at = -1
        """How often all had been found sound when parts met damage last."""

    # ------------------------------------------------------------------ running turns

    def add(self, outlet: TurnOutlet) -> None:
        self._outlets.append(outlet)
        self.ledger.owners[outlet.turn] = outlet.owner
        self.ledger.awaited.discard(outlet.turn)
        self.bell.ring()

    def drop(self, outlet: TurnOutlet) -> None:
        if outlet in self._outlets:
            self._outlets.remove(outlet)
            self._signs.left(outlet)
            self._cosmetics.draft = None
            self.bell.ring()

    def closing(self, outlet: TurnOutlet, view: View) -> list[DeliveryRow]:
        """What is to be stored of a turn that ends, or is left open; `Ledger.release` it then."""
        self._cosmetics.draft = None
        wanted = [*outlet.picture(view).wanted]
        if outlet.driver is None:  # nobody has looked into the turn: what it had said stays
            wanted = [*self.ledger.said(outlet.turn), *wanted]
        changed, rows = self.ledger.close(outlet.turn, outlet.owner, wanted, self.calls.traits)
        for part in changed:
            self._sender.receipt(part)  # the last state on the way is the final one: no call comes after it
        return rows

    def hand_over(self, other: Surface) -> None:
        """The chat has another id: `other` shows everything from now on."""
        self.ledger.hand_over(other.ledger)
        self._patience.clear()
        for outlet in self._outlets:
            if outlet.driver is not None:
                outlet.driver.seen.unsubscribe(self.bell)
                outlet.driver.seen.subscribe(other.bell)
            outlet.surface, outlet.reply_to = other, ""
            other.add(outlet)
        self._outlets.clear()
        self._closed = True
        self.bell.ring()
        other.bell.ring()

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
                self.ledger.forget_all()
                self._patience.clear()
            except (
                Damaged
            ) as error:  # waiting does not help: the ledger tries none of it again, and goes on with the rest
                log.warning("surface.storage_unavailable", chat=self.name, error=str(error))
                self._meet_damage()
            except StorageUnavailable as error:
                log.warning("surface.storage_unavailable", chat=self.name, error=str(error))
                await self.bell.wait(TROUBLE_SECONDS)
            except Exception:
                log.exception("surface.failed", chat=self.name)
                await asyncio.sleep(TROUBLE_SECONDS)

    def _meet_damage(self) -> None:
        """Parts of this chat cannot be stored: counted and told once, until all is found sound."""
        damage = self._shared.records.damage
        if self._damaged_at != damage.sounds:
            self._damaged_at = damage.sounds
            damage.times += 1
            self._shared.say_damaged(self.address)

    async def _once(self) -> bool:
        """One step. False if the surface is not needed any more."""
        if self._closed:
            return False
        await self.amendments.carry_out(self.ledger.parts, self.ledger.held)
        now, waits = steady_ms(self._shared.clock), self._shared.gates.waits(self.address)
        await self._look(now, waits)
        may_send = self._shared.records.may_show(self.name)
        step = self._next(waits) if may_send else LookLater(NOT_YET_MS)
        waiting = self.ledger.waiting
        if self.calls.traits.sessions and may_send:
            running = doing_of(self.address, self._outlets)
            self._doings.show(running, last_word_waits=any(part.row.final for part in waiting))
        if not isinstance(step, LookLater):
            self._idle_since = None
            await self._sender.do(step)
            return True
        # Never while something that must be seen is under way.
        quiet = waits[Urgency.COSMETIC] <= 0 and not any(part.urgency is Urgency.FINAL for part in waiting)
        if may_send and quiet and self._outlets:
            typing = any(
                one.driver is not None and one.task is None and one.turn not in self.ledger.held
                for one in self._outlets
            )
            if await self._cosmetics.show(now, self._outlets, typing=typing):
                return True
        if await self.ledger.pay([outlet.turn for outlet in self._outlets]):
            return True
        return await self._rest(now, step)

    def _next(self, waits: Mapping[Urgency, int]) -> Step:
        """What to do first."""
        ready = self.ledger.ready()
        wall, steady = self._shared.clock.now_ms(), steady_ms(self._shared.clock)
        found = {part.name: patience(self._patience.get(part.name), part.row, wall, steady) for part in ready}
        self._patience = {name: one for name, one in found.items() if one is not None}
        pauses = {name: one.pause(steady) for name, one in self._patience.items()}
        flows = self.calls.flow if self.calls.traits.streams else None
        return next_step(ready, self.calls.port.ability, waits, wall, flows, pauses)

    async def _rest(self, now: int, step: LookLater) -> bool:
        busy = bool(self._outlets or self.ledger.waiting or self.ledger.held or self.ledger.stopped)
        if busy:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
            self.ledger.sweep()
        elif now - self._idle_since >= LINGER_SECONDS * 1000 and not self.ledger.standing:
            self._forget(self)
            return False
        limit = self.calls.traits.preview_seconds if self._outlets else (LINGER_SECONDS if not busy else 30.0)
        await self.bell.wait(max(0.02, min(limit, (step.ms if step.ms is not None else limit * 1000) / 1000)))
        return True

    async def _look(self, now: int, waits: Mapping[Urgency, int]) -> None:
        """Put what the running turns show into the parts."""
        due, held = self._cosmetics.preview_due(now, waits), self.ledger.held
        for outlet in list(self._outlets):
            if outlet.driver is None or outlet.turn in held:
                continue
            view = outlet.driver.seen.current_view()
            if not view.open:
                continue  # it is being closed, and then its parts come by `closing`
            shown = await outlet.texts.shown(lambda parts, o=outlet, v=view: o.picture(v, parts, growing=due))
            if outlet not in self._outlets or outlet.turn in held:
                continue  # it ended meanwhile
            self.ledger.take(self._timely(shown or outlet.picture(view, growing=False), outlet.turn, now))
            if due and shown is not None and outlet.task is None:
                self._cosmetics.draft = shown.draft

    def _timely(self, shown: Picture, turn: str, now: int) -> list[Part]:
        """What changes by `shown`, without a status that was changed only just now."""
        planned = self.ledger.plan(turn, shown.wanted, self.calls.traits, shown.untouched)
        due = self._cosmetics.status_due(now)
        return [
            part
            for part in planned
            if part.content.kind is not ContentKind.STATUS or part.row.gone or part.row.platform_id is None or due
        ]
