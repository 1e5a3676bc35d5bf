"""What adapters and the gateway say to each other.

What a platform or a client brought becomes an `Inbound`, and is handed to `Gateway.accept`; only when that returns is the
message durable, and only then may the platform be told so. What there is to see comes back level-triggered: a `Follower` for
one message (API, one-shot command), a `SessionFollower` for a whole conversation (web page, terminal). The latest state is
always enough to show; nothing has to be remembered between two sights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from types import TracebackType
from typing import ClassVar, Protocol, TypeAlias

from adapters.contract.callers import Caller
from adapters.contract.chat import ChatOrigin
from agent_core.failures.exits import Exit
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, Message
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.store.sessions.rows import ONCE
from agent_core.text.tongue import sentence
from agent_core.tools.offer import ToolsFrom
from agent_core.turn.events import Verdict
from agent_core.turn.state import NO_THOUGHTS, CallItem, ThoughtText
from agent_core.turn.view import View

TEMPORARY = "c-t-"
"""How the names of the page's temporary conversations begin."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What makes a conversation: platform, account, chat, and by policy thread and person."""

    platform: str
    account: str
    chat: str
    thread: str = ""
    person: str = ""

    def text(self) -> str:
        """The key as one text; different keys never give the same."""
        return _text(self.platform, self.account, self.chat, self.thread, self.person)

    @property
    def temporary(self) -> bool:
        """It is one of the page that is in no list, leaves nothing behind, and goes when it is left."""
        return self.chat.startswith(TEMPORARY) and (self.platform, self.account) == ("web", "page")

    @staticmethod
    def of(text: str) -> SessionKey:
        """The key with this text."""
        parts = text.split("/")
        return SessionKey(
            *(parts if "%" not in text else (one.replace("%2F", "/").replace("%25", "%") for one in parts))
        )


