"""The sections ``[webhooks]`` and ``[hooks]``: other programs that are told what happens, and such as begin turns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from adapters import platforms
from adapters.contract.settings import FromOutside, Section, Texts, Unit, Url, complaint
from agent_core.failures.exits import ExitCode
from gateway.config.types import NamedTables, Secrets, named_tables
from gateway.webhooks.events import FAILED, HookEvent, HookRule, Receiver
from gateway.webhooks.prompting import HookDoor
from gateway.webhooks.signing import key_of

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
SecretFiles: TypeAlias = Annotated[
    tuple[Path, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
EVENTS = tuple(one.value for one in HookEvent if one is not HookEvent.TEST)


def _check_secrets(key: str, secrets: Sequence[SecretStr]) -> None:
    for secret in secrets:
        try:
            key_of(secret.get_secret_value())
        except ValueError as error:
            fix = "Make one with: python -c \"import os,base64;print('whsec_'+base64.b64encode(os.urandom(32)).decode())\""
            raise complaint(key, f"a webhook's secret {error}", fix) from None


class WebhookEntry(Section):
    """A program that is told, by a signed POST request."""

    name: str = Field(min_length=1, max_length=60, pattern=NAME)
    """By what it is known; in [webhooks.NAME] the name there."""
    url: Url
    """Its address; https, unless private is set."""
    secrets: Annotated[Secrets, FromOutside("secret_files", variable="secret_env")] = ()
    """What messages are signed with: whsec_ and base64. Several, separated by commas, while one is changed for another."""
    secret_env: str = ""
    """Name of the environment variable that holds them."""
    secret_files: SecretFiles = ()
    """Files that hold them, one each."""
    events: Texts = ()
    """What it is told of; empty: everything."""
    exits: Texts = ()
    """Of which ends of turns; empty: of all. "failed" stands for all that are not clean."""
    surfaces: Texts = ()
    """Only of turns that were asked there, such as "telegram" or "api"."""
    chats: Texts = ()
    """Only of these chats: PLATFORM/CHAT or PLATFORM/CHAT/THREAD, with the platform's ids."""
    sessions: Texts = ()
    """Only of these sessions: their ids, or their keys."""
    words: bool = False
    """Send what was asked and answered, too; else only facts and ids."""
    private: bool = False
    """The address may lie inside the network or on this machine, and be called without TLS."""
    timeout_seconds: float = Field(default=15, ge=1, le=60)
    """Seconds that it may take to answer."""
    at_once: Annotated[int, Unit("messages")] = Field(default=4, ge=1, le=32)
    """Messages that are under way to it at once."""

    @field_validator("url")
    @classmethod
    def _is_there(cls, value: str) -> str:
        if not value:
            raise complaint("receivers", "a webhook has no url", 'Write url = "https://example.org/hook".')
        return value

    @model_validator(mode="after")
    def _usable(self) -> WebhookEntry:
        if not self.secrets:
            fix = 'Name a file that holds it, secret_files = ["hook.secret"], or a variable by secret_env.'
            raise complaint("receivers", "a webhook has no secret to sign its messages with", fix)
        _check_secrets("receivers", self.secrets)
        if urlsplit(self.url).scheme != "https" and not self.private:
            fix = "Use https, or set private = true if it lies inside your network."
            raise complaint("receivers", "a webhook's address is not https, so anybody on the way could read it", fix)
        self._known("events", self.events, EVENTS)
        self._known("exits", self.exits, (FAILED, *(one.value for one in ExitCode)))
        return self

    @staticmethod
    def _known(key: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
        if not set(given) <= set(known):
            fix = f"There are: {', '.join(known)}."
            raise complaint("receivers", f"a webhook's {key} name something that there is not", fix)

    def receiver(self) -> Receiver:
        """As it is sent to."""
        rule = HookRule(
            self.name,
            frozenset(HookEvent(one) for one in self.events),
            frozenset(self.exits),
            frozenset(self.surfaces),
            frozenset(self.chats),
            frozenset(self.sessions),
            words=self.words,
        )
        keys = tuple(key_of(revealed(secret)) for secret in self.secrets)
        return Receiver(rule, self.url, keys, self.timeout_seconds, self.at_once, self.private)


def revealed(secret: SecretStr) -> str:
    """What is in it."""
    return secret.get_secret_value()


class Webhooks(NamedTables):
    """Other programs that are told what happens; see docs/webhooks.md."""

    tables = "receivers"

    receivers: Annotated[tuple[WebhookEntry, ...], BeforeValidator(named_tables)] = Field(
        default=(),
        examples=[
            [
                {
                    "name": "deploy",
                    "url": "https://example.org/hook",
                    "secret_files": ["hook.secret"],
                    "exits": ["failed"],
                }
            ]
        ],
    )
    """Who is told, each best in a table of its own, [webhooks.NAME], with url and secret_files or secret_env; further events, exits,
    surfaces, chats, sessions, words, private, timeout_seconds, at_once. From the environment: JSON."""


class HookScheme(StrEnum):
    """How calls are signed."""

    STANDARD = "standard"
    GITHUB = "github"


class HookEntry(Section):
    """A call by which another program begins a turn: POST /hooks/NAME."""

    name: str = Field(min_length=1, max_length=60, pattern=NAME)
    """Its name in the address; in [hooks.NAME] the name there."""
    prompt: str = Field(min_length=1, max_length=20_000)
    """What the model is asked to do with what comes."""
    chat: str = ""
    """Where the answer goes: PLATFORM/CHAT or PLATFORM/CHAT/THREAD, with the platform's ids."""
    session: str = Field(default="", max_length=200)
    """Or a session of the API, by its name there."""
    scheme: HookScheme = HookScheme.STANDARD
    """How calls are signed: standard (Standard Webhooks), or github (X-Hub-Signature-256)."""
    secrets: Annotated[Secrets, FromOutside("secret_files", variable="secret_env")] = ()
    """What calls are signed with: whsec_ and base64, for github any word. Several, separated by commas, while one is changed."""
    secret_env: str = ""
    """Name of the environment variable that holds them."""
    secret_files: SecretFiles = ()
    """Files that hold them, one each."""
    fields: Texts = ()
    """Which fields of the body the model is shown, as paths (pull_request.title); empty: all of it."""
    body_chars: int = Field(default=20_000, ge=100, le=200_000)
    """Characters of that at most."""
    body_bytes: int = Field(default=1024 * 1024, ge=1024, le=25 * 1024 * 1024)
    """Largest body that is read, bytes."""
    per_minute: Annotated[int, Unit("calls a minute")] = Field(default=30, ge=1, le=10_000)
    """Calls that are taken in a minute."""

    @model_validator(mode="after")
    def _usable(self) -> HookEntry:
        if bool(self.chat) == bool(self.session):
            fix = 'Write chat = "telegram/12345678", or session = "builds".'
            raise complaint("entries", "a hook needs either a chat or a session", fix)
        platform, _, chat = self.chat.partition("/")
        if self.chat and (platform not in platforms.names() or not chat or chat.startswith("/")):
            fix = f"The platforms are: {', '.join(platforms.names())}."
            raise complaint("entries", "a hook's chat is not PLATFORM/CHAT or PLATFORM/CHAT/THREAD", fix)
        if not self.secrets:
            fix = 'Name a file that holds it, secret_files = ["hook.secret"], or a variable by secret_env.'
            raise complaint("entries", "a hook has no secret, so anybody could call it", fix)
        if self.scheme is HookScheme.STANDARD:
            _check_secrets("entries", self.secrets)
        return self

    def door(self) -> HookDoor:
        """As it is served."""
        github = self.scheme is HookScheme.GITHUB
        keys = tuple(revealed(one).encode() if github else key_of(revealed(one)) for one in self.secrets)
        return HookDoor(
            self.name, keys, self.prompt, self.chat, self.session, self.fields, self.body_chars, self.body_bytes,
            self.per_minute, github,
        )  # fmt: skip


class HooksSection(NamedTables):
    """Calls by which other programs begin turns; see docs/webhooks.md."""

    tables = "entries"

    entries: Annotated[tuple[HookEntry, ...], BeforeValidator(named_tables)] = Field(
        default=(),
        examples=[
            [{"name": "builds", "prompt": "Say what failed.", "session": "builds", "secret_files": ["hook.secret"]}]
        ],
    )
    """The calls, each best in a table of its own, [hooks.NAME], with prompt, chat or session, and secret_files or secret_env; further
    scheme, fields, body_chars, body_bytes, per_minute. From the environment: JSON."""
