"""Who calls the API or opens the page: the key that was shown, the person behind it, and what both may. Pure.

Law (tests/gateway/test_keys.py): a person is named by the key's owner, or by a header of a key that may name users; no other key can
speak for anybody, whatever a request says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol
from urllib.parse import quote, unquote

from agent_core.records import dataclass
from agent_core.tools.offer import ToolsFrom

CONFIGURED = "configuration"
"""The name of the key of `[server] api_key`."""
USER_HEADERS = ("X-Outspoken-User", "X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email")
"""Where a front end says for whom it asks; the first that is there counts."""
USER_CHARS = 200


PROXY = "@proxy"
"""The name under which people come whom a proxy names; no key can have it."""


AT_TERMINAL = "terminal-"
"""How the name begins in which the terminal asks: that of whoever is logged in on its machine."""


class ShareLinks(StrEnum):
    """For whom a link opens a conversation of the page that somebody shares."""

    OFF = "off"
    PEOPLE = "people"
    """Whoever may open the page."""
    ANYONE = "anyone"


class ErrorStyle(StrEnum):
    """How a program is told that nothing came of its request."""

    WORDS = "words"
    """As an answer that a person can read."""
    STATUS = "status"
    """As an HTTP status with an error object."""


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """What a key stands for, and what it may."""

    owner: str = ""
    """The person whose requests these are; empty: nobody's, who have no memory."""
    names_users: bool = False
    """Its requests may say for whom they are made."""
    models: tuple[str, ...] = ()
    """Models and agents that it may ask for, the first where it names none; empty: all."""
    tools: tuple[str, ...] | None = None
    """Tools of the gateway that its turns are offered; None: all."""
    day_tokens: int = 0
    """Tokens in a day; 0: as configured for all keys."""
    day_nanos: int = 0
    """Money in a day, billionths of the currency; 0: as configured for all keys."""
    minute_requests: int = 0
    """Requests in a minute; 0: no limit."""
    errors: ErrorStyle | None = None
    """None: as the endpoint does by itself."""
    thinking: bool | None = None
    """Whether it is shown what the model thinks; None: as the server is configured."""
    tools_from: ToolsFrom | None = None
    """Whose tools its requests may use, and do where they do not say themselves; None: any, and as the endpoint does by itself."""
    expires_at: int = 0
    """From when on it opens nothing, ms; 0: never."""

    def shows_thinking(self, configured: bool) -> bool:
        """Whether it is shown what the model thinks, where the server is `configured` like this."""
        return configured if self.thinking is None else self.thinking

    def may_ask_for(self, model: str) -> bool:
        """Whether a request may name this model or agent."""
        return not self.models or model in self.models


EVERYTHING = KeyTerms()


def may_ask(name: str, key: str, terms: KeyTerms, held: Collection[str]) -> bool:
    """Whether requests with a key (empty: the configured one, or none) may name this model or agent; one of those that are `held` to people only
    where the key names it."""
    return terms.may_ask_for(name) and (not key or name not in held or name in terms.models)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls."""

    key: str = ""
    """The name of a key that was made here; empty: the configured one, or none where none is needed."""
    person: str = ""
    """Whose request it is; empty: nobody said."""
    terms: KeyTerms = EVERYTHING

    @property
    def realm(self) -> str:
        """Whose names of conversations and requests count: those of one realm mean nothing in another. Empty: those of the gateway."""
        if not self.key:
            return ""
        return f"person:{self.person}" if self.person else f"key:{self.key}"


ANYBODY = Caller()
"""Who shows the configured key, or none where none is needed: whatever they say of themselves is taken as it is."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much of a limit is left, and when all of it is there again."""

    what: str
    """``requests`` or ``tokens``, as OpenAI's headers have it."""
    limit: int
    left: int
    full_in_ms: int


class Callers(Protocol):
    """What the doors ask about who calls. It is asked once for each request, and answers from memory."""

    @property
    def keyless(self) -> bool:
        """Who shows no key is served as well: only this machine can call, and no key is configured."""
        ...

    def who(self, shown: str, headers: Mapping[str, str]) -> Caller | None:
        """Who calls with this key; None: nobody who may."""
        ...

    def left(self, caller: Caller) -> Sequence[Allowance]:
        """What is left to the caller's key of its own limits, after a request of it was taken or refused."""
        ...

    def holds(self, caller: Caller) -> bool:
        """Whether the caller's key is still good: somebody may listen for days."""
        ...


def proxied(name: str) -> Caller:
    """Somebody whom a trusted proxy names: a person of their own, whoever owns keys under the same name."""
    return Caller(PROXY, f"proxy/{quote(name, safe='@.+- ')}")


def scope_of(person: str) -> str:
    """In whose name a person's requests are asked, whichever way they come in."""
    return f"api/{person}"


def named_user(headers: Mapping[str, str]) -> str:
    """Whom a front end asks for, as far as its headers say; what cannot be a name is none."""
    for header in USER_HEADERS:
        found = unquote(headers.get(header, "")).strip()
        if found:
            return found if len(found) <= USER_CHARS and found.isprintable() else ""
    return ""


def caller(key: str, terms: KeyTerms, headers: Mapping[str, str]) -> Caller:
    """Who calls with a key that was made here. Users of one owner's front end are not those of another's."""
    user = named_user(headers) if terms.names_users else ""
    if not user:
        # A front end that does not say for whom asks for nobody: its users must not share what its owner keeps.
        return Caller(key, "" if terms.names_users else terms.owner, terms)
    return Caller(key, f"{terms.owner or key}/{quote(user, safe='@.+- ')}", terms)
