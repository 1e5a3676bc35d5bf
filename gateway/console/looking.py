"""Gathers what the console shows. However many look, it is looked up once; and never more often than the database can bear.

Known to be weak: a database that is slow to read makes the console old by four times its slowness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from datetime import datetime
from typing import TypeVar

import orjson

from adapters.contract.chat import AdapterSight, ChatAddress
from adapters.contract.pacing import Urgency
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import BudgetRules, window
from agent_core.limits.spend import Budget
from agent_core.ports import Clock, time_mark
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import Delivery, DeliveryState
from agent_core.store.overview import ExitCount, TurnSummary
from agent_core.store.store import Damaged, Store
from agent_core.text.redaction import Redactor
from gateway.console import snapshot
from gateway.console.words import WaitsFor
from gateway.delivery.outbox import Outbox
from gateway.sessions.hub import Hub

T = TypeVar("T")
FRESH_SECONDS = 0.2
"""How old a section may be that is shown."""
SHARE = 4
"""A section is looked up again after four times as long as that took, so that looking costs a fifth of a reader at most."""
SLOW_SECONDS = 60.0
"""How often the days before today are looked up."""
TURNS, SESSIONS, PARTS, INCIDENTS, POTS, AUDIT = 200, 150, 200, 100, 200, 200
"""How many of each are shown."""
DAYS = 14
DAY_MS = 24 * 3600 * 1000
LONGEST_TURN_MS = 2 * DAY_MS
"""A turn that ends today began at most so long ago, unless the gateway was stopped meanwhile."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where it comes from."""

    store: Store
    hub: Hub
    outbox: Outbox
    sights: Callable[[], Sequence[AdapterSight]]
    rules: BudgetRules
    clock: Clock
    redactor: Redactor
    version: str


@dataclass(slots=True)
class _Section:
    """One section as it was looked up last."""

    look: Callable[[], Awaitable[Json]]
    body: bytes = b""
    at: float = -1e9
    next_at: float = -1e9


@dataclass(slots=True)
class _Past:
    """How turns of the days before ended, and turns of today that had begun long before."""

    today: int
    at: float
    days: list[snapshot.Day]
    late: list[ExitCount]


