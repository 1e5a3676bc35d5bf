"""The model: section ``[model]``, and from it the client's endpoints. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, SecretStr, model_validator

from adapters.contract.settings import FromOutside, Secret, Section, Texts, Unit, Url, Usual, complaint, listed
from agent_core.jsonvalue import Json
from agent_core.model.endpoints import Credential, Endpoint, label_of
from agent_core.model.knownbad import ROUTING, ROWS, KnownBad
from agent_core.records import dataclass
from agent_core.settings import ASSUMED_WINDOW_TOKENS, CONNECT_SECONDS, TurnSettings
from gateway.config.types import Headers, Paths, Secrets, Table, named_tables

NO_KEY = "none"
"""What a server that wants no key is sent: the SDK insists on one."""
REHEARSAL_LABEL = "rehearsal"

OPENAI_URL = "https://api.openai.com/v1"
"""Where models are asked when there is a key and no `base_url`."""


@dataclass(frozen=True, slots=True)
class PatienceKeys:
    """For how long a model may be silent: before its first content, between two pieces, and after a remedy. Seconds."""

    first_content_seconds: float
    stall_seconds: float
    remedy_seconds: float


REHEARSED = PatienceKeys(10, 10, 6)
"""With the rehearsal model, where the operator says nothing else."""


_TURN = TurnSettings(())
_ROW = {
    "name": "slow-one",
    "host": "openrouter.ai",
    "model": "z-ai/*",
    "look_again": "2027-03-01",
    "extra_body": {"provider": {"ignore": ["slow-one"]}},
}
Seconds: TypeAlias = Annotated[float, Field(ge=0.1, le=3600)]
Pause: TypeAlias = Annotated[float, Field(ge=0, le=3600)]
Temperature: TypeAlias = Annotated[float | None, Unit("as the provider counts it")]


class Fallback(Section):
    """A model that is tried when the one before it cannot go on. What is not set here is taken from ``[model]``.

    Keys and extra headers are taken over only for the same address: a key is never sent to a host that it was not given for.
    """

    name: str = Field(min_length=1)
    """The model's name at its endpoint."""
    base_url: Url = ""
    """Address of its OpenAI-compatible API; as in [model] if empty."""
    api_key: Annotated[Secret | None, FromOutside("api_key_file", variable="api_key_env")] = None
    """Its key."""
    api_key_env: str = ""
    """Name of the environment variable that holds its key."""
    api_key_file: Path | None = None
    """File that holds its key."""
    context_tokens: int | None = Field(default=None, ge=0)
    """Size of its context window, tokens."""
    max_output_tokens: int | None = Field(default=None, ge=0)
    """Limit of one reply, tokens."""
    temperature: Temperature = Field(default=None, ge=0, le=2)
    """Sampling temperature."""
    extra_body: Table = Field(default_factory=dict)
    """Further fields of the request."""
    extra_headers: Headers = Field(default_factory=dict, repr=False)
    """Further headers of the request."""


