"""What a chat platform is to the rest of the program: its section of the configuration, and one record of everything else.

Law: nobody outside a platform's folder asks for it by name. Who needs to know something about platforms asks for a field of `Platform`, and a
platform that says nothing there has the usual. `adapters/platforms.py` finds the records, ours and those of other packages.

A record is read at each start, also of commands that have nothing to do with chats: what needs the platform's library is imported inside of the
functions, when a platform is configured and used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, SecretStr

from adapters.checks.findings import Check, Finding, Seen
from adapters.contract.logevents import LogEvent
from adapters.contract.settings import Section, Texts, Tongue, Tongues, Unit, parsed_json
from agent_core.records import dataclass

if TYPE_CHECKING:
    from adapters.contract.chat import ChatAddress, ChatIntake, Piece
    from adapters.contract.pacing import Rate
    from adapters.contract.supervision import Supervised
    from agent_core.ports import Clock

S = TypeVar("S", bound=Seen)
C = TypeVar("C", bound=Section)
U = TypeVar("U")

Key: TypeAlias = tuple[str, str]
"""Section and key."""

PAIRING = "It does not know you yet and shows you a code: outspoken access approve CODE"
"""What a person who has just set up a bot meets first."""


@dataclass(frozen=True, slots=True)
class Built:
    """An adapter with how fast it may write."""

    adapter: Supervised
    account_rate: Rate
    chat_rate: Callable[[ChatAddress], Rate]


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a look of `outspoken doctor` may have to know of its surroundings."""

    env: Mapping[str, str]
    runs: bool
    """A gateway of this configuration runs: what would take something away from it (a poll, a socket) is left out."""


@dataclass(frozen=True, slots=True)
class SetupResult:
    """What setting something up comes to."""

    values: Mapping[Key, str] = field(repr=False)
    """By section and key; an empty one is taken out."""
    words: tuple[str, ...] = ()
    """What to do next."""


class Asker(Protocol):
    """One run of ``outspoken setup``, as a platform sees it."""

    @property
    def asks(self) -> bool:
        """Somebody can be asked; else only what is given counts."""
        ...

    def say(self, words: str) -> None: ...

    def question(self, words: str, default: str = "") -> str:
        """One line that somebody types; `default` if it is empty. Only where `asks`."""
        ...

    def value(self, section: str, key: str) -> str:
        """What an option or the environment gives for a key; empty if nothing does."""
        ...

    def secret(self, section: str, key: str, question: str, present: SecretStr | None, *, needed: bool = True) -> str:
        """A secret: given, typed, or the one that is there already. Empty if there is to be none."""
        ...

    def look(self, work: Awaitable[U]) -> U:
        """Try something with the other side."""
        ...

    def tried(self, attempt: Callable[[], S | None]) -> S | None:
        """Repeat `attempt` until its values are good; None if the person gives up (it gives None)."""
        ...

    def until(self, seen: S, name: str, again: Callable[[], Awaitable[S]]) -> S:
        """Let the person mend what a finding of this name says, and look again."""
        ...


def asked_token(
    asker: Asker, section: str, present: C, now: SecretStr | None, look: Callable[[C], Awaitable[S]]
) -> tuple[C, S] | None:
    """The steps for a bot with one token, given the one that it has `now`: its section with the token that is good, and what `look` saw with it."""
    made = present

    def attempt() -> S | None:
        nonlocal made
        token = asker.secret(section, "token", "Token", now, needed=not asker.asks)
        made = present.model_copy(update={"token": SecretStr(token)})
        return asker.look(look(made)) if token else None

    seen = asker.tried(attempt)
    return None if seen is None else (made, seen)


class RespondWhen(StrEnum):
    """When the bot answers in a group."""

    MENTION = "mention"
    ALWAYS = "always"
    NEVER = "never"


Responds = Annotated[dict[str, RespondWhen], BeforeValidator(parsed_json)]


@dataclass(frozen=True, slots=True)
class Amiss:
    """What is wrong with a bot's own settings, behind the name of its section, and what to do."""

    key: str
    what: str
    fix: str