@lru_cache(1024)
def _text(*parts: str) -> str:
    """A message's key is asked for a dozen times on its way."""
    plain = "/".join(parts)
    if "%" not in plain and plain.count("/") == len(parts) - 1:
        return plain
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def once(name: str) -> SessionKey:
    """The session of a request that brings its whole conversation and is in none; nobody else can name it."""
    platform, account, _ = ONCE.split("/")
    return SessionKey(platform, account, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """What every message has. The order of the fields, here and below, is that of what is stored."""

    account: str
    """Which account of which platform received it, such as ``api`` or ``web``."""
    platform_key: str
    """The platform's own id of the message, unique within the account: a second one with the same is a redelivery."""
    session: SessionKey
    input: tuple[InputMessage, ...]
    surface: str
    """Where it is seen, for logs: ``api``, ``web``, ``telegram``."""
    memory_scope: str
    """In whose name it is asked: who pays, and, if that is a person, whose memory the tools use (`gateway.limits.whose`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromChat(_Message):
    """A message of a chat; what follows is shown there."""

    stateless: ClassVar[bool] = False
    can_approve: bool = False
    chat: ChatOrigin
    digest: str = ""
    """Of what an operator says in a chat, as in `FromApi`."""


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """That a message is a background task's, and its limits."""

    parent: str
    """The key of the conversation that began it, in whose folder it works."""
    person: str
    """Who asked for it, within the account; empty if nobody can say."""
    seconds: int
    steps: int
    chat: ChatOrigin | None = None
    """The chat in which it was begun, where people are asked about its calls; None: nobody can be asked."""
    number: int = 0
    title: str = ""
    tokens: int = 0
    """As many as it may use; 0: as any turn."""
    nanos: int = 0
    """What it may cost, billionths of the currency; 0: as any turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromApi(_Message):
    """A request of a client that follows its message itself: of the API, or of the web page."""

    own_history: tuple[Message, ...] | None = None
    """A stateless request brings its whole conversation; None: the session's own history counts."""
    request: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Parameters for the model (temperature, stop, …), in the API's words."""
    client_tools: tuple[Mapping[str, Json], ...] = ()
    model: str = ""
    """The wished model; empty is the configured chain."""
    can_approve: bool = False
    client_output_limit: bool = False
    most_tool_calls: int = 0
    """So many calls of the gateway's tools its client allows; 0: as many as the operator does."""
    browser: str = ""
    """Which browser's page it came from."""
    digest: str = ""
    """Of the request's content: the same platform key with another digest is a client's mistake, not a redelivery."""
    key: str = ""
    """The name of the key that was shown; empty: the configured one, or none where none is needed."""
    tools_from: ToolsFrom | None = None
    """Whose tools it agrees to; None (of older messages): the client's if it brought any, else the gateway's."""
    errand: bool = False
    """A front end asks for itself (a title, tags): it has no memory, is asked for once more at most, and is no incident."""
    response: Mapping[str, Json] | None = None
    """What is told again with its response, under whose id it is kept; None: nobody asks for it by an id."""
    trace: str = ""
    """The caller's ``traceparent``, if there is a valid one: the turn's trace goes on with theirs."""
    task: TaskTerms | None = None
    """It is a background task, which nobody watches."""
    language: str = ""
    """The tag of the language that its client asks for."""
    brought: tuple[str, ...] = ()
    """The names of the files that came with it from the page: the parts themselves are put into the workspace when its turn begins."""

    @property
    def stateless(self) -> bool:
        """It brings its whole conversation, and no session's history counts."""
        return self.own_history is not None


Inbound: TypeAlias = FromChat | FromApi
"""One message as a platform brought it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """An accepted message."""

    inbox_id: int
    session: str
    duplicate: bool
    """It had been accepted before; nothing new was begun."""
    received_at: int = 0
    """When it was first accepted, in ms; 0 where nobody asks for that."""


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """An accepted request whose response can be asked for."""

    ticket: Ticket
    inbound: FromApi
    received_at: int
    """ms."""
    latest: bool
    """Nothing came after it in its conversation."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that was not taken, as it is noted: nothing that somebody wrote is in it but the id that the client gave."""

    status: int
    """Of HTTP."""
    reason: str = ""
    """In one of our words, such as ``queue_full``, with the path in the body that is wrong."""
    request: str = ""
    """Its id, which the client was told."""
    caller: str = ""
    """The name of the key that it came with."""
    stranger: bool = False
    """Who sent it may not call at all."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The message waits for its turn."""

    position: int
    """Its place in its conversation's queue; 1 is the next to run."""
    line: int = 0
    """Its conversation's place in the line of everybody who waits for the gateway; 0 if it does not wait there."""


@dataclass(frozen=True, slots=True)
class Showing:
    """The turn runs; this is what there is to see."""

    turn: str
    view: View
    thought: ThoughtText = NO_THOUGHTS
    """What the model thinks, as far as this is kept for whoever shows it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A finished turn in figures."""

    seconds: float
    steps: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    attempts: int
    model: str
    cached_tokens: int = 0
    """Of the input tokens: what providers said they had in their caches."""
    reasoning_tokens: int = 0
    """Of the output tokens: what was thought."""
    unsent: tuple[str, ...] = ()
    """Parameters that were wished, and that the model's provider does not take."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn is over; nothing will change any more."""

    turn: str
    view: View
    exit: Exit
    handed: tuple[CallItem, ...]
    """Calls of the client's own tools that the client has to carry out."""
    summary: Summary
    made: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What the reply made beside text (see `agent_core.model.made`)."""
    thought: ThoughtText = NO_THOUGHTS
    """What the model thought, as far as this is kept for whoever shows it."""
    thoughts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What of its thoughts a client that goes on from it has to bring back."""


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """The gateway is about to end, or does not reach its database any more, and another process goes on with the message; this one has nothing more to
    show of it."""

    turn: str
    """Empty if it has not begun."""
    view: View


Sight: TypeAlias = Queued | Showing | Ended | LeftOpen


class TextReader(Protocol):
    """Whoever is shown text as it comes."""

    def shown(self, sight: Showing) -> bool:
        """Text has come, and nothing else is new; whether it was taken. It must not raise."""
        ...


class Follower(Protocol):
    """Follows one accepted message to its end."""

    async def next(self, timeout_seconds: float, reader: TextReader | None = None) -> Sight | None:
        """The next sight (at most one every 25 ms), or None if there is nothing to tell within the time. Last comes `Ended` or `LeftOpen`.

        A silence is told although nothing changes: what is waited for, and how long already. Where only text has come, `reader` is shown
        it; if that takes it, whoever waits is not woken for it.
        """
        ...

    async def __aenter__(self) -> Follower: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class MessageState(StrEnum):
    """Where a message of a session stands."""

    QUEUED = "queued"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class TurnSight:
    """One message of a session and what became of it so far."""

    key: str
    """Stable: the message's platform key."""
    order: int
    """Position in the session, growing."""
    state: MessageState
    person: str
    """The person's words."""
    turn: str = ""
    """The turn's id, once it has one."""
    position: int = 0
    """While queued: as in `Queued`."""
    view: View = field(default_factory=lambda: View((), open=False))
    at: int = 0
    """When it was received, ms."""
    summary: Summary | None = None
    undone: bool = False
    """It was taken back: no model is told of it any more."""
    hidden: bool = False
    """The conversation shows another branch."""
    versions: tuple[str, ...] = ()
    """The turns among which one can choose here, this one's as well, the oldest first; none if there is no other."""
    brought: tuple[str, ...] = ()
    """The names of the files that came with it, as long as they are kept."""
    thought: ThoughtText = field(default=NO_THOUGHTS, compare=False)
    """What the model thought, for whoever may see it."""
    thought_chars: int = 0
    """How much of it there is: two sights are the same only if that is."""


class SessionFollower(Protocol):
    """Follows a whole session: first everything that is there (the latest 50 messages), then what changes."""

    @property
    def over(self) -> bool:
        """Nothing more can be seen of it here, and perhaps elsewhere, or it was deleted and what was seen is there no more: whoever follows comes again."""
        ...

    async def next(self, timeout_seconds: float) -> tuple[TurnSight, ...] | None:
        """The messages that changed, whole; None if nothing did within the time."""
        ...

    async def __aenter__(self) -> SessionFollower: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class StopOutcome:
    """What a stop did."""

    stopped: bool
    """A turn was running and has ended."""
    words: str


@dataclass(frozen=True, slots=True)
class About:
    """What a surface may say about the gateway."""

    version: str
    models: tuple[str, ...]
    """Names that a request may ask for, agents behind models; the first is the default."""
    rehearsal: bool
    """No model is configured: the rehearsal model answers, and every surface says so."""
    held: frozenset[str] = frozenset()
    """Those of them that a key has to name."""


REHEARSAL_WORDS = sentence(
    "Rehearsal – no AI model is configured. I follow a script, the tools and the recovery are real. "
    "Say “help” to see what can be tried."
)


class Gateway(Protocol):
    """What the gateway offers to its adapters."""

    def about(self) -> About: ...

    async def accept(self, inbound: Inbound, *, to_end: bool = False) -> Ticket:
        """Make the message durable and put it into its session's queue. Raises `NotAccepted`.

        Once it is being stored it is stored, though whoever brought it is cancelled. `to_end`: then that is waited for, and its ticket is given.
        """
        ...

    def follow(self, ticket: Ticket, *, end_alone: bool = False, stored_alone: bool = False) -> Follower:
        """Follow an accepted message, also one whose turn is over or that another process accepted. Of a turn that runs here who wants its
        `end_alone` is told nothing else, and is not woken for it. Who is told what is `stored_alone` sees the same in the next process,
        whatever becomes of this one: a little later, and nothing of it is ever taken back.
        """
        ...

    def follow_session(self, key: SessionKey) -> SessionFollower: ...

    async def earlier(self, key: SessionKey, turn: str) -> tuple[TurnSight, ...]:
        """The latest messages of the session before that turn, of the branch that is shown; at most as many as a follower is shown first."""
        ...

    async def stop(self, key: SessionKey) -> StopOutcome:
        """Stop the session's running turn; returns when it has ended."""
        ...

    async def stop_message(self, ticket: Ticket) -> StopOutcome:
        """Stop the turn of one message, or take it out of the queue."""
        ...

    def client_left(self, ticket: Ticket, grace_seconds: float) -> None:
        """Whoever followed this message has gone: it is stopped, unless somebody follows it when this time is over."""
        ...

    async def approve(
        self, key: SessionKey, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting = Lasting.ONCE
    ) -> str:
        """Answer a request for approval, as whoever asked; what lasts longer than is offered counts once. Why it does not count, in words; empty:
        it does."""
        ...

    async def answer(self, key: SessionKey, turn: str, call: str, words: str, by: str) -> str | None:
        """Answer what a running tool asks (without a turn and a call: whichever asks). What the person is told; None if nothing is asked (any more)."""
        ...

    async def response(self, session: str, inbox_id: int) -> KeptResponse | None:
        """A kept response; None if there is none, or none any more."""
        ...

    async def request(self, session: str, inbox_id: int) -> KeptResponse | None:
        """Any request of the API that is still stored."""
        ...

    async def unanswered(self, prefix: str) -> Sequence[str]:
        """The keys that begin so of stored requests whose clients cannot have their answers: they have not ended, or did so a moment ago in
        another process than accepted them."""
        ...

    async def told_after(self, kept: KeptResponse) -> tuple[Message, ...] | None:
        """Its conversation with it, as a model is told it; None as long as it has not ended."""
        ...

    async def delete_response(self, kept: KeptResponse) -> None:
        """What was asked and answered is not kept any longer; what still runs of it is stopped."""
        ...

    async def why(self, turn: str, caller: Caller, browser: str) -> tuple[str, ...]:
        """The causal story of a turn in plain sentences, from the journal alone; empty if the caller, or their browser, has no such turn."""
        ...
