"""A turn is closed here, and nowhere else: by its driver, by the watchdog in the place of a driver that is stuck, and where nobody can
look into it because its journal cannot be read, its storage is damaged or working on it ends the process.

Theory. What follows from an end was told in four places, and each forgot something else: one told of it twice, one formed the chat's last
words on the loop, one taught nothing. So what follows is decided once (`closing_of`, pure) and done once (`Closer.close`): the last rows of
the journal, the row of the turn, the messages done and the chat's last words in one commit, then the line of the log and the signal.

Law (tests/gateway/test_closing.py): however a turn ends, its journal says so in its last row, its chat is told, and the log and the
metrics hear of it once. Nobody else writes an end: a test reads the source for it.

The turn's journal until then (`TurnJournal`) stands beside it, because the last commit takes what it still holds.

Known to be weak: of a turn that nobody can look into, the figures are unknown, so its signal has none.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Protocol
from weakref import proxy

import structlog

from agent_core.driver.watcher import Afar, Outlet, TurnSeen
from agent_core.failures.exits import Exit, ExitCode, InternalError, Troubled
from agent_core.failures.notices import ExitClass, NotStarted
from agent_core.journal.rows import merged, row_of
from agent_core.learning.stalls import fingerprint, rows_of
from agent_core.machine.turn import Turn
from agent_core.patience import timer_at
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.retry import STORING
from agent_core.signals import Tell, TurnClosed
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.sessions.asides import Fresh
from agent_core.store.store import Damaged, Fenced, StorageUnavailable, Store, StoreError
from agent_core.store.troubles.rows import IncidentRow, TroubleRow
from agent_core.store.turns.rows import IntendedCall, JournalRow, OpeningTurn
from agent_core.store.webhooks.rows import HookRow
from agent_core.turn.events import (
    DriverFailed,
    Event,
    ReasoningArrived,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
    TurnEnded,
    TurnOpened,
)
from agent_core.turn.state import Activity, PersonItem
from agent_core.turn.view import View, exit_view, view

log = structlog.get_logger("turn")

FLUSH_SECONDS = 1.0
SOON_SECONDS = 0.2
"""The same of a call's name, and where somebody at another node sees what is stored, and nothing before."""
FLUSH_CHARS = 8_192
LEAVE_PATIENCE_SECONDS = 2.0
KEEP_SECONDS = 0.02
"""So long a call that only reads may take before it is stored that it runs."""


@dataclass(frozen=True, slots=True)
class TurnIdentity:
    """Whose turn it is, for rows and logs."""

    turn: str
    session: str
    epoch: int
    surface: str = ""
    key: str = ""
    """The session's key; empty if it is not at hand."""


@dataclass(frozen=True, slots=True)
class Closing:
    """All that follows from the end of a turn."""

    whose: TurnIdentity
    exit: Exit
    at: int
    rows: tuple[JournalRow, ...]
    """The journal's last; empty if the end is stored already and only still to be told."""
    shown: View
    turn: Turn | None = None
    """None if nobody can look into it."""
    heard: tuple[int, ...] = ()
    """The accepted messages that came into the running turn and that the model was told."""
    troubles: tuple[TroubleRow, ...] = ()
    met: tuple[TroubleRow, ...] = ()
    """The same for whoever is told of them: also those of an end that is stored without."""
    content_at: int = 0
    intended: tuple[IntendedCall, ...] = ()
    """Calls whose start is among the rows."""

    @property
    def used(self) -> tuple[int, int]:
        """Tokens, in and out."""
        return (self.turn.input_tokens, self.turn.output_tokens) if self.turn is not None else (0, 0)

    @property
    def by(self) -> tuple[str, str]:
        """The model that answered, and the name of the key by which it was asked."""
        turn = self.turn
        if turn is None or turn.opened is None:
            return ("", "")
        return (turn.route.model if turn.opened.settings.routes else "", turn.opened.key)

    @property
    def clean(self) -> bool:
        """It was answered, handed to the client, or stopped by a person."""
        return self.exit.kind in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED)

    @property
    def signal(self) -> TurnClosed:
        """What metrics, traces and whoever learns from turns are told."""
        whose, code, turn = self.whose, self.exit.code.value, self.turn
        if turn is None:
            return TurnClosed(
                turn=whose.turn, session=whose.session, surface="", exit=code, clean=False,
                began_at=self.at, ended_at=self.at,
            )  # fmt: skip
        began = turn.opened.at if turn.opened is not None else self.at
        return TurnClosed(
            turn=whose.turn, session=whose.session, surface=whose.surface, exit=code, clean=self.clean,
            began_at=began, ended_at=max(began, turn.phase_since), content_at=self.content_at,
            endpoint=turn.route.endpoint, model=turn.route.model, steps=turn.steps_done,
            input_tokens=turn.input_tokens, output_tokens=turn.output_tokens, troubles=self.met,
        )  # fmt: skip


