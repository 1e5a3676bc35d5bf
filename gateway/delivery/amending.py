"""Changes to parts by hand: carried out by the surface's own task between two calls, so that nothing of them is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, MutableMapping

from adapters.delivery.reconcile import Name, Part
from agent_core.bell import Bell
from agent_core.records import dataclass

AMEND_SECONDS = 15.0
"""How long somebody waits for a call that is under way; platforms answer sooner, or never."""
Change = Callable[[Part], Awaitable[Part]]
"""Gives a part as it is to be, stored already; raises if it is to stay as it is."""


@dataclass(frozen=True, slots=True)
class _Asked:
    name: Name
    change: Change
    done: asyncio.Future[Part]


class Amendments:
    """Those of one surface."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._asked: list[_Asked] = []

    async def ask(self, name: Name, change: Change) -> Part:
        """Have a part changed. Raises what `change` raises, LookupError if the part is gone, TimeoutError if a call takes too long."""
        asked = _Asked(name, change, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        self._bell.ring()
        async with asyncio.timeout(AMEND_SECONDS):
            return await asked.done

    async def carry_out(self, parts: MutableMapping[Name, Part], held: Collection[str]) -> None:
        """Called by the surface's task. What is being stored just now (`held` origins) is left for later."""
        for asked in [one for one in self._asked if one.name[0] not in held]:
            self._asked.remove(asked)
            part = parts.get(asked.name)
            if asked.done.done():
                continue  # nobody waits for it any more
            if part is None:
                asked.done.set_exception(LookupError(asked.name))
                continue
            try:
                parts[asked.name] = made = await asked.change(part)
            except Exception as error:  # noqa: BLE001 - whoever asked is told; the surface goes on
                if not asked.done.done():
                    asked.done.set_exception(error)
            else:
                if not asked.done.done():
                    asked.done.set_result(made)
