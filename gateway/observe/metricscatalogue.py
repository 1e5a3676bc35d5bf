"""The metrics, each with one declaration: what it is called, what it says, and where its numbers come from. Pure.

Why: a metric is an interface, as a log event is: dashboards and alert rules name it. So all of it stands once, here. What counts
and serves them is made from it (`gateway.observe.metrics`), ``docs/metrics.md`` is printed from it
(``python -m tests.printed.metrics > docs/metrics.md``), and a test compares it with what a running gateway serves and with what
``deploy/`` names. A number comes from a signal (`on`) or is read from the gateway when somebody asks (`read`).

Rules of names. ``outspoken_`` is ours; ``gen_ai_`` follows OpenTelemetry's conventions for generative AI, in Prometheus' spelling. A
unit is in the name, in base units; a counter ends in ``_total``. A label never holds a chat, a person, a conversation or a turn, so the
number of series is bounded by what is configured.

First series. Prometheus sees an increase only between two values: an alert would miss the first failure, which is often the only one, of
a counter that is born at 1. So every series of a closed set of labels, and of what is configured, begins at 0 (`begin`). What begins
with nothing has a label from outside (an HTTP status, a tool's name), or no rule and a great many values.

Known to be weak: a metric that is read costs its reading at each scrape, on the loop; so nothing here may ask a database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from itertools import product
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from adapters.contract.chat import Cause, Fate
from agent_core import signals as sig
from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.limits.budgets import NANOS
from agent_core.limits.quotas import QuotaKind as Kept
from agent_core.limits.spend import Budget, Measure
from agent_core.records import dataclass
from agent_core.store.slices.rows import ACCOUNT, CHAT_SLICES, HOUSE
from gateway.chats.supervisor import AdapterState
from gateway.limits.alerts import AlertKind
from gateway.limits.patience import CutOff
from gateway.observe.looplag import LoopLate
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from gateway.queues.refusals import LANE as REFUSED_LANE
from gateway.setaside.takeup import LeftKind as Left

if TYPE_CHECKING:
    from agent_core.model.endpoints import Endpoint
    from agent_core.store.store import Store
    from gateway.chats.supervisor import Supervisor
    from gateway.delivery.outbox import Outbox
    from gateway.limits.quotas import Quotas
    from gateway.observe.alerting import Alerter
    from gateway.observe.health import Health
    from gateway.observe.lawwatch import LawWatch
    from gateway.observe.looplag import LoopWatch
    from gateway.recovery.keeper import Keeper
    from gateway.sessions.hub import Hub
    from gateway.sharing.portion import Portion
    from gateway.storage.soundness import SoundnessWatch
    from gateway.webhooks.sender import HookSender

S = TypeVar("S")
Amount: TypeAlias = tuple[float, *tuple[str, ...]]
"""A number, and the values of its labels but for those that are the same for the whole gateway (`GATEWAYS_OWN`)."""
Told: TypeAlias = sig.Signal | LoopLate


class MetricKind(StrEnum):
    """What Prometheus calls its types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """What a gateway has that can be read: as it is in memory."""

    hub: Hub
    keeper: Keeper
    outbox: Outbox
    supervisors: tuple[Supervisor, ...]
    store: Store
    health: Health
    alerter: Alerter
    soundness: SoundnessWatch
    quotas: Quotas
    loop: LoopWatch
    laws: LawWatch
    webhooks: HookSender | None = None


@dataclass(frozen=True, slots=True)
class KnownAtStart:
    """What is known of a gateway before anything has happened."""

    platforms: Sequence[str]
    endpoints: Sequence[Endpoint]

    @property
    def surfaces(self) -> tuple[str, ...]:
        return ("api", "web", *self.platforms)


