"""What a surface needs of the outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from adapters.contract.chat import CallFailed, ChatAddress
from adapters.delivery.pacing import Urgency
from adapters.delivery.reconcile import Part
from agent_core.signals import Tell
from agent_core.store.rows import DeliveryRow
from gateway.delivery.forming import Forming
from gateway.delivery.owners import Owner

if TYPE_CHECKING:
    from gateway.delivery.surface import Surface


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
