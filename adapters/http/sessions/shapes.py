"""What is said of conversations and approvals, as it goes out: the document of the API is printed from these."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from adapters.contract.sessions import SessionState
from agent_core.messages import Message


class TokenCounts(TypedDict):
    """Tokens of all turns of a conversation, also of those that are not told any more."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class ConversationFacts(TypedDict):
    """What the gateway says of a conversation beside what OpenAI's object has."""

    session: str
    """Its id in logs and for `outspoken explain`."""
    named: bool
    """It has a name, which `conversation` and `X-Outspoken-Session` take; else it goes on by the ids of its responses."""
    title: str
    """How it begins; empty as long as it is."""
    state: SessionState
    waiting: int
    """Messages that wait for their turns."""
    turns: int
    """Turns that a model is told."""
    last_at: int
    """When a turn of it last began or ended, to the minute, in seconds."""
    model: str | None
    """That of the latest turn."""
    agent: str | None
    """The agent that answered the latest turn; null: the gateway's own."""
    usage: TokenCounts


class ConversationObject(TypedDict):
    """A conversation."""

    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, str]
    outspoken: ConversationFacts


class DeletedConversation(TypedDict):
    """What is left of a conversation."""

    id: str
    object: Literal["conversation.deleted"]
    deleted: Literal[True]


class ItemObject(TypedDict):
    """Something that was said or done, in the shape of an item of responses: more fields by its `type`."""

    id: str
    type: str


class ConversationList(TypedDict):
    """A page of conversations."""

    object: Literal["list"]
    data: list[ConversationObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ItemList(TypedDict):
    """A page of items."""

    object: Literal["list"]
    data: list[ItemObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ApprovalObject(TypedDict):
    """A call of a tool that waits, or waited, for somebody to say whether it may run."""

    id: str
    object: Literal["outspoken.approval"]
    status: Literal["open", "approved", "denied"]
    turn: str
    conversation: NotRequired[str]
    """As long as it is open, and what follows here as well."""
    session: NotRequired[str]
    tool: NotRequired[str]
    question: NotRequired[str]
    """What is asked, in words, with all of the arguments."""
    diff: NotRequired[str]
    """What becomes of a file, where that is known: the lines of a unified diff, without its head; as much of it as is kept."""
    arguments: NotRequired[str]
    """As the model wrote them."""
    created_at: NotRequired[int]
    expires_at: NotRequired[int]
    """Then it counts as not given."""
    offers: NotRequired[list[str]]
    """For how long it may be given: `once`, `conversation`, `always`."""
    lasts: NotRequired[str]
    """For how long it was given."""
    decided_by: NotRequired[str]
    decided_at: NotRequired[int]


class ApprovalList(TypedDict):
    """All that wait."""

    object: Literal["list"]
    data: list[ApprovalObject]
    has_more: Literal[False]


class SentFileName(TypedDict):
    """A file that was sent to the person; its content is not exported."""

    id: str
    """By which it is asked for, as long as it is kept."""
    name: str


class ExportedTurn(TypedDict):
    """A turn as it is exported."""

    turn: str
    number: int
    opened_at: int
    closed_at: int | None
    told: bool
    """A model is told of it: it was not taken back, and the conversation was not begun anew since."""
    removed: str | None
    """Why what was said in it is not there any more."""
    exit: str | None
    """How it ended; null while it is open, and where that is not known any more."""
    notice: str | None
    """What the gateway said at its end."""
    model: str | None
    agent: str | None
    sent: list[SentFileName]
    items: list[ItemObject]
    """What was said and done, as `/v1/responses` gives it."""
    messages: list[Message]
    """What later turns tell a model of it, as messages of chat completions, with what tools gave back."""


class ExportedFile(TypedDict):
    """A file in the conversation's workspace; its content is not exported."""

    path: str
    size: int


class RememberedEntry(TypedDict):
    """Something that tools keep for the conversation."""

    name: str
    value: str
    at: int


class Export(TypedDict):
    """All of a conversation. As long as nothing happens in it, it is the same to the byte; fields may be added, and `version` grows if one changes."""

    object: Literal["outspoken.export"]
    version: Literal[1]
    id: str
    session: str
    created_at: int
    metadata: dict[str, str]
    remembered: dict[str, list[RememberedEntry]]
    files: list[ExportedFile]
    turns: list[ExportedTurn]