class KnownBadRow(Section):
    """An endpoint that goes wrong, and what a request for it carries so that this is avoided."""

    name: str = Field(min_length=1, max_length=60)
    """Its name; that of a row that is known already replaces it."""
    host: str = Field(min_length=1)
    """The API's host, exactly."""
    model: str = Field(default="*", min_length=1)
    """The models' names there; * allowed. Variants (:free) and dates are meant too."""
    fault: str = "it goes wrong there"
    """What goes wrong, for doctor."""
    remedy: str = "it is asked for in another way"
    """What is done about it, for doctor."""
    report: str = "your own configuration"
    """Where that is reported."""
    look_again: date
    """When to look whether it still is so."""
    extra_body: Table
    """Fields of the request about routing: provider, models, route. What extra_body in [model] sets wins."""

    @model_validator(mode="after")
    def _routing_only(self) -> KnownBadRow:
        if not self.extra_body or not set(self.extra_body) <= ROUTING:
            fix = 'Write for example extra_body = { provider = { ignore = ["minimax"] } }.'
            raise complaint("known_bad", "a row's extra_body holds something else than provider, models or route", fix)
        return self

    def row(self) -> KnownBad:
        """As the client takes it."""
        return KnownBad(**dict(self.model_copy(update={"host": self.host.lower(), "model": self.model.lower()})))


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model of the chain, with everything inherited filled in."""

    name: str
    """Empty: the endpoint is asked which it has."""
    base_url: str
    api_keys: tuple[SecretStr, ...]
    """In the order in which they are tried; may be empty (a local server)."""
    context_tokens: int
    """Size of the context window, tokens; 0 is unknown."""
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

    name: str = Field(default="", examples=["gpt-5"])
    """Name of the model. Empty: the endpoint is asked, and its first one that may answer is taken."""
    base_url: Annotated[Url, Usual(("OPENAI_BASE_URL",))] = Field(
        default="",
        description=f"Address of an OpenAI-compatible API. Empty: {OPENAI_URL} if there is a key, else the rehearsal model.",
        examples=["http://127.0.0.1:11434/v1"],
    )
    api_key: Annotated[Secret | None, Usual(("OPENAI_API_KEY",)), FromOutside("api_key_file")] = None
    """The key of the API."""
    api_key_file: Annotated[Path | None, Usual(("OPENAI_API_KEY_FILE",))] = Field(default=None, examples=["openai.key"])
    """File that holds the key and nothing else."""
    api_keys: Annotated[Secrets, FromOutside("api_key_files")] = ()
    """Further keys, separated by commas; the next one is taken while one is refused or rate-limited."""
    api_key_files: Paths = Field(default=(), examples=[["second.key"]])
    """Files that hold further keys, one each."""
    fallbacks: Annotated[tuple[Fallback, ...], BeforeValidator(named_tables)] = Field(
        default=(), examples=[["gpt-5-mini"]]
    )
    """Models that are tried in turn when this one cannot go on: names, or tables with name and, where they differ, base_url,
    api_key_env or api_key_file, context_tokens, max_output_tokens, temperature, extra_body, extra_headers. From the environment:
    JSON, or names separated by commas."""
    titles: bool = False
    """Conversations of the web page are given titles: after the first answer the model that gave it is asked for one, in a short call more that is
    counted as its others. Never with the rehearsal model. Without it, a conversation is called by its first words."""
    pictures: bool = True
    """The model sees pictures that people send; else they are only put into the workspace."""
    pdf: bool = False
    """The model is given PDF as they are, up to 10 MB; else their text."""
    audio: bool = False
    """The model is given sounds (WAV, MP3) as they are, up to 10 MB; else what is said in them, see [hearing]."""
    connect_seconds: float = Field(default=CONNECT_SECONDS, ge=0.1, le=300)
    """Seconds to wait for a connection."""
    first_content_seconds: Seconds = _TURN.first_content_seconds
    """Seconds to wait for the first content of a reply; grows with long prompts. With the rehearsal model 10, unless it is set."""
    remedy_seconds: float = Field(default=_TURN.remedy_seconds, ge=1, le=3600)
    """The most that a call may be silent that is made because another one was silent for its whole limit. Seconds. With the
    rehearsal model 6, unless it is set."""
    stall_seconds: Seconds = _TURN.stall_seconds
    """Seconds of silence between two pieces of content that count as a stall; grows with long prompts. With the rehearsal model 10,
    unless it is set."""
    turn_seconds: int = Field(default=_TURN.turn_seconds, ge=1, le=86_400)
    """Seconds that one turn may take, all retries included."""
    max_steps: Annotated[int, Unit("model calls")] = Field(default=_TURN.max_steps, ge=1, le=1000)
    """Model calls with their tools that one turn may take."""
    attempts: Annotated[int, Unit("calls")] = Field(default=_TURN.ladder.retry + 1, ge=1, le=20)
    """Calls in all for a failure before any content: the first one and its retries."""
    retry_min_seconds: float = Field(default=_TURN.retry_min_seconds, ge=0, le=300)
    """Window of the first pause before a retry, seconds; doubles each time."""
    retry_max_seconds: Pause = _TURN.retry_max_seconds
    """Longest pause before a retry, seconds."""
    retry_after_max_seconds: Pause = _TURN.retry_after_max_seconds
    """Longest Retry-After of a provider that is waited for, seconds; a longer one ends the turn."""
    context_tokens: int = Field(
        default=0,
        ge=0,
        description=f"Size of the context window, tokens; 0 is unknown, and {ASSUMED_WINDOW_TOKENS} are assumed.",
    )
    max_output_tokens: int = Field(default=0, ge=0)
    """Limit of one reply, tokens; 0 leaves it to the provider."""
    temperature: Temperature = Field(default=None, ge=0, le=2, examples=[0.7])
    """Sampling temperature; left to the provider if not set."""
    system_prompt: Annotated[str, FromOutside("system_prompt_file", secret=False)] = Field(
        default="", examples=["You are a careful assistant."]
    )
    """What the model is told first, instead of the built-in words."""
    system_prompt_file: Path | None = Field(default=None, examples=["prompt.md"])
    """File with the system prompt."""
    slow_arguments: Texts = Field(default=(), examples=[["glm-*"]])
    """Models (names, * allowed) that send tool arguments only when they are complete; a long silence there is not taken for a stall
    so soon."""
    extra_body: Table = Field(default_factory=dict, examples=[{"top_p": 0.9}])
    """Further fields of every request, as the provider names them. What it says about routing (provider, models, route) wins over
    what is known about bad endpoints, key by key."""
    extra_headers: Headers = Field(default_factory=dict, repr=False, examples=[{"X-Title": "outspoken"}])
    """Further headers of every request."""

    known_bad: Annotated[tuple[KnownBadRow, ...], BeforeValidator(listed)] = Field(
        default=(),
        examples=[[_ROW]],
    )
    """Further endpoints that go wrong, and how they are avoided: tables with name, host, model, look_again (a date) and extra_body;
    further fault, remedy, report. In the file best as [[model.known_bad]]. From the environment: JSON."""
    known_bad_off: Texts = Field(default=(), examples=[["openrouter-minimax-direct"]])
    """Names of rows about bad endpoints that do not count; doctor shows which apply."""

    @model_validator(mode="after")
    def _consistent(self) -> Model:
        if self.retry_min_seconds > self.retry_max_seconds:
            words = "retry_max_seconds is less than retry_min_seconds"
            raise complaint("retry_max_seconds", words, "Set retry_max_seconds to at least retry_min_seconds.")
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

    def patience(self) -> PatienceKeys:
        """How long a model may be silent. Nobody who rehearses a stall wants to wait for as long as a real model may need."""
        own = PatienceKeys(self.first_content_seconds, self.stall_seconds, self.remedy_seconds)
        if not self.rehearsal:
            return own
        return replace(REHEARSED, **{key: value for key, value in asdict(own).items() if key in self.model_fields_set})

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
            window = self.context_tokens if entry.context_tokens is None else entry.context_tokens
            longest = self.max_output_tokens if entry.max_output_tokens is None else entry.max_output_tokens
            choices.append(
                ModelChoice(
                    name=name,
                    base_url=url,
                    api_keys=(entry.api_key,) if entry.api_key else (self.credentials if same else ()),
                    context_tokens=window,
                    max_output_tokens=longest,
                    temperature=self.temperature if entry.temperature is None else entry.temperature,
                    extra_body={**(self.extra_body if same else {}), **entry.extra_body},
                    extra_headers={**(self.extra_headers if same else {}), **entry.extra_headers},
                    slow_arguments=any(fnmatchcase(name, pattern) for pattern in self.slow_arguments),
                    known_bad=self.rows(),
                )
            )
        return tuple(choices)


def endpoints_of(choices: Sequence[ModelChoice]) -> tuple[Endpoint, ...]:
    """One endpoint for each model of the chain, in order.

    A key has one id for each host, however many models use it, so that it is set aside for all of them.
    """
    ids: dict[tuple[str, str], str] = {}
    labels: set[str] = set()
    endpoints: list[Endpoint] = []
    for choice in choices:
        host = label_of(choice.base_url)
        label = host if host not in labels else f"{host} {choice.name}"
        while label in labels:
            label += "'"
        labels.add(label)
        secrets = [key.get_secret_value() for key in choice.api_keys] or [NO_KEY]
        endpoints.append(
            Endpoint(
                label=label,
                base_url=choice.base_url,
                credentials=tuple(Credential(_id(ids, host, secret), secret) for secret in secrets),
                models=(choice.name,) if choice.name else (),
                headers=choice.extra_headers,
                extra_body=_plain(choice.extra_body),
                context_tokens=choice.context_tokens,
                max_output_tokens=choice.max_output_tokens,
                temperature=choice.temperature,
                slow_arguments=choice.slow_arguments,
                known_bad=choice.known_bad,
            )
        )
    return tuple(endpoints)


def _id(ids: dict[tuple[str, str], str], host: str, secret: str) -> str:
    if secret == NO_KEY:
        return f"{host}/no-key"
    number = sum(1 for known_host, _ in ids if known_host == host) + 1
    return ids.setdefault((host, secret), f"{host}/key{number}")


def _plain(table: Mapping[str, object]) -> Mapping[str, Json]:
    """The table of the configuration, which pydantic has checked to be JSON."""
    return dict(table)  # pyright: ignore[reportReturnType] - pydantic's JsonValue is our Json under another name


def rehearsal_endpoint(base_url: str, api_key: str) -> Endpoint:
    """The embedded rehearsal model as an endpoint."""
    return Endpoint(
        label=REHEARSAL_LABEL,
        base_url=base_url,
        credentials=(Credential(REHEARSAL_LABEL, api_key),),
        models=(REHEARSAL_LABEL,),
    )
