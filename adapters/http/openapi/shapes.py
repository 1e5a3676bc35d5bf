"""What goes out and comes in beside `adapters.http.sessions.shapes`: the document of the API is printed from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from adapters.contract.base import MessageState
from adapters.contract.sessions import METADATA_CHARS, METADATA_NAME_CHARS, METADATA_PAIRS, SessionState
from agent_core.failures.notices import Action
from agent_core.rules.consents import Lasting
from agent_core.turn.view import BubbleKind

PAGE_NAME = r"^[A-Za-z0-9_-]{8,64}$"
PageName = Annotated[str, StringConstraints(pattern=PAGE_NAME)]
Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=METADATA_NAME_CHARS)],
        Annotated[str, StringConstraints(max_length=METADATA_CHARS)],
    ],
    Field(max_length=METADATA_PAIRS),
]


class ApiError(TypedDict):
    """What went wrong, as OpenAI spells it."""

    message: str
    type: str
    param: str | None
    """What of the request is meant."""
    code: str | None


class ErrorAnswer(TypedDict):
    """An answer that is none."""

    error: ApiError
    outspoken: NotRequired[dict[str, Any]]
    """What programs are told besides."""


class CompletionAnswer(TypedDict):
    """OpenAI's chat completion, with `outspoken` beside it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: NotRequired[dict[str, Any]]
    """As far as providers told it."""
    outspoken: NotRequired[dict[str, Any]]
    """How the turn really ended."""


class ResponseAnswer(TypedDict):
    """OpenAI's response, with `outspoken` beside it."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    output: list[dict[str, Any]]
    error: dict[str, Any] | None
    incomplete_details: dict[str, Any] | None
    metadata: dict[str, str]
    model: str
    usage: dict[str, Any] | None
    outspoken: NotRequired[dict[str, Any]]


class DeletedResponse(TypedDict):
    """What is left of a response."""

    id: str
    object: Literal["response.deleted"]
    deleted: Literal[True]


class InputItems(TypedDict):
    """What was asked with a response."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ModelObject(TypedDict):
    """A model, or an agent."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    """What may be asked for."""

    object: Literal["list"]
    data: list[ModelObject]


class PageCommand(TypedDict):
    """A command, as the page's menu shows it."""

    name: str
    words: str
    """What it does."""


class AboutAnswer(TypedDict):
    """What answers on the page."""

    version: str
    models: list[str]
    rehearsal: bool
    """No model is configured: the rehearsal model answers."""
    notice: str
    file_bytes: int
    """How large the files of one message may be in all."""
    share_links: Literal["off", "people", "anyone"]
    """For whom links to conversations open."""
    commands: list[PageCommand]
    """What may be written with a slash, instead of a message for the model."""


class PageBubble(TypedDict):
    """One visible piece of a turn."""

    key: str
    """Stable within the turn: a bubble that comes again takes the place of the one before."""
    kind: BubbleKind
    """`interim` and `partial` are text that more follows, `answer` is the reply; `note` and `notice` are the gateway's own words; `activity` is a tool's call,
    `approval` one that waits for a person, `decided` what was said to it, `question` what a running one asks; `status` and `mended` say how it goes; `file`
    was sent or made."""
    text: str
    """Markdown for what the model says; only grows while `final` is false."""
    final: bool
    """It will not change any more."""
    tool: str
    """For activities and approvals: the tool's name."""
    state: str
    """For activities: `waiting`, `approval`, `running`, `done`, `failed`, `not_run` or `unsure`."""
    seconds: int
    """For activities: how long it has taken."""
    call: str
    """For activities and approvals: the call's id, which a decision names."""
    whole: str
    """For approvals: the question with all of the arguments, if they are too long for `text`."""
    change: str
    """For approvals: the lines of `text` that say what becomes of a file: how many lines more and less, then a diff."""
    offers: list[Lasting]
    """For approvals: for how long somebody may agree: once (empty), for the `conversation`, `always`."""
    actions: list[Action]
    """For notices: which buttons make sense."""
    options: list[str]
    """For questions that are open: answers that can be pressed."""
    file: str
    """For files: the id by which it is asked for, at `/api/sessions/{session}/files/{file}`; `text` is its name."""


class PageFigures(TypedDict):
    """A finished turn in figures."""

    seconds: float
    """How long it took."""
    steps: int
    """Model calls that came to a good end."""
    tool_calls: int
    """Tools that were run."""


