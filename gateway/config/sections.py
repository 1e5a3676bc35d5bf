"""What can be configured: one frozen class a section, each key with its default, its range and a description.

These classes are the only place that knows the keys. Their descriptions are sentences with units; the reference, the
commented template and the help in error messages are made from them (gateway/config/keys.py).

Laws: everything is immutable; an unknown key is refused; no message of a failed validation holds the value that was given
(it could be a secret in the wrong place); `repr` shows no secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    SecretStr,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from agent_core.learning.incidents import IncidentRules
from agent_core.model.knownbad import ROUTING, ROWS, KnownBad
from agent_core.turn.settings import GuardCounts, LadderCounts
from gateway.config.budgets import Budgets
from gateway.config.chats import Discord, People, Slack, Telegram
from gateway.config.quota import Quota
from gateway.config.retention import Retention
from gateway.config.schedule import Schedule
from gateway.config.server import Server
from gateway.config.types import (
    PREFIX,
    FromOutside,
    Headers,
    LogFormat,
    LogLevel,
    Paths,
    Secret,
    Secrets,
    Section,
    SessionPolicy,
    Table,
    Texts,
    Url,
    Usual,
    complaint,
    database_url,
    listed,
    named_level,
    named_tables,
)
from gateway.observe.alerts import AlertRules, Limits

ASSUMED_CONTEXT_TOKENS = 128_000
"""The context window of a model whose size nobody configured, tokens."""

OPENAI_URL = "https://api.openai.com/v1"
"""Where models are asked when there is a key and no `base_url`."""


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long a model may be silent: before its first content, between two pieces, and after a remedy. Seconds."""

    first_content_seconds: float
    stall_seconds: float
    remedy_seconds: float


REHEARSED = Patience(10, 10, 6)
"""With the rehearsal model, where the operator says nothing else."""


class Fallback(Section):
    """A model that is tried when the one before it cannot go on. What is not set here is taken from ``[model]``.

    Keys and extra headers are taken over only for the same address: a key is never sent to a host that it was not given for.
    """

    name: str = Field(min_length=1, description="The model's name at its endpoint.")
    base_url: Url = Field(default="", description="Address of its OpenAI-compatible API; as in [model] if empty.")
    api_key: Annotated[Secret | None, FromOutside("api_key_file", variable="api_key_env")] = Field(
        default=None, description="Its key."
    )
    api_key_env: str = Field(default="", description="Name of the environment variable that holds its key.")
    api_key_file: Path | None = Field(default=None, description="File that holds its key.")
    context_tokens: int | None = Field(default=None, ge=0, description="Size of its context window, tokens.")
    max_output_tokens: int | None = Field(default=None, ge=0, description="Limit of one reply, tokens.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Sampling temperature.")
    extra_body: Table = Field(default_factory=dict, description="Further fields of the request.")
    extra_headers: Headers = Field(default_factory=dict, repr=False, description="Further headers of the request.")


