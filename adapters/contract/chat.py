"""What chat platforms and the gateway say to each other: messages in, contents out, and how a call can fail.

An adapter makes a `ChatMessage` of what its platform brought and hands it to `ChatIntake.receive`; when that returns, the message
is stored (or rightly ignored), and the platform may be told so. What is to be shown comes to the adapter's `ChatPort` as single
calls. A port decides nothing: when, in which order, how often and whether again is the outbox's business alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapters import refusing
from adapters.contract.redacted import redacted
from adapters.text.codefile import CodeFile
from adapters.text.styled import Styled
from agent_core.failures.notices import Action
from agent_core.records import dataclass
from agent_core.text.tongue import SLASH, sentence, spelled

if TYPE_CHECKING:
    from adapters.contract.notaccepted import NotAccepted

# ---------------------------------------------------------------------- in


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Where something is seen: a chat, or a thread of it."""

    platform: str
    account: str
    """The bot's own id on the platform."""
    chat: str
    thread: str = ""

    def text(self) -> str:
        """The surface's name: different addresses never give the same."""
        parts = (self.platform, self.account, self.chat, self.thread)
        return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)

    @staticmethod
    def of(text: str) -> ChatAddress:
        """The address with this name."""
        platform, account, chat, thread = (p.replace("%2F", "/").replace("%25", "%") for p in text.split("/"))
        return ChatAddress(platform, account, chat, thread)


class ChatKind(StrEnum):
    """What sort of chat it is."""

    PRIVATE = "private"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class ChatPerson:
    """Who wrote."""

    id: str
    name: str
    username: str = ""
    zone: str = ""
    """Their time zone, where the platform tells it."""
    language: str = ""
    """The tag of their language, likewise."""


class AttachmentKind(StrEnum):
    """What a person attached."""

    FILE = "file"
    IMAGE = "image"
    VOICE = "voice"
    """What the person said and recorded in the chat itself, as the platform has it: their own words."""
    OTHER = "other"
    """Something that cannot be fetched; its name says what it is."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message; still with the platform."""

    kind: AttachmentKind
    ref: str
    """How the adapter fetches it; empty if it cannot be."""
    name: str
    mime: str = ""
    size: int = 0
    """Bytes; 0 if it is not known."""
    refused: str = ""
    """Why it is not taken, in words for the person."""


_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")


def attachment(ref: str, name: str, mime: str, size: int) -> Attachment:
    """What a file is for us, by its MIME type."""
    return Attachment(AttachmentKind.IMAGE if mime in _PICTURES else AttachmentKind.FILE, ref, name, mime, size)


def recorded(one: Attachment) -> Attachment:
    """The same as what the person said and recorded in the chat."""
    return replace(one, kind=AttachmentKind.VOICE)


def unfetched(what: str) -> Attachment:
    """Something that came with a message and that nobody can fetch."""
    return Attachment(AttachmentKind.OTHER, "", what)


@dataclass(frozen=True, slots=True)
class BroughtBeside:
    """What came beside a message's text."""

    words: str = ""
    """For the model."""
    files: tuple[Attachment, ...] = ()
    foreign: str = ""
    """Whose words they are, if they are not the person's."""


def not_own(one: Attachment) -> Attachment:
    """The same in a message that only passes it on: nobody knows who speaks in it."""
    return replace(one, kind=AttachmentKind.FILE) if one.kind is AttachmentKind.VOICE else one