class PageMessage(TypedDict):
    """One message of a conversation, and what became of it so far: whole each time, so that the latest is always enough."""

    key: str
    """The message's own: a message that comes again takes the place of the one before."""
    order: int
    """Its place in the conversation; may be below 0."""
    state: MessageState
    """It waits, its turn is open, or it is over."""
    person: str
    """What the person said."""
    brought: list[str]
    """The names of the files that came with it, as long as they are kept: at `/api/sessions/{session}/messages/{key}/files/{number}`, from 0 on. `person` ends with a line `📎 name` for each."""
    turn: str
    """The turn's id, empty as long as there is none."""
    position: int
    """While queued: its place in the conversation's queue; 1 is the next to run."""
    bubbles: list[PageBubble]
    """What there is to see of its turn."""
    exit: str
    """How the turn ended, empty as long as it has not; see the list of exits."""
    at: int
    """When it was received, in ms."""
    summary: PageFigures | None
    """Null as long as the turn is not over."""
    undone: bool
    """It was taken back: no model is told of it any more."""
    hidden: bool
    """The conversation shows another version of it, or of a message before it: it is shown no more, until it comes again and this is false."""
    versions: list[str]
    """Where there are several versions of it (it was edited, or answered once more): the ids of their turns, its own as well, the oldest first."""


class FileToSay(TypedDict):
    """A file or a picture that comes with what a person says."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    data: Annotated[str, StringConstraints(pattern=r"^data:[^,]*;base64,.+")]
    """Its type and its bytes."""


class MessageToSay(TypedDict):
    """What a person says on the page."""

    id: PageName
    """8 to 64 letters, digits, - or _; the same again is the same message."""
    text: Annotated[str, StringConstraints(max_length=200_000)]
    """Not empty, unless there are files."""
    files: NotRequired[list[FileToSay]]
    """At most ten."""
    browser: NotRequired[PageName]
    """Stands for the browser, whose memory it is where no key says whose."""
    model: NotRequired[str]
    """A model or agent of `/api/about`; else the first."""


class SaidMessage(TypedDict):
    """It is stored."""

    accepted: Literal[True]
    duplicate: bool
    command: str
    """Which command it is; empty: it is for the model."""


class StopAnswer(TypedDict):
    """What a stop did."""

    stopped: bool
    words: str


class PageCode(TypedDict):
    """A piece of code."""

    language: Annotated[str, StringConstraints(max_length=30)]
    text: str


class Colours(TypedDict):
    """How it is coloured."""

    runs: list[tuple[Literal["", "comment", "string", "number", "keyword", "name", "bad"], int]]
    """Kinds of text, and how many characters belong to each, in order; empty if its language is not known, it is long, or it took too long."""


class PageFormula(TypedDict):
    """A formula, in TeX."""

    tex: Annotated[str, StringConstraints(max_length=2000)]
    display: bool
    """It stands alone."""


class PageFormulas(TypedDict):
    """Formulas of a text, at most 100."""

    formulas: list[PageFormula]


class Formulas(TypedDict):
    """How they are written."""

    formulas: list[list[object] | None]
    """MathML: a name, attributes or null, and children, which are text or the same again. Null for what cannot be read, is large, or took too long."""


class PageConversation(TypedDict):
    """A conversation in the page's list."""

    id: str
    title: str
    """As it was named, or how it begins; empty as long as nothing was said."""
    named: bool
    """Somebody gave it this title."""
    pinned: bool
    archived: bool
    """Put aside, until something happens in it."""
    shared: bool
    """There is a link that shows it."""
    state: SessionState
    turns: int
    created_at: int
    """In ms."""
    last_at: int
    """When something last happened in it, in ms, to the minute."""
    found: str
    """Where all words of a search stand in one message: the text around the first; else empty."""


class PageList(TypedDict):
    """The page's conversations, pinned ones first, then the latest first."""

    conversations: list[PageConversation]
    whole: bool
    """Not if there are more than are listed, or than were searched through."""


class MadeLink(TypedDict):
    """A link was made; one that there was before opens nothing any more."""

    link: str
    """What stands behind `/shared#` in its address. It is told this once."""


class LinkToRead(TypedDict):
    """Which link, and behind which message."""

    link: Annotated[str, StringConstraints(max_length=200)]
    behind: NotRequired[Annotated[int, Field(ge=0, lt=2**53)]]
    """The number of the last message that is there already."""


class SharedBubble(TypedDict):
    """One visible piece of what came of a message."""

    key: str
    kind: BubbleKind
    text: str
    """Of a tool's call nothing but its name."""
    tool: str
    state: str
    nodes: list[object]
    """What the model said, as elements: a name, facts or null, and children, which are text or the same again."""