class KnownBadRow(Section):
    """An endpoint that goes wrong, and what a request for it carries so that this is avoided."""

    name: str = Field(
        min_length=1, max_length=60, description="Its name; that of a row that is known already replaces it."
    )
    host: str = Field(min_length=1, description="The API's host, exactly.")
    model: str = Field(
        default="*",
        min_length=1,
        description="The models' names there; * allowed. Variants (:free) and dates are meant too.",
    )
    fault: str = Field(default="it goes wrong there", description="What goes wrong, for doctor.")
    remedy: str = Field(default="it is asked for in another way", description="What is done about it, for doctor.")
    report: str = Field(default="your own configuration", description="Where that is reported.")
    look_again: date = Field(description="When to look whether it still is so.")
    extra_body: Table = Field(
        description="Fields of the request about routing: provider, models, route. What extra_body in [model] sets wins."
    )

    @model_validator(mode="after")
    def _routing_only(self) -> KnownBadRow:
        if not self.extra_body or not set(self.extra_body) <= ROUTING:
            fix = 'Write for example extra_body = { provider = { ignore = ["minimax"] } }.'
            raise complaint("known_bad", "a row's extra_body holds something else than provider, models or route", fix)
        return self

    def row(self) -> KnownBad:
        """As the client takes it."""
        return KnownBad(
            name=self.name,
            host=self.host.lower(),
            model=self.model.lower(),
            fault=self.fault,
            remedy=self.remedy,
            report=self.report,
            look_again=self.look_again,
            extra_body=dict(self.extra_body),
        )


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model of the chain, with everything inherited filled in."""

    name: str
    """Empty: the endpoint is asked which it has."""
    base_url: str
    api_keys: tuple[SecretStr, ...]
    """In the order in which they are tried; may be empty (a local server)."""
    context_tokens: int
    """Size of the context window, tokens; never 0."""
    max_output_tokens: int
    """Tokens; 0 leaves it to the provider."""
    temperature: float | None
    extra_body: Mapping[str, JsonValue]
    extra_headers: Mapping[str, str]
    slow_arguments: bool
    """Sends tool arguments only when they are complete."""
    known_bad: tuple[KnownBad, ...] = ROWS
    """What is known to go wrong at endpoints."""


class Model(Section):
    """The model, how long it is waited for, and what is tried when it fails."""

    name: str = Field(
        default="",
        description="Name of the model. Empty: the endpoint is asked, and its first one is taken.",
        examples=["gpt-5"],
    )
    base_url: Annotated[Url, Usual(("OPENAI_BASE_URL",))] = Field(
        default="",
        description=f"Address of an OpenAI-compatible API. Empty: {OPENAI_URL} if there is a key, else the rehearsal model.",
        examples=["http://127.0.0.1:11434/v1"],
    )
    api_key: Annotated[Secret | None, Usual(("OPENAI_API_KEY",)), FromOutside("api_key_file")] = Field(
        default=None, description="The key of the API."
    )
    api_key_file: Annotated[Path | None, Usual(("OPENAI_API_KEY_FILE",))] = Field(
        default=None, description="File that holds the key and nothing else.", examples=["openai.key"]
    )
    api_keys: Annotated[Secrets, FromOutside("api_key_files")] = Field(
        default=(),
        description="Further keys, separated by commas; the next one is taken while one is refused or rate-limited.",
    )
    api_key_files: Paths = Field(
        default=(), description="Files that hold further keys, one each.", examples=[["second.key"]]
    )
    fallbacks: Annotated[tuple[Fallback, ...], BeforeValidator(named_tables)] = Field(
        default=(),
        description="Models that are tried in turn when this one cannot go on: names, or tables with name and, where they differ, "
        "base_url, api_key_env or api_key_file, context_tokens, max_output_tokens, temperature, extra_body, extra_headers. "
        "From the environment: JSON, or names separated by commas.",
        examples=[["gpt-5-mini"]],
    )
    pictures: bool = Field(
        default=True, description="The model sees pictures that people send; else they are only put into the workspace."
    )
    connect_seconds: float = Field(default=10, ge=0.1, le=300, description="Seconds to wait for a connection.")
    first_content_seconds: float = Field(
        default=120,
        ge=0.1,
        le=3600,
        description="Seconds to wait for the first content of a reply; grows with long prompts. With the rehearsal model 10, unless it is set.",
    )
    remedy_seconds: float = Field(
        default=60,
        ge=1,
        le=3600,
        description="The most that a call may be silent that is made because another one was silent for its whole limit. Seconds. "
        "With the rehearsal model 6, unless it is set.",
    )
    stall_seconds: float = Field(
        default=120,
        ge=0.1,
        le=3600,
        description="Seconds of silence between two pieces of content that count as a stall; grows with long prompts. "
        "With the rehearsal model 10, unless it is set.",
    )
    turn_seconds: int = Field(
        default=1800, ge=1, le=86_400, description="Seconds that one turn may take, all retries included."
    )
    max_steps: int = Field(
        default=50, ge=1, le=1000, description="Model calls with their tools that one turn may take."
    )
    attempts: int = Field(
        default=4,
        ge=1,
        le=20,
        description="Calls in all for a failure before any content: the first one and its retries.",
    )
    retry_min_seconds: float = Field(
        default=1, ge=0, le=300, description="Window of the first pause before a retry, seconds; doubles each time."
    )
    retry_max_seconds: float = Field(default=30, ge=0, le=3600, description="Longest pause before a retry, seconds.")
    retry_after_max_seconds: float = Field(
        default=120,
        ge=0,
        le=3600,
        description="Longest Retry-After of a provider that is waited for, seconds; a longer one ends the turn.",
    )
    context_tokens: int = Field(
        default=0,
        ge=0,
        description=f"Size of the context window, tokens; 0 is unknown, and {ASSUMED_CONTEXT_TOKENS} are assumed.",
    )
    max_output_tokens: int = Field(
        default=0, ge=0, description="Limit of one reply, tokens; 0 leaves it to the provider."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Sampling temperature; left to the provider if not set.", examples=[0.7]
    )
    system_prompt: Annotated[str, FromOutside("system_prompt_file", secret=False)] = Field(
        default="",
        description="What the model is told first, instead of the built-in words.",
        examples=["You are a careful assistant."],
    )
    system_prompt_file: Path | None = Field(
        default=None, description="File with the system prompt.", examples=["prompt.md"]
    )
    slow_arguments: Texts = Field(
        default=(),
        description="Models (names, * allowed) that send tool arguments only when they are complete; a long silence there is not taken for a stall so soon.",
        examples=[["glm-*"]],
    )
    extra_body: Table = Field(
        default_factory=dict,
        description="Further fields of every request, as the provider names them. What it says about routing (provider, models, route) wins over what is known about bad endpoints, key by key.",
        examples=[{"top_p": 0.9}],
    )
    extra_headers: Headers = Field(
        default_factory=dict,
        repr=False,
        description="Further headers of every request.",
        examples=[{"X-Title": "outspoken"}],
    )

    known_bad: Annotated[tuple[KnownBadRow, ...], BeforeValidator(listed)] = Field(
        default=(),
        description="Further endpoints that go wrong, and how they are avoided: tables with name, host, model, look_again (a date) and extra_body; "
        "further fault, remedy, report. In the file best as [[model.known_bad]]. From the environment: JSON.",
        examples=[
            [
                {
                    "name": "slow-one",
                    "host": "openrouter.ai",
                    "model": "z-ai/*",
                    "look_again": "2027-03-01",
                    "extra_body": {"provider": {"ignore": ["slow-one"]}},
                }
            ]
        ],
    )
    known_bad_off: Texts = Field(
        default=(),
        description="Names of rows about bad endpoints that do not count; doctor shows which apply.",
        examples=[["openrouter-minimax-direct"]],
    )

    @model_validator(mode="after")
    def _consistent(self) -> Model:
        if self.retry_min_seconds > self.retry_max_seconds:
            raise complaint(
                "retry_max_seconds",
                "retry_max_seconds is less than retry_min_seconds",
                "Set retry_max_seconds to at least retry_min_seconds.",
            )
        return self

    @property
    def credentials(self) -> tuple[SecretStr, ...]:
        """All keys for `base_url`, in the order in which they are tried, each once."""
        keys = ((self.api_key,) if self.api_key else ()) + self.api_keys
        return tuple({key.get_secret_value(): key for key in keys}.values())

    @property
    def rehearsal(self) -> bool:
        """True if no model is configured, so that the rehearsal model answers."""
        return not self.base_url and not self.credentials

    def patience(self) -> Patience:
        """How long a model may be silent. Nobody who rehearses a stall wants to wait for as long as a real model may need."""
        own = Patience(self.first_content_seconds, self.stall_seconds, self.remedy_seconds)
        if not self.rehearsal:
            return own
        chosen = self.model_fields_set
        return Patience(
            own.first_content_seconds if "first_content_seconds" in chosen else REHEARSED.first_content_seconds,
            own.stall_seconds if "stall_seconds" in chosen else REHEARSED.stall_seconds,
            own.remedy_seconds if "remedy_seconds" in chosen else REHEARSED.remedy_seconds,
        )

    def rows(self) -> tuple[KnownBad, ...]:
        """What is known to go wrong at endpoints: the built-in rows and the operator's own, without those that are switched off."""
        rows = {row.name: row for row in (*ROWS, *(own.row() for own in self.known_bad))}
        return tuple(row for name, row in rows.items() if name not in self.known_bad_off)

    def chain(self) -> tuple[ModelChoice, ...]:
        """The models in the order in which they are tried; empty if only the rehearsal model is there."""
        if self.rehearsal:
            return ()
        own_url = self.base_url or OPENAI_URL
        first = Fallback(name=self.name or "?")
        choices: list[ModelChoice] = []
        for entry in (first, *self.fallbacks):
            url = entry.base_url or own_url
            same = url == own_url
            name = self.name if entry is first else entry.name
            choices.append(
                ModelChoice(
                    name=name,
                    base_url=url,
                    api_keys=(entry.api_key,) if entry.api_key else (self.credentials if same else ()),
                    context_tokens=(entry.context_tokens if entry.context_tokens is not None else self.context_tokens)
                    or ASSUMED_CONTEXT_TOKENS,
                    max_output_tokens=self.max_output_tokens
                    if entry.max_output_tokens is None
                    else entry.max_output_tokens,
                    temperature=self.temperature if entry.temperature is None else entry.temperature,
                    extra_body={**(self.extra_body if same else {}), **entry.extra_body},
                    extra_headers={**(self.extra_headers if same else {}), **entry.extra_headers},
                    slow_arguments=any(fnmatchcase(name, pattern) for pattern in self.slow_arguments),
                    known_bad=self.rows(),
                )
            )
        return tuple(choices)