@dataclass(frozen=True, slots=True)
class ChatOrigin:
    """Where a message came from, and where what follows from it is shown. Kept with the message."""

    address: ChatAddress
    kind: ChatKind
    person: ChatPerson
    message: str = ""
    """The platform's id of the message, for replies to it."""
    attachments: tuple[Attachment, ...] = ()
    group: str = ""
    """Pieces of one album carry the same mark."""
    unfinished: bool = False
    """The text is as long as a message can be: it was probably cut, and the rest is on its way."""
    foreign: str = ""
    """Words of others stand in its text that its person did not write: a forwarded message, a quotation."""
    root: str = ""
    """Answers are shown as replies to this message, although the chat as a whole is one conversation."""

    @property
    def brings_others(self) -> bool:
        """What came with it may hold words of others: anything but the person's own voice."""
        return any(one.kind is not AttachmentKind.VOICE for one in self.attachments)

    @property
    def reply_to(self) -> str:
        """The message to reply to: in a group, so that everybody sees who is meant."""
        return self.root or (self.message if self.kind is ChatKind.GROUP else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """Something that a person wrote or pressed, as a platform brought it."""

    origin: ChatOrigin
    key: str
    """The platform's own id of it, unique within the account."""
    text: str = ""
    command: str = ""
    """A command's name without its slash; the words behind it are in `text`."""
    typed: str = ""
    """All of it, where a command is not typed with a slash: what is no command of ours means these words."""
    for_us: bool = False
    """The bot is mentioned, or the command is addressed to it."""
    for_others: bool = False
    """The command is addressed to another bot."""
    reply_to_us: bool = False
    edited: bool = False
    """It is the new wording of an earlier message with the same key."""
    said_at: int = 0
    """When it was said first, by the platform's clock, in ms since 1970; 0: that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """What a platform brought, as it came: kept if it cannot be taken in."""

    key: str
    """The platform's own id of it, unique within the account."""
    body: bytes
    """As JSON."""
    address: ChatAddress | None = None
    """Where its person is, as far as that can be found out without reading all of it."""
    person: str = ""
    """Whose it is, likewise."""
    for_us: bool = False
    """It is meant for the bot: said in private, or it names the bot."""


class CommandDoc(Protocol):
    """A command, as a platform's menu shows it."""

    @property
    def name(self) -> str: ...

    @property
    def words(self) -> str: ...


class ChatIntake(Protocol):
    """What the gateway offers to chat adapters."""

    @property
    def several(self) -> bool:
        """Other gateways may speak by our accounts, and know of us."""
        ...

    async def ours(self) -> bool:
        """Come back when this gateway may take what comes to its accounts. Where several divide them, and it is not known just now whether another
        one has them by now, that takes some seconds, and the answer is False: perhaps the storage is away for all, and people are to be told that
        nothing can be stored; perhaps another one has them, and is not to be disturbed."""
        ...

    async def receive(self, message: ChatMessage, cursor: tuple[str, str] | None) -> None:
        """Take a message in. When this returns, it is stored (with `cursor`: channel, last seen), or was known, or is not for us.

        Raises `adapters.contract.notaccepted.NotAccepted` if it could not be stored: then it must be offered again. Adapters do not call it by
        themselves, but through `adapters.contract.intake`, which knows what to do with whatever else is raised.
        """
        ...

    def waits(self, message: ChatMessage, refused: NotAccepted) -> None:
        """A message was read that is not taken, because nothing can be stored (it, or one before it, was `refused`): its chat is told, once.

        Nothing is stored or confirmed by this; the message is still to be offered to `receive`. It may be said as often as one likes.
        """
        ...

    async def skip(self, account: str, cursor: tuple[str, str]) -> None:
        """What was read up to `cursor` is no message to accept. Raises as `receive`."""
        ...

    async def keep(self, account: str, raw: Raw, words: str, cursor: tuple[str, str] | None) -> None:
        """Store what could not be taken in, as it came; `words` say what went wrong. Raises as `receive`."""
        ...

    async def known(self, account: str, key: str) -> bool:
        """Whether a message with this key is stored. Raises as `receive`."""
        ...

    async def cursor(self, account: str, channel: str) -> str | None:
        """How far a channel was read."""
        ...

    async def cursors(self, account: str) -> list[tuple[str, str]]:
        """All channels of an account that were read, and how far."""
        ...

    async def reserve(self, account: str, channel: str, every_ms: int) -> int:
        """0 if it is our turn, and nobody else's for `every_ms`; else in how many ms to ask again. Raises as `receive`."""
        ...

    async def allowed(self, account: str) -> Sequence[str]:
        """The ids of those who are known to be allowed to talk, as far as they are listed or were approved."""
        ...

    async def removed(self, account: str, key: str) -> None:
        """A person took a message back; if it still waits, it is not answered."""
        ...

    def commands(self) -> tuple[CommandDoc, ...]:
        """The commands for a platform's menu."""
        ...

    async def moved(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """The platform gave a chat another id. Everything of it goes on under the new one."""
        ...


# ---------------------------------------------------------------------- out


class ContentKind(StrEnum):
    """What a part is for; a platform may give each its own look."""

    TEXT = "text"
    STATUS = "status"
    NOTICE = "notice"
    APPROVAL = "approval"
    FILE = "file"
    ASIDE = "aside"
    """What the gateway says beside turns: the answer to a command, a place in the queue."""
    TOOLS = "tools"
    """What tools do and did, as cards."""


class TaskState(StrEnum):
    """How far a tool got, as a card shows it."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Task:
    """A tool's call, as a card shows it."""

    id: str
    title: str
    state: TaskState


class ButtonStyle(StrEnum):
    """What pressing it means, for platforms whose buttons have a look of their own for that."""

    PLAIN = ""
    AGREES = "agrees"
    REFUSES = "refuses"


@dataclass(frozen=True, slots=True)
class Button:
    """Something to press under a part."""

    label: str
    data: str
    """What comes back when it is pressed; at most 64 bytes."""
    style: ButtonStyle = ButtonStyle.PLAIN


@dataclass(frozen=True, slots=True)
class Content:
    """One part as it should be seen."""

    kind: ContentKind
    body: Styled
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    silent: bool = False
    """It should not make a sound."""
    file: str = ""
    """Path of the file that it is; `body` is its caption."""
    file_text: str = ""
    """Or the file's text itself."""
    file_name: str = ""
    tasks: tuple[Task, ...] = ()
    """The cards; `body` says the same in words."""
    feedback: str = ""
    """It is an answer that people may judge; what a judgement is about."""
    language: str = ""
    """In which whoever reads it is spoken to; empty for English."""


def spelled_content(content: Content, prefix: str) -> Content:
    """What the gateway says beside turns, with commands as they are written where it is shown."""
    words = content.body.text
    if content.kind is not ContentKind.ASIDE or content.body.spans or (said := spelled(words, prefix)) == words:
        return content
    return replace(content, body=Styled(said))


@dataclass(frozen=True, slots=True)
class Flow:
    """What of a part is on a message that grows, or is to come onto it."""

    text: str = ""
    """In the platform's own markup."""
    tasks: tuple[Task, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.tasks)

    def __add__(self, more: Flow) -> Flow:
        known = {task.id: task for task in (*self.tasks, *more.tasks)}
        return Flow(self.text + more.text, tuple(known.values()))

    def to(self, whole: Flow) -> Flow | None:
        """What is missing until it is `whole`; None if adding something never makes it so."""
        if not whole.text.startswith(self.text) or {t.id for t in self.tasks} - {t.id for t in whole.tasks}:
            return None
        known = {task.id: task for task in self.tasks}
        return Flow(whole.text[len(self.text) :], tuple(task for task in whole.tasks if known.get(task.id) != task))


GROWS = "grows:"
"""A platform's id that begins with this names a message that still grows (a native stream)."""


class Doing(StrEnum):
    """What the agent does in a thread, for platforms that show it."""

    WORKING = "working"
    WAITING = "waiting"
    """For a person's decision."""
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a platform can do in one chat, and how fast."""

    drafts: bool
    """Text on its way is shown by drafts that are no messages; else by editing a message."""
    fixed: frozenset[ContentKind] = frozenset({ContentKind.FILE})
    """No edit turns a message into one of these, or one of these into another."""
    typing_seconds: float = 4.5
    """How often "typing" has to be said again; 0 if it cannot be said."""
    preview_seconds: float = 1.0
    """The shortest time between two states of text on its way."""
    status_seconds: float = 4.0
    streams: bool = False
    """Text on its way is shown by a message that grows, and that is finished with the whole text."""
    cards: bool = False
    """What tools do is shown by cards that stay."""
    feedback: bool = False
    """Answers have buttons by which people judge them."""
    sessions: bool = False
    """It can be shown what the agent does (`ChatPort.doing`)."""
    replies: bool = False
    """`Content.reply_to` is a thread, so every part has to name it."""
    commands: str = SLASH
    """What stands before a command's name where it is typed there."""

    def turns_into(self, before: ContentKind, after: ContentKind) -> bool:
        """Whether an edit can make a message of one kind into one of another."""
        return before is after or not self.fixed & {before, after}


class Ability(StrEnum):
    """By what means an unknown outcome is settled."""

    KEYED = "keyed"
    """The same call with the same key does nothing twice."""
    LOOK_UP = "look_up"
    """What was sent can be read back."""
    NONE = "none"
    """Nothing of that: it is sent again, with a label."""


class Fate(StrEnum):
    """What is known of a call that failed."""

    NOT_SENT = "not_sent"
    """It did not happen: it may be made again."""
    UNKNOWN = "unknown"
    """It may have happened."""
    REFUSED = "refused"
    """It will never happen like this."""
    TOO_FAST = "too_fast"
    """It did not happen, and nothing may be sent for some time."""


class Cause(StrEnum):
    """Why a platform refused a call."""

    NONE = ""
    FORM = "form"
    """The platform cannot take the content's form (markup, button)."""
    TOO_LONG = "too_long"
    """There is more in it than the platform takes in one message."""
    BLOCKED = "blocked"
    """The person does not want anything from us (any more)."""
    NO_RIGHTS = "no_rights"
    """We may not write there, or are not there any more."""
    NO_CHAT = "no_chat"
    NO_THREAD = "no_thread"
    NO_MESSAGE = "no_message"
    """The message to be changed is not there any more."""
    UNCHANGED = "unchanged"
    """It is as it should be already: a success."""
    UNEDITABLE = "uneditable"
    NOT_GROWING = "not_growing"
    """The message does not grow any more: the platform, or a person, has ended it."""
    MOVED = "moved"
    FILE = "file"
    """The file cannot be sent (too large, gone, empty)."""
    NOT_LET_IN = "not_let_in"
    """The bot itself is not let in."""
    UNREADABLE = "unreadable"
    """What the platform answered could not be understood, so it may have been done, and the same may happen each time."""
    SHIELDED = "shielded"
    """Something before the platform answered in its place. It passes, unless it is about what the message says."""
    OTHER = "other"


class CallFailed(Exception):
    """A call to the platform did not succeed. `words` hold no secret."""

    def __init__(
        self,
        fate: Fate,
        words: str,
        *,
        cause: Cause = Cause.NONE,
        retry_after: float = 0.0,
        moved_to: str = "",
        whole_bot: bool | None = None,
    ) -> None:
        super().__init__(redacted(words))
        self.fate = fate
        self.words = redacted(words)
        self.cause = cause
        self.retry_after = retry_after
        """Seconds."""
        self.moved_to = moved_to
        self.whole_bot = whole_bot
        """Whether the limit is the bot's, and not only the chat's; None: the platform does not say."""


def id_of(value: object) -> str:
    """The id that a platform gave to what it made.

    Raises `CallFailed` if it is none: the message may be there, and by what is no id nobody can find, change or delete it.
    """
    known = isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() not in ("", "0", "None")
    if not known:
        raise CallFailed(Fate.UNKNOWN, refusing.WITHOUT_ID, cause=Cause.UNREADABLE)
    return str(value)


Piece: TypeAlias = Styled | CodeFile


class ChatPort(Protocol):
    """Single calls to a platform. Each raises `CallFailed`, within its own time limits, and retries nothing.

    What not every platform has is refused here: a port derives from this, says the rest, and has `Traits` that promise no more.
    """

    @property
    def ability(self) -> Ability: ...

    def traits(self, address: ChatAddress) -> Traits: ...

    @staticmethod
    def parts(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
        """A text of the model, cut and formatted for this platform; long code may come as a file, if nothing grows any more.

        `plain`: without form, in time that grows with the text alone. Make it a module's function (``parts = staticmethod(pieces)``) that
        imports little: then long texts are formatted by a worker, and the loop is free.
        """
        ...

    @staticmethod
    def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
        """What `parts` gave, in more parts: each of at most so many units in the platform's own markup."""
        ...

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        """Show a new part; its id on the platform."""
        ...

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        """Make a part show `content`. What no edit leads to (`Traits.fixed`) is refused, never passed over."""
        ...

    async def delete(self, address: ChatAddress, platform_id: str) -> None: ...

    async def draft(self, address: ChatAddress, number: int, body: Styled) -> None:
        """Show text on its way; `number` (not 0) says which text it is."""
        del address, number, body
        raise _not_here("there are no drafts")

    async def typing(self, address: ChatAddress) -> None:
        """Show that we type."""
        del address
        raise _not_here("bots are not shown typing")

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:
        """The id of the part that was sent as `content` with `key`, if it is there; None also where nothing can be read back."""
        del address, content, key, since_ms

    async def itself(self) -> None:
        """Come back if the platform itself answers just now. Asked where nothing can be looked up, before a part is sent that may be there already."""

    def flow(self, content: Content, *, final: bool) -> Flow:
        """A part as a message that grows has it; unless it is `final`, what may go on is left open."""
        del content, final
        return Flow()

    async def start(self, address: ChatAddress, content: Content, first: Flow, person: str) -> str:
        """Show a new part by a message that grows, for this person; its id, which begins with `GROWS`."""
        del address, content, first, person
        raise _not_here("messages do not grow")

    async def append(self, address: ChatAddress, platform_id: str, more: Flow) -> None:
        """Make it grow. Not idempotent."""
        del address, platform_id, more
        raise _not_here("messages do not grow")

    async def finish(
        self, address: ChatAddress, platform_id: str, content: Content, more: Flow | None, key: str
    ) -> str:
        """The message does not grow any more; `more` is its end, None if it is to be edited next. Its id from now on."""
        del address, platform_id, content, more, key
        raise _not_here("messages do not grow")

    async def doing(self, address: ChatAddress, thread: str, doing: Doing, person: str) -> None:
        """Show what the agent does in a thread, for this person."""
        del address, thread, doing, person
        raise _not_here("what the agent does is not shown")

    async def private(self, person: str) -> str: ...

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        """The bytes of an attachment."""
        ...


def _not_here(what: str) -> CallFailed:
    """The platform has no such thing."""
    return CallFailed(Fate.REFUSED, f"{what} here")


def not_by_edit(kind: ContentKind) -> CallFailed:
    """An edit was asked for that no edit can do."""
    return CallFailed(
        Fate.REFUSED, f"no edit makes a message a {kind.value}, or a {kind.value} another", cause=Cause.UNEDITABLE
    )


ACTION_LABELS: Mapping[Action, str] = {
    Action.CONTINUE: sentence("Continue"), Action.RETRY: sentence("Retry"), Action.WHY: sentence("Why?"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AdapterSight:
    """How an adapter is doing, for `status`."""

    name: str
    state: str
    words: str = ""
    inbound_age_seconds: float | None = None
    outbound_age_seconds: float | None = None
    unread: int = 0
    """What came and could not be taken in; kept, and tried again."""
