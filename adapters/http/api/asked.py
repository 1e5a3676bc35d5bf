"""What was asked of the API, whichever endpoint was asked: a request without the spelling of its endpoint. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field

import orjson

from adapters.contract.base import FromApi, SessionKey, once
from adapters.contract.callers import ANYBODY, Caller, scope_of
from adapters.http.consent import Wish
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, Message
from agent_core.records import dataclass


def _nothing(_: str) -> Json:
    return None


@dataclass(frozen=True, slots=True)
class KnownItems:
    """What a request may refer to."""

    opened: Callable[[str], Json] = _nothing
    """What was sealed; None if it is not ours, or not the caller's."""
    items: Mapping[str, Json] | None = None
    """The items of kept responses that it names, those of which nothing is told as None; None: they were not looked for yet."""


@dataclass(frozen=True, slots=True)
class Referring:
    """The request refers to items, which have to be found first."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request that makes sense."""

    model: str
    history: tuple[Message, ...]
    """What came before the latest messages, as the client brought it."""
    latest: tuple[InputMessage, ...]
    """The messages to answer."""
    system: tuple[InputMessage, ...]
    """What the client tells the model in the system's name, wherever it stands: in a session it goes with the latest messages."""
    tools: tuple[Mapping[str, Json], ...]
    parameters: Mapping[str, Json]
    """What is passed on to the model."""
    client_output_limit: bool
    session: str
    """The conversation's name; empty if the request brings all of it."""
    user: str
    """As the request says it itself; whose it is, is `person`."""
    stream: bool
    include_usage: bool
    """A stream ends with what was used."""
    digest: str
    """Of the whole body, for repeated requests."""
    caller: Caller = ANYBODY
    wish: Wish = field(default_factory=Wish)
    """Whose tools it agrees to, and whether it is a front end's own errand."""
    left_out: tuple[str, ...] = ()
    """What of it says nothing to a model."""
    background: bool = False
    """It is answered at once, and runs on its own."""
    before: tuple[str, int] | None = None
    """The session and the message of the response that it goes on from."""
    place: SessionKey | None = None
    """The session in which that is, if it can be gone on with there."""
    kept: bool = False
    """It is kept as a response, under its own id."""
    most_tool_calls: int = 0
    """So many calls of the gateway's tools it allows; 0: as many as the operator does."""
    sealed: bool = False
    """It wants the thoughts sealed, to bring them back."""
    again: Mapping[str, Json] | None = None
    """What is told again with its response; None: it is a chat completion."""

    @property
    def person(self) -> str:
        """Whose request it is; empty: nobody knows. What a request says of itself counts only where its key is the gateway's own."""
        return self.caller.person if self.caller.key else self.user

    @property
    def structured(self) -> bool:
        """It asks for JSON."""
        wanted = self.parameters.get("response_format")
        return isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema")

    @property
    def whose(self) -> str:
        """A mark of the conversation and the person that it names, empty if it names neither: ids of requests are theirs."""
        realm = [self.caller.realm] if self.caller.realm else []
        if not self.session and not self.person and not realm:
            return ""
        return hashlib.blake2b(orjson.dumps([self.session, self.person, *realm]), digest_size=12).hexdigest()

    @property
    def said_before(self) -> bool:
        """It brings more of a conversation than what is to be answered."""
        return any(message["role"] not in ("system", "developer") for message in self.history)

    @property
    def waits_unseen(self) -> bool:
        """It wants calls to wait for somebody's approval, and is in no conversation: nobody could find it to decide."""
        return self.wish.waits and not (self.wish.errand or self.kept or self.session)

    def inbound(self, key: str, trace: str, name: str, language: str = "") -> FromApi:
        """The request as it is stored, under its platform key; `name` is its own session's, if it is in no other."""
        realm, kept = self.caller.realm, self.kept and not self.wish.errand
        session = self.place
        if session is None and self.session and not self.wish.errand:  # a title is no part of the conversation
            session = SessionKey("api", "key", self.session, person=realm)
        history, latest = None, (*self.system, *self.latest)
        if session is None:
            session = SessionKey("api", "response", name, person=realm) if kept else once(name)
            if self.said_before or not kept:
                history, latest = self.history, self.latest
        return FromApi(
            account="api",
            platform_key=key,
            session=session,
            input=latest,
            surface="api",
            memory_scope=scope_of(self.person) if self.person else "api",
            own_history=history,
            request=self.parameters,
            client_tools=self.tools if self.wish.tools.clients else (),
            tools_from=self.wish.tools,
            errand=self.wish.errand,
            can_approve=self.wish.waits and not self.wish.errand,
            model=self.model,
            key=self.caller.key,
            client_output_limit=self.client_output_limit,
            digest=self.digest,
            most_tool_calls=self.most_tool_calls,
            response=self.again if kept else None,
            trace=trace,
            language=language,
        )