class Sessions(Section):
    """Conversations."""

    policy: SessionPolicy = Field(
        default=SessionPolicy.QUEUE,
        description="What a message does that comes while a turn is running: queue waits for its turn, steer goes into the running turn, interrupt ends it.",
    )
    queue_limit: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="Messages that may wait in one session; the next one is declined with a notice.",
    )
    open_turns: int = Field(
        default=1_000,
        ge=1,
        le=10_000,
        description="Turns that are open at once in the whole gateway; whoever comes then is told the place in the queue.",
    )
    waiting_limit: int = Field(
        default=5_000,
        ge=1,
        le=1_000_000,
        description="Messages that may wait in the whole gateway; the next one is declined with a notice.",
    )
    history_turns: int = Field(
        default=200, ge=1, le=10_000, description="Closed turns of a session that are shown to the model at most."
    )


class Tools(Section):
    """The tools that the model may use."""

    enabled: Texts = Field(
        default=(),
        description="Names of the tools that are offered; empty offers all.",
        examples=[["read_file", "fetch"]],
    )
    disabled: Texts = Field(default=(), description="Names of tools that are not offered.", examples=[["fetch"]])
    workspace: Path | None = Field(
        default=None,
        description="Directory that holds the sessions' folders; in the state directory if not set.",
        examples=["workspaces"],
    )
    result_chars: int = Field(
        default=30_000,
        ge=500,
        le=1_000_000,
        description="Characters of a tool's result that the model is shown; the middle of a longer one is left out.",
    )
    approval: Texts = Field(
        default=(), description="Names of the tools that run only after a person has agreed.", examples=[["write_file"]]
    )
    approval_seconds: int = Field(
        default=600, ge=10, le=86_400, description="Seconds to wait for a person's agreement."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Tools:
        if both := set(self.enabled) & set(self.disabled):
            names = ", ".join(sorted(name for name in both if name.isidentifier())) or "a tool"
            raise complaint("disabled", f"{names} is both enabled and disabled", "Take it out of one of the two lists.")
        return self


class Storage(Section):
    """Where everything durable is kept."""

    url: Annotated[str, AfterValidator(database_url), FromOutside("url_file", secret=False)] = Field(
        default="",
        repr=False,
        description="Database: sqlite:///path or postgresql://user@host/name. Empty: SQLite in the state directory. An address with a "
        "password comes from the environment or from url_file.",
        examples=["postgresql://outspoken@localhost/outspoken"],
    )
    url_file: Path | None = Field(
        default=None, description="File that holds the database's address.", examples=["database.url"]
    )
    min_free_mib: int = Field(
        default=64,
        ge=0,
        le=1_000_000,
        description="MiB that have to be free on the disk of the state: below it no new message is taken, so that open turns can end. Taken again "
        "when there is a quarter more. 0: until it is full.",
        examples=["64"],
    )


class Log(Section):
    """Logs, on standard error."""

    level: Annotated[LogLevel, BeforeValidator(named_level), Usual(("LOG_LEVEL",))] = Field(
        default=LogLevel.INFO,
        description="From which gravity on events are logged; libraries are logged from warning on.",
    )
    format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="One JSON object a line, or lines for people; auto looks whether a terminal reads.",
    )
    show_text: bool = Field(default=False, description="Log what people and the model say. Off: only its length.")


