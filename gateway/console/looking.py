"""Gathers what the console shows. However many look, it is looked up once; and never more often than the database can bear.

Known to be weak: a database that is slow to read makes the console old by four times its slowness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import orjson

from adapters.contract.chat import AdapterSight, ChatAddress
from adapters.contract.pacing import Urgency
from agent_core.bell import Bell
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import BudgetRules, window
from agent_core.limits.spend import Budget
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.audit import AuditRow
from agent_core.store.deliveries.rows import Delivery, DeliveryState
from agent_core.store.overview import ExitCount, PotLevel, SpentBy, TurnSummary, WaitingMessages
from agent_core.store.store import Damaged, Store
from agent_core.store.troubles.rows import IncidentRow
from agent_core.text.redaction import Redactor
from agent_core.turn.view import view
from gateway.console import snapshot
from gateway.console.naming import Names
from gateway.console.words import WaitsFor
from gateway.delivery.outbox import Outbox
from gateway.sessions.hub import Hub

if TYPE_CHECKING:
    from gateway.sharing.afar import FarTurn

T = TypeVar("T")
FRESH_SECONDS = 0.5
"""How old a section may be that is shown."""
QUIET_SECONDS = 1.0
"""How often what is not stored is looked at while nothing is committed: adapters, pauses, words that count seconds."""
NET_SECONDS = 60.0
"""So old rows are asked for anew although nothing was committed here."""
FAR_SECONDS = 2.0
"""The same where other gateways commit, too."""
FAR_TURNS = 50
"""Of so many turns that others run it is read what they do."""
SHARE = 4
"""A section is looked up again after four times as long as that took, so that looking costs a fifth of a reader at most."""
SLOW_SECONDS = 60.0
"""How often the days before today are looked up."""
TURNS, SESSIONS, PARTS, INCIDENTS, POTS, AUDIT = 200, 150, 200, 100, 200, 200
"""How many of each are shown."""
DAYS, SPENDERS = 14, 500
TURNS_A_LOOK = 2_000
"""Of so many turns of the days before today it is looked up at once how they ended; what is more comes with the next looks, the latest day first."""
LATE_MS = 3600 * 1000
"""So long after its end, nothing ends any more in a day."""


Pace = Callable[[Bell, float, float], Awaitable[None]]
"""Return once the bell has rung, after so many seconds at the earliest and so many at the latest."""


async def paced(bell: Bell, least: float, most: float) -> None:
    """See `Pace`."""
    await asyncio.sleep(least)
    if most > least:
        await bell.wait(most - least)


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
    names: Names
    servers: Callable[[], Sequence[Json]] = tuple
    """How the servers of tools stand, as `outspoken status` shows it."""


@dataclass(slots=True)
class _Section:
    """One section: how it looks by the rows that were read, and what is not stored."""

    show: Callable[[], Json]
    goes_on: Callable[[], bool]
    """Whether it may look otherwise although no row did."""


@dataclass(slots=True)
class _Group:
    """Sections that are shown from the same rows."""

    sections: dict[str, _Section]
    ask: Callable[[], Awaitable[None]] | None = None
    """Reads their rows; None if they have none."""
    asked: tuple[int, ...] | None = None
    """What stood for the database when they were read."""
    next_at: float = -1e9


@dataclass(slots=True)
class _Past:
    """How turns of the days before ended."""

    today: int
    at: float
    days: dict[int, snapshot.Day]
    """By their beginning, the latest first."""
    whole: bool
    """They are all there."""


@dataclass(slots=True)
class _Rows:
    """What was read last."""

    opened: list[TurnSummary] = field(default_factory=list[TurnSummary])
    latest: list[TurnSummary] = field(default_factory=list[TurnSummary])
    waiting: list[WaitingMessages] = field(default_factory=list[WaitingMessages])
    incidents: list[IncidentRow] = field(default_factory=list[IncidentRow])
    parts: list[Delivery] = field(default_factory=list[Delivery])
    failed: list[Delivery] = field(default_factory=list[Delivery])
    pots: list[PotLevel] = field(default_factory=list[PotLevel])
    today: list[ExitCount] = field(default_factory=list[ExitCount])
    past: _Past | None = None
    audit: list[AuditRow] = field(default_factory=list[AuditRow])
    trends: list[snapshot.Trend] = field(default_factory=list[snapshot.Trend])
    spent: list[SpentBy] = field(default_factory=list[SpentBy])
    trends_at: float = -1e9
    nodes: list[Json] = field(default_factory=list[Json])
    far: dict[str, FarTurn] = field(default_factory=dict[str, "FarTurn"])
    """Turns that others run, as far as they were read."""


@dataclass(slots=True)
class Board:
    """The latest of all sections, as JSON. `sections` may be called by any number of watchers; each waits by `stirred` in between.

    Law: the database is asked once something was committed (or a day, or an hour, began), and never else but for `NET_SECONDS`.
    """

    sources: Sources
    pace: Pace = paced
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _bodies: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _groups: tuple[_Group, ...] = ()
    _rows: _Rows = field(default_factory=_Rows)
    _more: bool = False
    """What was asked last has to be asked again for the rest."""
    _unread: set[str] = field(default_factory=set[str])
    """Of which sections something could not be read when they were looked up last."""
    _moments: dict[str, tuple[int | None, int | None]] = field(default_factory=dict[str, tuple[int | None, int | None]])

    def __post_init__(self) -> None:
        def of_rows(show: Callable[[], Json]) -> _Section:
            return _Section(show, lambda: False)

        rows, always = self._rows, lambda: True
        turns = _Section(self._turns, lambda: bool(rows.opened))
        outbox = _Section(self._outbox, lambda: bool(rows.parts or rows.failed))
        here = {"gateway": _Section(self._gateway, always), "adapters": _Section(self._adapters, always)}
        here |= {"servers": _Section(self._servers, always)}
        self._groups = (
            _Group(here),
            _Group({"nodes": of_rows(lambda: self._rows.nodes)}, self._ask_nodes),
            _Group({"turns": turns, "sessions": of_rows(self._sessions)}, self._ask_turns),
            _Group({"incidents": of_rows(self._incidents)}, self._ask_incidents),
            _Group({"outbox": outbox}, self._ask_parts),
            _Group({"spend": of_rows(self._spend), "exits": of_rows(self._exits)}, self._ask_spent),
            _Group({"trends": of_rows(self._trends)}, self._ask_trends),
            _Group({"audit": of_rows(self._audit)}, self._ask_audit),
        )

    async def sections(self) -> dict[str, bytes]:
        """Every section as it was at most `FRESH_SECONDS` ago (or longer, if looking takes long). Raises `StorageUnavailable`."""
        async with self._lock:
            there = self._there()
            for one in self._groups:
                now = self.sources.clock.monotonic()
                if now < one.next_at:
                    continue
                asked = one.ask is not None and one.asked != there
                if one.ask is not None and asked:
                    self._unread -= one.sections.keys()
                    self._more = False
                    await one.ask()
                    one.asked = None if self._more else there
                for name, section in one.sections.items():
                    if asked or section.goes_on():
                        self._bodies[name] = orjson.dumps(section.show())
                took = self.sources.clock.monotonic() - now
                one.next_at = now + max(FRESH_SECONDS, SHARE * took)
            return {**self._bodies}

    def _there(self) -> tuple[int, ...]:
        """Stands for all that the database would answer now: it is other once something was committed, or another time runs."""
        now, zone = self.sources.clock.now_ms(), self.sources.rules.zone
        seconds = NET_SECONDS if self.sources.hub.portion.whole else FAR_SECONDS
        net = int(self.sources.clock.monotonic() // seconds)
        return self.sources.store.changes.count, window(Budget.HOUR, now, zone)[0], self._day(now)[0], net

    @contextmanager
    def watching(self) -> Generator[Bell]:
        """A bell for one who watches, for the block."""
        bell, changes = Bell(), self.sources.store.changes
        changes.subscribe(bell)
        try:
            yield bell
        finally:
            changes.unsubscribe(bell)
            bell.close()

    async def stirred(self, bell: Bell) -> None:
        """Return when there may be something else to see. `bell` is rung by what is committed."""
        await self.pace(bell, FRESH_SECONDS, FRESH_SECONDS if self._rows.opened else QUIET_SECONDS)

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
        for one in self._groups:
            one.asked, one.next_at = None, -1e9

    # ------------------------------------------------------------------ what is asked

    async def _ask_turns(self) -> None:
        overview, rows = self.sources.store.overview, self._rows
        rows.opened = await self._read("turns", overview.open_turns(TURNS + 1))
        rows.latest = await self._read("turns", overview.turns(2 * TURNS))
        self._left_out("turns", self.sources.store.left_out("turns"))
        rows.waiting = await self._read("sessions", overview.waiting(SESSIONS))
        await self._ask_far()
        await self.sources.names.learn((*rows.opened, *rows.latest))

    async def _ask_far(self) -> None:
        """What turns do that other gateways run."""
        rows, hub = self._rows, self.sources.hub
        if hub.portion.whole:
            return
        from gateway.sharing.afar import FarTurn  # of several alone

        here = {one.driver.identity.turn for one in hub.running()}
        far = [one.turn for one in rows.opened if one.turn not in here][:FAR_TURNS]
        rows.far = {name: rows.far.get(name) or FarTurn(self.sources.store, name) for name in far}
        for one in rows.far.values():
            with suppress(Damaged):  # then it is only known where it runs
                await one.look()

    async def _ask_nodes(self) -> None:
        portion = self.sources.hub.portion
        if not portion.whole:
            from gateway.sharing.nodes import nodes_seen

            store, now = self.sources.store, self.sources.clock.now_ms()
            self._rows.nodes = await nodes_seen(store, portion, now)

    async def _ask_incidents(self) -> None:
        troubles = self.sources.store.troubles
        opened = await self._read("incidents", troubles.incidents(limit=INCIDENTS))
        known = {one.incident for one in opened}
        latest = await self._read("incidents", troubles.incidents(open_only=False, limit=INCIDENTS))
        self._rows.incidents = [*opened, *(one for one in latest if one.incident not in known)][:INCIDENTS]

    async def _ask_parts(self) -> None:
        deliveries = self.sources.store.deliveries
        self._rows.parts = await self._read("outbox", deliveries.open(PARTS + 1))
        self._rows.failed = await self._read("outbox", deliveries.failed(PARTS + 1))

    async def _ask_spent(self) -> None:
        now = self.sources.clock.now_ms()
        pots = self.sources.store.overview.pots(now, POTS) if self.sources.rules.active else None
        self._rows.pots = await self._read("spend", pots) if pots is not None else []
        self._rows.today = await self._today(now)
        self._rows.past = await self._before(now)

    async def _ask_trends(self) -> None:
        """A day before today is looked up once; today, and who spent, once a minute."""
        moment, rows = self.sources.clock.monotonic(), self._rows
        if moment - rows.trends_at < SLOW_SECONDS:
            return
        known, found, looked = {one.name: one for one in rows.trends[:-1]}, list[snapshot.Trend](), 0
        for begin, end in reversed(self._days()):
            if looked > TURNS_A_LOOK:
                self._more = True
                break
            trend = known.get(self._named(begin))
            if trend is None:
                trend = await self._trend(begin, end)
                looked += sum(trend.took) if found else 0  # today is looked up in any case
            found.insert(0, trend)
        rows.trends = found
        if self._more:
            return
        rows.trends_at = moment
        first, last = self._days()[0][0], self._days()[-1][1]
        overview = self.sources.store.overview
        rows.spent = await self._read("spend", overview.spent(first, last, SPENDERS))
        await self.sources.names.meet({person for one in rows.spent for person in snapshot.askers_of(one.people)})

    async def _trend(self, begin: int, end: int) -> snapshot.Trend:
        overview, broke = self.sources.store.overview, dict[str, int]()
        took = await self._read("exits", overview.took(begin, end))
        try:
            broke = await overview.broke(begin, end)
        except Damaged:
            self._unread.add("incidents")
        return snapshot.Trend(self._named(begin), took, broke)

    def _days(self) -> list[tuple[int, int]]:
        """Begin and end of the days that are shown, today last."""
        days = [self._day(self.sources.clock.now_ms())]
        while len(days) < DAYS:
            days.insert(0, self._day(days[0][0] - 1))
        return days

    async def _ask_audit(self) -> None:
        self._rows.audit = await self._read("audit", self.sources.store.overview.audit(AUDIT))
        self._left_out("audit", self.sources.store.left_out("audit"))

    # ------------------------------------------------------------------ the sections

    def _gateway(self) -> Json:
        hub = self.sources.hub
        return {
            "version": self.sources.version,
            "rehearsal": hub.about().rehearsal,
            "laws_broken": hub.laws_broken,
        }

    def _turns(self) -> Json:
        shown = {one.turn for one in self._rows.opened[:TURNS]}
        here = [one.driver for one in self.sources.hub.running()]
        doing = {
            one.identity.turn: snapshot.doing_of(one.turn, one.seen.current_view())
            for one in here
            if one.identity.turn in shown
        }
        now, nodes = self.sources.clock.now_ms(), {one.turn: one.node for one in self._rows.opened}
        doing |= {
            name: snapshot.elsewhere_words(snapshot.doing_of(one.turn, view(one.turn, now)), nodes.get(name, 0))
            for name, one in self._rows.far.items()
            if one.turn is not None and name not in doing
        }
        return snapshot.turns_json(self._rows.opened, self._rows.latest, doing, TURNS, self.sources.names.of)

    def _sessions(self) -> Json:
        rows = self._rows
        return snapshot.sessions_json(rows.latest, rows.opened, rows.waiting, SESSIONS, self.sources.names.of)

    def _incidents(self) -> Json:
        return snapshot.incidents_json(self._rows.incidents)

    def _outbox(self) -> Json:
        return snapshot.outbox_json(self._parts(self._rows.parts), self._parts(self._rows.failed), PARTS)

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

    def _adapters(self) -> Json:
        found = snapshot.adapters_json(self.sources.sights(), self.sources.clock.now_ms(), self._moments)
        for one in found:
            assert isinstance(one, dict)
            inbound, outbound = one["inbound_at"], one["outbound_at"]
            times = (inbound if isinstance(inbound, int) else None, outbound if isinstance(outbound, int) else None)
            self._moments[str(one["id"])] = times
            one["words"] = self.sources.redactor.redact(str(one["words"]))
        return found

    def _servers(self) -> Json:
        found = snapshot.servers_json(self.sources.servers())
        for one in found:
            one |= {key: self.sources.redactor.redact(str(one[key])) for key in ("about", "words", "last")}
        return [*found]

    def _spend(self) -> Json:
        now, rows = self.sources.clock.now_ms(), self._rows
        return snapshot.spend_json(self.sources.rules, rows.pots, rows.today, now, POTS)

    def _exits(self) -> Json:
        past = self._rows.past
        assert past is not None
        named = snapshot.Day(self._named(past.today), self._rows.today)
        return snapshot.exits_json([*reversed(past.days.values()), named], self.sources.rules.zone_name)

    def _trends(self) -> Json:
        return snapshot.trends_json(self._rows.trends, self._rows.spent, self.sources.names.person)

    def _audit(self) -> Json:
        return snapshot.audit_json(self._rows.audit)

    # ------------------------------------------------------------------ days

    def _day(self, at: int) -> tuple[int, int]:
        return window(Budget.DAY, at, self.sources.rules.zone)

    def _named(self, start: int) -> str:
        return f"{datetime.fromtimestamp(start / 1000, self.sources.rules.zone):%Y-%m-%d}"

    async def _today(self, now: int) -> list[ExitCount]:
        """How the turns ended that ended today."""
        return await self._read("exits", self.sources.store.overview.exits(*self._day(now)))

    async def _before(self, now: int) -> _Past:
        """The days before today: they change no more, but for an end that was stored late."""
        start, moment, past = self._day(now)[0], self.sources.clock.monotonic(), self._rows.past
        if past is not None and past.today == start and past.whole and moment - past.at < SLOW_SECONDS:
            return past
        found, looked = dict[int, snapshot.Day](), 0
        for begin, stop in reversed(self._days()[:-1]):
            if looked > TURNS_A_LOOK:
                self._more = True
                break
            day = past.days.get(begin) if past is not None else None
            # what may change still, or was empty, is looked up again: once they are all there
            if day is None or (past is not None and past.whole and not (now - stop > LATE_MS and day.exits)):
                day = await self._ended(begin, stop)
                looked += sum(one.count for one in day.exits)
            found[begin] = day
        return _Past(start, moment, found, not self._more)

    async def _ended(self, begin: int, stop: int) -> snapshot.Day:
        return snapshot.Day(
            self._named(begin), await self._read("exits", self.sources.store.overview.exits(begin, stop))
        )
