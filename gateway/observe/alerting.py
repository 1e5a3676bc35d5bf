"""Looks every few seconds at what is wrong, and has the operators told. What is told and when is decided in `gateway.limits.alerts`.

While nothing can be stored, nothing can be said in a chat either (a message is stored before it is sent); then the log and
``/readyz`` say so, and the chat is told afterwards from when to when it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace

import structlog

from adapters.contract.chat import AdapterSight
from agent_core.bell import Bell
from agent_core.beside import beside
from agent_core.limits.budgets import BudgetRules, Level, Payer, Pot, Reached
from agent_core.limits.spend import Measure
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.store import StorageUnavailable, Store
from gateway.chats.supervisor import AdapterState
from gateway.limits.alerts import (
    AlertKind,
    AlertLimits,
    AlertMemory,
    AlertRules,
    Condition,
    Message,
    News,
    due,
    looked,
    open_now,
    told,
)
from gateway.limits.budgets import warning_words
from gateway.storage.storewatch import StoreWatch

log = structlog.get_logger("alert")

LOOK_SECONDS = 5.0
SLOW_LOOK_SECONDS = 60.0
"""How often the disk, the budgets and a store that nobody writes to are looked at."""
LOG_SAVED = (
    "The log of the database (the file that ends in -wal) was removed or replaced while the gateway runs. All that it held was copied into the "
    "database, and a new log was begun, so nothing is lost. See who does that: a kill before it was noticed would have lost what was in it."
)
NOT_TOLD_SECONDS = 60.0
"""When the chat could not be reached, it is tried again after so long."""
MIB = 1024**2

Say = Callable[[str, str], Awaitable[bool]]
"""Says words in the operators' chat, once under each key; whether that was possible."""


@dataclass(frozen=True, slots=True)
class Sights:
    """What is looked at."""

    adapters: Sequence[AdapterSight]
    oldest_undelivered: Mapping[str, float]
    """By platform, seconds."""
    store_words: str
    free_bytes: int | None
    """None: it could not be found out."""
    pots: Sequence[tuple[Pot, Level]]
    oldest_wait: float = 0.0
    """How long somebody has waited for the gateway to have room for their turn, seconds."""
    damage: str = ""
    """What of the database is damaged, in words."""
    unclaimed: str = ""
    """What an earlier process left and nobody could take up yet, in words."""
    quota: str = ""
    """That what may be kept in all is nearly used up, in words."""
    laws: str = ""
    """Which laws what is stored breaks, in words."""
    webhooks: Sequence[tuple[str, str, str]] = ()
    """Receivers that take nothing: (key, what is wrong, what is said when it is over)."""


OF_ONE = frozenset({AlertKind.STORAGE, AlertKind.DISK, AlertKind.QUEUE, AlertKind.DELIVERY})
"""What is wrong with one gateway, its machine or its way to the database, and not with all."""
OF_ALL = frozenset({AlertKind.SPEND, AlertKind.LAW, AlertKind.DAMAGE, AlertKind.WEBHOOK})
"""What is stored is the same for all of them: one of them tells of it."""
SENDS = (AdapterState.UP.value, AdapterState.ELSEWHERE.value)
"""What is to be sent can be."""


def conditions(sights: Sights, limits: AlertLimits, rules: BudgetRules | None, now: int) -> list[Condition]:
    """What is wrong. Pure."""
    found = [one for sight in sights.adapters if (one := _adapter(sight, limits)) is not None]
    found += [_unread(sight) for sight in sights.adapters if sight.unread]
    down = {sight.name.partition("/")[0] for sight in sights.adapters if sight.state not in SENDS}
    for platform, seconds in sights.oldest_undelivered.items():
        if seconds > limits.undelivered_seconds and platform not in down:
            words = f"Something has waited for {seconds / 60:.0f} min to be delivered on {platform}: outspoken status."
            over = f"Nothing waits for long any more to be delivered on {platform}."
            found.append(Condition(f"delivery:{platform}", AlertKind.DELIVERY, words, over))
    if sights.oldest_wait > limits.wait_seconds:
        words = f"Somebody has waited for {sights.oldest_wait / 60:.0f} min until there is room for their turn: outspoken status."
        found.append(Condition("queue", AlertKind.QUEUE, words, "Nobody waits for long any more until there is room."))
    if sights.store_words:
        words = f"Nothing could be stored, so no message could be taken: {sights.store_words}"
        found.append(Condition("storage", AlertKind.STORAGE, words, "The database takes writes again."))
    if sights.free_bytes is not None and sights.free_bytes < limits.free_mib * MIB:
        words = f"Only {sights.free_bytes // MIB} MiB are free on the disk that holds the state. Make room there."
        found.append(Condition("disk", AlertKind.DISK, words, "There is room on the disk again."))
    if sights.quota:
        over = "There is room again in what may be kept in all."
        found.append(Condition("quota", AlertKind.DISK, sights.quota, over))
    if sights.damage:
        over = "The last look through the database found nothing damaged."
        found.append(Condition("damage", AlertKind.DAMAGE, sights.damage, over))
    if sights.laws:
        over = "What is stored breaks no law any more."
        found.append(Condition("laws", AlertKind.LAW, sights.laws, over))
    if sights.unclaimed:
        over = "Everything that an earlier process left is taken up."
        found.append(Condition("unclaimed", AlertKind.UNCLAIMED, sights.unclaimed, over))
    found += [Condition(key, AlertKind.WEBHOOK, words, over) for key, words, over in sights.webhooks]
    for pot, level in sights.pots if rules is not None else ():
        assert rules is not None
        found += [one for measure in Measure if (one := _spend(pot, level, measure, rules, now)) is not None]
    return found