def _rounds(default: int, what: str) -> int:
    """A guardrail's count; typed as its value, because that is what the class has."""
    field: int = Field(default=default, ge=1, le=1000, description=what)
    return field


_GUARDS = GuardCounts()
_LADDER = LadderCounts()


class Guardrails(Section):
    """When a loop inside a turn is warned of, and when it is stopped. Counts."""

    repeating_failing_warn: int = _rounds(
        _GUARDS.repeating_failing_warn, "Warn when the same call has failed this often."
    )
    repeating_failing_stop: int = _rounds(
        _GUARDS.repeating_failing_stop, "Stop when the same call has failed this often."
    )
    failing_tool_warn: int = _rounds(
        _GUARDS.failing_tool_warn, "Warn when the same tool has failed this often in a row."
    )
    failing_tool_stop: int = _rounds(
        _GUARDS.failing_tool_stop, "Stop when the same tool has failed this often in a row."
    )
    no_progress_warn: int = _rounds(
        _GUARDS.no_progress_warn, "Warn when the same reading call gave the same result this often."
    )
    no_progress_stop: int = _rounds(
        _GUARDS.no_progress_stop, "Stop when the same reading call gave the same result this often."
    )
    circles_warn: int = _rounds(_GUARDS.circles_warn, "Warn when a cycle of 2 to 4 calls has gone round this often.")
    circles_stop: int = _rounds(_GUARDS.circles_stop, "Stop when a cycle of 2 to 4 calls has gone round this often.")

    @model_validator(mode="after")
    def _warned_before_stopped(self) -> Guardrails:
        for rule in ("repeating_failing", "failing_tool", "no_progress", "circles"):
            if getattr(self, f"{rule}_warn") >= getattr(self, f"{rule}_stop"):
                raise complaint(
                    f"{rule}_stop",
                    f"{rule}_stop is not above {rule}_warn, so the model would be stopped without a warning",
                    f"Set {rule}_stop higher than {rule}_warn.",
                )
        return self

    def counts(self) -> GuardCounts:
        """The counts as a turn takes them."""
        return GuardCounts(**self.model_dump())


