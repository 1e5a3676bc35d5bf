"""What can be configured: one frozen class a section, each key with its default, its range and a description.

These classes are the only place that knows the keys. Their descriptions are sentences with units; the reference, the
commented template and the help in error messages are made from them (gateway/config/keys.py).

Laws: everything is immutable; an unknown key is refused; no message of a failed validation holds the value that was given
(it could be a secret in the wrong place); `repr` shows no secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from adapters import platforms
from adapters.contract.platforms import ChatSection, Platform
from adapters.contract.settings import FromOutside, Section, Texts, Tongue, Unit, Url, Usual, complaint, parsed_json
from agent_core.learning.incidents import IncidentRules
from agent_core.settings import GuardCounts, LadderCounts, TurnSettings
from agent_core.tools.base import RESULT_CHARS, WhenTainted
from gateway.config.agents import Agents
from gateway.config.later import Send, TasksSection
from gateway.config.limits import Audit, BudgetsSection, Quota, Retention
from gateway.config.model import Model
from gateway.config.paths import SHARED_SPOOL, Paths
from gateway.config.schedule import Schedule
from gateway.config.server import Server
from gateway.config.tools.mcp import Mcp
from gateway.config.tools.search import Search
from gateway.config.tools.shell import Shell
from gateway.config.tools.speech import Hearing, Speaking
from gateway.config.types import LogFormat, LogLevel, SessionPolicy, database_url, named_level
from gateway.config.webhooks import HooksSection, Webhooks
from gateway.limits.alerts import AlertLimits, AlertRules

_GUARDS = GuardCounts()
_LADDER = LadderCounts()
_INCIDENTS = IncidentRules()
_TOLD = AlertRules()
_WRONG = AlertLimits()
MINUTE_MS = 60_000

Rounds: TypeAlias = Annotated[int, Field(ge=1, le=1000), Unit("times")]
Times: TypeAlias = Annotated[int, Field(ge=0, le=20), Unit("times")]
Minutes: TypeAlias = Annotated[int, Field(ge=1, le=24 * 60)]
Turns: TypeAlias = Annotated[int, Field(ge=1, le=10_000), Unit("turns")]


class SessionsSection(Section):
    """Conversations."""

    policy: SessionPolicy = SessionPolicy.QUEUE
    """What a message does that comes while a turn is running: queue waits for its turn, steer goes into the running turn
    (with something attached it waits), interrupt ends it."""
    queue_limit: Annotated[int, Unit("messages")] = Field(default=20, ge=1, le=1000)
    """Messages that may wait in one session; the next one is kept if it is of a chat (five of each conversation), else declined with a notice."""
    open_turns: Turns = 1_000
    """Turns that are open at once in the whole gateway; whoever comes then is told the place in the queue."""
    waiting_limit: Annotated[int, Unit("messages")] = Field(default=5_000, ge=1, le=1_000_000)
    """Messages that may wait in the whole gateway; the next one is kept if it is of a chat (five of each conversation), else declined with a notice."""
    history_turns: Turns = 200
    """Closed turns of a session that are shown to the model at most."""
    language: Tongue = Field(default="", examples=["de"])
    """Language of notices, buttons and commands: de, en, es, fr, pt, ru, zh, ja, ar or hi. Empty: each person's own."""