def of_one(condition: Condition, gateway: str) -> Condition:
    """The same as one of several gateways has it, where that concerns it alone: else it would be taken for what another one has told. Pure."""
    if not gateway or condition.kind not in OF_ONE:
        return condition
    over = f"{gateway}: {condition.over}" if condition.over else ""
    return replace(condition, key=f"{condition.key}:{gateway}", words=f"{gateway}: {condition.words}", over=over)


def _adapter(sight: AdapterSight, limits: AlertLimits) -> Condition | None:
    platform = sight.name.partition("/")[0]
    why = f": {sight.words}" if sight.words else "."
    key, over = f"adapter:{sight.name}", f"{platform} is connected again."
    grace = limits.adapter_seconds * 1000
    match AdapterState(sight.state):
        case AdapterState.UP if sight.words:  # it works, and somebody should know something all the same
            return Condition(
                f"{key}:note", AlertKind.ADAPTER, f"{platform}: {sight.words}", f"{platform} works as usual."
            )
        case AdapterState.UP | AdapterState.STOPPED | AdapterState.ELSEWHERE:
            return None
        case AdapterState.NEEDS_A_PERSON:
            return Condition(key, AlertKind.ADAPTER, f"{platform} needs somebody to do something{why}", over)
        case AdapterState.STARTING | AdapterState.DOWN:
            return Condition(key, AlertKind.ADAPTER, f"{platform} is not connected{why}", over, grace)


def _unread(sight: AdapterSight) -> Condition:
    platform = sight.name.partition("/")[0]
    what = "message" if sight.unread == 1 else "messages"
    words = (
        f"{sight.unread} {what} from {platform} cannot be taken in because of a mistake of the program. Nothing is lost: what came is kept and "
        "tried again, after an update at the latest. The log says why (intake.kept)."
    )
    return Condition(f"intake:{sight.name}", AlertKind.INTAKE, words, f"All that was kept from {platform} is taken in.")


def _spend(pot: Pot, level: Level, measure: Measure, rules: BudgetRules, now: int) -> Condition | None:
    limit, spent, warn = pot.limit.of(measure), level.spent.of(measure), pot.warn.of(measure)
    if not limit or not warn or spent < warn:
        return None
    full = spent >= limit
    words = warning_words(Reached(pot, measure, level), rules, now).removeprefix("ℹ️ ")
    words += " Until then no model is asked." if full else ""
    key = f"spend:{pot.scope}:{pot.window}:{measure.value}:{'full' if full else 'warn'}"
    return Condition(key, AlertKind.SPEND, words)


class Announcements:
    """What others have decided to tell the operators: there before any of them, and before the alerter that takes it. Make it inside the event loop."""

    def __init__(self) -> None:
        self._news: list[News] = []
        self.bell = Bell()

    def announce(self, key: str, words: str) -> None:
        """Have this told, once."""
        if (news := News(key, words)) not in self._news:
            self._news.append(news)
        self.bell.ring()

    def take(self) -> list[News]:
        """What is new since this was asked last."""
        taken, self._news = self._news, []
        return taken


