"""The metrics, as data: what each is called, what it counts, by which labels, and in which buckets. Pure.

Theory. A metric is an interface, as a log event is: dashboards and alert rules name it. So there is one list; the metrics are made
from it (`gateway.observe.metrics`), ``docs/metrics.md`` is printed from it (``python -m gateway.observe.metricscatalogue > docs/metrics.md``), and
a test compares it with what a running gateway serves and with what ``deploy/`` names.

Rules of names. ``outspoken_`` is ours; ``gen_ai_`` follows OpenTelemetry's conventions for generative AI, in Prometheus' spelling. A
unit is in the name, in base units; a counter ends in ``_total``. A label never holds a chat, a person, a conversation or a turn, so the
number of series is bounded by what is configured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What Prometheus calls its types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    kind: Kind
    says: str
    """What it is, in a sentence."""
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    read: bool = False
    """It is read when somebody asks; else it is counted as things happen."""

    @property
    def series(self) -> tuple[str, ...]:
        """The names that a query can use."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


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

LABELS: Mapping[str, str] = {
    "budget": "which budget: hour, day, month (where it is stopped also turn, person, chat)",
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
    "kind": "what an alert is about: adapter, storage, disk, delivery, queue, spend, incident, unclaimed, damage",
    "lane": "`normal`, `command` or `refused`",
    "left": "what was left: `conversation` (an open turn, or messages that wait), `command`, `delivery`",
    "measure": "`tokens` or `money`",
    "model": "the model's name",
    "outcome": "of a remedy: `helped`, `not_helped`, `not_known`; of a commit: `stored` or `failed`",
    "platform": "`telegram`, `discord`, `slack`; of messages also `api`, `web`, `terminal`",
    "remedy": "the remedy that was chosen, one word of a closed list",
    "status": "how a tool ended, one word of a closed list",
    "surface": "where a turn was asked: `api`, `web`, `telegram`, …",
    "tool": "the tool's name",
    "version": "the program's version",
    "what": "what is counted: `workspace`, `memory`, `spool`, `whole`; of refusals also `files`, `incoming`, `sessions`",
}  # fmt: skip

_GENAI = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")


def _c(name: str, says: str, *labels: str, read: bool = False) -> Metric:
    return Metric(name, Kind.COUNTER, says, labels, read=read)


def _g(name: str, says: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, says, labels, read=True)


def _h(name: str, says: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, says, labels, buckets)