def closing_of(
    whose: TurnIdentity,
    of: Turn | Exit,
    at: int,
    seq: int,
    before: Sequence[Event] = (),
    *,
    answer: str = "",
    content_at: int = 0,
    plain: bool = False,
    stored: bool = False,
    intended: tuple[IntendedCall, ...] = (),
) -> Closing:
    """What follows from the end of a turn, or from the exit of one that nobody can look into. Pure.

    `before` are the events that are not stored yet, `intended` the calls that begin in them; the first row has the number `seq`. A `plain` end leaves out what may be the reason
    that an end could not be stored. An end that is `stored` already is only told.
    """
    turn = of if isinstance(of, Turn) else None
    ending = of.exit if isinstance(of, Turn) else of
    assert ending is not None, "only a turn that has its exit is closed"
    # When it ended, not when that is stored: whoever saw it end is told the same seconds later.
    last = TurnEnded(at=turn.phase_since if turn is not None else at, exit=ending, answer=answer)
    events = [] if stored else merged([*before, last])
    met = rows_of(turn) if turn is not None else ()
    return Closing(
        whose=whose,
        exit=ending,
        at=max(at, last.at),
        rows=tuple([row_of(event, seq + offset) for offset, event in enumerate(events)]),
        shown=view(turn, at) if turn is not None else exit_view(ending),
        turn=turn,
        heard=heard_in(turn) if turn is not None else (),
        troubles=met if not plain else (),
        met=met,
        content_at=content_at,
        intended=intended,
    )


def unread(reference: str, detail: str, at: int, reason: NotStarted | None = None) -> tuple[Exit, DriverFailed]:
    """How a turn ends that nobody can look into, and the event that says why. Pure."""
    ending = InternalError(reference=reference, detail=detail, reason=reason)
    return ending, DriverFailed(at=at, reference=reference, why=detail)


def ended_otherwise(turn: Turn, ending: Exit, at: int) -> Turn:
    """The turn with an end that is none of its own deciding. Pure but for the turn."""
    turn.feed(TurnEnded(at=at, exit=ending))
    return turn


def heard_in(turn: Turn) -> tuple[int, ...]:
    """The accepted messages that came into the turn and that the model was told."""
    return tuple(item.inbox for item in turn.items if isinstance(item, PersonItem) and item.inbox)


Write = Callable[[], Awaitable[None]]
Patience = Callable[[Write], Awaitable[object]]
"""Stores, perhaps with patience for a storage that is away."""


async def at_once(write: Write) -> None:
    """Stores without patience: whoever closes a turn in another's place tries it again later."""
    await write()


class Herald(Protocol):
    """Says what other programs are told of a turn or an incident, which is stored with what it tells. It stores nothing itself."""

    async def ended(self, end: Closing) -> Sequence[HookRow]:
        """Of its end."""
        ...

    def noted(self, whose: TurnIdentity, turn: Turn, events: Sequence[Event]) -> Sequence[HookRow]:
        """Of what happened in it, and is about to be stored."""
        ...

    def incident(self, row: IncidentRow) -> Sequence[HookRow]:
        """Of an incident that opens or closes."""
        ...


class NoHerald:
    """Where nobody is told."""

    async def ended(self, end: Closing) -> Sequence[HookRow]:  # noqa: ARG002 - see above
        return ()

    def noted(self, whose: TurnIdentity, turn: Turn, events: Sequence[Event]) -> Sequence[HookRow]:  # noqa: ARG002
        return ()

    def incident(self, row: IncidentRow) -> Sequence[HookRow]:  # noqa: ARG002
        return ()


