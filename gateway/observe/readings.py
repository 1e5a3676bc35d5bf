"""What of the metrics is read when somebody asks: from hub, outbox, adapters and store, as they are in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from agent_core.limits.quotas import Kind as Kept
from agent_core.store.store import Store
from agent_core.turn.exits import Measure
from gateway.chats.supervisor import State, Supervisor
from gateway.delivery.outbox import Outbox
from gateway.limits.quotas import Quotas
from gateway.observe import metricscatalogue as m
from gateway.observe.alerting import Alerter
from gateway.observe.alerts import AlertKind
from gateway.observe.health import Health
from gateway.observe.metrics import Reading
from gateway.recovery.keeper import Keeper
from gateway.recovery.keeping import Kind
from gateway.sessions.hub import Hub
from gateway.storage.soundness import SoundnessWatch


def reader(
    hub: Hub,
    keeper: Keeper,
    outbox: Outbox,
    supervisors: tuple[Supervisor, ...],
    store: Store,
    health: Health,
    alerter: Alerter,
    soundness: SoundnessWatch,
    quotas: Quotas,
    version: str,
) -> Callable[[], Iterator[Reading]]:
    """What gives the readings."""

    def read() -> Iterator[Reading]:
        yield Reading(m.INFO, 1, (version,))
        verdict = health.verdict()
        yield Reading(m.READY, verdict.ready)
        yield Reading(m.WELL, verdict.well)
        yield Reading(m.RUNNING, len(hub.running()))
        yield Reading(m.WAITING, hub.places.messages)
        yield Reading(m.IN_LINE, hub.places.in_line)
        yield Reading(m.IN_LINE_OLDEST, hub.places.oldest_seconds())
        yield Reading(m.PLACES, hub.places.bounds.open)
        for kind in Kind:
            yield Reading(m.UNCLAIMED, keeper.unclaimed()[kind], (kind.value,))
            yield Reading(m.UNCLAIMED_LATE, keeper.late()[kind], (kind.value,))
            yield Reading(m.TAKEN_UP, keeper.taken[kind], (kind.value,))
            yield Reading(m.SET_ASIDE, keeper.set_aside[kind], (kind.value,))
        yield Reading(m.INCIDENTS, len(hub.learning.open_incidents))
        yield Reading(m.DAMAGED, soundness.places() + keeper.aside.recent())
        yield Reading(m.STORE_WAITING, store.waiting)
        yield Reading(m.STORE_REOPENED, store.figures.reopened)
        for platform, parts in outbox.unsent_by_platform().items():
            yield Reading(m.UNDELIVERED, parts, (platform,))
        for platform, seconds in outbox.oldest_by_platform().items():
            yield Reading(m.OLDEST, seconds, (platform,))
        for supervisor in supervisors:
            yield from _adapter(supervisor)
        open_alerts = Counter(condition.kind for condition in alerter.open)
        for kind in AlertKind:
            count = len(hub.learning.open_incidents) if kind is AlertKind.INCIDENT else open_alerts[kind]
            yield Reading(m.ALERTS, count, (kind.value,))
        if health.free_bytes is not None:
            yield Reading(m.DISK_FREE, health.free_bytes)
        yield from _kept(quotas)
        for pot, level in alerter.pots:
            for measure in Measure:
                if limit := pot.limit.of(measure):
                    used = level.spent.of(measure) / limit
                    yield Reading(m.BUDGET_USED, used, (pot.budget.value, measure.value))

    return read


def _kept(quotas: Quotas) -> Iterator[Reading]:
    totals = quotas.ledger.totals()
    for kind in (Kept.WORKSPACE, Kept.MEMORY, Kept.SPOOL):
        yield Reading(m.QUOTA_USED, totals[kind], (kind.value,))
    yield Reading(m.QUOTA_USED, quotas.ledger.told(), (Kept.WHOLE.value,))
    yield Reading(m.QUOTA_FILES, totals[Kept.FILES])
    yield Reading(m.QUOTA_WHOLE, quotas.limits.whole)
    for kind in Kept:
        yield Reading(m.QUOTA_REFUSED, quotas.refused[kind], (kind.value,))


def _adapter(supervisor: Supervisor) -> Iterator[Reading]:
    platform = (supervisor.adapter.name.partition("/")[0],)
    sight = supervisor.sight()
    yield Reading(m.ADAPTER_UP, sight.state == State.UP.value, platform)
    if sight.state == State.UP.value:
        yield Reading(m.ADAPTER_SILENT, supervisor.adapter.silent_seconds, platform)
    yield Reading(m.ADAPTER_RESTARTS, supervisor.restarts, platform)
    if sight.inbound_age_seconds is not None:
        yield Reading(m.INBOUND_AGE, sight.inbound_age_seconds, platform)
    if sight.outbound_age_seconds is not None:
        yield Reading(m.OUTBOUND_AGE, sight.outbound_age_seconds, platform)