# ---------------------------------------------------------------------- messages and turns
MESSAGES = _c("outspoken_messages_total", "Messages that were stored for the first time.", "platform", "lane")
TURNED_AWAY = _c("outspoken_turned_away_total", "Messages that were not taken because too many waited.", "surface")
CONNECTIONS_CUT = _c(
    "outspoken_connections_cut_total", "Connections that were not taken, or were ended for keeping us waiting.", "cause"
)
REQUESTS_REFUSED = _c("outspoken_requests_refused_total", "Requests of the API that were not taken.", "http_status")
TURNS = _c("outspoken_turns_total", "Turns that ended.", "exit", "surface")
TURN_WAIT = _h(
    "outspoken_turn_wait_seconds", "From a message's arrival to the beginning of its turn.", PATIENCE, "surface"
)
FIRST_SIGN = _h(
    "outspoken_turn_first_sign_seconds",
    "On chats: from a turn's beginning until the platform showed something of it (typing, a status, text).",
    PATIENCE,
    "platform",
)
FIRST_CONTENT = _h(
    "outspoken_turn_first_content_seconds",
    "From a turn's beginning to the first content of the model (text, thoughts, a tool's call).",
    PATIENCE,
    "surface",
)
TURN_SECONDS = _h("outspoken_turn_seconds", "From a turn's beginning to its end.", TURNS_TAKE, "surface")
TOOL_SECONDS = _h("outspoken_tool_seconds", "How long tools ran.", TOOLS, "tool", "status")
LAWS_BROKEN = _c(
    "outspoken_laws_broken_total", "Turns that broke a law of the machine: a mistake in the program, each."
)
# ---------------------------------------------------------------------- models
TROUBLES = _c(
    "outspoken_troubles_total",
    "Failures in turns that ended, cured ones included.",
    "exit",
    "cause",
    "endpoint",
    "model",
)
REMEDIES = _c(
    "outspoken_remedies_total", "Remedies that were tried for them, and what came of it.", "exit", "remedy", "outcome"
)
STALLS = _c(
    "outspoken_model_stalls_total",
    "Calls that were given up because the model was silent: `no_content` from the beginning, `stalled` in the middle.",
    "endpoint",
    "model",
    "cause",
)
CALL_SECONDS = _h(
    "gen_ai_client_operation_duration_seconds", "Calls of models, each try by itself.", CALLS, *_GENAI, "error_type"
)
CALL_FIRST = _h(
    "gen_ai_client_operation_time_to_first_chunk_seconds",
    "From a call's beginning to its first content.",
    CALLS,
    *_GENAI,
)
TOKEN_USAGE = _h(
    "gen_ai_client_token_usage", "Tokens of a call, where the provider told them.", TOKENS, *_GENAI, "gen_ai_token_type"
)
INCIDENTS = _g("outspoken_open_incidents", "Failures that several conversations meet just now.")
# ---------------------------------------------------------------------- spending
SPENT_TOKENS = _c(
    "outspoken_spent_tokens_total",
    "Tokens that were counted for budgets (only if there are any).",
    "model",
    "estimated",
)
SPENT_MONEY = _c("outspoken_spent_money_total", "What they cost, in the currency.", "model", "currency")
SPEND_STOPPED = _c(
    "outspoken_spend_stopped_total", "Calls that were not made, because a budget is used up.", "budget", "measure"
)
BUDGET_USED = _g(
    "outspoken_budget_used_ratio",
    "How full a budget of everybody is, 1 being its limit; as of the last look, a few seconds ago.",
    "budget",
    "measure",
)
# ---------------------------------------------------------------------- delivery
DELIVERY_LAG = _h(
    "outspoken_delivery_lag_seconds",
    "From when a part of an answer was to be seen until it was delivered.",
    LAGS,
    "platform",
)
DELIVERY_RETRIES = _c(
    "outspoken_delivery_retries_total",
    "Calls to a platform that failed and are made again.",
    "platform",
    "fate",
    "cause",
)
DELIVERY_FAILED = _c("outspoken_delivery_failed_total", "Parts that a platform refused for good.", "platform", "cause")
DELIVERY_PAUSES = _c("outspoken_delivery_pause_seconds_total", "Pauses that a platform asked for.", "platform")
UNDELIVERED = _g("outspoken_undelivered_parts", "Parts that are not as they should be yet.", "platform")
OLDEST = _g(
    "outspoken_oldest_undelivered_seconds",
    "How long the oldest of them waits that is to stay; 0 if none waits.",
    "platform",
)
# ---------------------------------------------------------------------- adapters
ADAPTER_UP = _g("outspoken_adapter_up", "1 if the adapter is connected.", "platform")
ADAPTER_SILENT = _g(
    "outspoken_adapter_silent_seconds",
    "How long there was no sign of life from the platform; missing while it is not connected.",
    "platform",
)
INBOUND_AGE = _g(
    "outspoken_adapter_inbound_age_seconds", "How long ago the last message came; missing if none came yet.", "platform"
)
OUTBOUND_AGE = _g(
    "outspoken_adapter_outbound_age_seconds",
    "How long ago something was delivered; missing if nothing was yet.",
    "platform",
)
ADAPTER_RESTARTS = _c(
    "outspoken_adapter_restarts_total", "How often an adapter ended and was started again.", "platform", read=True
)
# ---------------------------------------------------------------------- queues
RUNNING = _g("outspoken_running_turns", "Turns that run just now.")
IN_LINE = _g("outspoken_waiting_for_a_place", "Conversations that wait until the gateway has room for another turn.")
IN_LINE_OLDEST = _g(
    "outspoken_oldest_wait_seconds", "How long the one of them waits that waits longest; 0 if none does."
)
PLACES = _g("outspoken_places", "Turns that may be open at once.")
WAITING = _g("outspoken_waiting_messages", "Messages that wait for their turn.")
DAMAGED = _g(
    "outspoken_storage_damaged",
    "What is damaged of the database: complaints of the last look through it, and conversations that were set aside within a day as not readable.",
)
UNCLAIMED = _g("outspoken_unclaimed", "What an earlier process left and nobody has taken up yet.", "left")
UNCLAIMED_LATE = _g("outspoken_unclaimed_late", "The same, for longer than 30 s.", "left")
TAKEN_UP = _c("outspoken_taken_up_total", "What was taken up of what earlier processes left.", "left", read=True)
SET_ASIDE = _c(
    "outspoken_set_aside_total",
    "What had ended the whole process twice, and was set aside instead of being taken up again.",
    "left",
    read=True,
)
# ---------------------------------------------------------------------- the store, the process
COMMIT_SECONDS = _h(
    "outspoken_store_commit_seconds", "How long commits took; one holds all that had queued up.", COMMITS, "outcome"
)
STORE_OPERATIONS = _c("outspoken_store_operations_total", "Writes in them.", "outcome")
STORE_WAITING = _g("outspoken_store_waiting_writes", "Writes that wait for their commit.")
STORE_REOPENED = _c(
    "outspoken_store_reopened_total", "How often the database's connection was made anew after an error.", read=True
)
DISK_FREE = _g("outspoken_disk_free_bytes", "Room where the state is; as of the last look, a few seconds ago.")
QUOTA_USED = _g(
    "outspoken_quota_used_bytes",
    "What is kept, as of the last count and what was written since; `whole` is the whole state directory.",
    "what",
)
QUOTA_FILES = _g("outspoken_quota_files", "Files and folders in all workspaces.")
QUOTA_WHOLE = _g("outspoken_quota_whole_limit_bytes", "`[quota] whole_mib`; 0 is no limit.")
QUOTA_REFUSED = _c("outspoken_quota_refused_total", "How often there was no room for something.", "what", read=True)
LOOP_LAG = _h("outspoken_event_loop_lag_seconds", "How late the event loop was, looked at twice a second.", LOOP)
LOOP_HELD = _g("outspoken_event_loop_held_max_seconds", "The longest that the event loop was held, since the start.")
READY = _g("outspoken_ready", "1 if the gateway can take messages and keep them, as `/readyz` says.")
WELL = _g(
    "outspoken_well",
    "1 if besides all platforms are connected and there is nothing to tell operators, as `/wellz` says.",
)
ALERTS = _g("outspoken_alerts_open", "What the operators would be told just now, by what it is about.", "kind")
INFO = _g("outspoken_info", "Always 1; the version is in its label.", "version")

