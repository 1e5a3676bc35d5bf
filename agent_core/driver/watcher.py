"""What is seen of a running turn, and who sees it: watchers, level-triggered, and the outlet whose parts are stored with its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agent_core.bell import Bell
from agent_core.machine.turn import Turn
from agent_core.ports import Clock
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.text.tongue import sentence, speak, speaking
from agent_core.turn.standing import Silence
from agent_core.turn.view import Bubble, BubbleKind, View, view

STORAGE_AWAY = sentence("The gateway cannot store anything just now; what comes next is kept back until it can")


def kept_back(shown: View) -> View:
    """How a turn looks of which nothing new can be known, because the storage is away. Pure."""
    if not shown.open:
        return shown
    with speaking(shown.language):
        status = Bubble("status", BubbleKind.STATUS, speak(STORAGE_AWAY), final=False)
    return replace(shown, bubbles=(*(b for b in shown.bubbles if b.kind is not BubbleKind.STATUS), status))


def with_progress(shown: View, progress: Mapping[str, str]) -> View:
    """Beside each call that runs, what its tool said last about how far it is; what it asks the person stays as it is. Pure."""
    if not progress or not shown.open:
        return shown

    def told(b: Bubble) -> Bubble:
        runs = b.kind is BubbleKind.ACTIVITY and b.call in progress
        return replace(b, text=f"{b.text} – {progress[b.call]}") if runs else b

    return replace(shown, bubbles=tuple(map(told, shown.bubbles)))


class CallLimits(Protocol):
    """Who makes a turn's model calls."""

    @property
    def silence(self) -> Silence | None:
        """How long the last of them may say nothing."""
        ...


class TurnSeen:
    """What is to be seen of a turn now, and the bells of those who look. Nothing is seen that is being committed.

    It knows the turn and not the driver, which knows it: what a turn leaves is gone with the last who holds it, and waits for no collector."""

    __slots__ = (
        "_bells",
        "_caller",
        "_clock",
        "_ends",
        "_held",
        "_latest",
        "final",
        "over",
        "progress",
        "storage_away",
        "turn",
    )

    def __init__(self, clock: Clock, caller: CallLimits | None = None) -> None:
        """`caller` makes its model calls."""
        self._caller = caller
        self.turn = Turn()
        """As it stands; another one if it is taken up from the journal, or ended in the driver's place."""
        self.over = False
        """Nothing new will be seen here."""
        self._clock = clock
        self._held: View | None = None
        self._latest: View | None = None
        """What somebody saw last, as long as nothing is new."""
        self.final: View | None = None
        """How a turn looks whose end is stored: nothing of it changes any more."""
        self._bells: list[Bell] = []
        self._ends: tuple[Bell, ...] = ()
        """Of those who wait for the end alone."""
        self.storage_away = False
        self.progress: dict[str, str] = {}
        """What running tools said last about how far they are, by call."""

    @property
    def silence(self) -> Silence | None:
        """How long the call that is under way may say nothing."""
        return None if self._caller is None else self._caller.silence

    def current_view(self) -> View:
        """What is to be seen now; while something is being committed, what was to be seen before."""
        shown = self._held or self.final
        if shown is None:
            shown = self._latest = view(self.turn, self._clock.now_ms(), self.silence)
        return with_progress(kept_back(shown) if self.storage_away else shown, self.progress)

    @property
    def committing(self) -> bool:
        """Something is being committed; until then `current_view` shows what was to be seen before."""
        return self._held is not None

    def hold(self) -> None:
        """Show what there is now until `release`, whatever happens to the turn."""
        if self._held is None:
            self._held = self._latest or view(self.turn, self._clock.now_ms(), self.silence)

    def release(self) -> None:
        """Show the turn as it is again; `wake` tells who looks."""
        self._held = self._latest = None

    def subscribe(self, bell: Bell) -> None:
        """Ring `bell` whenever there may be something new to see."""
        if bell not in self._bells:
            self._bells.append(bell)

    def subscribe_to_end(self, bell: Bell) -> None:
        """Ring `bell` once nothing new will be seen."""
        self._ends = (*self._ends, bell)

    def unsubscribe(self, bell: Bell) -> None:
        if bell in self._bells:
            self._bells.remove(bell)
        elif bell in self._ends:
            self._ends = tuple([one for one in self._ends if one is not bell])

    def wake(self) -> None:
        """There may be something new to see, unless it is being committed."""
        if self._held is None:
            self.ring()

    def ring(self) -> None:
        """There is something new to see, also while something is being committed."""
        self._latest = None
        for bell in (*self._bells, *self._ends) if self.over else self._bells:
            bell.ring()

    def wake_for_text(self) -> None:
        """There is more text to see, by the frame."""
        self._latest = None
        if self._held is None:
            for bell in self._bells:
                bell.ring_in_frame()


class Afar(Protocol):
    """Those who watch a session at another node, where no more of it is seen than what is stored."""

    def watched(self, session: str) -> bool:
        """Whether there are any: text is stored for them as it comes."""
        ...

    def stored(self, session: str) -> None:
        """There is more for them to see."""
        ...

    def told(self, session: str, turn: str, call: str, words: str) -> None:
        """A tool that runs says how far it is."""
        ...


class NobodyAfar:
    """There is no other node."""

    def watched(self, session: str) -> bool:  # noqa: ARG002
        return False

    def stored(self, session: str) -> None:
        pass

    def told(self, session: str, turn: str, call: str, words: str) -> None:
        pass


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
        "_bell", "_ended", "_seen",
    )
    # fmt: on

    def __init__(self, seen: TurnSeen) -> None:
        self._seen = seen
        self._bell = Bell()
        self._ended = False

    def __enter__(self) -> Watcher:
        self._seen.subscribe(self._bell)
        self._bell.ring()
        return self

    def __exit__(self, *_: object) -> None:
        self._seen.unsubscribe(self._bell)
        self._bell.close()

    async def next(self, timeout_seconds: float) -> View | None:
        """The next view, or None if nothing changed within the time. After the last view, `ended` is true."""
        if not await self._bell.wait(timeout_seconds):
            return None
        self._ended = self._seen.over
        return self._seen.current_view()

    @property
    def ended(self) -> bool:
        """The view that was given last was the final one."""
        return self._ended