def _times(default: int, what: str) -> int:
    field: int = Field(default=default, ge=0, le=20, description=what)
    return field


class Recovery(Section):
    """How often each remedy is tried within one step before the next one, or before the turn ends with a notice. Counts.

    The plain retry is ``attempts`` in ``[model]``.
    """

    continue_text: int = _times(_LADDER.continue_text, "Go on from a text that broke off.")
    tool_call_retry: int = _times(_LADDER.tool_call_retry, "Call again after a break inside a tool call.")
    tool_call_advice: int = _times(
        _LADDER.tool_call_advice, "Call again after that, with the advice to send smaller pieces."
    )
    empty_retry: int = _times(_LADDER.empty_retry, "Call again after an empty reply.")
    empty_nudge: int = _times(_LADDER.empty_nudge, "Tell the model that it returned nothing.")
    continue_thinking: int = _times(_LADDER.continue_thinking, "Go on from a reply that was only reasoning.")
    promise_nudge: int = _times(
        _LADDER.promise_nudge, "Remind the model of an action that it announced and did not take."
    )
    promise_question: int = _times(
        _LADDER.promise_question,
        "Ask the model, in a turn, whether a reply is finished that may only announce something; a few tokens, a few seconds, seen by nobody. "
        "0: never, such a reply is the answer.",
    )
    continue_length: int = _times(_LADDER.continue_length, "Go on from a text that the output limit cut.")
    tool_call_length_advice: int = _times(
        _LADDER.tool_call_length_advice, "Advise smaller pieces after the output limit cut a tool call."
    )
    unknown_tool: int = _times(
        _LADDER.unknown_tool, "Name the nearest tool to a model that calls one that is not there."
    )
    unreadable_arguments: int = _times(_LADDER.unreadable_arguments, "Say what is wrong with a tool call's arguments.")
    leave_out: int = _times(
        _LADDER.leave_out,
        "Try again without a part that a provider may have refused: a picture, a file, an earlier message.",
    )
    compact: int = _times(_LADDER.compact, "Shorten the conversation when it does not fit into the context.")
    same_stall_rounds: int = Field(
        default=_LADDER.same_stall_rounds,
        ge=1,
        le=20,
        description="From so many times on that a tool's calls stall, in a turn or across turns, the last remedy is to ask for the same as text, and the end by it is `same_stall_again`.",
    )

    def counts(self, attempts: int) -> LadderCounts:
        """The counts as a turn takes them; `attempts` is ``[model] attempts``."""
        return LadderCounts(retry=attempts - 1, **self.model_dump())


