"""``/status``: all that whoever runs the gateway wants to see at once, as JSON. It reads, and decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent_core.failures.notices import RESTORED
from agent_core.jsonvalue import Json
from agent_core.learning.incidents import incident_title
from agent_core.limits.budgets import Level, Pot
from agent_core.limits.spend import Measure
from agent_core.model.endpoints import Endpoint
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.store import StorageUnavailable, Store
from agent_core.store.troubles.rows import IncidentRow
from gateway.chats.platforms import Platforms
from gateway.config.model import REHEARSAL_LABEL
from gateway.limits.quotas import Quotas
from gateway.observe.alerting import Alerter
from gateway.observe.health import Health
from gateway.observe.lawwatch import LawWatch
from gateway.queues.queue import Running
from gateway.retention.forgetting import Forgetting
from gateway.sessions.hub import Hub
from gateway.setaside.setaside import PutAside
from gateway.shell.shell import ShellTools
from gateway.storage.soundness import SoundnessWatch
from gateway.version import program_version

if TYPE_CHECKING:
    from agent_core.tools.mcp.servers import McpServers
    from gateway.webhooks.sender import HookSender

FAILED_SHOWN = 20


@dataclass
class Look:
    """Asked by `gateway.http.admin`."""

    hub: Hub
    store: Store
    chats: Platforms
    health: Health
    alerter: Alerter
    quotas: Quotas
    clock: Clock
    models: Sequence[Endpoint]
    """Whom turns ask, in order."""
    asides: PutAside
    soundness: SoundnessWatch
    laws: LawWatch
    webhooks: HookSender | None = None
    servers: McpServers | None = None
    shell: ShellTools | None = None

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()

    @property
    def forgetting(self) -> Forgetting:
        """Where people are forgotten."""
        return self.hub.forgetting

    async def status(self) -> dict[str, Json]:
        """Everything. While the storage is away, what is stored is missing, and the rest is there."""
        store_words = await self.health.store_words()
        await self.alerter.read_pots()  # the alerter looks once a minute, which is too old for somebody who asks why
        outbox, found = self.chats.outbox, self.health.verdict()
        body: dict[str, Json] = {
            "version": program_version(),
            "uptime_seconds": round(self.clock.monotonic() - self.began),
            "rehearsal": [one.label for one in self.models] == [REHEARSAL_LABEL],
            "models": [{"endpoint": one.label, "models": [*one.models]} for one in self.models],
            "phase": self.health.phase.value,
            "ready": found.ready,
            "problems": [*found.not_ready],
            "well": found.well,
            "unwell": [*found.unwell],
            "nodes": self._nodes_known(),
            "adapters": [_rounded(asdict(sight)) for sight in self.chats.sights()],
            "running_turns": len(self.hub.running()),
            "running_for": _askers(self.hub.running()),
            "waiting_messages": self.hub.slots.messages,
            "places": self.hub.slots.bounds.open,
            "waiting_for_a_place": self.hub.slots.in_line,
            "oldest_wait_seconds": round(self.hub.slots.oldest_seconds(), 1),
            "turned_away": self.hub.slots.turned_away,
            "unsent_parts": outbox.surfaces.unsent,
            "unsent_by_platform": {**outbox.surfaces.unsent_by_platform()},
            "oldest_unsent_seconds": round(outbox.surfaces.oldest_unsent_seconds(), 1),
            "unsent_why": outbox.surfaces.unsent_why(),
            "troubled_chats": [
                {"chat": trouble.surface, "cause": trouble.cause, "words": trouble.words, "at": trouble.at}
                for trouble in outbox.troubles.known.values()
            ],
            "incidents": [_incident(one) for one in self.hub.learning.open_incidents],
            "alerts": [{"kind": one.kind.value, "words": one.words} for one in self.alerter.open],
            "laws_broken": self.hub.laws_broken,
            "set_aside": [
                {"session": one.session, "chat": one.key, "words": one.words, "at": one.at}
                for one in self.asides.known.values()
            ],
            "schedules_set_aside": [
                {"schedule": name, "words": words} for name, words in self.asides.schedules.items()
            ],
            "soundness": self.soundness.status(),
            "audit": self.laws.status(),
            "cannot_be_set_aside": {**self.asides.stuck},
            "mcp": self.servers.status() if self.servers is not None else [],
            "shell": self.shell.status() if self.shell is not None else None,
            "free_disk_bytes": self.health.free_bytes,
            "quota": self.quotas.status(),
            "retention": asdict(self.hub.upkeep.last) | {"kept": asdict(self.hub.upkeep.keep)},
            "spend": [_spend(pot, level, self._currency()) for pot, level in self.alerter.pots],
        }
        try:
            return body | await self._stored() | await self._nodes() | {"storage": store_words}
        except StorageUnavailable as error:
            return body | {"storage": store_words or str(error)}

    def _nodes_known(self) -> list[Json]:
        portion = self.hub.portion
        if portion.whole:
            return []
        from gateway.sharing.nodes import nodes_known  # of several alone

        return nodes_known(portion, self.store.node, self.clock.now_ms())

    async def _nodes(self) -> dict[str, Json]:
        """The gateways of this database, where several serve it, and how each does."""
        portion = self.hub.portion
        if portion.whole:
            return {}
        from gateway.sharing.nodes import nodes_seen

        return {"nodes": await nodes_seen(self.store, portion, self.clock.now_ms())}

    async def _stored(self) -> dict[str, Json]:
        failed = await self.store.deliveries.failed(FAILED_SHOWN)
        jobs = [one for one in await self.store.forgotten.jobs() if one.done_at is None]
        last, oldest = self.hub.forgetting.last, await self.store.turns.oldest_open()
        return {
            "forgetting": [{"forget": one.forget, "since": one.at} for one in jobs],
            "forgotten": [*last.lines(())] if last is not None else [],
            "webhooks": await self.webhooks.status() if self.webhooks is not None else [],
            "open_turns": await self.store.turns.count_open(),
            "oldest_turn": None
            if oldest is None
            else {
                "turn": oldest[0],
                "seconds": max(0, self.clock.now_ms() - oldest[1]) // 1000,
            },
            "waiting_sessions": len(await self.store.inbox.sessions_with_pending()),
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
        return self.hub.budgets.rules.currency if self.hub.budgets is not None else ""


def _askers(running: Sequence[Running]) -> dict[str, Json]:
    """How many of the running turns were asked with which key and of which agent; those without either are left out."""
    from agent_core.explain.why import asker_words  # of a status alone

    opened = (one.driver.turn.opened for one in running)
    return {**Counter(words for one in opened if one is not None and (words := asker_words(one.key, one.agent)))}


def _rounded(values: dict[str, Json]) -> dict[str, Json]:
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in values.items()}


def _incident(one: IncidentRow) -> dict[str, Json]:
    shown = ("incident", "fingerprint", "opened_at", "last_at", "conversations", "turns")
    return {name: getattr(one, name) for name in shown} | {"title": incident_title(one), "remedy": one.remedy or None}


def _spend(pot: Pot, level: Level, currency: str) -> dict[str, Json]:
    """How a budget of everybody stands; money in billionths of the currency."""
    return {
        "budget": pot.budget.value,
        "until": pot.until,
        "currency": currency,
        **{f"{measure.value}_limit": pot.limit.of(measure) for measure in Measure},
        **{f"{measure.value}_used": level.spent.of(measure) for measure in Measure},
    }
