"""Who sees a running turn: watchers, level-triggered, and the outlet whose parts are stored with its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent_core.bell import Bell
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.turn.view import View


class Watched(Protocol):
    """What a watcher needs of a driver."""

    @property
    def over(self) -> bool: ...

    def current_view(self) -> View: ...

    def subscribe(self, bell: Bell) -> None: ...

    def unsubscribe(self, bell: Bell) -> None: ...


class Outlet(Protocol):
    """Where a turn is shown by stored parts: what its end wants there is stored together with the end."""

    async def prepare(self, view: View) -> None:
        """Do beforehand what takes time for `closing`. May be asked again."""
        ...

    def closing(self, view: View) -> Sequence[DeliveryRow]:
        """The parts that have to be stored with the end that `view` shows. May be asked again."""
        ...

    def closed(self) -> None:
        """The end is stored; the parts may go out."""
        ...

    def left(self) -> None:
        """Nothing runs the turn here any more, however that came."""
        ...


class Watcher:
    """Follows one turn: `next` gives the view as it is, text at most once a frame, and never misses the last one."""

    # fmt: off
    __slots__ = (
        "_bell", "_driver", "_ended",
    )
    # fmt: on

    def __init__(self, driver: Watched) -> None:
        self._driver = driver
        self._bell = Bell()
        self._ended = False

    def __enter__(self) -> Watcher:
        self._driver.subscribe(self._bell)
        self._bell.ring()
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.unsubscribe(self._bell)
        self._bell.close()

    async def next(self, timeout_seconds: float) -> View | None:
        """The next view, or None if nothing changed within the time. After the last view, `ended` is true."""
        if not await self._bell.wait(timeout_seconds):
            return None
        self._ended = self._driver.over
        return self._driver.current_view()

    @property
    def ended(self) -> bool:
        """The view that was given last was the final one."""
        return self._ended