class Tools(Section):
    """The tools that the model may use."""

    enabled: Texts = Field(default=(), examples=[["read_file", "fetch_url"]])
    """Names of the tools that are offered; empty offers all."""
    disabled: Texts = Field(default=(), examples=[["fetch_url"]])
    """Names of tools that are not offered."""
    workspace: Path | None = Field(default=None, examples=["workspaces"])
    """Directory that holds the sessions' folders; in the state directory if not set."""
    result_chars: int = Field(default=RESULT_CHARS, ge=500, le=1_000_000)
    """Characters of a tool's result that the model is shown; the middle of a longer one is left out."""
    path: Path | None = Field(default=None, examples=["tools"])
    """Directory with tools of your own: each function of its .py files is one."""
    environment: Texts = Field(default=(), examples=[["WEATHER_KEY"]])
    """Names of environment variables that your own tools are given, beside PATH, HOME, LANG and TZ. They are given no others."""
    skills: Path | None = Field(default=None, examples=["skills"])
    """Directory with skills: each folder in it that has a SKILL.md is one, and the agent reads it when it fits."""
    memory_writers: Texts = Field(default=(), examples=[["telegram/4711/12345678"]])
    """People, as ACCOUNT/PERSON, who may have the agent remember things for everybody. Empty: there is no such memory."""
    approval: Texts = Field(default=(), examples=[["write_file"]])
    """Names of the tools that run only after a person has agreed."""
    approval_seconds: int = Field(default=TurnSettings(()).approval_seconds, ge=10, le=86_400)
    """Seconds to wait for a person's agreement."""
    approvers: Texts = Field(default=("asker", "admins"), examples=[["asker", "telegram/12345678"]])
    """Who may give it: asker (who asked), admins (of that platform), anyone (who may talk there), or single people as PLATFORM/ID."""
    tainted: WhenTainted = WhenTainted.ASK
    """What becomes of a call that others would see, once the model has read words of others (pages, files, other programs): a person is
    asked (ask), it is not run (refuse), or it is run (allow). See docs/injection.md."""
    tainted_tools: Annotated[Mapping[str, WhenTainted], BeforeValidator(parsed_json)] = Field(
        default_factory=dict[str, WhenTainted], examples=[{"fetch_url": "refuse"}]
    )
    """The same for single tools, by their names."""

    @model_validator(mode="after")
    def _consistent(self) -> Tools:
        if both := set(self.enabled) & set(self.disabled):
            names = ", ".join(sorted(name for name in both if name.isidentifier())) or "a tool"
            raise complaint("disabled", f"{names} is both enabled and disabled", "Take it out of one of the two lists.")
        named = {"asker", "admins", "anyone"}
        if not self.approvers or any(one not in named and "/" not in one.strip("/") for one in self.approvers):
            fix = 'Write asker, admins, anyone, or people as PLATFORM/ID, for example approvers = ["asker", "admins"].'
            raise complaint("approvers", "it names nobody who could approve", fix)
        return self


class Storage(Section):
    """Where everything durable is kept."""

    url: Annotated[str, AfterValidator(database_url), FromOutside("url_file", secret=False)] = Field(
        default="", repr=False, examples=["postgresql://outspoken@localhost/outspoken"]
    )
    """Database: sqlite:///path or postgresql://user@host/name. Empty: SQLite in the state directory. An address with a password
    comes from the environment or from url_file."""
    url_file: Path | None = Field(default=None, examples=["database.url"])
    """File that holds the database's address."""
    standby: bool = False
    """What a start does while another gateway has the database: wait for its end and take over then, instead of ending with an error. Two gateways
    with the same settings, on two machines and one PostgreSQL, so stand in for each other."""
    several: bool = False
    """Several gateways serve one PostgreSQL database at the same time and share the work. All of them are started with the same settings and with
    this; one that is not is refused while they run. See scale.md."""
    min_free_mib: int = Field(default=64, ge=0, le=1_000_000, examples=["64"])
    """MiB that have to be free on the disk of the state: below it no new message is taken, so that open turns can end. Taken again
    when there is a quarter more. 0: until it is full."""


class Log(Section):
    """Logs, on standard error."""

    level: Annotated[LogLevel, BeforeValidator(named_level), Usual(("LOG_LEVEL",))] = LogLevel.INFO
    """From which gravity on events are logged; libraries are logged from warning on."""
    format: LogFormat = LogFormat.AUTO
    """One JSON object a line, or lines for people; auto looks whether a terminal reads."""
    show_text: bool = False
    """Log what people and the model say. Off: only its length."""


class Guardrails(Section):
    """When a loop inside a turn is warned of, and when it is stopped. Counts."""

    repeating_failing_warn: Rounds = _GUARDS.repeating_failing_warn
    """Warn when the same call has failed this often."""
    repeating_failing_stop: Rounds = _GUARDS.repeating_failing_stop
    """Stop when the same call has failed this often."""
    failing_tool_warn: Rounds = _GUARDS.failing_tool_warn
    """Warn when the same tool has failed this often in a row."""
    failing_tool_stop: Rounds = _GUARDS.failing_tool_stop
    """Stop when the same tool has failed this often in a row."""
    no_progress_warn: Rounds = _GUARDS.no_progress_warn
    """Warn when the same reading call gave the same result this often, or the same call with an effect ran twice as often."""
    no_progress_stop: Rounds = _GUARDS.no_progress_stop
    """Stop when the same reading call gave the same result this often, or the same call with an effect ran six times as often."""
    circles_warn: Rounds = _GUARDS.circles_warn
    """Warn when a cycle of 2 to 4 calls has gone round this often."""
    circles_stop: Rounds = _GUARDS.circles_stop
    """Stop when a cycle of 2 to 4 calls has gone round this often."""

    @model_validator(mode="after")
    def _warned_before_stopped(self) -> Guardrails:
        for rule in ("repeating_failing", "failing_tool", "no_progress", "circles"):
            if getattr(self, f"{rule}_warn") >= getattr(self, f"{rule}_stop"):
                words = f"{rule}_stop is not above {rule}_warn, so the model would be stopped without a warning"
                raise complaint(f"{rule}_stop", words, f"Set {rule}_stop higher than {rule}_warn.")
        return self

    def counts(self) -> GuardCounts:
        """The counts as a turn takes them."""
        return GuardCounts(**self.model_dump())