Begin: TypeAlias = Callable[[KnownAtStart], Iterable[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class On:
    """What one kind of signal says of a metric."""

    signal: type
    amounts: Callable[[object], Iterable[Amount]]


def on(kind: type[S], amounts: Callable[[S], Iterable[Amount]]) -> On:
    """What a signal of this kind adds to a counter, or puts into a histogram. It is asked of no other kind."""
    return On(kind, cast("Callable[[object], Iterable[Amount]]", amounts))


def each(*sets: Sequence[str] | type[Enum]) -> list[tuple[str, ...]]:
    """Every combination of these values of labels."""
    return [*product(*(one if not isinstance(one, type) else [str(m.value) for m in one] for one in sets))]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    says: str
    """What it is, in a sentence."""
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    on: On | None = None
    """It is counted as things happen."""
    read: Callable[[GatewayParts], Iterable[Amount]] | None = None
    """It is read when somebody asks."""
    begin: Begin | None = None
    """The series that it has from the start, at 0."""
    unwatched: bool = False
    """Neither our dashboard nor our rules need it."""

    @property
    def series(self) -> tuple[str, ...]:
        """The names that a query can use."""
        if self.kind is MetricKind.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


def _counter(
    name: str,
    says: str,
    source: On | Callable[[GatewayParts], Iterable[Amount]],
    *labels: str,
    begin: Begin | None = None,
    unwatched: bool = False,
) -> Metric:
    how = source if isinstance(source, On) else None
    read = None if isinstance(source, On) else source
    return Metric(name, MetricKind.COUNTER, says, labels, on=how, read=read, begin=begin, unwatched=unwatched)


def _gauge(
    name: str, says: str, read: Callable[[GatewayParts], Iterable[Amount]], *labels: str, unwatched: bool = False
) -> Metric:
    return Metric(name, MetricKind.GAUGE, says, labels, read=read, unwatched=unwatched)


def _histogram(
    name: str, says: str, buckets: tuple[float, ...], source: On, *labels: str, begin: Begin | None = None
) -> Metric:
    return Metric(name, MetricKind.HISTOGRAM, says, labels, buckets, source, begin=begin)


PATIENCE = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
"""How long a person waits for a sign, seconds."""
TURNS_TAKE = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0)
LAGS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 21_600.0)
COMMITS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
LOOP = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
TOOLS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
CALLS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""As OpenTelemetry's conventions advise for calls of a model."""
TOKENS = (1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0)
"""As they advise for tokens."""

GATEWAYS_OWN = ("currency", "version", "gen_ai_operation_name")
"""Labels that have one value in a gateway: `gateway.observe.metrics.Metrics` knows it."""
STALLED = (BreakCause.NO_CONTENT.value, BreakCause.STALLED.value)
"""The causes for which a silent model's call is given up."""
OUTCOMES = ("stored", "failed")
_GENAI = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")

LABELS: Mapping[str, str] = {
    "budget": "which budget: hour, day, month (where it is stopped also turn, person, chat, key, agent)",
    "cause": "why, one word of a closed list",
    "currency": "the word of `[budgets] currency`",
    "endpoint": "host and port of the model's address",
    "error_type": "why the call broke, one word of a closed list; `cancelled`: its turn was ended; empty: it came to a good end",
    "estimated": "`true` if the provider did not tell and it was estimated",
    "exit": "how a turn ended, or the end that a failure leads to if nothing helps; one word of a closed list",
    "fate": "what is known of a failed call: `not_sent`, `unknown`, `too_fast`, `refused`",
    "gen_ai_operation_name": "always `chat`",
    "gen_ai_provider_name": "host and port of the model's address",
    "gen_ai_request_model": "the model's name, as it was asked for",
    "gen_ai_token_type": "`input` or `output`",
    "http_status": "of the answer; 401 and 403 are those of callers who may not",
    "kind": f"what an alert is about: {', '.join(kind.value for kind in AlertKind)}",
    "lane": "`normal`, `command` or `refused`",
    "law": "the law that is broken, by its name in docs/audit.md",
    "left": "what was left: `conversation` (an open turn, or messages that wait), `command`, `delivery`",
    "measure": "`tokens` or `money`",
    "model": "the model's name",
    "outcome": "of a remedy: `helped`, `not_helped`, `not_known`; of a commit: `stored` or `failed`; of a webhook: `sent`, `failed` (an attempt) or `given_up`",
    "platform": "`telegram`, `discord`, `slack`; of messages also `api`, `web`, `terminal`",
    "receiver": "the name of a receiver of webhooks, as it is configured",
    "remedy": "the remedy that was chosen, one word of a closed list",
    "status": "how a tool ended, one word of a closed list",
    "surface": "where a turn was asked: `api`, `web`, `telegram`, …",
    "tool": "the tool's name",
    "version": "the program's version",
    "what": "what is counted: `workspace`, `memory`, `spool`, `whole`; of refusals also `files`, `incoming`, `sessions`",
}  # fmt: skip


