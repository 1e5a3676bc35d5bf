"""What an operator does to a part in the outbox: looked at first, then done on exactly that state, with an entry in the audit.

Everything goes through the one outbox: the surface's own task changes the part between two calls, and the change, what it sends
elsewhere and the entry are one commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from adapters.contract.chat import Ability, CallFailed, ChatAddress, Content
from adapters.contract.pacing import Urgency
from adapters.delivery.reconcile import Hand, Part, by_hand, objection
from adapters.delivery.substitutes import for_other_chat
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.store.audit import AuditRow
from agent_core.store.deliveries.rows import Delivery, DeliveryRow
from agent_core.store.slices.rows import slice_of
from agent_core.store.store import Fenced, OwnedElsewhere, Store
from gateway.chats.where import NoSuchChat, Where
from gateway.console.words import Elsewhere, audit_words, mark_of, name_of, run_at, state_json, will_do
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner
from gateway.sharing.portion import Portion

log = structlog.get_logger("console")

CHANGED = "It has changed since you looked at it, so nothing was done. Look again."
ELSEWHERE = "Its conversation has just gone to another gateway. Look again: it is said then where to act."


class CannotAct(Exception):
    """Nothing was done; the words say why. `status` is that of HTTP."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, slots=True)
class PartName:
    """What names a part."""

    surface: str
    origin: str
    bubble: str
    part: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen."""

    lines: tuple[str, ...]
    mark: str
    """To be given back, so that nothing else is done."""
    to: str = ""
    text: str = ""


class Acting:
    """Looks ahead, and does it. `who` is how somebody came in."""

    def __init__(self, store: Store, outbox: Outbox, where: Where, portion: Portion, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._portion = portion
        self._outbox = outbox
        self._where = where
        self._clock = clock
        self._ids = ids

    async def preview(self, name: PartName, hand: Hand, to: str) -> Preview:
        """What an act would do, exactly. Changes nothing. Raises `CannotAct`."""
        found = await self._found(name)
        await self._must_be_here(found.row.surface)
        part = self._outbox.part_of(found)
        target = await self._may(part, hand, to)
        address = ChatAddress.of(found.row.surface)
        elsewhere = None
        if target is not None:
            elsewhere = Elsewhere(target.text().rstrip("/"), len(self._contents(part, target)))
        configured = self._outbox.accounts.knows(address)
        gate = self._outbox.gates.waits(address)[Urgency.FINAL] if configured else 0
        ability = self._outbox.port_of(address).ability if configured else Ability.NONE
        lines = will_do(part, hand, ability, gate, elsewhere)
        return Preview(lines, mark_of(part), elsewhere.surface if elsewhere else "")

    async def act(self, who: str, name: PartName, hand: Hand, to: str, mark: str) -> str:
        """Do what was previewed under this mark; what was done, in a sentence. Raises `CannotAct`, `StorageUnavailable`."""
        found = await self._found(name)
        await self._must_be_here(found.row.surface)
        target = await self._may(self._outbox.part_of(found), hand, to)
        owner = await self._owner(found)
        said: list[str] = []

        async def change(part: Part) -> Part:
            self._check(part, hand, mark)
            made = by_hand(part, hand, self._clock.now_ms(), target.text().rstrip("/") if target is not None else "")
            said.append(await self._store_act(who, hand, part, made, owner, target))
            return made

        try:
            await self._outbox.amend(found, owner, change)
        except LookupError:
            raise CannotAct(409, CHANGED) from None
        except TimeoutError:
            raise CannotAct(409, "A call for it is under way and does not end. Look again in some seconds.") from None
        except Fenced:
            raise CannotAct(409, ELSEWHERE) from None
        log.info(
            "console.acted", who=who, act=hand.value, part=name_of(found.row), to=target.text() if target else None
        )
        return said[0]

    async def show_text(self, who: str, name: PartName) -> str:
        """What the part says. That it was looked at is noted."""
        found = await self._found(name)
        content = self._outbox.part_of(found).content
        words = f"The text of {name_of(found.row)} was shown."
        entry = AuditRow(self._ids.new("a"), self._clock.now_ms(), who, "show text", name_of(found.row), words)
        await self._store.deliveries.act(entry)
        log.info("console.acted", who=who, act="show text", part=name_of(found.row), to=None)
        return content.body.text or content.file_name

    # ------------------------------------------------------------------

    async def _found(self, name: PartName) -> Delivery:
        found = await self._store.deliveries.one(name.surface, name.origin, name.bubble, name.part)
        if found is None:
            raise CannotAct(404, "There is no such part any more.")
        return found

    async def _must_be_here(self, surface: str) -> None:
        """Raises `CannotAct` with where to act, if another gateway has the chat: its task alone knows what is under way."""
        if self._portion.mine(surface):
            return
        from gateway.sharing.nodes import address_of  # of several gateways alone

        owner = self._portion.owners.get(slice_of(surface))
        there = await address_of(self._store, owner) if owner is not None else ""
        raise CannotAct(409, run_at(owner, there))

    async def _owner(self, found: Delivery) -> Owner:
        try:
            return Owner(found.session, await self._store.sessions.claim(found.session))
        except OwnedElsewhere:
            raise CannotAct(409, ELSEWHERE) from None

    async def _may(self, part: Part, hand: Hand, to: str) -> ChatAddress | None:
        """Where a part would be redirected to; None if it is not redirected. Raises `CannotAct`."""
        if words := objection(part, hand):
            raise CannotAct(409, words)
        address = ChatAddress.of(part.row.surface)
        if hand is Hand.RETRY and not self._outbox.accounts.knows(address):
            raise CannotAct(
                409, f"No account {address.platform}/{address.account} is configured, so it cannot be sent."
            )
        if hand is not Hand.REDIRECT:
            return None
        if not to.strip():
            raise CannotAct(400, "Name the chat as PLATFORM/CHAT or PLATFORM/CHAT/THREAD.")
        try:
            target = await self._where.find(to)
        except NoSuchChat as error:
            raise CannotAct(404, str(error)) from None
        except CallFailed as error:
            raise CannotAct(502, f"The platform does not give that chat: {error.words}") from None
        if target == address:
            raise CannotAct(409, "It is meant for that very chat. Retry it instead.")
        return target

    def _contents(self, part: Part, target: ChatAddress) -> tuple[Content, ...]:
        port = self._outbox.port_of(target)
        made_for = ChatAddress.of(part.row.surface)
        return for_other_chat(part.content, made_for, target, lambda words: port.parts(words, growing=False))

    def _check(self, part: Part, hand: Hand, mark: str) -> None:
        if mark_of(part) != mark:
            raise CannotAct(409, CHANGED)
        if words := objection(part, hand):
            raise CannotAct(409, words)

    async def _store_act(
        self, who: str, hand: Hand, before: Part, made: Part, owner: Owner, target: ChatAddress | None
    ) -> str:
        row = before.row
        words = audit_words(before, hand, target.text().rstrip("/") if target is not None else "")

        async def store(elsewhere: Sequence[DeliveryRow]) -> None:
            entry = AuditRow(
                self._ids.new("a"), self._clock.now_ms(), who, hand.value, name_of(row), words,
                state_json(row), state_json(made.row, elsewhere),
            )  # fmt: skip
            await self._store.deliveries.act(entry, owner.session, owner.epoch, [made.row, *elsewhere])

        if target is None:
            await store(())
        else:
            origin = f"{row.origin}!to.{row.bubble}.{row.part}.{row.rev}"
            await self._outbox.words.say_with(target, owner, origin, self._contents(before, target), store)
        return words