class Recovery(Section):
    """How often each remedy is tried within one step before the next one, or before the turn ends with a notice. Counts.

    The plain retry is ``attempts`` in ``[model]``.
    """

    continue_text: Times = _LADDER.continue_text
    """Go on from a text that broke off."""
    tool_call_retry: Times = _LADDER.tool_call_retry
    """Call again after a break inside a tool call."""
    tool_call_advice: Times = _LADDER.tool_call_advice
    """Call again after that, with the advice to send smaller pieces."""
    empty_retry: Times = _LADDER.empty_retry
    """Call again after an empty reply."""
    empty_nudge: Times = _LADDER.empty_nudge
    """Tell the model that it returned nothing."""
    continue_thinking: Times = _LADDER.continue_thinking
    """Go on from a reply that was only reasoning."""
    promise_nudge: Times = _LADDER.promise_nudge
    """Remind the model of an action that it announced and did not take."""
    promise_question: Times = _LADDER.promise_question
    """Ask the model, in a turn, whether a reply is finished that may only announce something; a few tokens, a few seconds, seen by
    nobody. 0: never, such a reply is the answer."""
    continue_length: Times = _LADDER.continue_length
    """Go on from a text that the output limit cut."""
    tool_call_length_advice: Times = _LADDER.tool_call_length_advice
    """Advise smaller pieces after the output limit cut a tool call."""
    unknown_tool: Times = _LADDER.unknown_tool
    """Name the nearest tool to a model that calls one that is not there."""
    unreadable_arguments: Times = _LADDER.unreadable_arguments
    """Say what is wrong with a tool call's arguments."""
    leave_out: Times = _LADDER.leave_out
    """Try again without a part that a provider may have refused: a picture, a file, an earlier message."""
    compact: Times = _LADDER.compact
    """Shorten the conversation when it does not fit into the context."""
    same_stall_rounds: Annotated[int, Unit("times")] = Field(default=_LADDER.same_stall_rounds, ge=1, le=20)
    """From so many times on that a tool's calls stall, in a turn or across turns, the last remedy is to ask for the same as text,
    and the end by it is `same_stall_again`."""

    def counts(self, attempts: int) -> LadderCounts:
        """The counts as a turn takes them; `attempts` is ``[model] attempts``."""
        return LadderCounts(retry=attempts - 1, **self.model_dump())


class Incidents(Section):
    """When a failure that several people meet is an incident."""

    conversations: Annotated[int, Unit("conversations")] = Field(default=_INCIDENTS.people, ge=2, le=1000)
    """In conversations of so many people the same failure must have come up within the window; one person's count once, and so do
    those of all who do not say who they are."""
    window_minutes: Minutes = _INCIDENTS.window_ms // MINUTE_MS
    """The window. Minutes."""
    quiet_minutes: Minutes = _INCIDENTS.quiet_ms // MINUTE_MS
    """An incident that did not come up for so long is over. Minutes."""

    def rules(self) -> IncidentRules:
        """The rules as the core takes them."""
        return IncidentRules(self.conversations, self.window_minutes * MINUTE_MS, self.quiet_minutes * MINUTE_MS)


class Operators(Section):
    """Who runs the gateway, and what they are told."""

    chat: str = Field(default="", examples=["telegram/12345678"])
    """Where incidents and alerts are told: PLATFORM/CHAT or PLATFORM/CHAT/THREAD; CHAT may be a person who is known."""
    alerts_per_hour: Annotated[int, Unit("messages an hour")] = Field(default=_TOLD.per_hour, ge=1, le=1000)
    """At most so many messages an hour are sent there; further ones are held back and counted."""
    again_minutes: Minutes = _TOLD.again_ms // MINUTE_MS
    """The same alert is not told as new more often than this. Minutes."""
    adapter_seconds: int = Field(default=_WRONG.adapter_seconds, ge=0, le=24 * 3600)
    """They are told of a platform that was not connected for so long. Seconds."""
    undelivered_seconds: int = Field(default=_WRONG.undelivered_seconds, ge=10, le=24 * 3600)
    """They are told if something waits for so long to be delivered. Seconds."""
    wait_seconds: int = Field(default=_WRONG.wait_seconds, ge=5, le=24 * 3600)
    """They are told if somebody waits for so long until there is room for their turn. Seconds."""
    free_mib: int = Field(default=_WRONG.free_mib, ge=0, le=10**9)
    """They are told if less room than this is left on the disk of the state. MiB."""

    def alert_rules(self) -> AlertRules:
        """How much is told."""
        return AlertRules(per_hour=self.alerts_per_hour, again_ms=self.again_minutes * MINUTE_MS)

    def limits(self) -> AlertLimits:
        """From when on something is wrong."""
        return AlertLimits(self.adapter_seconds, self.undelivered_seconds, self.free_mib, self.wait_seconds)