class Incidents(Section):
    """When a failure that several people meet is an incident."""

    conversations: int = Field(
        default=2,
        ge=2,
        le=1000,
        description="In conversations of so many people the same failure must have come up within the window; one person's count once, and so do those of all who do not say who they are.",
    )
    window_minutes: int = Field(default=60, ge=1, le=24 * 60, description="The window. Minutes.")
    quiet_minutes: int = Field(
        default=30, ge=1, le=24 * 60, description="An incident that did not come up for so long is over. Minutes."
    )

    def rules(self) -> IncidentRules:
        """The rules as the core takes them."""
        return IncidentRules(self.conversations, self.window_minutes * 60_000, self.quiet_minutes * 60_000)


class Operators(Section):
    """Who runs the gateway, and what they are told."""

    chat: str = Field(
        default="",
        description="Where incidents and alerts are told: PLATFORM/CHAT or PLATFORM/CHAT/THREAD; CHAT may be a person who is known.",
        examples=["telegram/12345678"],
    )
    alerts_per_hour: int = Field(
        default=12, ge=1, le=1000, description="At most so many messages an hour are sent there; further ones are held back and counted."
    )  # fmt: skip
    again_minutes: int = Field(
        default=60, ge=1, le=24 * 60, description="The same alert is not told as new more often than this. Minutes."
    )
    adapter_seconds: int = Field(
        default=60, ge=0, le=24 * 3600, description="They are told of a platform that was not connected for so long. Seconds."
    )  # fmt: skip
    undelivered_seconds: int = Field(
        default=300, ge=10, le=24 * 3600, description="They are told if something waits for so long to be delivered. Seconds."
    )  # fmt: skip
    wait_seconds: int = Field(
        default=120, ge=5, le=24 * 3600, description="They are told if somebody waits for so long until there is room for their turn. Seconds."
    )  # fmt: skip
    free_mib: int = Field(
        default=512,
        ge=0,
        le=10**9,
        description="They are told if less room than this is left on the disk of the state. MiB.",
    )

    def alert_rules(self) -> AlertRules:
        """How much is told."""
        return AlertRules(per_hour=self.alerts_per_hour, again_ms=self.again_minutes * 60_000)

    def limits(self) -> Limits:
        """From when on something is wrong."""
        return Limits(self.adapter_seconds, self.undelivered_seconds, self.free_mib, self.wait_seconds)


class Telemetry(Section):
    """What is sent to whoever watches many programs. Metrics are fetched, not sent: docs/metrics.md."""

    otlp_endpoint: Url = Field(
        default="",
        description="Where traces are sent by OTLP over HTTP, with its path; empty: none are made. They hold no word of a conversation. "
        "Needs the extra otlp (pip install 'outspoken[otlp]'). A key for it goes into OTEL_EXPORTER_OTLP_HEADERS, which the library reads.",
        examples=["http://127.0.0.1:4318/v1/traces"],
    )


class Config(BaseSettings):
    """All of it. Made by `gateway.config.reading`; ``Config()`` is every default and reads nothing."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        enable_decoding=False,
        case_sensitive=True,
    )

    model: Model = Field(default_factory=Model)
    server: Server = Field(default_factory=Server)
    session: Sessions = Field(default_factory=Sessions)
    tools: Tools = Field(default_factory=Tools)
    budgets: Budgets = Field(default_factory=Budgets)
    quota: Quota = Field(default_factory=Quota)
    storage: Storage = Field(default_factory=Storage)
    retention: Retention = Field(default_factory=Retention)
    log: Log = Field(default_factory=Log)
    telegram: Telegram = Field(default_factory=Telegram)
    discord: Discord = Field(default_factory=Discord)
    slack: Slack = Field(default_factory=Slack)
    people: People = Field(default_factory=People)
    schedule: Schedule = Field(default_factory=Schedule)
    guardrails: Guardrails = Field(default_factory=Guardrails)
    recovery: Recovery = Field(default_factory=Recovery)
    incidents: Incidents = Field(default_factory=Incidents)
    operators: Operators = Field(default_factory=Operators)
    telemetry: Telemetry = Field(default_factory=Telemetry)

    @override
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is given: the process's own environment comes in through `gateway.config.reading`, or not at all."""
        return (init_settings,)

    def ladder(self) -> LadderCounts:
        """How often each rung of the recovery ladder is climbed."""
        return self.recovery.counts(self.model.attempts)