def _platform(account: str) -> str:
    """Of a surface's account, such as ``telegram/123``, or ``api``."""
    return account.partition("/")[0]


def _seconds(began_ms: int, ended_ms: int) -> float:
    return max(0, ended_ms - began_ms) / 1000


def _call(call: sig.ModelCalled) -> tuple[str, str]:
    return call.endpoint, call.model


def _tokens(call: sig.ModelCalled) -> Iterator[Amount]:
    for kind, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
        if tokens:
            yield tokens, *_call(call), kind


def _troubles(turn: sig.TurnClosed) -> Iterator[Amount]:
    for one in turn.troubles:
        if one.code != ExitCode.ANSWERED.value:  # that one says that an earlier one is over
            yield 1, one.code, one.cause, one.endpoint, one.model


def _remedies(turn: sig.TurnClosed) -> Iterator[Amount]:
    for one in turn.troubles:
        if one.code != ExitCode.ANSWERED.value and one.rung:
            yield 1, one.code, one.rung, one.outcome


def _stalls(known: KnownAtStart) -> Iterator[tuple[str, ...]]:
    for endpoint in known.endpoints:
        yield from each((endpoint.label,), endpoint.models or ("",), STALLED)


def _stored(commit: sig.Committed) -> str:
    return OUTCOMES[0] if commit.stored else OUTCOMES[1]


def _adapters(parts: GatewayParts) -> Iterator[tuple[str, Supervisor, bool]]:
    """Each with its platform and whether it is connected."""
    for one in parts.supervisors:
        yield _platform(one.adapter.name), one, one.sight().state == AdapterState.UP.value


def _slices(portion: Portion) -> int:
    return (
        CHAT_SLICES if portion.whole else sum(not name.startswith(ACCOUNT) and name != HOUSE for name in portion.held)
    )


def _alerts(parts: GatewayParts) -> Iterator[Amount]:
    waiting = Counter(condition.kind for condition in parts.alerter.open)
    for kind in AlertKind:
        yield len(parts.hub.learning.open_incidents) if kind is AlertKind.INCIDENT else waiting[kind], kind.value


def _budgets(parts: GatewayParts) -> Iterator[Amount]:
    for pot, level in parts.alerter.pots:
        for measure in Measure:
            if limit := pot.limit.of(measure):
                yield level.spent.of(measure) / limit, pot.budget.value, measure.value


def _kept(parts: GatewayParts) -> Iterator[Amount]:
    totals = parts.quotas.ledger.totals()
    for kind in (Kept.WORKSPACE, Kept.MEMORY, Kept.SPOOL):
        yield totals[kind], kind.value
    yield parts.quotas.ledger.told(), Kept.WHOLE.value


def _webhooks(parts: GatewayParts) -> Iterator[Amount]:
    for name, one in parts.webhooks.figures().items() if parts.webhooks is not None else ():
        yield one.sent, name, "sent"
        yield one.failed, name, "failed"
        yield one.given_up, name, "given_up"


