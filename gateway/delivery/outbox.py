"""The outbox: all surfaces of all chat platforms, their gates, and what is stored of them.

Law: whatever is to be seen is a stored part before it is sent, but for the one word that nothing can be stored; what an earlier process
left open is taken up at the start.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from adapters.contract.chat import CallFailed, Cause, ChatAddress, ChatOrigin, ChatPort, Content, ContentKind, Fate
from adapters.contract.contents import decode
from adapters.delivery.aftermath import within
from adapters.delivery.pacing import Gate, Rate, Refusals, Urgency
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import Name, Part, loaded, plan
from adapters.text.styled import Styled
from agent_core.ports import Clock
from agent_core.signals import Tell, TooFast, nobody
from agent_core.store.deliveries.rows import Delivery, DeliveryRow, DeliveryState, GateRow
from agent_core.store.store import StorageUnavailable, Store
from agent_core.store.turns.rows import OpenTurn
from gateway.delivery.amending import Change
from gateway.delivery.forming import Forming
from gateway.delivery.owners import Owner, queue_origin
from gateway.delivery.surface import BLOCKED_CAUSES, Surface
from gateway.delivery.turnoutlet import TurnOutlet

log = structlog.get_logger("delivery")

HURRIED_SECONDS, UNSTORED_SECONDS = 1.0, 20.0
UNSTORED_MOST = 10
"""So many chats are told at once that nothing can be stored; those who look ahead do so every second."""
LONGEST_GATE_MS = 24 * 3_600_000
"""For what a platform's pause is taken at most, if it is not stored how long it was meant to be."""
TROUBLED = 50
STILL_THERE = (
    "It is still in the workspace: ask for it in smaller files, packed, or for what matters in it as text here."
)
"""Of a file that cannot be sent."""
"""How many surfaces with trouble are remembered for `status`."""


