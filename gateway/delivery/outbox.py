"""The outbox: everything that puts words into chats, put together.

Law: whatever is to be seen is a stored part before it is sent, but for the one word that nothing can be stored; what an earlier process
left open is taken up at the start.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import structlog

from adapters.contract.chat import CallFailed, Cause, ChatAddress, ChatKind, ChatOrigin, ChatPort, Content, ContentKind
from adapters.contract.contents import decode
from adapters.delivery.reconcile import Name, Part, loaded
from adapters.text.styled import Styled
from agent_core.ports import Clock
from agent_core.signals import Tell, nobody
from agent_core.store.deliveries.rows import Delivery, DeliveryState, behind
from agent_core.store.store import Store
from agent_core.store.turns.rows import OpenTurn
from agent_core.text.tongue import known_sentence, sentence, speak, speaking, spoken_now
from gateway.delivery.accounts import Accounts, Gates, PlatformAccount
from gateway.delivery.calls import called
from gateway.delivery.forming import Forming
from gateway.delivery.ledger import PartHooks, Records, no_part_hooks, nothing_comes
from gateway.delivery.owners import Owner, queue_origin
from gateway.delivery.sender import Moved, Shared
from gateway.delivery.surface import Change
from gateway.delivery.surfaces import Surfaces
from gateway.delivery.troubles import BLOCKED_CAUSES, SurfaceTroubles
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.delivery.words import UnstoredWords, Words
from gateway.storage.damage import DamageMet

log = structlog.get_logger("delivery")

HURRIED_SECONDS = 1.0
PARTS_DAMAGED = sentence(
    "⚠️ I cannot note what I show here: the storage of the gateway is damaged. Something may be missing, or come twice later. Whoever runs the "
    "gateway is told."
)

AskerOf = Callable[[str], Awaitable[ChatOrigin | None]]
"""Who asked for what an origin stands for, and where."""


async def nobody_asked(origin: str) -> ChatOrigin | None:
    """It is not known who asked."""
    del origin


async def not_moved(address: ChatAddress, new_chat: str) -> None:
    """Nobody keeps anything of chats."""
    del address, new_chat


class Restorer:
    """What an earlier process has left open, taken up: by the hub as it opens a session, and by the keeper.

    Implements `gateway.delivery.owners.Restoring`, and `gateway.recovery.keeper.StoredParts`.
    """

    def __init__(self, shared: Shared, surfaces: Surfaces, words: Words, store: Store) -> None:
        self._shared = shared
        self._surfaces = surfaces
        self._words = words
        self._store = store

    async def load(self, turns: Sequence[OpenTurn], begun: Sequence[int]) -> None:
        """See `gateway.delivery.owners.Restoring`."""
        names = [one.turn for one in turns]
        found = await self._store.deliveries.of_all([*names, *map(queue_origin, begun)])
        self.take_up(found, {one.session: one.epoch for one in turns}, names)
        for one in found:
            if one.row.origin not in names:
                self._words.take_back(ChatAddress.of(one.row.surface), one.row.origin)

    async def load_words(self, owner: Owner, waiting: Sequence[int]) -> None:
        """See `gateway.delivery.owners.Restoring`."""
        found = await self._store.deliveries.of_all(list(map(queue_origin, waiting)))
        self.take_up([one for one in found if one.session == owner.session], {owner.session: owner.epoch})

    def reaches(self, surface: str) -> bool:
        try:
            address = ChatAddress.of(surface)
        except ValueError:  # it is damaged: nobody's chat is called so, and the auditor tells of its part
            return False
        return self._shared.accounts.knows(address)

    def works_on(self, surface: str, name: Name) -> bool:
        known = self._surfaces.known(surface)
        return known is not None and name in known.ledger.parts

    def unsettled(self, surface: str, name: Name) -> bool:
        known = self._surfaces.known(surface)
        part = known.ledger.parts.get(name) if known is not None else None
        return part is not None and part.open

    def take_up(self, found: Sequence[Delivery], epochs: Mapping[str, int], going_on: Collection[str] = ()) -> None:
        groups: dict[tuple[str, str], list[Delivery]] = {}
        for one in found:
            groups.setdefault((one.row.surface, one.session), []).append(one)
        for (surface, session), rows in groups.items():
            owner = Owner(session, epochs[session])
            self._surfaces.when_there(
                ChatAddress.of(surface), lambda s, rows=rows, owner=owner: s.ledger.restore(rows, owner, going_on)
            )

    async def set_aside(self, found: Delivery, owner: Owner, words: str) -> None:
        """The part failed for good, without being looked into; its chat is told in a word that has nothing of it."""
        row = found.row
        now = self._shared.clock.now_ms()
        failed = replace(row, state=DeliveryState.FAILED, retry_at=None, cause=words, trouble=words, at=now)
        await self._shared.records.put(owner, [failed])
        self._shared.troubles.note(row.surface, Cause.OTHER, words)
        if not row.bubble.startswith("failed"):
            with speaking(decode(row.want).language):
                told = speak("⚠️ A part of the answer could not be shown: {why}.", why=known_sentence(words))
                said = Content(ContentKind.ASIDE, Styled(told), language=spoken_now())
            origin = f"{row.origin}!failed.{row.bubble}.{row.part}"
            await self._words.say(ChatAddress.of(row.surface), owner, origin, said)


class Outbox:
    """Use it as an async context manager: its tasks are over when it is left."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        seed: int,
        tell: Tell = nobody,
        *,
        forming: Forming | None = None,
        asker_of: AskerOf = nobody_asked,
        moved: Moved = not_moved,
        damage: DamageMet | None = None,
        hooks: PartHooks = no_part_hooks,
        comes_first: Callable[[str], bool] = nothing_comes,
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - jitter
        self.forming = forming or Forming()
        self.accounts = Accounts(clock)
        self._damage = damage or DamageMet(clock)
        self.records = Records(store, self._damage, hooks, comes_first)
        self.gates = Gates(self.accounts, store, clock, tell)
        self.troubles = SurfaceTroubles(clock, self._tell_privately)
        shared = Shared(
            self.accounts,
            self.gates,
            self.records,
            self.troubles,
            self.forming,
            moved,
            self._say_damaged,
            tell,
            clock,
            self.chance,
        )
        self.surfaces = Surfaces(shared)
        self.words = Words(self.surfaces, self.accounts, store)
        self.unstored = UnstoredWords(self.surfaces, self.accounts, self.gates, clock)
        self.parts = Restorer(shared, self.surfaces, self.words, store)
        self.moved = moved
        self._store = store
        self._asker_of = asker_of
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Outbox:
        await self._stack.enter_async_context(self.surfaces)
        await self.records.count_on()
        await self.gates.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def open_account(self, platform: str, account: str, one: PlatformAccount) -> None:
        """From now on this account can be written to. What waited for it begins to go out."""
        self.accounts.add(platform, account, one)
        self.surfaces.account_added()

    def port_of(self, address: ChatAddress) -> ChatPort:
        """The port of an address's account."""
        return self.accounts.of(address).port

    def outlet(self, origin: ChatOrigin, turn: str, session: str, epoch: int) -> TurnOutlet | None:
        """Where a turn that answers a chat message is shown. None if its platform is not configured (any more)."""
        address = origin.address
        if not self.accounts.knows(address):
            return None
        owner = Owner(session, epoch)
        return TurnOutlet(lambda: self.surfaces.at(address), turn, owner, origin.reply_to, origin.person.id)

    # ------------------------------------------------------------------ what operators do

    def part_of(self, found: Delivery) -> Part:
        """A stored part as it is now: its surface may know more than what is stored."""
        row = found.row
        surface = self.surfaces.known(row.surface)
        known = surface.ledger.parts.get((row.origin, row.bubble, row.part)) if surface is not None else None
        return known or loaded(Part(row, decode(row.want)))

    async def amend(self, found: Delivery, owner: Owner, change: Change) -> Part:
        """Have a stored part changed by hand, while nothing of it is under way. See `gateway.delivery.surface.Amendments` for what is raised."""
        address = ChatAddress.of(found.row.surface)
        if not self.accounts.knows(address):
            return await change(self.part_of(found))  # nobody works on it
        surface, row = self.surfaces.at(address), found.row

        async def load() -> None:
            if (now := await self._store.deliveries.one(row.surface, row.origin, row.bubble, row.part)) is not None:
                surface.ledger.restore([now], owner, over=False)

        return await surface.amendments.ask((row.origin, row.bubble, row.part), load, change)

    # ------------------------------------------------------------------ at the end, and when a chat is closed to us

    async def drained(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """Return when everything is sent, or when the time is over (what is left is sent by the next process)."""
        try:
            async with asyncio.timeout(HURRIED_SECONDS if hurry is not None and hurry.is_set() else seconds):
                while self.surfaces.on_their_way:
                    await self.records.change()
        except TimeoutError:
            log.warning("delivery.left", parts=self.surfaces.unsent)

    def _say_damaged(self, address: ChatAddress) -> bool:
        """What a chat should show cannot be stored."""
        return self.unstored.say(address, Content(ContentKind.ASIDE, Styled(PARTS_DAMAGED)))

    async def _tell_privately(self, address: ChatAddress, part: Part, error: CallFailed) -> None:
        """What cannot be said in a group is told in private to the person whom it was for."""
        origin = behind(part.row.origin)
        asker = await self._asker_of(origin)
        if asker is None or asker.kind is ChatKind.PRIVATE or asker.address.chat != address.chat:
            return
        try:
            chat = await called(self.port_of(address).private(asker.person.id), address.platform.capitalize())
        except CallFailed as failure:
            log.info("delivery.nobody_told", chat=address.text(), words=failure.words)
            return
        private = replace(asker.address, chat=chat, thread="")
        with speaking(part.content.language):
            words = speak(
                "I could not write into the group where you asked me: {why}. Nothing more can be shown there until that is changed.",
                why=known_sentence(error.words),
            )
        if error.cause not in BLOCKED_CAUSES:  # of one part alone, as was to be said in the group
            words = part.content.body.text
        found = await self._store.deliveries.of(origin)
        if found:
            owner = Owner(found[0].session, await self._store.sessions.claim(found[0].session))
            content = Content(ContentKind.ASIDE, Styled(words), language=part.content.language)
            await self.words.say(private, owner, f"elsewhere:{origin}", content)
