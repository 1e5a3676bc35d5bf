"""Puts together what makes a gateway one of several. Loaded by those alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import structlog

from adapters.platforms import platform_names
from agent_core.bell import Bell
from agent_core.beside import beside
from agent_core.model.reach import Lives
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.signals import Signal, Signals, TurnClosed
from agent_core.store.database.place import PostgresPlace
from agent_core.store.slices.calls import NodeCalls
from agent_core.store.slices.rows import account_in, single, slice_of
from agent_core.store.store import StorageUnavailable, Store
from gateway.chats.platforms import Platforms
from gateway.later.tasks import Tasks
from gateway.limits.rates import KeyMeters
from gateway.people.members import Members
from gateway.recovery.keeper import Keeper
from gateway.sessions.hub import Hub
from gateway.several.collecting import Collecting
from gateway.several.dividing import Dividing
from gateway.several.far import CONTROL, FarControl, carry_out
from gateway.several.files import FilesElsewhere
from gateway.sharing.portion import PEOPLE, RATE, SESSION, TOOL, WATCH, Portion
from gateway.storage.workfolder import number_of

log = structlog.get_logger("gateway")

LOOK = "look"
"""Word: somebody has given slices away."""
PEOPLE_SECONDS, PAUSE_SECONDS = 15.0, 0.2
LEAVE_SECONDS = 0.05
"""How often a gateway that ends looks what it can give away."""
CUT_OFF_SECONDS, CUT_OFF_LOOK_SECONDS = 12.0, 1.0
"""So long a gateway that does not reach its database goes on showing what it can to those who follow something: a database that was away for ten seconds is
back by then for all, and nobody has taken anything over."""
NOTICE_SECONDS = 3.0
"""So long whoever sends it requests has to notice that it ends: a balancer that asks `/readyz` each second, and believes the second no."""


@dataclass(frozen=True, slots=True)
class Together:
    """The parts of it."""

    node: int
    portion: Portion
    dividing: Dividing
    hub: Hub

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """End as one of several: what is idle goes to the others at once, the rest as it ends. Requests that still come are taken for a while:
        what belongs to a chat the others run, and a single request is run here."""
        await self.dividing.leave()
        ending = asyncio.create_task(self._end(seconds, hurry), name="drain")
        try:
            while not ending.done():
                await asyncio.wait({ending}, timeout=LEAVE_SECONDS)
                await self.dividing.leave()
        finally:
            await ending

    async def _end(self, seconds: float, hurry: asyncio.Event) -> None:
        until = asyncio.get_running_loop().time() + seconds
        if any(one.node != self.node for one in self.portion.peers):
            with suppress(TimeoutError):
                async with asyncio.timeout(min(NOTICE_SECONDS, seconds / 2)):
                    await hurry.wait()
        await self.hub.drain(max(0.0, until - asyncio.get_running_loop().time()), hurry)


async def _learnt(members: Members, bell: Bell) -> None:
    """Know whom others have let in or shut out: soon after they say so, and now and then in any case. Until cancelled."""
    try:
        while True:
            await bell.wait(PEOPLE_SECONDS)
            try:
                await members.learn()
            except StorageUnavailable as error:
                log.warning("slices.people_not_read", error=str(error))
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        bell.close()


async def _cut_off(portion: Portion, lives: Lives, ring: Callable[[], None]) -> None:
    """Note that the database is not reached any more, and have who follows something look. Until cancelled."""
    loop, since = asyncio.get_running_loop(), 0.0
    while True:
        await asyncio.sleep(CUT_OFF_LOOK_SECONDS)
        since = 0.0 if lives.lease_ok() else since or loop.time()
        cut_off = bool(since) and loop.time() - since >= CUT_OFF_SECONDS and len(portion.peers) > 1
        if cut_off and not portion.cut_off:
            log.warning("slices.cut_off", seconds=round(loop.time() - since))
            ring()
        portion.cut_off = cut_off


def _busy(hub: Hub, chats: Platforms, leaving: bool) -> set[str]:
    """The slices in which something is done, or, unless we leave, waits."""
    queues = (
        one
        for one in hub.queues
        if one.running or one.task or one.blocked or one.accepting.wanted or (one.waiting and not leaving)
    )
    keys = (*(one.key for one in queues), *chats.commands.busy())
    stuck = _failing(chats) if leaving else ()  # what waits there cannot go out from here
    surfaces = (slice_of(name) for name in chats.outbox.surfaces.busy() if account_in(name) not in stuck)
    return {*surfaces, *(slice_of(key) for key in keys if not single(key))}


def _failing(chats: Platforms) -> dict[str, float]:
    """For how long accounts have failed, seconds; those that do."""
    return {one.adapter.name: seconds for one in chats.supervisors if (seconds := one.failing_seconds)}


def _gained(keeper: Keeper, portion: Portion, tasks: Tasks) -> None:
    """What was left in more slices is taken up."""
    keeper.look_at_once()
    portion.stored.ring()
    tasks.look()


def _given(hub: Hub, going: frozenset[str]) -> None:
    """Nothing of these slices is begun here any more."""
    for queue in hub.queues:
        if not single(queue.key) and slice_of(queue.key) in going:
            hub.runner.hand_over(queue)
    hub.queues.pasts.clear()


def _rates_together(portion: Portion, meters: KeyMeters, members: Members, clock: Clock) -> None:
    """What each lets through in a minute counts at all of them, as soon as they hear of it."""
    meters.told, members.told = partial(portion.let, "key"), partial(portion.let, "person", soon=False)

    def met(key: str) -> None:
        meters.met(key, round(clock.monotonic() * 1000))

    portion.rates |= {"key": met, "person": members.met}


def _tell_end(portion: Portion, call: Callable[[str], None], signal: Signal) -> None:
    """Has those look elsewhere who may follow a turn that has ended here."""
    if not isinstance(signal, TurnClosed) or len(portion.peers) < 2:  # who comes just now looks by itself
        return
    in_a_chat = signal.surface in portion.platforms  # whoever asked there sees it there
    if not in_a_chat or portion.afar.watched(signal.session):
        call(f"{SESSION}:{signal.session}")


def _hearing(portion: Portion, hub: Hub, far: FarControl, look: Callable[[], None]) -> Callable[[str], None]:
    """What is done at a word of another gateway; `look` looks at who is there and who has what."""

    def heard(word: str) -> None:
        kind, _, rest = word.partition(":")
        if word in portion.held:
            portion.stored.ring()
        elif word == LOOK:
            look()
        elif kind == CONTROL:
            far.heard(rest)
        elif kind in (SESSION, TOOL):
            hub.queues.ring(rest if kind == SESSION else portion.afar.heard_of_tool(rest))
        elif kind == WATCH:
            portion.afar.heard(rest)
        elif kind == RATE:
            portion.hear_of_rate(rest)
        elif (act := portion.words.get(word)) is not None:
            act()

    return heard


@asynccontextmanager
async def together(
    portion: Portion,
    place: PostgresPlace,
    address: str,
    store: Store,
    hub: Hub,
    chats: Platforms,
    keeper: Keeper,
    tasks: Tasks,
    signals: Signals,
    ids: Ids,
) -> AsyncGenerator[Together]:
    """This gateway takes part for the block."""
    people = Bell()
    far = FarControl(hub.accepting, store.writing.clock, ids, {})

    def missed() -> None:
        for act in (portion.stored.ring, dividing.bell.ring, *portion.words.values()):
            act()

    def look() -> None:
        dividing.bell.ring()

    calls = NodeCalls(place, _hearing(portion, hub, far, look), missed)
    signals.listen(partial(_tell_end, portion, calls.call), TurnClosed)
    portion.tell = calls.call
    portion.far, portion.words[PEOPLE] = far, people.ring
    portion.asked = partial(carry_out, hub, calls.call, far.heard)
    _rates_together(portion, hub.doors.meters, chats.members, store.writing.clock)

    number = await asyncio.to_thread(number_of, hub.workspaces)
    keeper.elsewhere = FilesElsewhere(hub.workspaces, number, store, chats.commands).say
    portion.serves, portion.platforms = frozenset(one.adapter.name for one in chats.supervisors), platform_names()
    connections = [name for one in chats.supervisors for name in one.slices]
    collecting = Collecting(
        portion, store, hub.accepting, chats.commands, chats.messages, keeper.look_at_once, portion.stored
    )
    dividing = Dividing(
        portion,
        store,
        address,
        connections,
        partial(_failing, chats),
        partial(_busy, hub, chats),
        chats.outbox.records.count_on,
        partial(_gained, keeper, portion, tasks),
        partial(_given, hub),
        lambda: calls.call(LOOK),
    )
    await dividing.begin()
    async with (
        beside(calls.run, "calls"),
        beside(collecting.run, "collecting"),
        beside(dividing.run, "dividing"),
        beside(partial(_learnt, chats.members, people), "people"),
        beside(partial(_cut_off, portion, store.ownership, hub.queues.ring_all), "cut off"),
    ):
        yield Together(store.node, portion, dividing, hub)
        await dividing.leave(everything=True)
