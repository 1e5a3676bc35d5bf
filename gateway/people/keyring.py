"""The keys that are good, in memory: asked at each request, changed with the store, and looked at again where others may change it.

No request costs a statement: when a key was used is noted once a minute at most, for all keys in one write. On SQLite nobody else can change
what is stored; on PostgreSQL a command on another machine can, so once a second it is asked whether anything changed. What another gateway changes,
it says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import structlog

from adapters.contract.callers import EVERYTHING, PROXY, Allowance, Caller, KeyTerms
from agent_core.bell import Bell
from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import BudgetRules, Level
from agent_core.ports import Clock, Ids
from agent_core.store.apikeys.rows import ApiKeyRow
from agent_core.store.audit import AuditRow
from agent_core.store.store import StorageUnavailable, Store
from gateway.limits.rates import KeyMeters
from gateway.people import keys
from gateway.people.keys import KeyRefused, KnownKey, Nameable
from gateway.sharing.portion import KEYS, Portion

log = structlog.get_logger("gateway")

LOOK_SECONDS, TOLD_SECONDS = 1.0, 5.0
"""How often it is looked whether others have changed something; and where they say so."""
LEARN_SECONDS = 0.1
"""Between two looks for keys that nobody knows."""
NOTE_MS = 60_000
RANDOM_BYTES = 37
BY = "operator"


class Keyring:
    """Implements `adapters.contract.callers.Callers`. `configured` is the key of the configuration; `keyless`: who shows none is served."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        configured: str | None = None,
        *,
        keyless: bool = False,
        meters: KeyMeters | None = None,
        portion: Portion | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._configured = configured
        self._keyless = keyless and configured is None
        self._meters = meters or KeyMeters()
        self._known: dict[str, KnownKey] = {}
        """By name; also those that were revoked, whose messages may still wait."""
        self._by_prefix: Mapping[str, KnownKey] = {}
        self._seen: tuple[int, int] = (0, 0)
        self._used: dict[str, int] = {}
        """When each was shown last."""
        self._noted: dict[str, int] = {}
        """As far as it is stored."""
        self._noted_at = 0
        self._bell, self._opening, self._looking = Bell(), asyncio.Lock(), asyncio.Lock()
        self._looked_at, self._blind = float("-inf"), False
        """When it was last looked for a key that nobody knew, and whether that came to nothing."""
        self._portion = portion or Portion()
        self._portion.words[KEYS] = self._bell.ring

    async def open(self) -> None:
        """Learn which there are. Raises `StorageUnavailable`."""
        async with self._opening:  # one after the other: what was read before a key was revoked must not come last
            found = await self._store.apikeys.all()
            self._seen = len(found), sum(row.changed_at for row in found)
            self._known = {row.name: known for row in found if (known := readable(row)) is not None}
            self._by_prefix = keys.by_prefix(self._known.values())

    async def learn(self, shown: str) -> None:
        """Know a key that another gateway has made a moment ago, before it is refused here. Those who show one of which nobody knows wait for one look
        that has begun since they came; there are so many a second at most, whoever guesses. Raises `StorageUnavailable` where nobody can look: then
        it is not known whether the key is good."""
        prefix, came = keys.prefix_of(shown), self._clock.monotonic()
        if not prefix or prefix in self._by_prefix:
            return
        async with self._looking:
            if prefix in self._by_prefix:
                return
            if self._looked_at <= came:
                await asyncio.sleep(max(0.0, self._looked_at + LEARN_SECONDS - self._clock.monotonic()))
                self._looked_at, self._blind = self._clock.monotonic(), True
                if await self._store.apikeys.state() != self._seen:
                    await self.open()
                self._blind = False
            elif self._blind:
                raise StorageUnavailable("Nobody can look for a key just now.")

    @asynccontextmanager
    async def running(self, *, shared: bool) -> AsyncGenerator[None]:
        """While the block runs, it is noted what is used; and looked for changes, where the database is `shared` with others."""
        try:
            async with beside(partial(self._run, shared=shared), "keyring"):
                yield
        finally:
            self._bell.close()
            with suppress(StorageUnavailable):
                await self._note()

    async def _run(self, *, shared: bool) -> None:
        seconds = LOOK_SECONDS if self._portion.whole else TOLD_SECONDS
        while True:
            await self._bell.wait(seconds)
            with suppress(StorageUnavailable):  # whoever watches the store says so
                if shared and await self._store.apikeys.state() != self._seen:
                    await self.open()
                if self._clock.now_ms() - self._noted_at >= NOTE_MS:
                    await self._note()

    async def _note(self) -> None:
        used = {name: at for name, at in self._used.items() if self._noted.get(name) != at}
        if used:
            self._noted_at = self._clock.now_ms()
            await self._store.apikeys.used(used)
            self._noted |= used

    # ------------------------------------------------------------------ adapters.contract.callers.Callers

    @property
    def keyless(self) -> bool:
        return self._keyless

    def who(self, shown: str, headers: Mapping[str, str]) -> Caller | None:
        now = self._clock.now_ms()
        found = keys.who(shown, headers, self._configured, self._by_prefix, now, keyless=self._keyless)
        if found is not None and found.key:
            self._used[found.key] = now
        return found

    def holds(self, caller: Caller) -> bool:
        known = self._known.get(caller.key)
        return caller.key in ("", PROXY) or (known is not None and known.good(self._clock.now_ms()))

    def left(self, caller: Caller) -> Sequence[Allowance]:
        limit = self.terms(caller.key).minute_requests if caller.key else 0
        return self._meters.left(caller.key, limit, round(self._clock.monotonic() * 1000), self._clock.now_ms())

    # ------------------------------------------------------------------ for the gateway

    def terms(self, key: str) -> KeyTerms:
        """What a key may, also one that was revoked after its message was taken."""
        known = self._known.get(key)
        return known.terms if known is not None else EVERYTHING

    def opens_anything(self) -> bool:
        """There is a key by which somebody can call."""
        now = self._clock.now_ms()
        return self._keyless or self._configured is not None or any(one.good(now) for one in self._known.values())

    # ------------------------------------------------------------------ for operators

    async def tables(self, rules: BudgetRules) -> list[Json]:
        """All of them as operators see them, the newest first, with what each used today. Raises `StorageUnavailable`."""
        now = self._clock.now_ms()
        pots = {one.row.name: pot for one in self._known.values() if (pot := keys.pot_of(one, rules, now)) is not None}
        levels = await self._store.budgets.levels([pot.key for pot in pots.values()])
        found: list[Json] = []
        for one in self._known.values():
            pot = pots.get(one.row.name)
            table = self._table(one)
            table["today"] = keys.used_of(pot, levels.get(pot.key, Level())) if pot is not None else None
            found.append(table)
        return found

    def _table(self, known: KnownKey) -> dict[str, Json]:
        used = max(known.row.used_at, self._used.get(known.row.name, 0))
        return keys.table_of(known) | {"used_at": used or None}

    def table(self, name: str) -> dict[str, Json]:
        """One of them. Raises `KeyRefused`."""
        known = self._known.get(name)
        if known is None:
            raise KeyRefused(f"There is no key called {name[:40]}. outspoken keys list shows all.")
        return self._table(known)

    async def add(self, name: str, asked: Mapping[str, Json], there: Nameable) -> tuple[dict[str, Json], str]:
        """A new key: how it is seen, and the key itself, which nobody is ever shown again. Raises `KeyRefused`."""
        now = self._clock.now_ms()
        if sum(one.good(now) for one in self._known.values()) >= keys.MOST_KEYS:
            raise KeyRefused(f"There are {keys.MOST_KEYS} keys, which is the most. Revoke one that nobody uses.")
        key = keys.new_key(os.urandom(RANDOM_BYTES))
        row = keys.made(name, key, keys.terms_from(asked, there), BY, now)
        if not await self._store.apikeys.add(row, self._entry("added", name, after=row.terms)):
            raise KeyRefused(f"There is or was a key called {name}. A name is given once: choose another one.")
        await self._told("added", name)
        return self.table(name), key

    async def change(self, name: str, asked: Mapping[str, Json], there: Nameable) -> dict[str, Json]:
        """Other terms for a key; what is not asked for stays as it is. Raises `KeyRefused`."""
        before = self._of(name)
        terms, now = keys.terms_from(asked, there, before.terms), self._clock.now_ms()
        noted = self._entry("changed", name, before.row.terms, keys.stored_terms(terms))
        return await self._changed(name, lambda row: keys.under(row, terms, now), noted)

    async def revoke(self, name: str) -> dict[str, Json]:
        """It opens nothing any more. Raises `KeyRefused`."""
        now = self._clock.now_ms()
        return await self._changed(name, lambda row: keys.revoked(row, now), self._entry("revoked", name))

    async def rotate(self, name: str, keep_seconds: int) -> tuple[dict[str, Json], str]:
        """Another key under the same name and terms; the one before is good for so many seconds. Raises `KeyRefused`."""
        key, now = keys.new_key(os.urandom(RANDOM_BYTES)), self._clock.now_ms()
        noted = self._entry("rotated", name)
        table = await self._changed(name, lambda row: keys.rotated(row, key, now, keep_seconds * 1000), noted)
        return table, key

    def _of(self, name: str) -> KnownKey:
        self.table(name)
        return self._known[name]

    async def _changed(self, name: str, made: Callable[[ApiKeyRow], ApiKeyRow], noted: AuditRow) -> dict[str, Json]:
        made(self._of(name).row)  # what cannot be made of it is refused before anything is written
        await self._store.apikeys.change(name, made, noted)
        await self._told(noted.act, name)
        return self.table(name)

    async def _told(self, act: str, name: str) -> None:
        """It is stored: it counts here at once, and at the others as soon as they hear of it."""
        self._portion.tell(KEYS)
        await self.open()
        log.info("key.changed", caller=name, act=act, by=BY)

    def _entry(self, act: str, name: str, before: str = "", after: str = "") -> AuditRow:
        words = f"The API key {name} was {act}."
        return AuditRow(self._ids.new("a"), self._clock.now_ms(), BY, act, f"key {name}", words, before, after)


def readable(row: ApiKeyRow) -> KnownKey | None:
    """None for a key whose terms cannot be read: it opens nothing, because nobody knows what it may."""
    try:
        return keys.known_key(row)
    except ValueError as error:
        log.warning("key.unreadable", caller=row.name, error=type(error).__name__)
        return None