OURS: tuple[Metric, ...] = (
    # ------------------------------------------------------------------ messages and turns
    _counter("outspoken_messages_total", "Messages that were stored for the first time.",
             on(sig.MessageTaken, lambda s: [(1, _platform(s.account), s.lane)]), "platform", "lane",
             begin=lambda k: each(k.surfaces, (NORMAL_LANE, COMMAND_LANE, REFUSED_LANE)), unwatched=True),
    _counter("outspoken_turned_away_total", "Messages that were not taken because too many waited.",
             on(sig.TurnedAway, lambda s: [(1, _platform(s.account))]), "surface", begin=lambda k: each(k.surfaces)),
    _counter("outspoken_connections_cut_total", "Connections that were not taken, or were ended for keeping us waiting.",
             on(sig.ConnectionCut, lambda s: [(1, s.why)]), "cause", begin=lambda _: each(CutOff)),
    _counter("outspoken_requests_refused_total", "Requests of the API that were not taken.",
             on(sig.RequestRefused, lambda s: [(1, str(s.status))]), "http_status", unwatched=True),
    _counter("outspoken_turns_total", "Turns that ended.",
             on(sig.TurnClosed, lambda s: [(1, s.exit, s.surface)]), "exit", "surface", begin=lambda k: each(ExitCode, k.surfaces)),
    _histogram("outspoken_turn_wait_seconds", "From a message's arrival to the beginning of its turn.", PATIENCE,
               on(sig.TurnBegan, lambda s: [(s.waited_ms / 1000, s.surface)]), "surface", begin=lambda k: each(k.surfaces)),
    _histogram("outspoken_turn_first_sign_seconds",
               "On chats: from a turn's beginning until the platform showed something of it (typing, a status, text).", PATIENCE,
               on(sig.FirstSign, lambda s: [(s.after_ms / 1000, s.surface)]), "platform", begin=lambda k: each(k.platforms)),
    _histogram("outspoken_turn_first_content_seconds",
               "From a turn's beginning to the first content of the model (text, thoughts, a tool's call).", PATIENCE,
               on(sig.TurnClosed, lambda s: [(_seconds(s.began_at, s.content_at), s.surface)] if s.content_at else []), "surface",
               begin=lambda k: each(k.surfaces)),
    _histogram("outspoken_turn_seconds", "From a turn's beginning to its end.", TURNS_TAKE,
               on(sig.TurnClosed, lambda s: [(_seconds(s.began_at, s.ended_at), s.surface)]), "surface", begin=lambda k: each(k.surfaces)),
    _histogram("outspoken_tool_seconds", "How long tools ran.", TOOLS,
               on(sig.ToolRan, lambda s: [(_seconds(s.began_at, s.ended_at), s.tool, s.status)]), "tool", "status"),
    _counter("outspoken_laws_broken_total", "Turns that broke a law of the machine: a mistake in the program, each.",
             on(sig.LawBroken, lambda _: [(1,)])),
    # ------------------------------------------------------------------ models
    _counter("outspoken_troubles_total", "Failures in turns that ended, cured ones included.",
             on(sig.TurnClosed, _troubles), "exit", "cause", "endpoint", "model"),
    _counter("outspoken_remedies_total", "Remedies that were tried for them, and what came of it.",
             on(sig.TurnClosed, _remedies), "exit", "remedy", "outcome"),
    _counter("outspoken_model_stalls_total",
             "Calls that were given up because the model was silent: `no_content` from the beginning, `stalled` in the middle.",
             on(sig.ModelCalled, lambda s: [(1, *_call(s), s.error)] if s.error in STALLED else []), "endpoint", "model", "cause",
             begin=_stalls),
    _histogram("gen_ai_client_operation_duration_seconds", "Calls of models, each try by itself.", CALLS,
               on(sig.ModelCalled, lambda s: [(_seconds(s.began_at, s.ended_at), *_call(s), s.error)]), *_GENAI, "error_type"),
    _histogram("gen_ai_client_operation_time_to_first_chunk_seconds", "From a call's beginning to its first content.", CALLS,
               on(sig.ModelCalled, lambda s: [(_seconds(s.began_at, s.content_at), *_call(s))] if s.content_at else []), *_GENAI),
    _histogram("gen_ai_client_token_usage", "Tokens of a call, where the provider told them.", TOKENS,
               on(sig.ModelCalled, _tokens), *_GENAI, "gen_ai_token_type"),
    _gauge("outspoken_open_incidents", "Failures that several conversations meet just now.",
           lambda p: [(len(p.hub.learning.open_incidents),)]),
    # ------------------------------------------------------------------ spending
    _counter("outspoken_spent_tokens_total", "Tokens that were counted for budgets (only if there are any).",
             on(sig.Spent, lambda s: [(s.tokens, s.model, str(s.estimated).lower())]), "model", "estimated", unwatched=True),
    _counter("outspoken_spent_money_total", "What they cost, in the currency.",
             on(sig.Spent, lambda s: [(s.nanos / NANOS, s.model)]), "model", "currency"),
    _counter("outspoken_spend_stopped_total", "Calls that were not made, because a budget is used up.",
             on(sig.SpendStopped, lambda s: [(1, s.budget, s.measure)]), "budget", "measure", begin=lambda _: each(Budget, Measure)),
    _gauge("outspoken_budget_used_ratio",
           "How full a budget of everybody is, 1 being its limit; as of the last look, a few seconds ago.", _budgets, "budget", "measure"),
    # ------------------------------------------------------------------ delivery
    _histogram("outspoken_delivery_lag_seconds", "From when a part of an answer was to be seen until it was delivered.", LAGS,
               on(sig.PartSent, lambda s: [(_seconds(s.wanted_at, s.sent_at), s.platform)]), "platform", begin=lambda k: each(k.platforms)),
    _counter("outspoken_delivery_retries_total", "Calls to a platform that failed and are made again.",
             on(sig.SendFailed, lambda s: [] if s.final else [(1, s.platform, s.fate, s.cause)]), "platform", "fate", "cause",
             begin=lambda k: each(k.platforms, Fate, Cause)),
    _counter("outspoken_delivery_failed_total", "Parts that a platform refused for good.",
             on(sig.SendFailed, lambda s: [(1, s.platform, s.cause)] if s.final else []), "platform", "cause",
             begin=lambda k: each(k.platforms, Cause)),
    _counter("outspoken_delivery_pause_seconds_total", "Pauses that a platform asked for.",
             on(sig.TooFast, lambda s: [(s.seconds, s.platform)]), "platform", begin=lambda k: each(k.platforms)),
    _gauge("outspoken_undelivered_parts", "Parts that are not as they should be yet.",
           lambda p: ((parts, name) for name, parts in p.outbox.surfaces.unsent_by_platform().items()), "platform"),
    _gauge("outspoken_oldest_undelivered_seconds", "How long the oldest of them waits that is to stay; 0 if none waits.",
           lambda p: ((seconds, name) for name, seconds in p.outbox.surfaces.oldest_by_platform().items()), "platform"),
    # ------------------------------------------------------------------ adapters
    _gauge("outspoken_adapter_up", "1 if the adapter is connected.",
           lambda p: ((up, name) for name, _, up in _adapters(p)), "platform"),
    _gauge("outspoken_adapter_silent_seconds",
           "How long there was no sign of life from the platform; missing while it is not connected.",
           lambda p: ((one.adapter.silent_seconds, name) for name, one, up in _adapters(p) if up), "platform"),
    _gauge("outspoken_adapter_inbound_age_seconds", "How long ago the last message came; missing if none came yet.",
           lambda p: ((age, name) for name, one, _ in _adapters(p) if (age := one.sight().inbound_age_seconds) is not None), "platform"),
    _gauge("outspoken_adapter_outbound_age_seconds", "How long ago something was delivered; missing if nothing was yet.",
           lambda p: ((age, name) for name, one, _ in _adapters(p) if (age := one.sight().outbound_age_seconds) is not None), "platform"),
    _counter("outspoken_adapter_restarts_total", "How often an adapter ended and was started again.",
             lambda p: ((one.restarts, name) for name, one, _ in _adapters(p)), "platform", unwatched=True),
    # ------------------------------------------------------------------ webhooks
    _counter("outspoken_webhooks_total", "Attempts to tell other programs something, and messages to them that were given up.",
             _webhooks, "receiver", "outcome", unwatched=True),
    _gauge("outspoken_webhooks_waiting", "Messages that a receiver was not told yet; as of the last look, a few seconds ago.",
           lambda p: [(count, name) for name, count in p.webhooks.waiting().items()] if p.webhooks is not None else [], "receiver",
           unwatched=True),
    # ------------------------------------------------------------------ several gateways
    _gauge("outspoken_gateways", "Gateways that share the database just now, as this one sees it; 1 where one serves alone.",
           lambda p: [(max(1, len(p.hub.portion.peers)),)], unwatched=True),
    _gauge("outspoken_chat_slices", "Of the 64 slices of chats, how many this gateway runs (docs/scale.md).",
           lambda p: [(_slices(p.hub.portion),)], unwatched=True),
    # ------------------------------------------------------------------ queues
    _gauge("outspoken_running_turns", "Turns that run just now.", lambda p: [(len(p.hub.running()),)]),
    _gauge("outspoken_waiting_for_a_place", "Conversations that wait until the gateway has room for another turn.",
           lambda p: [(p.hub.slots.in_line,)]),
    _gauge("outspoken_oldest_wait_seconds", "How long the one of them waits that waits longest; 0 if none does.",
           lambda p: [(p.hub.slots.oldest_seconds(),)]),
    _gauge("outspoken_places", "Turns that may be open at once.", lambda p: [(p.hub.slots.bounds.open,)]),
    _gauge("outspoken_waiting_messages", "Messages that wait for their turn.", lambda p: [(p.hub.slots.messages,)]),
    _gauge("outspoken_storage_damaged",
           "What is damaged of the database: complaints of the last look through it, and conversations that were set aside within a day as not readable.",
           lambda p: [(p.soundness.places() + p.keeper.aside.recent(),)]),
    _gauge("outspoken_audit_findings",
           "At how many places what is stored breaks a law, as of the auditor's last look (docs/audit.md).",
           lambda p: [(count, law.value) for law, count in p.laws.counts().items()], "law"),
    _gauge("outspoken_audit_looked_timestamp_seconds", "When the auditor has ended its last look; 0 if there was none yet.",
           lambda p: [(p.laws.at / 1000,)], unwatched=True),
    _gauge("outspoken_unclaimed", "What an earlier process left and nobody has taken up yet.",
           lambda p: [(p.keeper.unclaimed()[kind], kind.value) for kind in Left], "left", unwatched=True),
    _gauge("outspoken_unclaimed_late", "The same, for longer than 30 s.",
           lambda p: [(p.keeper.late()[kind], kind.value) for kind in Left], "left"),
    _counter("outspoken_taken_up_total", "What was taken up of what earlier processes left.",
             lambda p: [(p.keeper.taken[kind], kind.value) for kind in Left], "left", unwatched=True),
    _counter("outspoken_set_aside_total",
             "What had ended the whole process twice, and was set aside instead of being taken up again.",
             lambda p: [(p.keeper.set_aside[kind], kind.value) for kind in Left], "left"),
    # ------------------------------------------------------------------ the store, the process
    _histogram("outspoken_store_commit_seconds", "How long commits took; one holds all that had queued up.", COMMITS,
               on(sig.Committed, lambda s: [(s.seconds, _stored(s))]), "outcome", begin=lambda _: each(OUTCOMES)),
    _counter("outspoken_store_operations_total", "Writes in them.",
             on(sig.Committed, lambda s: [(s.operations, _stored(s))]), "outcome", begin=lambda _: each(OUTCOMES)),
    _gauge("outspoken_store_waiting_writes", "Writes that wait for their commit.", lambda p: [(p.store.waiting,)]),
    _counter("outspoken_store_reopened_total", "How often the database's connection was made anew after an error.",
             lambda p: [(p.store.figures.reopened,)], unwatched=True),
    _counter("outspoken_database_lost_total", "How often the PostgreSQL server did not answer any more.",
             lambda p: [(way.breaks,)] if (way := p.store.way) is not None else [], unwatched=True),
    _gauge("outspoken_database_away_seconds", "For how long it has not answered; 0 if it does.",
           lambda p: [(way.away_seconds,)] if (way := p.store.way) is not None else [], unwatched=True),
    _counter("outspoken_database_silent_total", "Connections to it that were ended because nothing came of what they had asked.",
             lambda p: [(way.cut,)] if (way := p.store.way) is not None else [], unwatched=True),
    _gauge("outspoken_disk_free_bytes", "Room where the state is; as of the last look, a few seconds ago.",
           lambda p: [] if p.health.free_bytes is None else [(p.health.free_bytes,)]),
    _gauge("outspoken_quota_used_bytes",
           "What is kept, as of the last count and what was written since; `whole` is the whole state directory.", _kept, "what"),
    _gauge("outspoken_quota_files", "Files and folders in all workspaces.", lambda p: [(p.quotas.ledger.totals()[Kept.FILES],)]),
    _gauge("outspoken_quota_whole_limit_bytes", "`[quota] whole_mib`; 0 is no limit.", lambda p: [(p.quotas.limits.whole,)]),
    _counter("outspoken_quota_refused_total", "How often there was no room for something.",
             lambda p: [(p.quotas.refused[kind], kind.value) for kind in Kept], "what"),
    _histogram("outspoken_event_loop_lag_seconds", "How late the event loop was, looked at twice a second.", LOOP,
               on(LoopLate, lambda s: [(s.seconds,)])),
    _gauge("outspoken_event_loop_held_max_seconds", "The longest that the event loop was held, since the start.",
           lambda p: [(p.loop.longest,)]),
    _gauge("outspoken_ready", "1 if the gateway can take messages and keep them, as `/readyz` says.",
           lambda p: [(p.health.verdict().ready,)]),
    _gauge("outspoken_well",
           "1 if besides all platforms are connected and there is nothing to tell operators, as `/wellz` says.",
           lambda p: [(p.health.verdict().well,)]),
    _gauge("outspoken_alerts_open", "What the operators would be told just now, by what it is about.", _alerts, "kind"),
    _gauge("outspoken_info", "Always 1; the version is in its label.", lambda _: [(1,)], "version"),
)  # fmt: skip

PROCESS: tuple[Metric, ...] = (
    Metric("process_cpu_seconds_total", MetricKind.COUNTER, "CPU time of the process."),
    Metric("process_max_fds", MetricKind.GAUGE, "How many files it may have open."),
    Metric("process_open_fds", MetricKind.GAUGE, "How many it has open."),
    Metric("process_resident_memory_bytes", MetricKind.GAUGE, "Memory that it holds."),
    Metric("process_start_time_seconds", MetricKind.GAUGE, "When it began, seconds since 1970."),
    Metric("process_virtual_memory_bytes", MetricKind.GAUGE, "Address space that it uses."),
)
"""Made by the library itself, on Linux."""

CATALOGUE: tuple[Metric, ...] = (*OURS, *PROCESS)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in CATALOGUE}
SERIES: Mapping[str, Metric] = {name: metric for metric in CATALOGUE for name in metric.series}
"""By each name that a query can use."""
