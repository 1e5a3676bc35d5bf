"""A running turn where it is seen in a chat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from adapters.contract.chat import ChatPort, Traits
from adapters.delivery.parts import Parts, Picture, picture
from agent_core.bell import Bell
from agent_core.driver.driver import TurnDriver
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.turn.view import View
from gateway.delivery.forming import Forming, Texts
from gateway.delivery.owners import Owner


class Screen(Protocol):
    """What a running turn needs of the surface that shows it."""

    port: ChatPort
    traits: Traits

    @property
    def bell(self) -> Bell: ...

    @property
    def forming(self) -> Forming: ...

    def add(self, outlet: TurnOutlet) -> None: ...

    def drop(self, outlet: TurnOutlet) -> None: ...

    def closing(self, outlet: TurnOutlet, view: View) -> Sequence[DeliveryRow]: ...

    def release(self, origin: str) -> None: ...


@dataclass(eq=False, slots=True)
class TurnOutlet:
    """A running turn on a surface. Implements `agent_core.driver.watcher.Outlet`."""

    find: Callable[[], Screen]
    turn: str
    owner: Owner
    reply_to: str
    person: str = ""
    """Who asked."""
    driver: TurnDriver | None = None
    surface: Screen = field(init=False)
    texts: Texts = field(init=False)
    seen: bool = False
    """The chat was shown something of the turn."""

    def __post_init__(self) -> None:
        self.surface = self.find()
        self.texts = Texts(lambda: self.surface.port.parts, lambda: self.surface.forming)

    def attach(self, driver: TurnDriver) -> None:
        """Show this turn from now on. A surface that had nothing to do may have been forgotten meanwhile."""
        self.surface = self.find()
        self.driver = driver
        self.surface.add(self)
        driver.subscribe(self.surface.bell)

    def left(self) -> None:
        """See `agent_core.driver.watcher.Outlet`."""
        if self.driver is not None:
            self.driver.unsubscribe(self.surface.bell)
        self.surface.drop(self)

    def closing(self, view: View) -> Sequence[DeliveryRow]:
        """See `agent_core.driver.watcher.Outlet`."""
        return self.surface.closing(self, view)

    def closed(self) -> None:
        """See `agent_core.driver.watcher.Outlet`."""
        self.surface.release(self.turn)
        self.left()

    async def prepare(self, view: View) -> None:
        """See `agent_core.driver.watcher.Outlet`."""
        await self.texts.prepare(lambda parts: self.picture(view, parts))

    def picture(self, view: View, parts: Parts | None = None, *, growing: bool = True) -> Picture:
        """What the chat should show of a view; its texts were prepared, or are formatted by `parts`."""
        left = self.driver is not None and self.driver.turn.left  # then nothing may fade with a draft
        traits, form = self.surface.traits, parts or self.texts.pieces
        traits = replace(traits, drafts=traits.drafts and not left)
        return picture(view, self.turn, form, traits=traits, reply_to=self.reply_to, growing=growing)
