"""What is stored of a surface's parts, beside what they are in memory.

Law: what a surface decides about a part is stored with the decision. Most of it is, before or after a call, or as its turn closes.
The rest (a status that was over before it was sent, what could not be stored while the storage was away) is owed: it is stored when
the surface comes to rest, at the latest before a part is forgotten. States on the way of a turn that runs are not owed: after a
restart the turn shows them anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from adapters.delivery.reconcile import Name, Part
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState

_HAPPENED = (DeliveryState.SENDING, DeliveryState.UNKNOWN, DeliveryState.SENT, DeliveryState.FAILED)


class Book:
    """Of one surface."""

    def __init__(self) -> None:
        self._rows: dict[Name, DeliveryRow] = {}
        self._offered: dict[str, list[DeliveryRow]] = {}

    def found(self, row: DeliveryRow) -> None:
        """It was read, and is stored like this unless it was written since."""
        self._rows.setdefault(_name(row), row)

    def stored(self, rows: Iterable[DeliveryRow]) -> None:
        """It was written."""
        self._rows.update((_name(row), row) for row in rows)

    def offer(self, origin: str, rows: Iterable[DeliveryRow]) -> None:
        """Somebody else is about to write these."""
        self._offered[origin] = list(rows)

    def answered(self, origin: str, *, stored: bool) -> None:
        """What was offered is stored, or is not."""
        offered = self._offered.pop(origin, [])
        if stored:
            self.stored(offered)

    def unlike(self, part: Part) -> bool:
        """It is stored otherwise than it is. What was never stored, and never happened, need not be."""
        known = self._rows.get(part.name)
        if known is None:
            return part.row.state in _HAPPENED or part.row.platform_id is not None
        return known != part.row

    def owed(self, parts: Iterable[Part], running: Collection[str]) -> list[Part]:
        """What is to be stored. Of turns that are `running`, only what is not on its way any more."""
        return [part for part in parts if self.unlike(part) and (part.name[0] not in running or self._over(part))]

    def _over(self, part: Part) -> bool:
        """It is stored as being sent, and that is over."""
        known = self._rows.get(part.name)
        return (
            known is not None and known.state is DeliveryState.SENDING and part.row.state is not DeliveryState.SENDING
        )

    def keep_only(self, names: Mapping[Name, object]) -> None:
        """Forget the rest."""
        self._rows = {name: row for name, row in self._rows.items() if name in names}

    def forget_all(self) -> None:
        self._rows.clear()
        self._offered.clear()

    def hand_over(self, other: Book, surface: str) -> None:
        """The parts belong to another surface now, and the store knows it."""
        other.stored(replace(row, surface=surface) for row in self._rows.values())
        for origin, rows in self._offered.items():
            other.offer(origin, [replace(row, surface=surface) for row in rows])


def _name(row: DeliveryRow) -> Name:
    return row.origin, row.bubble, row.part