@dataclass(frozen=True, slots=True)
class Closer:
    """Closes turns: the only one who does."""

    store: Store
    tell: Tell
    troubled: Callable[[str, Sequence[TroubleRow]], None]
    """Called with a session and what went wrong in its turn, once it is stored."""
    herald: Herald = field(default_factory=NoHerald)

    async def close(
        self,
        end: Closing,
        outlet: Outlet | None,
        patience: Patience = at_once,
        instead: Fresh | None = None,
        told: Sequence[HookRow] = (),
    ) -> None:
        """Store the end, then let it be seen, then tell of it; nothing of that happens if it cannot be stored.

        `told` are what other programs are told of what is in its last rows. With `instead` the turn's own rows can be neither read nor
        written: what its chat is told belongs to that session, and what cannot be stored of the end is left out. Raises what the store raises, of that last case only that the chat could not be told.
        """

        async def write() -> None:
            parts = await _parts(outlet, end.shown)
            whose, hooks = end.whose, (*told, *await self.herald.ended(end))
            await self.store.turns.close(
                whose.session, whose.epoch, whose.turn, end.rows, end.exit.code.value, end.at, parts,
                end.used, end.heard, end.troubles, hooks, end.by, end.intended,
            )  # fmt: skip

        failed: StoreError | None = None
        if instead is not None:
            failed = await self._without_rows(end, outlet, instead)
        elif end.rows:
            await patience(write)
        self.troubled(end.whose.session, end.troubles)
        if outlet is not None:
            outlet.closed()
        self._say(end)
        self.tell(end.signal)
        if failed is not None:
            raise failed

    async def _without_rows(self, end: Closing, outlet: Outlet | None, instead: Fresh) -> StoreError | None:
        """Each by itself, since each may touch what is damaged; why the chat could not be told."""
        parts = await _parts(outlet, end.shown)
        with suppress(StoreError):
            await self.store.asides.end_turn(end.whose.turn, end.exit.code.value)
        with suppress(StoreError):
            await self.store.hooks.put(await self.herald.ended(end))
        try:
            if parts:
                await self.store.deliveries.put(instead.session, instead.epoch, parts)
        except StoreError as error:
            return error
        return None

    @staticmethod
    def _say(end: Closing) -> None:
        """The one line that says how a turn ended."""
        whose, turn, ending = end.whose, end.turn, end.exit
        if turn is None:
            reference = ending.reference if isinstance(ending, InternalError) else ""
            log.error("turn.ended", turn=whose.turn, session=whose.session, exit=ending.code.value, reference=reference)
            return
        began = turn.opened.at if turn.opened is not None else end.at
        route = turn.route
        (log.info if end.clean else log.warning)(
            "turn.ended",
            turn=whose.turn,
            session=whose.session,
            surface=whose.surface,
            caller=turn.opened.key or None if turn.opened is not None else None,
            agent=turn.opened.agent or None if turn.opened is not None else None,
            exit=ending.code.value,
            seconds=round(max(0, turn.phase_since - began) / 1000, 3),
            first_content_seconds=round(max(0, end.content_at - began) / 1000, 3) if end.content_at else None,
            steps=turn.steps_done,
            tool_calls=len(turn.round.tools_run),
            tools_failed=sum(isinstance(e, Activity) and e.state.value == "failed" for e in turn.timeline),
            endpoint=route.endpoint,
            model=route.model,
            model_calls=turn.calls_made,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            rungs=[  # the remedies; a name that logs are read by stays
                f"{failure.value}:{remedy.value}" for failure, remedy in turn.remedies
            ],
            fingerprint=fingerprint(turn),
            troubles=[_trouble_words(row) for row in end.met if row.code != ExitCode.ANSWERED],
            cause=ending.cause.value if isinstance(ending, Troubled) and ending.cause else None,
            status=(ending.status or None) if isinstance(ending, Troubled) else None,
        )


