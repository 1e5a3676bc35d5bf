"""All surfaces of all chat platforms, each with its task, and how much waits on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from adapters.contract.chat import ChatAddress
from agent_core.ports import steady_ms
from agent_core.text.tongue import speaking
from gateway.delivery.sender import Shared
from gateway.delivery.surface import Surface


class Surfaces:
    """Use it as an async context manager: its tasks are over when it is left."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._surfaces: dict[str, Surface] = {}
        self._moved: dict[tuple[str, str, str], str] = {}
        """Chats that have another id by now."""
        self._waiting: list[tuple[ChatAddress, Callable[[Surface], None]]] = []
        """What is to be done as soon as an account is there."""
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self.open = False

    async def __aenter__(self) -> Surfaces:
        await self._group.__aenter__()
        self.open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open = False
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Do something beside them that is given up when they are left."""
        with speaking(""):  # whoever spoke when it was needed first
            task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def at(self, address: ChatAddress) -> Surface:
        """The surface of an address, with its task. Its account is there."""
        while (moved := self._moved.get((address.platform, address.account, address.chat))) is not None:
            address = replace(address, chat=moved)
        name = address.text()
        known = self._surfaces.get(name)
        if known is None:
            known = Surface(address, self._shared.accounts.of(address).port, self._shared, self.forget)
            self._surfaces[name] = known
            self.begin(known.run(), f"surface {name}")
        return known

    def known(self, name: str) -> Surface | None:
        """The surface of this name, if something goes on there."""
        return self._surfaces.get(name)

    def when_there(self, address: ChatAddress, work: Callable[[Surface], None]) -> None:
        """Do something with a surface, as soon as its platform's account is there."""
        if self._shared.accounts.knows(address):
            work(self.at(address))
        else:
            self._waiting.append((address, work))

    def account_added(self) -> None:
        """What waited for an account begins to go out."""
        waiting, self._waiting = self._waiting, []
        for address, work in waiting:
            self.when_there(address, work)

    def move(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """A chat has another id: what is to be shown there is shown under the new one."""
        if old_chat == new_chat:
            return
        # It is there (again): nothing leads away from it, nor in a circle.
        self._moved.pop((platform, account, new_chat), None)
        self._moved[platform, account, old_chat] = new_chat
        for surface in list(self._surfaces.values()):
            where = surface.address
            if (where.platform, where.account, where.chat) == (platform, account, old_chat):
                surface.hand_over(self.at(where))
                self.forget(surface)

    def forget(self, surface: Surface) -> None:
        """A surface that is not needed any more; its task ends by itself."""
        self._surfaces.pop(surface.name, None)

    # ------------------------------------------------------------------ how much waits

    def unsent_of(self, name: str) -> int:
        """How many parts of a surface are not as they should be yet."""
        found = self._surfaces.get(name)
        return len(found.ledger.waiting) if found is not None else 0

    @property
    def on_their_way(self) -> bool:
        """Something is sent yet, or tried: what met damage is not."""
        found = (surface.ledger for surface in self._surfaces.values())
        return any(part.row.origin not in ledger.stopped for ledger in found for part in ledger.waiting)

    def busy(self) -> list[str]:
        """The surfaces of which something is sent yet, or tried."""
        return [name for name, one in self._surfaces.items() if one.ledger.waiting]

    @property
    def unsent(self) -> int:
        """Parts that are not as they should be yet."""
        return sum(map(self.unsent_of, self._surfaces))

    def unsent_by_platform(self) -> dict[str, int]:
        """Parts that are not as they should be yet; of every platform that can be written to."""
        counts = dict.fromkeys(self._shared.accounts.platforms(), 0)
        for name, surface in self._surfaces.items():
            counts[surface.address.platform] += self.unsent_of(name)
        return counts

    def oldest_by_platform(self) -> dict[str, float]:
        """How long the oldest part waits that is to stay, tries included, seconds; 0 if none waits."""
        now = steady_ms(self._shared.clock)
        ages = dict.fromkeys(self._shared.accounts.platforms(), 0.0)
        for surface in self._surfaces.values():
            since, platform = surface.ledger.oldest_wanted_at(), surface.address.platform
            if since is not None:
                ages[platform] = max(ages[platform], (now - since) / 1000)
        return ages

    def unsent_why(self) -> str:
        """What was said last to the oldest part that waits because a call has failed; empty if none does."""
        found = (surface.ledger.refused_since() for surface in self._surfaces.values())
        return min((one for one in found if one is not None), default=(0, ""))[1]

    def oldest_unsent_seconds(self) -> float:
        """The same of all platforms together."""
        return max(self.oldest_by_platform().values(), default=0.0)
