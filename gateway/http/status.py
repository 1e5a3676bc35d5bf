"""``/status``: all that whoever runs the gateway wants to see at once, as JSON. It reads, and decides nothing."""

from __future__ import annotations

from dataclasses import asdict

from agent_core.limits.budgets import Level, Pot
from agent_core.limits.spend import Measure
from agent_core.ports import Clock
from agent_core.store.store import StorageUnavailable, Store
from agent_core.store.troubles.rows import IncidentRow
from agent_core.tools.base import Json
from agent_core.turn.notices import RESTORED
from gateway.chats.platforms import Platforms
from gateway.limits.quotas import Quotas
from gateway.observe.alerting import Alerter
from gateway.observe.health import Health
from gateway.recovery.setaside import PutAside
from gateway.retention.forgetting import Forgetting
from gateway.sessions.hub import Hub
from gateway.storage.soundness import SoundnessWatch

FAILED_SHOWN = 20


class Look:
    """Asked by `gateway.http.admin`."""

    def __init__(
        self,
        hub: Hub,
        store: Store,
        chats: Platforms,
        health: Health,
        alerter: Alerter,
        quotas: Quotas,
        clock: Clock,
        version: str,
        asides: PutAside,
        soundness: SoundnessWatch,
    ) -> None:
        self._hub = hub
        self._store = store
        self._chats = chats
        self._health = health
        self._alerter = alerter
        self._quotas = quotas
        self._clock = clock
        self._version = version
        self._asides = asides
        self._soundness = soundness
        self._began = clock.monotonic()

    @property
    def forgetting(self) -> Forgetting:
        """Where people are forgotten."""
        return self._hub.forgetting

    async def status(self) -> dict[str, Json]:
        """Everything. While the storage is away, what is stored is missing, and the rest is there."""
        store_words = await self._health.store_words()
        await self._alerter.read_pots()  # the alerter looks once a minute, which is too old for somebody who asks why
        outbox, found = self._chats.outbox, self._health.verdict()
        body: dict[str, Json] = {
            "version": self._version,
            "uptime_seconds": round(self._clock.monotonic() - self._began),
            "phase": self._health.phase.value,
            "ready": found.ready,
            "problems": [*found.not_ready],
            "well": found.well,
            "unwell": [*found.unwell],
            "adapters": [_rounded(asdict(sight)) for sight in self._chats.sights()],
            "running_turns": len(self._hub.running()),
            "waiting_messages": self._hub.places.messages,
            "places": self._hub.places.bounds.open,
            "waiting_for_a_place": self._hub.places.in_line,
            "oldest_wait_seconds": round(self._hub.places.oldest_seconds(), 1),
            "turned_away": self._hub.places.turned_away,
            "unsent_parts": outbox.surfaces.unsent,
            "unsent_by_platform": {**outbox.surfaces.unsent_by_platform()},
            "oldest_unsent_seconds": round(outbox.surfaces.oldest_unsent_seconds(), 1),
            "troubled_chats": [
                {"chat": trouble.surface, "cause": trouble.cause, "words": trouble.words, "at": trouble.at}
                for trouble in outbox.troubles.known.values()
            ],
            "incidents": [_incident(one) for one in self._hub.learning.open_incidents],
            "alerts": [{"kind": one.kind.value, "words": one.words} for one in self._alerter.open],
            "laws_broken": self._hub.laws_broken,
            "set_aside": [
                {"session": one.session, "chat": one.key, "words": one.words, "at": one.at}
                for one in self._asides.known.values()
            ],
            "soundness": self._soundness.status(),
            "cannot_be_set_aside": {**self._asides.stuck},
            "free_disk_bytes": self._health.free_bytes,
            "quota": self._quotas.status(),
            "retention": asdict(self._hub.upkeep.last) | {"kept": asdict(self._hub.upkeep.keep)},
            "spend": [_spend(pot, level, self._currency()) for pot, level in self._alerter.pots],
        }
        try:
            return body | await self._stored() | {"storage": store_words}
        except StorageUnavailable as error:
            return body | {"storage": store_words or str(error)}

    async def _stored(self) -> dict[str, Json]:
        failed = await self._store.deliveries.failed(FAILED_SHOWN)
        jobs = [one for one in await self._store.forgotten.jobs() if one.done_at is None]
        last = self._hub.forgetting.last
        return {
            "forgetting": [{"forget": one.forget, "since": one.at} for one in jobs],
            "forgotten": [*last.lines(())] if last is not None else [],
            "open_turns": await self._store.turns.count_open(),
            "waiting_sessions": len(await self._store.inbox.sessions_with_pending()),
            "failed_parts": [
                {
                    "chat": one.row.surface,
                    "part": one.row.key,
                    "cause": one.row.cause,
                    "at": one.row.at,
                    "set_aside": one.row.cause == RESTORED,
                }
                for one in failed
            ],
        }

    def _currency(self) -> str:
        return self._hub.budgets.rules.currency if self._hub.budgets is not None else ""


def _rounded(values: dict[str, Json]) -> dict[str, Json]:
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in values.items()}


def _incident(one: IncidentRow) -> dict[str, Json]:
    return {
        "incident": one.incident,
        "fingerprint": one.fingerprint,
        "opened_at": one.opened_at,
        "last_at": one.last_at,
        "conversations": one.conversations,
        "turns": one.turns,
        "remedy": one.remedy or None,
    }


def _spend(pot: Pot, level: Level, currency: str) -> dict[str, Json]:
    """How a budget of everybody stands; money in billionths of the currency."""
    return {
        "budget": pot.budget.value,
        "until": pot.until,
        "currency": currency,
        **{f"{measure.value}_limit": pot.limit.of(measure) for measure in Measure},
        **{f"{measure.value}_used": level.spent.of(measure) for measure in Measure},
    }
