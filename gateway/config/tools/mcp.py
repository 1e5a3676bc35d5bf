"""The section ``[mcp]``: servers of the Model Context Protocol, whose tools are offered beside the gateway's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from adapters.contract.settings import FromOutside, Secret, Section, Texts, Url, complaint, parsed_json, revealed
from agent_core.text.redaction import is_secret_name
from gateway.config.types import Headers, NamedTables, named_tables

if TYPE_CHECKING:
    from agent_core.tools.mcp.terms import ServerTerms

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variables(value: Mapping[str, str]) -> Mapping[str, str]:
    """Variables that a program can be given."""
    if any(not _VARIABLE.fullmatch(name) or "\0" in content for name, content in value.items()):
        raise PydanticCustomError("outspoken", "must hold names of variables (letters, digits, _) and texts")
    return value


Environment: TypeAlias = Annotated[Mapping[str, str], BeforeValidator(parsed_json), AfterValidator(_variables)]


class McpSecret(Section):
    """A further secret of a server."""

    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")
    """The variable, or the header, that carries it."""
    value: Annotated[Secret | None, FromOutside("file", variable="env")] = None
    """It itself, which never stands in this file."""
    env: str = ""
    """Name of the environment variable of the gateway that holds it."""
    file: Path | None = None
    """File that holds it."""


class McpEntry(Section):
    """A server: a program that is begun here (command), or one that is reached by HTTP (url)."""

    name: str = Field(min_length=1, max_length=40, pattern=NAME)
    """By what it is known; in [mcp.NAME] the name there."""
    command: str = ""
    """The program that is begun, such as npx, uvx or a path."""
    args: Texts = ()
    """Its arguments."""
    env: Environment = Field(default_factory=dict[str, str])
    """Environment variables for it, beside HOME, PATH and the like. No secrets: those come by token."""
    cwd: Path | None = None
    """The directory that it runs in."""
    url: Url = ""
    """The address of a server that is reached by HTTP (streamable HTTP)."""
    headers: Headers = Field(default_factory=dict[str, str])
    """Headers for that. No secrets: those come by token."""
    token: Annotated[Secret | None, FromOutside("token_file", variable="token_env")] = None
    """A secret for it: a program gets it as the variable token_as, an address as its bearer token."""
    token_env: str = ""
    """Name of the environment variable that holds it."""
    token_file: Path | None = None
    """File that holds it."""
    token_as: str = ""
    """Name of the variable, or of the header, that carries it. Empty: as token_env, or Authorization: Bearer."""
    secrets: Annotated[tuple[McpSecret, ...], BeforeValidator(named_tables)] = Field(
        default=(), examples=[[{"name": "API_TOKEN", "env": "PAPERS_TOKEN"}]]
    )
    """More secrets for it, each by the variable or header that carries it, with env or file: {API_TOKEN = {env = "PAPERS_TOKEN"}}."""
    oauth: bool = False
    """Whether a server with a url wants a login (OAuth): see outspoken mcp login."""
    client_id: str = ""
    """By what that login knows us, if it was agreed; else we register there. The token is the client's secret then."""
    scope: str = ""
    """What that login is asked for; empty: what the server names."""
    prefix: str | None = Field(default=None, max_length=40, pattern=r"^[A-Za-z0-9_-]*$")
    """Before the names of its tools, as the model reads them. Not set: NAME__."""
    allow: Texts = ("*",)
    """Its tools that are offered, by the server's own names; * is all."""
    deny: Texts = ()
    """Its tools that are not."""
    pure: Texts = ()
    """Its tools that only read, whatever it says itself; * is all."""
    keyed: Texts = ()
    """Its tools that may be repeated with the same arguments without changing more; * is all."""
    effect: Texts = ()
    """Its tools that are never repeated; * is all."""
    approval: Texts = ()
    """Its tools that run only after a person has agreed; * is all."""
    trusted: Texts = ()
    """Its tools whose descriptions and results count as the operator's own words, so that they taint no conversation; * is all."""
    start_seconds: float = Field(default=60, ge=1, le=600)
    """Seconds until it must have said what it can do; a launcher may have to fetch it first."""
    timeout_seconds: float = Field(default=60, ge=1, le=3600)
    """Seconds that a call may be without a result or a word of progress."""
    limit_seconds: float = Field(default=600, ge=1, le=3600)
    """Seconds that a call may take in all."""

    @model_validator(mode="after")
    def _usable(self) -> McpEntry:
        if bool(self.command) == bool(self.url):
            raise complaint(
                "servers", "a server needs either a command or a url", 'Write command = "uvx", or url = "https://…".'
            )
        if self.url and (self.args or self.env or self.cwd):
            raise complaint(
                "servers", "args, env and cwd are for a server with a command, and this one has a url", "Take them out."
            )
        if self.command and (self.oauth or self.client_id or self.scope):
            raise complaint(
                "servers",
                "oauth, client_id and scope are for a server with a url, and this one has a command",
                "Take them out.",
            )
        if (self.client_id or self.scope) and not self.oauth:
            raise complaint(
                "servers", "client_id and scope are for a login, and oauth is not on", "Write oauth = true."
            )
        if self.oauth and self.token is not None and not self.client_id:
            raise complaint(
                "servers",
                "oauth is on and a token is set, so it is not clear which of them counts",
                "Take one of them out.",
            )
        if self.command and self.headers:
            raise complaint(
                "servers", "headers are for a server with a url, and this one has a command", "Take them out."
            )
        if any(is_secret_name(name) for name in (*self.env, *self.headers)):
            fix = "Name a variable of the gateway that holds it, token_env, or a file, token_file; token_as says under which name it is handed on."
            raise complaint("servers", "env and headers hold what looks like a secret by its name", fix)
        if self.command and self.token is not None and not (self.token_as or self.token_env):
            raise complaint(
                "servers",
                "it is not said by which variable the program gets its token",
                'Write token_as = "API_TOKEN".',
            )
        if self.token_as and not (
            _VARIABLE.fullmatch(self.token_as) or (self.url and re.fullmatch(r"[A-Za-z0-9-]+", self.token_as))
        ):
            raise complaint("servers", "token_as is no name of a variable or a header", 'Write token_as = "API_TOKEN".')
        if any(one.value is None for one in self.secrets):
            raise complaint(
                "servers",
                "it is not said where one of its secrets stands",
                'Write env = "ITS_VARIABLE", or file = "…".',
            )
        carried = [one.name.lower() for one in self.secrets]
        if len(set(carried)) < len(carried) or {*carried} & {
            each.lower() for each in (*self.env, *self.headers, self.token_as)
        }:
            raise complaint("servers", "two of its values would be handed on by one name", "Take one of them out.")
        if self.command and any(not _VARIABLE.fullmatch(one.name) for one in self.secrets):
            raise complaint("servers", "one of its secrets has no name of a variable", "Use letters, digits and _.")
        for one, other in (("pure", "keyed"), ("pure", "effect"), ("keyed", "effect")):
            if set(getattr(self, one)) & set(getattr(self, other)):
                raise complaint("servers", f"a tool stands in {one} and in {other}", "Take it out of one of them.")
        return self

    @property
    def shown_prefix(self) -> str:
        """Before the names of its tools."""
        return f"{self.name}__" if self.prefix is None else self.prefix

    def terms(self, logins: Path) -> ServerTerms:
        """As it is used; logins are kept in that folder."""
        from agent_core.tools.mcp.terms import ServerTerms

        token, environment, headers = revealed(self.token), dict(self.env), dict(self.headers)
        (environment if self.command else headers).update({one.name: revealed(one.value) for one in self.secrets})
        if token and self.command:
            environment[self.token_as or self.token_env] = token
        elif token and not self.oauth:
            bare = self.token_as and self.token_as.lower() != "authorization"
            headers[self.token_as or "Authorization"] = token if bare else f"Bearer {token}"
        return ServerTerms(
            self.name,
            self.shown_prefix,
            (self.command, *self.args) if self.command else (),
            environment,
            self.cwd,
            self.url,
            headers,
            logins=logins if self.oauth else None,
            client_id=self.client_id,
            client_secret=(token or "") if self.oauth else "",
            scope=self.scope,
            allow=self.allow,
            deny=self.deny,
            pure=self.pure,
            keyed=self.keyed,
            effect=self.effect,
            approval=self.approval,
            trusted=self.trusted,
            start_seconds=self.start_seconds,
            silence_seconds=self.timeout_seconds,
            limit_seconds=self.limit_seconds,
        )


class Mcp(NamedTables):
    """Servers of the Model Context Protocol, whose tools are offered beside the gateway's own; see docs/mcp.md. Needs the extra mcp."""

    tables: ClassVar[str] = "servers"

    servers: Annotated[tuple[McpEntry, ...], BeforeValidator(named_tables)] = Field(
        default=(),
        examples=[[{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}]],
    )
    """The servers, each best in a table of its own, [mcp.NAME], with command and args, or url; further env, cwd, headers, token_env,
    token_file, token_as, secrets, oauth, client_id, scope, prefix, allow, deny, pure, keyed, effect, approval, trusted, start_seconds, timeout_seconds, limit_seconds. From the
    environment: JSON."""


def may_be_brought(name: str, servers: Sequence[McpEntry]) -> bool:
    """Whether a tool of this name may come from one of the servers: which tools they have, nobody knows before they run."""
    return any(name.startswith(one.shown_prefix) for one in servers)
