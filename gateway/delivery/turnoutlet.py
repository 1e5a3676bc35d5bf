"""A running turn where it is seen in a chat, and when it was first seen there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Protocol

from adapters.delivery.parts import Parts, Picture, picture
from agent_core.bell import Bell
from agent_core.driver.driver import TurnDriver
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.signals import FirstSign, Tell
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.text.shown import plain
from agent_core.text.tongue import speak, speaking
from agent_core.turn.view import BubbleKind, View
from gateway.delivery.calls import ChatCalls
from gateway.delivery.forming import Texts
from gateway.delivery.ledger import Ledger
from gateway.delivery.owners import Owner


class ShowsTurn(Protocol):
    """What a running turn needs of the surface that shows it."""

    @property
    def bell(self) -> Bell: ...

    @property
    def calls(self) -> ChatCalls: ...

    @property
    def ledger(self) -> Ledger: ...

    def add(self, outlet: TurnOutlet) -> None: ...

    def drop(self, outlet: TurnOutlet) -> None: ...

    def closing(self, outlet: TurnOutlet, view: View) -> Sequence[DeliveryRow]: ...


@dataclass(eq=False, slots=True)
class TurnOutlet:
    """A running turn on a surface. Implements `agent_core.driver.watcher.Outlet`."""

    find: Callable[[], ShowsTurn]
    turn: str
    owner: Owner
    reply_to: str
    person: str = ""
    """Who asked."""
    driver: TurnDriver | None = None
    surface: ShowsTurn = field(init=False)
    texts: Texts = field(init=False)
    seen: bool = False
    """The chat was shown something of the turn."""
    over: bool = False
    """Its end is stored, with what the chat is to show of it."""
    task: tuple[int, str] | None = None
    """Of a background task: its number and title. Of such a turn its chat sees what people are asked, and nothing else."""

    def __post_init__(self) -> None:
        self.surface = self.find()
        self.texts = Texts(lambda: self.surface.calls.port.parts, lambda: self.surface.calls.forming, self._at_work)

    def stand_beside(self, number: int, title: str) -> None:
        """It shows a background task, of which the chat sees little and late: how soon is no matter."""
        self.task, self.seen = (number, title), True

    def attach(self, driver: TurnDriver) -> None:
        """Show this turn from now on. A surface that had nothing to do may have been forgotten meanwhile."""
        self.surface = self.find()
        self.driver = driver
        self.surface.add(self)
        driver.seen.subscribe(self.surface.bell)

    def left(self) -> None:
        """See `agent_core.driver.watcher.Outlet`."""
        if self.driver is not None:
            self.driver.seen.unsubscribe(self.surface.bell)
        self.surface.drop(self)

    def _at_work(self) -> None:
        """Its last words are being formatted: the turn goes on, and the watchdog leaves it alone."""
        if self.driver is not None:
            self.driver.waits()

    def closing(self, view: View) -> Sequence[DeliveryRow]:
        """See `agent_core.driver.watcher.Outlet`. Whoever comes when the end is stored holds nothing back: nobody would let it go again."""
        return () if self.over else self.surface.closing(self, view)

    def closed(self) -> None:
        """See `agent_core.driver.watcher.Outlet`."""
        self.over = True
        self.surface.ledger.release(self.turn)
        self.left()

    async def prepare(self, view: View) -> None:
        """See `agent_core.driver.watcher.Outlet`."""
        await self.texts.shown(lambda parts: self.picture(view, parts))

    def picture(self, view: View, parts: Parts | None = None, *, growing: bool = True) -> Picture:
        """What the chat should show of a view; its texts were prepared, or are formatted by `parts`."""
        left = self.driver is not None and self.driver.turn.left  # then nothing may fade with a draft
        traits, form = self.surface.calls.traits, parts or self.texts.pieces
        if left:
            traits = replace(traits, drafts=False)
        if self.task is not None:
            view = asked_alone(view, *self.task)
        return picture(view, self.turn, form, traits=traits, reply_to=self.reply_to, growing=growing)


def asked_alone(view: View, number: int, title: str) -> View:
    """What people are asked by a background task, and what they decided, with its name. Pure."""
    with speaking(view.language):
        name = speak("Task {number} ({title})", number=number, title=plain(title))
    asked = (b for b in view.bubbles if b.kind in (BubbleKind.APPROVAL, BubbleKind.DECIDED, BubbleKind.QUESTION))
    return replace(view, bubbles=tuple(replace(b, text=f"{name}: {b.text}") for b in asked))


class FirstSigns:
    """Tells how long after its opening each turn was first seen in one chat."""

    def __init__(self, platform: str, clock: Clock, tell: Tell) -> None:
        self._platform = platform
        self._clock = clock
        self._tell = tell
        self._unseen: dict[str, int] = {}
        """Turn → when it was opened: over before the chat was shown anything of it."""

    def left(self, outlet: TurnOutlet) -> None:
        """The turn is over, or goes on without being shown."""
        if not outlet.seen and outlet.driver is not None:
            self._unseen[outlet.turn] = outlet.driver.opened_at

    def shown(self, outlets: Sequence[TurnOutlet]) -> None:
        """The chat shows something of these turns."""
        for outlet in outlets:
            if not outlet.seen and outlet.driver is not None:
                self._first(outlet.driver.opened_at)
            outlet.seen = True

    def part_shown(self, turn: str, outlets: Sequence[TurnOutlet]) -> None:
        """The chat shows a part of this turn, which may be over."""
        self.shown([outlet for outlet in outlets if outlet.turn == turn])
        if (opened_at := self._unseen.pop(turn, None)) is not None:
            self._first(opened_at)

    def given_up(self, turn: str) -> None:
        self._unseen.pop(turn, None)

    def _first(self, opened_at: int) -> None:
        after = max(0, self._clock.now_ms() - opened_at)
        self._tell(FirstSign(surface=self._platform, after_ms=after))