OURS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))

PROCESS: tuple[Metric, ...] = (
    _c("process_cpu_seconds_total", "CPU time of the process.", read=True),
    _g("process_max_fds", "How many files it may have open."),
    _g("process_open_fds", "How many it has open."),
    _g("process_resident_memory_bytes", "Memory that it holds."),
    _g("process_start_time_seconds", "When it began, seconds since 1970."),
    _g("process_virtual_memory_bytes", "Address space that it uses."),
)  # fmt: skip
"""Made by the library itself, on Linux."""

CATALOGUE: tuple[Metric, ...] = (*OURS, *PROCESS)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in CATALOGUE}
SERIES: Mapping[str, Metric] = {name: metric for metric in CATALOGUE for name in metric.series}
"""By each name that a query can use."""

_HEAD = """# Metrics

Written by `python -m gateway.observe.metricscatalogue > docs/metrics.md` from `gateway/observe/metricscatalogue.py`; a test compares that with what a
running gateway serves, and with `deploy/grafana-dashboard.json` and `deploy/alert-rules.yaml`.

`GET /metrics` answers in Prometheus' text format, or in OpenMetrics if asked for it. It is guarded as `/status` is: where there is an operators' key
([console.md](console.md#who-may-see-it)), Prometheus has to send it; without one, only this machine is answered.

```yaml
scrape_configs:
  - job_name: outspoken
    authorization: {credentials_file: /etc/prometheus/operator.key}   # only where there is an operators' key
    static_configs: [{targets: ["127.0.0.1:8787"]}]
```

Names and labels are part of the interface; the changelog tells when one changes. No label holds a chat, a person, a conversation or a turn. Should
there be more than a hundred models, endpoints or tools, further ones are counted as `other`. Counters begin at zero with the process.

`deploy/grafana-dashboard.json` is a dashboard for Grafana (import it, choose the data source), `deploy/alert-rules.yaml` are rules for Prometheus.
For what the gateway itself tells the operators in a chat, and for `/healthz`, `/readyz`, `/wellz` and `/status`, see [health.md](health.md). Traces are
there too.
"""


def markdown() -> str:
    """The page docs/metrics.md."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for title, metrics in (("The gateway", OURS), ("The process", PROCESS)):
        yield f"## {title}\n\n| metric | type | labels | what it is |\n|---|---|---|---|"
        for metric in metrics:
            labels = ", ".join(f"`{name}`" for name in metric.labels)
            yield f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.says} |"
        yield ""
    yield "A histogram is asked for by `…_bucket`, `…_sum` and `…_count`.\n"
    yield "## Labels\n\n| label | meaning |\n|---|---|"
    for name in sorted(LABELS):
        yield f"| `{name}` | {LABELS[name]} |"


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