def _trouble_words(row: TroubleRow) -> str:
    """A failure of a turn in its line: fingerprint, remedy (``-``: none was left), and what became of it (``ended``: the turn)."""
    return f"{row.fingerprint} {row.rung or '-'} {'ended' if row.ended else row.outcome}"


async def _parts(outlet: Outlet | None, shown: View) -> Sequence[DeliveryRow]:
    """What is stored together with the turn's last row here, of what its chat is to show."""
    if outlet is None:
        return ()
    await outlet.prepare(shown)
    return outlet.closing(shown)


# ---------------------------------------------------------------------- until then


class JournalOwner(Protocol):
    """What a journal needs of the driver whose turn it is."""

    active_at: float

    @property
    def turn(self) -> Turn: ...

    def write_soon(self) -> None:
        """Have what is noted written, without anything else that happens."""
        ...


class TurnJournal:
    """The journal of a running turn: what is noted, and not stored yet. While the storage is away it is kept back here."""

    # fmt: off
    __slots__ = (
        "_afar", "_chars", "_clock", "_herald", "_identity", "_kept", "_of", "_seen", "_steady", "_store", "_timer", "damaged", "intended", "seq",
        "unwritten",
    )
    # fmt: on

    def __init__(
        self,
        store: Store,
        clock: Clock,
        identity: TurnIdentity,
        seen: TurnSeen,
        of: JournalOwner,
        herald: Herald,
        afar: Afar,
    ) -> None:
        self._store = store
        self._afar = afar
        self._herald = herald
        self._clock = clock
        self._identity = identity
        self._seen = seen
        self._of: JournalOwner = proxy(of)  # which lives as long as it has a journal
        self.unwritten: list[Event] = []
        self.intended: tuple[IntendedCall, ...] = ()
        """Calls whose start is among what is not stored yet."""
        self._kept: tuple[int, int] | None = None
        """How much of both is kept back."""
        self.seq = 0
        """The number of the next row."""
        self._chars = 0
        self._timer: asyncio.TimerHandle | None = None
        self._steady = False
        """It has streamed for so long that something was written on the way."""
        self.damaged: Damaged | None = None
        """Why nothing can be stored any more, however long one waits."""

    def opening(self, opened: TurnOpened, facts: Sequence[Event]) -> OpeningTurn:
        """The turn as it is to be opened in the store, with its first facts. They are no rows to come any more."""
        rows = tuple([row_of(event, seq) for seq, event in enumerate(facts)])
        self.seq = len(rows)
        whose, due = self._identity, opened.at + opened.settings.turn_seconds * 1000
        return OpeningTurn(whose.session, whose.epoch, whose.turn, rows, opened.at, due)

    def note(self, events: Sequence[Event]) -> None:
        """Write these with the next commit."""
        self.unwritten += events

    def intend(self, call: IntendedCall) -> None:
        """It is stored with the next commit that this call is begun."""
        self.intended = (*self.intended, call)

    @property
    def kept_back(self) -> bool:
        """Something waits for what comes of calls that run."""
        return self._kept is not None

    def keep_back(self) -> None:
        """Store what is noted with what comes next, or else soon."""
        if self._kept is None:
            self.stop()
            loop = asyncio.get_running_loop()
            self._timer = timer_at(loop, loop.time() + KEEP_SECONDS, self._flush)
        self._kept = len(self.unwritten), len(self.intended)

    def drop(self, *, everything: bool) -> None:
        """Store nothing of what is noted, because it may be why nothing can be stored; what was kept back before it only if not `everything`."""
        rows, calls = (0, 0) if everything or self._kept is None else self._kept
        self.unwritten, self.intended = self.unwritten[:rows], self.intended[:calls]

    def streamed(self, events: Sequence[Event]) -> None:
        """These, noted already, stream in: they are written soon; the name of a call sooner than text, unless its end comes first; a lot of text at
        once."""
        named = False
        for event in events:
            if isinstance(event, TextArrived | ReasoningArrived | ToolArgumentsArrived):
                self._chars += len(event.text)
            elif isinstance(event, ToolCallNamed):
                named = True
        if self._chars > FLUSH_CHARS:
            self._flush()
        elif named or self._timer is None:
            loop = asyncio.get_running_loop()
            seconds = SOON_SECONDS if named or self._afar.watched(self._identity.session) else FLUSH_SECONDS
            due = loop.time() + seconds
            if self._steady:  # with all others that stream: one commit, and one wake-up of the writer
                due -= due % seconds
            if self._timer is None or due < self._timer.when():
                self.stop()
                self._timer = timer_at(loop, due, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._steady = True
        self._flush()

    def _flush(self) -> None:
        self.stop()
        self._kept = None
        self._of.write_soon()

    def stop(self) -> None:
        """Nothing is written of itself any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def commit(self) -> None:
        """Append what is not written yet. While the storage is away the turn pauses: its end could not be stored either."""
        hooks = self._herald.noted(self._identity, self._of.turn, self.unwritten)
        intended = self.intended
        rows = self._rows()

        async def write() -> None:
            await self._append(rows, intended, hooks)

        await self._persist(write, math.inf, len(rows))
        self._afar.stored(self._identity.session)

    async def _append(
        self, rows: Sequence[JournalRow], intended: Sequence[IntendedCall], hooks: Sequence[HookRow]
    ) -> None:
        whose = self._identity
        if intended:
            await self._store.turns.intend(whose.session, whose.epoch, whose.turn, rows, intended, hooks)
        elif rows:
            await self._store.turns.append(whose.session, whose.epoch, whose.turn, rows, hooks)

    async def close(self, end: Closing, closer: Closer, outlet: Outlet | None) -> None:
        """Store the end, whose rows have all that was unwritten."""
        told = self._herald.noted(self._identity, self._of.turn, self.unwritten)
        rows = len(self._written(end.rows))
        # Without a limit: an end that is not stored is none, and after a restart this turn may end in another way.
        await closer.close(end, outlet, lambda write: self._persist(write, math.inf, rows), told=told)

    async def leave(self, outlet: Outlet | None, shown: View) -> bool:
        """Store what is noted, with what the chat is told of it, if that can be done in time; whether it was."""
        whose, store = self._identity, self._store
        hooks = self._herald.noted(whose, self._of.turn, self.unwritten)
        intended = self.intended
        rows = self._rows()

        async def write() -> None:
            parts = await _parts(outlet, shown)
            await self._append(rows, intended, hooks)
            if parts:
                await store.deliveries.put(whose.session, whose.epoch, parts)

        stored = await self._persist(write, LEAVE_PATIENCE_SECONDS)
        self._afar.stored(whose.session)
        return stored

    async def _persist(self, write: Write, patience_seconds: float, rows: int = 0) -> bool:
        """Write, with patience for a storage that is away. False if it stayed away. Who watches is told meanwhile. Of `rows` that do
        not come to be stored, whatever the reason, what comes next takes the places: without holes an end can be stored."""
        began = self._clock.monotonic()
        try:
            for attempt in itertools.count(1):
                try:
                    await write()
                except Damaged as error:  # waiting does not help, and no end can be stored either
                    self.damaged = error
                    raise Fenced(str(error)) from error
                except StorageUnavailable as error:
                    away = self._clock.monotonic() - began
                    log.warning(
                        "storage.unavailable", turn=self._identity.turn, away_seconds=round(away), error=str(error)
                    )
                    if away >= patience_seconds:
                        return False
                    self._seen.storage_away = True
                    self._of.active_at = self._clock.monotonic()
                    self._seen.ring()
                    await asyncio.sleep(STORING.seconds(attempt))
                except Exception:
                    self.seq -= rows
                    raise
                else:
                    return True
            raise AssertionError("counting has no end")
        finally:
            self._seen.storage_away = False

    def _rows(self) -> Sequence[JournalRow]:
        """What is to be written, with neighbouring text in one row; nothing is unwritten behind this."""
        return self._written([row_of(event, self.seq + n) for n, event in enumerate(merged(self.unwritten))])

    def _written(self, rows: Sequence[JournalRow]) -> Sequence[JournalRow]:
        """These rows have all that was unwritten."""
        self.stop()
        self.unwritten, self.intended, self._kept = [], (), None
        self._chars = 0
        self.seq += len(rows)
        return rows