@dataclass(slots=True)
class Board:
    """The latest of all sections, as JSON. `sections` may be called by any number of watchers."""

    sources: Sources
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _sections: dict[str, _Section] = field(default_factory=dict[str, _Section])
    _past: _Past | None = None
    _unread: set[str] = field(default_factory=set[str])
    """Of which sections something could not be read when they were looked up last."""
    _moments: dict[str, tuple[int | None, int | None]] = field(default_factory=dict[str, tuple[int | None, int | None]])
    _latest: list[TurnSummary] = field(default_factory=list[TurnSummary])
    _opened: list[TurnSummary] = field(default_factory=list[TurnSummary])

    def __post_init__(self) -> None:
        looks: dict[str, Callable[[], Awaitable[Json]]] = {
            "gateway": self._gateway,
            "turns": self._turns,
            "sessions": self._sessions_of,
            "incidents": self._incidents,
            "outbox": self._outbox,
            "adapters": self._adapters,
            "spend": self._spend,
            "exits": self._exits,
            "audit": self._audit,
        }
        self._sections = {name: _Section(look) for name, look in looks.items()}

    async def sections(self) -> dict[str, bytes]:
        """Every section as it was at most `FRESH_SECONDS` ago (or longer, if looking takes long). Raises `StorageUnavailable`."""
        async with self._lock:
            for name, section in self._sections.items():
                now = self.sources.clock.monotonic()
                if now < section.next_at:
                    continue
                self._unread.discard(name)
                body = orjson.dumps(await section.look())
                took = self.sources.clock.monotonic() - now
                section.body, section.at = body, now
                section.next_at = now + max(FRESH_SECONDS, SHARE * took)
            return {name: section.body for name, section in self._sections.items()}

    @property
    def trouble(self) -> str:
        """What is not shown because it cannot be read, in words; empty if everything is there."""
        if not self._unread:
            return ""
        named = ", ".join(sorted(self._unread))
        return f"Rows cannot be read and are left out: {named}. The database is damaged: outspoken db check says where."

    async def _read(self, what: str, asked: Awaitable[list[T]]) -> list[T]:
        """What can be read; nothing, and said to be left out, if none of it can. Raises `StorageUnavailable` if the database is away."""
        try:
            found = await asked
        except Damaged:
            self._unread.add(what)
            return []
        return found

    def _left_out(self, what: str, some: bool) -> None:
        if some:
            self._unread.add(what)

    def hurry(self) -> None:
        """Something was done: look again at once."""
        for section in self._sections.values():
            section.next_at = -1e9

    # ------------------------------------------------------------------ the sections

    async def _gateway(self) -> Json:
        hub = self.sources.hub
        return {
            "version": self.sources.version,
            "rehearsal": hub.about().rehearsal,
            "laws_broken": hub.laws_broken,
        }

    async def _turns(self) -> Json:
        overview = self.sources.store.overview
        self._opened = await self._read("turns", overview.open_turns(TURNS + 1))
        self._latest = await self._read("turns", overview.turns(2 * TURNS))
        self._left_out("turns", self.sources.store.left_out("turns"))
        doing = {one.driver.identity.turn: snapshot.doing_of(one.driver) for one in self.sources.hub.running()}
        return snapshot.turns_json(self._opened, self._latest, doing, TURNS)

    async def _sessions_of(self) -> Json:
        overview = self.sources.store.overview
        waiting = await self._read("sessions", overview.waiting(SESSIONS))
        named = {one.session for one in (*waiting, *self._latest, *self._opened)}
        known = await self._read("sessions", overview.sessions(named)) if named else []
        return snapshot.sessions_json(self._latest, self._opened, waiting, known, SESSIONS)

    async def _incidents(self) -> Json:
        store = self.sources.store
        opened = await self._read("incidents", store.troubles.incidents(limit=INCIDENTS))
        known = {one.incident for one in opened}
        latest = await self._read("incidents", store.troubles.incidents(open_only=False, limit=INCIDENTS))
        return snapshot.incidents_json([*opened, *(one for one in latest if one.incident not in known)][:INCIDENTS])

    async def _outbox(self) -> Json:
        store = self.sources.store
        waiting = await self._read("outbox", store.deliveries.open(PARTS + 1))
        failed = await self._read("outbox", store.deliveries.failed(PARTS + 1))
        return snapshot.outbox_json(self._parts(waiting), self._parts(failed), PARTS)

    def _parts(self, found: Sequence[Delivery]) -> list[dict[str, Json]]:
        outbox, now = self.sources.outbox, self.sources.clock.now_ms()
        sights = {sight.name: sight for sight in self.sources.sights()}
        ahead: dict[str, int] = {}
        rows: list[dict[str, Json]] = []
        for one in found:
            address = ChatAddress.of(one.row.surface)
            account = f"{address.platform}/{address.account}"
            configured = outbox.accounts.knows(address)
            part = outbox.part_of(one)
            if one.row.state is not DeliveryState.FAILED and not part.open:
                continue  # it is through, and that is not stored yet
            gate = outbox.gates.waits(address)[Urgency.FINAL] if configured else 0
            around = WaitsFor(now, configured, sights.get(account), gate, ahead.get(one.row.surface, 0))
            ahead[one.row.surface] = ahead.get(one.row.surface, 0) + 1
            row = snapshot.part_json(one.session, part, around)
            row["why"] = self.sources.redactor.redact(str(row["why"]))
            rows.append(row)
        return rows

    async def _adapters(self) -> Json:
        found = snapshot.adapters_json(self.sources.sights(), self.sources.clock.now_ms(), self._moments)
        for one in found:
            assert isinstance(one, dict)
            inbound, outbound = one["inbound_at"], one["outbound_at"]
            times = (inbound if isinstance(inbound, int) else None, outbound if isinstance(outbound, int) else None)
            self._moments[str(one["id"])] = times
            one["words"] = self.sources.redactor.redact(str(one["words"]))
        return found

    async def _spend(self) -> Json:
        now = self.sources.clock.now_ms()
        pots = (
            await self._read("spend", self.sources.store.overview.pots(now, POTS)) if self.sources.rules.active else []
        )
        return snapshot.spend_json(self.sources.rules, pots, await self._today(now), now, POTS)

    async def _exits(self) -> Json:
        now = self.sources.clock.now_ms()
        today = await self._today(now)
        past = await self._before(now)
        start, _ = self._day(now)
        named = snapshot.Day(self._named(start), _added(today, past.late))
        return snapshot.exits_json([*past.days, named], self.sources.rules.zone_name)

    async def _audit(self) -> Json:
        overview = self.sources.store.overview
        found = await self._read("audit", overview.audit(AUDIT))
        self._left_out("audit", self.sources.store.left_out("audit"))
        return snapshot.audit_json(found)

    # ------------------------------------------------------------------ days

    def _day(self, at: int) -> tuple[int, int]:
        return window(Budget.DAY, at, self.sources.rules.zone)

    def _named(self, start: int) -> str:
        return f"{datetime.fromtimestamp(start / 1000, self.sources.rules.zone):%Y-%m-%d}"

    async def _today(self, now: int) -> list[ExitCount]:
        """How the turns ended that ended today and began not long ago."""
        start, end = self._day(now)
        opened = (f"t_{time_mark(start - LONGEST_TURN_MS)}", f"t_{time_mark(end)}")
        return await self._read("exits", self.sources.store.overview.exits(start, end, opened))

    async def _before(self, now: int) -> _Past:
        """The days before today: they change no more, but for an end that was stored late."""
        start, end = self._day(now)
        past, moment = self._past, self.sources.clock.monotonic()
        if past is not None and past.today == start and moment - past.at < SLOW_SECONDS:
            return past
        overview = self.sources.store.overview
        days: list[snapshot.Day] = []
        first = start
        for _ in range(DAYS - 1):
            begin, stop = self._day(first - 1)
            opened = (f"t_{time_mark(begin - DAYS * DAY_MS)}", f"t_{time_mark(stop)}")
            days.insert(
                0, snapshot.Day(self._named(begin), await self._read("exits", overview.exits(begin, stop, opened)))
            )
            first = begin
        long_ago = (f"t_{time_mark(start - 2 * DAYS * DAY_MS)}", f"t_{time_mark(start - LONGEST_TURN_MS)}")
        self._past = _Past(start, moment, days, await self._read("exits", overview.exits(start, end, long_ago)))
        return self._past


def _added(one: Sequence[ExitCount], other: Sequence[ExitCount]) -> list[ExitCount]:
    found = {count.exit: count for count in one}
    for count in other:
        known = found.get(count.exit, ExitCount(count.exit, 0, 0, 0))
        found[count.exit] = ExitCount(
            count.exit,
            known.count + count.count,
            known.input_tokens + count.input_tokens,
            known.output_tokens + count.output_tokens,
        )
    return [found[name] for name in sorted(found)]