class Telemetry(Section):
    """What is sent to whoever watches many programs. Metrics are fetched, not sent: docs/metrics.md."""

    otlp_endpoint: Url = Field(default="", examples=["http://127.0.0.1:4318/v1/traces"])
    """Where traces are sent by OTLP over HTTP, with its path; empty: none are made. They hold no word of a conversation. Needs the
    extra otlp (pip install 'outspoken[otlp]'). A key for it goes into OTEL_EXPORTER_OTLP_HEADERS, which the library reads."""


class PeopleSection(Section):
    """People who talk to the bot from several accounts."""

    link: bool = False
    """Let people join their accounts by a code (/link), and continue a private conversation in another chat (/resume)."""


class _First(BaseModel):
    """The sections that stand before those of the platforms, in lists and pages."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    model: Model = Field(default_factory=Model)
    server: Server = Field(default_factory=Server)
    session: SessionsSection = Field(default_factory=SessionsSection)
    tools: Tools = Field(default_factory=Tools)
    search: Search = Field(default_factory=Search)
    shell: Shell = Field(default_factory=Shell)
    hearing: Hearing = Field(default_factory=Hearing)
    speaking: Speaking = Field(default_factory=Speaking)
    mcp: Mcp = Field(default_factory=Mcp)
    agents: Agents = Field(default_factory=Agents)
    budgets: BudgetsSection = Field(default_factory=BudgetsSection)
    quota: Quota = Field(default_factory=Quota)
    storage: Storage = Field(default_factory=Storage)
    retention: Retention = Field(default_factory=Retention)
    log: Log = Field(default_factory=Log)


class Config(_First):
    """The whole configuration; the sections of the platforms are put in between by `schema`. Made by `gateway.config.reading`."""

    people: PeopleSection = Field(default_factory=PeopleSection)
    schedule: Schedule = Field(default_factory=Schedule)
    tasks: TasksSection = Field(default_factory=TasksSection)
    send: Send = Field(default_factory=Send)
    webhooks: Webhooks = Field(default_factory=Webhooks)
    hooks: HooksSection = Field(default_factory=HooksSection)
    guardrails: Guardrails = Field(default_factory=Guardrails)
    recovery: Recovery = Field(default_factory=Recovery)
    incidents: Incidents = Field(default_factory=Incidents)
    operators: Operators = Field(default_factory=Operators)
    audit: Audit = Field(default_factory=Audit)
    telemetry: Telemetry = Field(default_factory=Telemetry)

    def of(self, platform: Platform) -> ChatSection:
        """What is configured of a platform."""
        section: object = getattr(self, platform.name, None)
        return section if isinstance(section, platform.section) else platform.section()

    def chats(self) -> tuple[tuple[Platform, ChatSection], ...]:
        """The platforms that are configured."""
        every = ((one, self.of(one)) for one in platforms.platforms())
        return tuple((one, section) for one, section in every if section.configured)

    def spool(self, paths: Paths) -> Path:
        """Where files lie that are on their way to people. Any of several gateways may have to hand them out, and one of them removes what is old: there
        they lie in the folder that all of them see."""
        if self.storage.several:
            return (self.tools.workspace or paths.workspaces) / SHARED_SPOOL
        return paths.spool

    def ladder(self) -> LadderCounts:
        """How often each remedy is tried."""
        return self.recovery.counts(self.model.attempts)


def schema() -> type[Config]:
    """`Config` with a section for each platform that there is; ``schema()()`` is every default and reads nothing."""
    return _schema(platforms.platforms())


@lru_cache(4)
def _schema(of: tuple[Platform, ...]) -> type[Config]:
    sections: dict[str, Any] = {one.name: (one.section, Field(default_factory=one.section)) for one in of}
    # Fields stand in the order of the classes, the last base first: so the platforms' are between the others.
    between = create_model("Platforms", __base__=_First, **sections)
    made = create_model("Config", __base__=(Config, between))
    assert issubclass(made, Config)
    return made