@dataclass(frozen=True, slots=True)
class Account:
    """One platform account that can be written to."""

    port: ChatPort
    account_rate: Rate
    chat_rate: Callable[[ChatAddress], Rate]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A surface that refuses what is sent there."""

    surface: str
    cause: str
    words: str
    at: int


Elsewhere = Callable[[ChatAddress, Part, CallFailed], Awaitable[None]]
"""Tells a person, in another chat, what could not be said in this one."""


class Outbox:
    """Use it as an async context manager: its tasks are over when it is left."""

    def __init__(self, store: Store, clock: Clock, seed: int, tell: Tell = nobody) -> None:
        self.tell = tell
        self._store = store
        self._clock = clock
        self._chance = random.Random(seed)  # noqa: S311 - jitter
        self._lines: dict[tuple[str, str], Account] = {}
        self._surfaces: dict[str, Surface] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unstored: set[asyncio.Task[None]] = set()
        """Those of them that say what cannot be stored."""
        self._unstored_pauses: dict[tuple[str, str], int] = {}
        """Until when an account says nothing of that kind, as `_steady` counts."""
        self._group = asyncio.TaskGroup()
        self._open = False
        self._gates: dict[tuple[str, str], Gate] = {}
        self._closed_gates: dict[tuple[str, str], int] = {}
        """Until when a gate is closed that an earlier process has stored, until it is made from that; as `_steady` counts."""
        self._refusals: dict[str, Refusals] = {}
        self._outbound_at: dict[str, float] = {}
        self._next_place = 1
        self._stored = asyncio.Event()
        """Set whenever the state of parts was stored."""
        self._waiting_lines: list[tuple[ChatAddress, Callable[[Surface], None]]] = []
        self._moved: dict[tuple[str, str, str], str] = {}
        """Chats that have another id by now."""
        self.troubles: dict[str, Trouble] = {}
        self.elsewhere: Elsewhere | None = None
        self.forming = Forming()
        self.on_moved: Callable[[ChatAddress, str], Awaitable[None]] | None = None

    async def __aenter__(self) -> Outbox:
        await self._group.__aenter__()
        self._open = True
        self._next_place = await self._store.last_place() + 1
        for gate in await self._store.gates():
            meant = gate.not_before - gate.at if gate.at else LONGEST_GATE_MS
            left = within(gate.not_before, self._clock.now_ms(), meant)
            self._closed_gates[gate.account, gate.bucket] = self._steady() + left
        return self

    def _steady(self) -> int:
        """Milliseconds that never go back: gates count by them, whatever becomes of the wall clock."""
        return round(self._clock.monotonic() * 1000)

    async def __aexit__(self, *exc: object) -> None:
        self._open = False
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def port_of(self, address: ChatAddress) -> ChatPort:
        """The port of an address's account."""
        return self._lines[address.platform, address.account].port

    def open_account(self, platform: str, account: str, line: Account) -> None:
        """From now on this account can be written to. What waited for it begins to go out."""
        self._lines[platform, account] = line
        waiting, self._waiting_lines = self._waiting_lines, []
        for address, work in waiting:
            self._with_surface(address, work)

    # ------------------------------------------------------------------ what the keeper takes up (gateway.recovery.keeper.Parts)

    async def load(self, turns: Sequence[OpenTurn], begun: Sequence[int]) -> None:
        """See `gateway.delivery.owners.Restoring`."""
        names = [one.turn for one in turns]
        found = await self._store.deliveries_of_all([*names, *map(queue_origin, begun)])
        self.take_up(found, {one.session: one.epoch for one in turns}, names)
        for one in found:
            if one.row.origin not in names:
                self.take_back(ChatAddress.of(one.row.surface), one.row.origin)

    async def load_words(self, owner: Owner, waiting: Sequence[int]) -> None:
        """See `gateway.delivery.owners.Restoring`."""
        found = await self._store.deliveries_of_all(list(map(queue_origin, waiting)))
        self.take_up([one for one in found if one.session == owner.session], {owner.session: owner.epoch})

    def reaches(self, surface: str) -> bool:
        return self.has_account(ChatAddress.of(surface))

    def works_on(self, surface: str, name: Name) -> bool:
        known = self._surfaces.get(surface)
        return known is not None and name in known.parts

    def unsettled(self, surface: str, name: Name) -> bool:
        known = self._surfaces.get(surface)
        part = known.parts.get(name) if known is not None else None
        return part is not None and part.open

    def take_up(self, found: Sequence[Delivery], epochs: Mapping[str, int], going_on: Collection[str] = ()) -> None:
        groups: dict[tuple[str, str], list[Delivery]] = {}
        for one in found:
            groups.setdefault((one.row.surface, one.session), []).append(one)
        for (surface, session), rows in groups.items():
            owner = Owner(session, epochs[session])
            self._with_surface(
                ChatAddress.of(surface), lambda s, rows=rows, owner=owner: s.restore(rows, owner, going_on)
            )

    async def set_aside(self, found: Delivery, owner: Owner, words: str) -> None:
        """The part failed for good, without being looked into; its chat is told in a word that has nothing of it."""
        row = found.row
        failed = replace(row, state=DeliveryState.FAILED, retry_at=None, trouble=words, at=self._clock.now_ms())
        await self.store_parts(owner, [failed])
        self.troubles[row.surface] = Trouble(row.surface, Cause.OTHER.value, words, self._clock.now_ms())
        if not row.bubble.startswith("failed"):
            said = Content(ContentKind.ASIDE, Styled(f"⚠️ A part of the answer could not be shown: {words}."))
            origin = f"{row.origin}!failed.{row.bubble}.{row.part}"
            await self.say(ChatAddress.of(row.surface), owner, origin, said)

    # ------------------------------------------------------------------ surfaces

    def _with_surface(self, address: ChatAddress, work: Callable[[Surface], None]) -> None:
        """Do something with a surface, as soon as its platform's account is there."""
        if (address.platform, address.account) in self._lines:
            work(self.surface(address))
        else:
            self._waiting_lines.append((address, work))

    def surface(self, address: ChatAddress) -> Surface:
        """The surface of an address, with its task."""
        while (moved := self._moved.get((address.platform, address.account, address.chat))) is not None:
            address = replace(address, chat=moved)
        name = address.text()
        known = self._surfaces.get(name)
        if known is None:
            line = self._lines[address.platform, address.account]
            known = Surface(address, line.port, self, self._clock, self._chance)
            self._surfaces[name] = known
            task = self._group.create_task(known.run(), name=f"surface {name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return known

    def move(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """A chat has another id: what is to be shown there is shown under the new one."""
        if old_chat == new_chat:
            return
        self._moved.pop(
            (platform, account, new_chat), None
        )  # it is there (again): nothing leads away from it, nor in a circle
        self._moved[platform, account, old_chat] = new_chat
        for surface in list(self._surfaces.values()):
            where = surface.address
            if (where.platform, where.account, where.chat) == (platform, account, old_chat):
                surface.hand_over(self.surface(where))
                self.forget(surface)

    def forget(self, surface: Surface) -> None:
        """A surface that is not needed any more; its task ends by itself."""
        self._surfaces.pop(surface.name, None)

    def outlet(self, origin: ChatOrigin, turn: str, session: str, epoch: int) -> TurnOutlet | None:
        """Where a turn that answers a chat message is shown. None if its platform is not configured (any more)."""
        if (origin.address.platform, origin.address.account) not in self._lines:
            return None
        address = origin.address
        owner = Owner(session, epoch)
        return TurnOutlet(lambda: self.surface(address), turn, owner, origin.reply_to, origin.person.id)

    # ------------------------------------------------------------------ words beside turns

    def propose(
        self, address: ChatAddress, owner: Owner, origin: str, contents: Sequence[Content]
    ) -> list[DeliveryRow]:
        """Parts beside turns that are to be stored by the caller; then `release` them. None if nobody can be told."""
        if (address.platform, address.account) not in self._lines:
            return []
        surface = self.surface(address)
        wanted = [WantedPart(f"aside{i}", 0, content, final=True) for i, content in enumerate(contents)]
        planned = plan(surface.parts, wanted, surface.name, origin, self._next_place)
        return surface.propose(origin, owner, planned)

    def release(self, address: ChatAddress, origin: str, *, stored: bool = True) -> None:
        """What was proposed is stored, or cannot be."""
        if (address.platform, address.account) in self._lines:
            self.surface(address).release(origin, stored=stored)

    async def say(self, address: ChatAddress, owner: Owner, origin: str, *contents: Content) -> None:
        """Say something beside turns. Saying nothing takes back what was said."""
        rows, stored = self.propose(address, owner, origin, contents), False
        try:
            if rows:
                await self._store.put_deliveries(owner.session, owner.epoch, rows)
            stored = True
        finally:
            self.release(address, origin, stored=stored)

    def say_unstored(self, address: ChatAddress, content: Content, unsaid: Callable[[], None] | None = None) -> bool:
        """Say once, as far as it goes, what cannot be stored because nothing can; False if not now. See `gateway.chats.outage`.

        `unsaid` is called if it turns out that it was certainly not said, and may be said later. Who gives none says it never again, so
        that it is tried however many are told.
        """
        name = address.text()
        if not self._open or not self.has_account(address) or self.waits(name)[Urgency.FINAL]:
            return False
        pause = self._unstored_pauses.get((address.platform, address.account), 0)
        if unsaid is not None and (len(self._unstored) >= UNSTORED_MOST or self._steady() < pause):
            return False
        self.passed(name)
        task = self._group.create_task(self._say_unstored(address, content, unsaid), name=f"outage {name}")
        for tasks in (self._tasks, self._unstored):
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        return True

    async def _say_unstored(self, address: ChatAddress, content: Content, unsaid: Callable[[], None] | None) -> None:
        try:
            async with asyncio.timeout(UNSTORED_SECONDS):
                await self.port_of(address).create(address, content, f"{address.text()}/outage/{self._clock.now_ms()}")
        except CallFailed as error:
            if error.fate is Fate.TOO_FAST:
                until = self._steady() + round(min(error.retry_after * 1000, LONGEST_GATE_MS))
                self._unstored_pauses[address.platform, address.account] = until
            if unsaid is not None and error.fate in (Fate.TOO_FAST, Fate.NOT_SENT):
                unsaid()
            log.warning("delivery.outage_not_told", chat=address.text(), error=error.words)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end what others do here
            log.warning("delivery.outage_not_told", chat=address.text(), error=f"{type(error).__name__}: {error}")

    # ------------------------------------------------------------------ what operators do

    def has_account(self, address: ChatAddress) -> bool:
        """Its account is configured, so that something can be sent there."""
        return (address.platform, address.account) in self._lines

    def part_of(self, found: Delivery) -> Part:
        """A stored part as it is now: its surface may know more than what is stored."""
        row = found.row
        surface = self._surfaces.get(row.surface)
        known = surface.parts.get((row.origin, row.bubble, row.part)) if surface is not None else None
        return known or loaded(Part(row, decode(row.want)))

    async def amend(self, found: Delivery, owner: Owner, change: Change) -> Part:
        """Have a stored part changed by hand, while nothing of it is under way. See `gateway.delivery.amending` for what is raised."""
        address = ChatAddress.of(found.row.surface)
        if not self.has_account(address):
            return await change(self.part_of(found))  # nobody works on it
        surface = self.surface(address)
        surface.restore([found], owner, over=False)
        return await surface.amendments.ask((found.row.origin, found.row.bubble, found.row.part), change)

    # ------------------------------------------------------------------ what surfaces need (gateway.delivery.surface.SurfaceHost)

    @property
    def next_place(self) -> int:
        return self._next_place

    def placed(self, place: int) -> None:
        self._next_place = max(self._next_place, place + 1)

    def _gate(self, surface: str, *, whole: bool) -> tuple[tuple[str, str], Gate]:
        address = ChatAddress.of(surface)
        account = f"{address.platform}/{address.account}"
        # Threads of one chat share its gate: the platform counts by the chat.
        chat = replace(address, thread="").text()
        key = (account, "" if whole else chat)
        if key not in self._gates:
            line = self._lines[address.platform, address.account]
            rate = line.account_rate if whole else line.chat_rate(address)
            self._gates[key] = Gate.fresh(rate, self._steady(), self._closed_gates.pop(key, 0))
        return key, self._gates[key]

    def waits(self, surface: str) -> Mapping[Urgency, int]:
        now = self._steady()
        _, chat = self._gate(surface, whole=False)
        _, bot = self._gate(surface, whole=True)
        return {urgency: max(chat.wait_ms(urgency, now), bot.wait_ms(urgency, now)) for urgency in Urgency}

    def passed(self, surface: str) -> None:
        now = self._steady()
        for whole in (False, True):
            key, gate = self._gate(surface, whole=whole)
            self._gates[key] = gate.passed(now)

    async def too_fast(self, surface: str, seconds: float) -> None:
        """The platform wants a pause: for this chat, or, if it says so of several at once, for the whole bot."""
        now = self._steady()
        address = ChatAddress.of(surface)
        account = f"{address.platform}/{address.account}"
        refusals = self._refusals.get(account, Refusals()).noted(address.chat, now)
        self._refusals[account] = refusals
        key, gate = self._gate(surface, whole=refusals.whole_bot)
        self._gates[key] = gate.refused(now, seconds)
        log.warning("delivery.too_fast", chat=surface, seconds=seconds, whole_bot=refusals.whole_bot)
        self.tell(TooFast(platform=address.platform, seconds=seconds))
        closed = self._gates[key]
        again = f", {closed.streak} times in a row" if closed.streak > 1 else ""
        reason = f"the platform asked for {seconds:g} s{again}"
        try:
            wall = self._clock.now_ms()
            await self._store.put_gate(GateRow(*key, wall + closed.closed_until - now, reason, wall))
        except StorageUnavailable as error:
            log.warning("delivery.gate_not_stored", chat=surface, error=str(error))

    async def store_parts(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None:
        await self._store.put_deliveries(owner.session, owner.epoch, rows)
        self._stored.set()

    def may_send(self) -> bool:
        return self._store.ownership.lease_ok()

    def delivered(self, surface: str) -> None:
        address = ChatAddress.of(surface)
        self._outbound_at[f"{address.platform}/{address.account}"] = self._clock.monotonic()
        self.troubles.pop(surface, None)

    def outbound_age(self, platform: str, account: str) -> float | None:
        """Seconds since something was delivered; None if nothing was yet."""
        at = self._outbound_at.get(f"{platform}/{account}")
        return None if at is None else self._clock.monotonic() - at

    async def given_up(self, surface: Surface, part: Part, error: CallFailed) -> None:
        """A part was refused for good: say so in the log and in `status`, and to the person where that can be done."""
        known = surface.name in self.troubles
        log.error(
            "delivery.failed",
            chat=surface.name,
            origin=part.row.origin,
            part=part.row.key,
            cause=error.cause.value,
            words=error.words,
            kind=part.content.kind.value,
        )
        self.troubles[surface.name] = Trouble(surface.name, error.cause.value, error.words, self._clock.now_ms())
        while len(self.troubles) > TROUBLED:
            del self.troubles[next(iter(self.troubles))]
        notice = part.content.kind is ContentKind.ASIDE and part.row.bubble.startswith("failed")
        # A chat that takes no files may take words; whether it does is told by the notice.
        no_files = part.content.kind is ContentKind.FILE and error.cause is Cause.NO_RIGHTS
        if error.cause in BLOCKED_CAUSES and not no_files:
            if self.elsewhere is not None and (notice or not known):
                await self.elsewhere(surface.address, part, error)
            return
        if not notice:  # never a notice about a notice
            await self._say_so(surface, part, error)

    async def _say_so(self, surface: Surface, part: Part, error: CallFailed) -> None:
        """In the same chat: what of the turn could not be shown there, and why."""
        what = f"The file {part.content.file_name}" if part.content.kind is ContentKind.FILE else "A part of the answer"
        words = f"⚠️ {what} could not be sent: {error.words}"
        if part.content.file:
            words += f"{'' if words.endswith('.') else '.'} {STILL_THERE}"
        if error.cause is Cause.UNREADABLE:
            words = f"⚠️ It is not known whether {what[0].lower()}{what[1:]} has reached this chat: {error.words}"
        content = Content(ContentKind.ASIDE, Styled(words))
        origin, name = part.row.origin, f"failed.{part.row.bubble}.{part.row.part}"
        owner = surface.owners[origin]
        told = plan(
            surface.parts,
            [WantedPart(name, 0, content, final=True)],
            surface.name,
            f"{origin}!{name}",
            self._next_place,
        )
        rows = surface.propose(f"{origin}!{name}", owner, told)
        await self.store_parts(owner, rows)
        surface.release(f"{origin}!{name}")

    async def moved(self, address: ChatAddress, new_chat: str) -> None:
        if self.on_moved is not None:
            await self.on_moved(address, new_chat)

    # ------------------------------------------------------------------ for status

    def share(self) -> float:
        """A share in [0, 1), for jitter."""
        return self._chance.random()

    def take_back(self, address: ChatAddress, origin: str) -> None:
        """Words beside turns that are not true any more go away, if they are remembered."""
        self._with_surface(address, lambda surface: surface.take_back(origin))

    def unsent_of(self, surface: str) -> int:
        """How many parts of a surface are not as they should be yet."""
        found = self._surfaces.get(surface)
        return len(found.waiting) if found is not None else 0

    @property
    def unsent(self) -> int:
        """Parts that are not as they should be yet."""
        return sum(len(surface.waiting) for surface in self._surfaces.values())

    def oldest_unsent_seconds(self) -> float:
        """How long the oldest part waits that is to stay, tries included."""
        return max(self.oldest_by_platform().values(), default=0.0)

    def unsent_by_platform(self) -> dict[str, int]:
        """Parts that are not as they should be yet; of every platform that can be written to."""
        counts = dict.fromkeys((platform for platform, _ in self._lines), 0)
        for surface in self._surfaces.values():
            counts[surface.address.platform] += len(surface.waiting)
        return counts

    def oldest_by_platform(self) -> dict[str, float]:
        """How long the oldest part waits that is to stay, seconds; 0 if none waits."""
        now = self._steady()
        ages = dict.fromkeys((platform for platform, _ in self._lines), 0.0)
        for surface in self._surfaces.values():
            since, platform = surface.oldest_wanted_at(), surface.address.platform
            if since is not None:
                ages[platform] = max(ages[platform], (now - since) / 1000)
        return ages

    async def stored(self, seconds: float) -> None:
        """Return when the state of some part was stored, or when the time is over."""
        self._stored.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stored.wait()

    async def drained(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """Return when everything is sent, or when the time is over (what is left is sent by the next process)."""
        try:
            async with asyncio.timeout(HURRIED_SECONDS if hurry is not None and hurry.is_set() else seconds):
                while self.unsent:
                    self._stored.clear()
                    await self._stored.wait()
        except TimeoutError:
            log.warning("delivery.left", parts=self.unsent)
