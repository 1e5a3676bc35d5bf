"""What programs are told of stored conversations, and what they may do with them: `SessionAccess`.

Law (tests/gateway/test_sessions.py): nobody is shown a conversation of another realm, or may do anything with it; who asks for one is told the
same as of one that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from adapters.contract.base import Ended, SessionKey, Showing
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, Message
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.turn.events import Verdict

NAMED = "key"
"""The account of conversations that have a name of their client's."""
CHAINED = "response"
"""The account of those that have none: each goes on by the ids of its responses."""
PAGES = "page"
"""The account of the web page's."""
TITLE = "title"
"""In what is attached to a conversation of the page: how its person named it."""
SUGGESTED = "suggested"
"""The same: what the model called it; it counts where nobody named it."""
ARCHIVED = "archived"
"""The same: how far it had come when it was put aside."""
SHARED = "shared"
"""The same: what opens the link to it, and what that shows (`adapters.http.sessions.links`)."""
METADATA_PAIRS, METADATA_NAME_CHARS, METADATA_CHARS = 16, 64, 512
"""As much a client may attach to a conversation."""


class SessionState(StrEnum):
    """What a conversation does just now."""

    IDLE = "idle"
    QUEUED = "queued"
    """A message waits, and no turn is open."""
    RUNNING = "running"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    """Somebody has to say whether a tool may run."""


@dataclass(frozen=True, slots=True)
class SessionSight:
    """A stored conversation."""

    session: str
    """Its id, as logs and `explain` have it."""
    key: SessionKey
    created_at: int
    """ms."""
    last_at: int
    """When a turn of it last began or ended, ms, to the minute."""
    state: SessionState = SessionState.IDLE
    waiting: int = 0
    """Messages that wait for their turns."""
    turns: int = 0
    """Those that a model is told."""
    input_tokens: int = 0
    """Of all its turns, also of those that are not told any more."""
    output_tokens: int = 0
    title: str = ""
    """How it begins."""
    model: str = ""
    """That of its latest turn."""
    agent: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """By which its client names it."""
        return self.session if self.key.account == CHAINED else self.key.chat


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A stored turn."""

    turn: str
    number: int
    opened_at: int
    closed_at: int | None
    told: bool
    """A model is told of it: it was not taken back, and the conversation was not begun anew since."""
    removed: str = ""
    """Why what was said in it is not there any more, in words; empty if it is."""
    history: tuple[Message, ...] = ()
    """What its client brought along of the conversation."""
    asked: tuple[InputMessage, ...] = ()
    """Also what was added while it ran."""
    messages: tuple[Message, ...] = ()
    """What later turns tell a model of it, with what tools gave back."""
    seen: Ended | Showing | None = None
    """What there is to see of it; None if it cannot be read, or is gone."""
    model: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file in a conversation's workspace."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class OpenApproval:
    """A turn waits for somebody to say whether a tool may run."""

    session: SessionSight
    turn: str
    call: str
    tool: str
    question: str
    arguments: str
    asked_at: int
    """ms."""
    until: int
    """Then it counts as not given, ms."""
    offers: tuple[Lasting, ...] = (Lasting.ONCE,)
    """For how long it may be given."""
    diff: str = ""
    """What becomes of a file, if that is known."""
    place: str = ""
    """Where it is asked, for operators: a chat, or a conversation of the page or the API."""
    asker: str = ""
    """Who asked for what led to it, for operators."""


class DecisionFate(StrEnum):
    """What became of an answer to a request for approval."""

    DECIDED = "decided"
    """As it was answered, now or before."""
    OTHERWISE = "otherwise"
    """It had been answered before, and otherwise."""
    OVER = "over"
    """Nobody waits for it any more."""
    UNKNOWN = "unknown"
    FORBIDDEN = "forbidden"
    """The operator wants others to decide than who asked."""
    ELSEWHERE = "elsewhere"
    """Another process works on it, or what was answered cannot be stored just now."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a request for approval, as far as there is one."""

    fate: DecisionFate
    verdict: Verdict | None = None
    by: str = ""
    at: int = 0
    """ms."""
    lasts: Lasting = Lasting.ONCE