@dataclass(eq=False)
class Alerter:
    """`running` is its life."""

    limits: AlertLimits
    rules: AlertRules
    store: Store
    watch: StoreWatch
    announced: Announcements
    clock: Clock
    adapters: Callable[[], Sequence[AdapterSight]]
    oldest_undelivered: Callable[[], Mapping[str, float]]
    budgets: BudgetRules | None
    say: Say | None
    """None if no chat is named: then the log alone is told."""
    unclaimed: Callable[[], str] = str
    oldest_wait: Callable[[], float] = float
    """How long somebody has waited for room, seconds."""
    damage_words: Callable[[], str] = str
    quota_words: Callable[[], str] = str
    """That what may be kept is nearly used up."""
    laws_words: Callable[[], str] = str
    """Which laws what is stored breaks."""
    webhook_troubles: Callable[[], Sequence[tuple[str, str, str]]] = tuple
    """Of receivers of webhooks: (key, what is wrong, what is said when it is over)."""
    hooks: Callable[[Message], Awaitable[None]] | None = None
    """Has other programs told what the operators are told."""
    several: bool = False
    """It is one of several gateways."""
    for_all: Callable[[], bool] = lambda: True
    """Whether it is the one of them that tells of what concerns all."""
    pots: Sequence[tuple[Pot, Level]] = ()
    """The budgets of everybody that have a limit, as of the last slow look."""
    _memory: AlertMemory = field(default_factory=AlertMemory)
    _saved: int = 0
    """How often a log that was taken away was saved, as far as is told."""
    _quiet_until: float = 0.0
    _slow_at: float | None = None

    @property
    def open(self) -> tuple[Condition, ...]:
        """What is wrong just now, in the words of now: what is over is none of it, also before it is told as over."""
        known = {one.key for one in open_now(self._memory)}
        others = frozenset[AlertKind]() if self.for_all() else OF_ALL
        return tuple(one for one in self._wrong(self.clock.now_ms()) if one.key in known or one.kind in others)

    def _wrong(self, now: int) -> list[Condition]:
        sights = Sights(
            self.adapters(),
            self.oldest_undelivered(),
            self.watch.words,
            self.watch.free_bytes,
            self.pots,
            self.oldest_wait(),
            self.damage_words(),
            self.unclaimed(),
            self.quota_words(),
            self.laws_words(),
            self.webhook_troubles(),
        )
        gateway = f"Gateway {self.store.node}" if self.several else ""
        return [of_one(one, gateway) for one in conditions(sights, self.limits, self.budgets, now)]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """It looks, for the block."""
        try:
            async with beside(self._run, "alerts"):
                yield
        finally:
            self.announced.bell.close()

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                log.exception("alert.failed")
            await self.announced.bell.wait(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once, and tell what is to be told."""
        await self._look_slowly()
        now = self.clock.now_ms()
        for news in self.announced.take():
            self._memory = self._memory.with_news(news)
        wrong = [one for one in self._wrong(now) if one.kind not in OF_ALL or self.for_all()]
        self._memory = looked(self._memory, wrong, now, self.rules)
        can_tell = not self.watch.words
        while self.clock.monotonic() >= self._quiet_until:
            self._memory, message = due(self._memory, now, self.rules, can_tell=can_tell)
            if message is None:
                return
            if not await self._tell(message):
                self._quiet_until = self.clock.monotonic() + NOT_TOLD_SECONDS
                return
            self._memory = told(self._memory, message, now)

    async def _tell(self, message: Message) -> bool:
        ids = [line.id for line in message.lines]
        if self.hooks is not None:
            with suppress(StorageUnavailable):
                await self.hooks(message)
        if self.say is not None and not await self.say(_key(ids, self.clock.now_ms()), message.words):
            return False
        over = all(line.closes and not line.opens for line in message.lines)
        (log.info if over else log.warning)("alert.told", alerts=ids, words=message.words, in_chat=self.say is not None)
        return True

    async def _look_slowly(self) -> None:
        now = self.clock.monotonic()
        await self.watch.look()
        if self.watch.words or self.watch.astray:
            await self.watch.works(LOOK_SECONDS / 2)  # it does not come back by itself while nobody writes
        if self.store.logs_saved > self._saved:
            self._saved = self.store.logs_saved
            # By the time: an earlier process may have told of its first one.
            self.announced.announce(f"storage:saved:{self.clock.now_ms()}", LOG_SAVED)
        if self._slow_at is not None and now - self._slow_at < SLOW_LOOK_SECONDS:
            return
        self._slow_at = now
        await self.watch.works(SLOW_LOOK_SECONDS)
        await self.read_pots()

    async def read_pots(self) -> None:
        """Have `pots` say how the budgets of everybody stand now; as before while the storage is away."""
        if self.budgets is None:
            return
        pots = [
            pot
            for pot in self.budgets.pots(Payer("", ""), "", self.clock.now_ms())
            if pot.limit.tokens or pot.limit.nanos
        ]
        with suppress(StorageUnavailable):
            levels = await self.store.budgets.levels([pot.key for pot in pots])
            self.pots = tuple((pot, levels.get(pot.key, Level())) for pot in pots)


def _key(ids: Sequence[str], now: int) -> str:
    """Under which a message is said once. One without a line, which only counts what has passed, is like no other."""
    if not ids:
        return f"alerts:passed:{now}"
    if len(ids) == 1:
        return ids[0]
    return f"alerts:{hashlib.blake2b('|'.join(sorted(ids)).encode(), digest_size=8).hexdigest()}"
