"""What was asked of the API, whichever endpoint was asked: a request without the spelling of its endpoint. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import orjson

from adapters.contract.base import FromApi, SessionKey, once
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, Message
from agent_core.records import dataclass


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
    stream: bool
    include_usage: bool
    """A stream ends with what was used."""
    digest: str
    """Of the whole body, for repeated requests."""

    @property
    def whose(self) -> str:
        """A mark of the conversation and the person that it names, empty if it names neither: ids of requests are theirs."""
        if not self.session and not self.user:
            return ""
        return hashlib.blake2b(orjson.dumps([self.session, self.user]), digest_size=12).hexdigest()

    def inbound(self, key: str, trace: str, name: str) -> FromApi:
        """The request as it is stored, under its platform key; `name` is its own session's, if it is in no other."""
        if self.session:
            session, history, latest = SessionKey("api", "key", self.session), None, (*self.system, *self.latest)
        else:
            session, history, latest = once(name), self.history, self.latest
        return FromApi(
            account="api",
            platform_key=key,
            session=session,
            input=latest,
            surface="api",
            memory_scope=f"api/{self.user}" if self.user else "api",
            own_history=history,
            request=self.parameters,
            client_tools=self.tools,
            model=self.model,
            client_output_limit=self.client_output_limit,
            digest=self.digest,
            trace=trace,
        )