class SharedMessage(TypedDict):
    """A message, and what came of it."""

    number: int
    at: int
    """When it was received, in ms."""
    person: str
    """What the person said, with the names of files that came with it."""
    bubbles: list[SharedBubble]


class SharedConversation(TypedDict):
    """A conversation as it was when somebody made the link to it."""

    title: str
    at: int
    """When that was, in ms."""
    messages: list[SharedMessage]
    """The oldest first."""
    more: bool
    """More follow."""


class PageInstructions(TypedDict):
    """What a person wants of every answer."""

    text: Annotated[str, StringConstraints(max_length=4000)]
    """Empty: nothing of their own."""


class PageConversationChange(TypedDict):
    """What is to be other from now on."""

    title: NotRequired[Annotated[str, StringConstraints(max_length=200)]]
    """Empty: how it begins."""
    pinned: NotRequired[bool]
    archived: NotRequired[bool]


class PageTurn(TypedDict):
    """Which turn is meant."""

    turn: str


class PageBranch(TypedDict):
    """A conversation that begins as a branch of another one."""

    turn: str
    """The last turn that it takes along."""
    name: PageName
    """How the new one is called: `c-` and what the page makes up. Sent again, it is the same."""
    title: NotRequired[Annotated[str, StringConstraints(max_length=200)]]


class PageDecision(TypedDict):
    """A decision about a call that waits, or an answer to what it asks."""

    turn: str
    call: str
    approve: NotRequired[bool]
    answer: NotRequired[str]
    """The person's words to the latest question of the call; `decline` refuses it, `skip` leaves out what need not be said."""
    lasts: NotRequired[Literal["once", "conversation", "always"]]
    """For how long it is given; what is not offered counts once."""


class Done(TypedDict):
    """Whether it was; not if nothing waited for it any more."""

    done: bool
    words: NotRequired[str]
    """What is wrong with an answer, or that it was taken; why a decision does not count."""


class Story(TypedDict):
    """Sentences; none if there is no such turn."""

    lines: list[str]


class HookTaken(TypedDict):
    """A call began a turn."""

    id: str
    message: int
    session: str


class Alive(TypedDict):
    """The process answers."""

    program: Literal["outspoken"]
    status: Literal["ok"]


class Ready(TypedDict):
    """Whether messages are taken."""

    status: Literal["ready", "not ready"]
    phase: str
    problems: list[str]
    warnings: NotRequired[list[str]]
    laws_broken: int


class Well(TypedDict):
    """Whether somebody should look."""

    status: Literal["well", "not well"]
    ready: bool
    phase: str
    problems: list[str]


class PeopleChange(TypedDict):
    """What is to be done about somebody."""

    verb: Literal["approve", "revoke", "forget"]
    who: str
    """A code or an id; to forget somebody ACCOUNT/PERSON."""


class KeyChange(TypedDict):
    """What is to be done about a key."""

    verb: Literal["add", "change", "rotate", "revoke"]
    name: str
    terms: NotRequired[dict[str, Any]]
    """What it may; see `outspoken keys --help`."""
    keep_seconds: NotRequired[int]
    """So long the one before a rotation is good."""


class WebhookChange(TypedDict):
    """What is to be done about a webhook."""

    receiver: str
    verb: Literal["test", "resend", "on"]
    id: NotRequired[str]
    """The message that is sent again; else all that were given up."""


class OperatorsDecision(TypedDict):
    """What whoever runs the gateway decides about a call."""

    id: str
    approve: bool
    lasts: NotRequired[Literal["once", "conversation", "always"]]


class SendBody(TypedDict):
    """What is to be said in a chat."""

    to: str
    text: NotRequired[str]
    key: NotRequired[str]
    """The same again is the same message."""
    files: NotRequired[list[dict[str, str]]]
    agents: NotRequired[bool]
    """Another agent wants it: it goes only to a chat of `[send] allow`, by its name."""


class SentState(TypedDict):
    """What became of it."""

    id: str
    state: str
    parts: int
    cause: str


class NewConversation(TypedDict):
    """What a conversation begins with."""

    metadata: NotRequired[Metadata | None]


class OtherMetadata(TypedDict):
    """What is attached to it from now on."""

    metadata: Metadata | None


class ApprovalDecision(TypedDict):
    """The decision."""

    approve: bool
    lasts: NotRequired[Literal["once", "conversation", "always"]]
    """For how long it is given; what is not offered counts once."""