class BusyElsewhere(Exception):
    """Another process works on this conversation, so nothing can be changed in it here."""


class StillRunning(Exception):
    """Its turn was asked to stop, and has not ended yet."""


class SessionAccess(Protocol):
    """What may be asked of conversations and done with them. A `realm` is whose they are (see `Caller.realm`)."""

    async def page(
        self, realm: str, after: SessionSight | None, limit: int, *, newest_first: bool
    ) -> list[SessionSight]:
        """The next of the realm's conversations, in the order in which they were made."""
        ...

    async def latest(self, realm: str, limit: int, *, aside: bool) -> list[SessionSight]:
        """Those of the realm's conversations in which something happened last, the latest first, without temporary ones: those that were put
        aside at some time (`ARCHIVED`), or the others."""
        ...

    async def find(self, realm: str, name: str) -> SessionSight | None:
        """The realm's conversation of this name, or with this id if it has no name."""
        ...

    async def make(self, realm: str, metadata: Mapping[str, str]) -> SessionSight:
        """A new conversation under a name of ours; stored when this returns."""
        ...

    async def describe(self, sight: SessionSight, metadata: Mapping[str, str]) -> SessionSight:
        """Attach other metadata than are seen; what others attach meanwhile stays. Raises `BusyElsewhere`."""
        ...

    async def turns(self, sight: SessionSight, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        """Its next turns behind that number, in this order, whatever became of them."""
        ...

    async def reset(self, sight: SessionSight) -> SessionSight:
        """Begin anew, as ``/new`` does: what runs is stopped, and what was said before is not told any more. Raises `BusyElsewhere`."""
        ...

    async def show(self, sight: SessionSight, turn: str) -> bool:
        """The branch with this turn is shown, and put before the model, from now on. False if there is no such turn any more. Raises
        `BusyElsewhere`, `StillRunning`."""
        ...

    async def branch(self, realm: str, sight: SessionSight, turn: str, name: str, title: str) -> bool:
        """A conversation of the realm under this name that begins with the latest turns up to this one, as they were shown. False if there is
        no such turn any more; nothing is changed if there is a conversation of that name."""
        ...

    async def tip(self, sight: SessionSight) -> int:
        """The number of the last turn of the branch that is shown which is over; 0: there is none."""
        ...

    async def linked(self, session: str) -> SessionSight | None:
        """The conversation with this id, whoever's it is: for who shows a link to it. Never a temporary one."""
        ...

    async def line(self, sight: SessionSight, upto: int, behind: int, limit: int) -> list[SessionTurn]:
        """The turns that lead to the one with the number `upto`, behind another number, the oldest first; without what was taken back or removed."""
        ...

    async def delete(self, sight: SessionSight) -> None:
        """Everything that was said in it, what its tools kept and its files are gone, and its name is free. Raises `BusyElsewhere`,
        `StillRunning`."""
        ...

    async def remembered(self, sight: SessionSight) -> Mapping[str, Json]:
        """What its tools keep for it alone, by kind."""
        ...

    async def files(self, sight: SessionSight) -> list[SessionFile]:
        """What lies in its workspace."""
        ...

    async def sent(self, sight: SessionSight, turn: str, mark: str) -> Path | None:
        """Where the copy of a file lies that this turn of it sent or made, by the mark of its bubble; None if there is none, or not any more."""
        ...

    async def brought(self, sight: SessionSight, message: str, number: int) -> tuple[str, bytes] | None:
        """A file that came with a message of it on the page, by the message's key: its name and what is in it; None if there is none, or not any more."""
        ...

    async def approvals(self, realm: str) -> list[OpenApproval]:
        """Those that wait in the realm's conversations, the oldest first."""
        ...

    async def decide(
        self, realm: str, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting = Lasting.ONCE
    ) -> Decision:
        """Answer one; the answer is stored when this returns. `call` is its mark or its id."""
        ...
