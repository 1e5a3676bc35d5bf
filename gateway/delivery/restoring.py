"""What an earlier process has left open in chats, taken up: by the hub as it opens a session, and by the keeper."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from adapters.contract.chat import Cause, ChatAddress, Content, ContentKind
from adapters.delivery.reconcile import Name
from adapters.text.styled import Styled
from agent_core.store.deliveries.rows import Delivery, DeliveryState
from agent_core.store.store import Store
from agent_core.store.turns.rows import OpenTurn
from gateway.delivery.owners import Owner, queue_origin
from gateway.delivery.sender import Shared
from gateway.delivery.surfaces import Surfaces
from gateway.delivery.words import Words


class Restorer:
    """Implements `gateway.delivery.owners.Restoring`, and `gateway.recovery.keeper.StoredParts`."""

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
        return self._shared.accounts.knows(ChatAddress.of(surface))

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
        failed = replace(row, state=DeliveryState.FAILED, retry_at=None, trouble=words, at=self._shared.clock.now_ms())
        await self._shared.records.put(owner, [failed])
        self._shared.troubles.note(row.surface, Cause.OTHER, words)
        if not row.bubble.startswith("failed"):
            said = Content(ContentKind.ASIDE, Styled(f"⚠️ A part of the answer could not be shown: {words}."))
            origin = f"{row.origin}!failed.{row.bubble}.{row.part}"
            await self._words.say(ChatAddress.of(row.surface), owner, origin, said)