class ChatSection(Section):
    """What every chat platform has in the configuration, and what follows from it."""

    allow: Texts = Field(default=(), examples=[["12345678", "@ada"]])
    """Who may talk to the bot: ids, or user names with @. Everybody else needs a pairing code, or is refused."""
    admins: Texts = Field(default=(), examples=[["12345678"]])
    """Who may also approve others, in the chat itself."""
    open: bool = False
    """Let everybody talk to the bot. Think of who pays for it, and of what its tools can reach."""
    pairing: bool = True
    """Show strangers a code with which whoever runs the gateway can let them in (outspoken access approve CODE)."""
    groups: RespondWhen = RespondWhen.MENTION
    """When the bot answers in groups: if it is mentioned or replied to, always, or never."""
    chats: Responds = Field(default_factory=dict, examples=[{"-1001234": "always"}])
    """The same for single chats, by their id."""
    by_person: bool = False
    """In groups, each person has a conversation of their own."""
    language: Tongue = Field(default="", examples=["de"])
    """Language of notices, buttons and commands here: de, en, es, fr, pt, ru, zh, ja, ar or hi. Empty: each person's own."""
    languages: Tongues = Field(default_factory=dict, examples=[{"-1001234": "de"}])
    """The same for single chats, by their id."""
    per_minute: Annotated[int, Unit("messages a minute")] = Field(default=20, ge=0, le=10_000)
    """Messages that a person may send in a minute; 0: no limit."""

    @property
    @abstractmethod
    def configured(self) -> bool:
        """There is what the platform needs to let us in."""

    @abstractmethod
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        """The adapter. Asked only if it is configured."""

    @property
    def amiss(self) -> Amiss | None:
        """Why the bot cannot be let in with what stands here, if that can be seen; everything else runs all the same."""
        return None

    def checks(self, around: CheckContext) -> Sequence[Check]:
        """What `outspoken doctor` looks at. Asked only if it is configured."""
        del around
        return ()

    @abstractmethod
    def ask(self, asker: Asker) -> SetupResult | None:
        """The steps of `outspoken setup`, with this section as what is there already; None if the person gives up."""

    @property
    def answers_all(self) -> bool:
        """There is a group in which the bot is to answer everything."""
        return RespondWhen.ALWAYS in (self.groups, *self.chats.values())


class Pieces(Protocol):
    """A text of the model as messages of a platform: see `adapters.contract.chat.ChatPort.parts`."""

    def __call__(self, markdown: str, *, growing: bool) -> tuple[Piece, ...]: ...


@dataclass(frozen=True, slots=True)
class Proof:
    """A header by which the platform's calls are known."""

    status: int
    """Of the answer to a call whose header cannot be read."""
    form: str = ""
    """What it looks like, as a regular expression; empty: anything."""
    form_words: str = ""
    """What is said of one that looks otherwise, behind the header's name."""


def _none_written(text: str) -> int | None:
    del text


def _as_it_is(last_seen: str, at_ms: int) -> str:
    del at_ms
    return last_seen


def _nothing_said(words: str) -> Finding | None:
    del words


@dataclass(frozen=True, kw_only=True, eq=False)
class Platform:
    """Everything that the rest of the program knows of a platform."""

    name: str
    """In the configuration, in addresses, in the database: small letters, digits and ``_``."""
    title: str
    """For people."""
    section: type[ChatSection]
    pieces: Callable[[], Pieces]
    """What cuts and formats a text for it; asked when it is needed."""

    place: int = 100
    """Where it stands among others, in lists and questions: the smaller, the earlier; then by name."""
    page: str = ""
    """What there is to read about it: a file of ours in docs/, or an address."""
    packages: tuple[str, ...] = ()
    """Distributions whose versions matter in a report about a failure."""

    setup_keys: tuple[str, ...] = ()
    """The keys that setup writes; without the first of them it has nothing to write."""
    setup_options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys that also are options of ``outspoken setup``, with their help."""
    forms: Mapping[str, Callable[[], str]] = field(default_factory=dict[str, "Callable[[], str]"])
    """Files that are printed from the code for whoever sets it up, by path."""

    chat_id: str = r".+"
    """What the id of a chat looks like, as a regular expression."""
    written_at: Callable[[str], int | None] = _none_written
    """When a message with this id was written, ms; None if it is no id of this platform's, or does not say."""
    counts_messages: bool = False
    """The ids of a chat's messages are numbers that follow each other."""
    moved_on: Callable[[str, int], str] = _as_it_is
    """A mark of how far a chat was read, moved on to a time (ms); as it is where it is no such mark, or where what was
    confirmed is never given again."""

    cards: bool = False
    """See `adapters.contract.chat.Traits.cards`: what it was when old parts were stored."""
    takes_markdown: bool = False
    """The text of an answer, as it is stored, is Markdown, and not text with spans."""
    blocked_words: tuple[str, ...] = ()
    """What the platform says, in small letters, of a person who does not want the bot or is no more."""

    proofs: Mapping[str, Proof] = field(default_factory=dict[str, Proof])
    """Headers of its calls at our server."""
    said: Callable[[str], Finding | None] = _nothing_said
    """What an adapter that runs says of itself, where it means something that a person can mend."""
    events: tuple[LogEvent, ...] = ()
    """The lines of the log that only this platform writes; their names begin with its name."""
