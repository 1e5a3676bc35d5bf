"""What a tool is: its declaration, what it is given, and what it gives back.

A tool declares how safe it is to run it again (`EffectClass`), because the turn machine decides from that alone what may
happen after a crash. The result of a tool is always a value; a tool that raises is a bug, and is told as one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from agent_core.jsonvalue import Json
from agent_core.limits.budgets import CallSpent
from agent_core.limits.quotas import Amounts, Full, for_model, written
from agent_core.limits.spend import Spend, spent_words
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.remembered import UNKNOWN_SOURCE, MemoryScopes, MemorySource, Remembered
from agent_core.text.diffs import FileChange
from agent_core.tools.asking import NOBODY, ToolAnswer, ToolQuestion

T = TypeVar("T")
RESULT_CHARS = 30_000
"""So much of a tool's result the model is shown, where the operator says nothing else."""


class EffectClass(StrEnum):
    """How safe it is to run a call again whose outcome is not known (after a crash, for example)."""

    PURE = "pure"
    """Only reads: may run again, and may run beside other pure calls of the same step."""

    KEYED = "keyed"
    """Has an effect, but running it again with the same `ToolContext.key` and the intention that it put down before it was begun
    for the first time changes nothing more."""

    EFFECT = "effect"
    """Has an effect that may happen twice: never run again. If in doubt, the model and the person are told so."""

    def riskier(self, than: EffectClass) -> bool:
        """Whether more care is needed than with another class."""
        return _BY_CARE.index(self) > _BY_CARE.index(than)


_BY_CARE = tuple(EffectClass)


class Reach(StrEnum):
    """Who sees anything of a call: what text of strangers may bring about without a person's word depends on it (`agent_core.rules.taint`)."""

    HERE = "here"
    """Only those for whom the turn works: files of the workspace, their own memory, the chat that the answer goes to."""
    ADDRESS = "address"
    """It only reads, and whoever answers at an address that stands in its arguments reads that: it depends on what the address says."""
    OUTSIDE = "outside"
    """Others: another chat or person, everybody's memory, a machine elsewhere."""


class WhenTainted(StrEnum):
    """What becomes of a call that reaches outside, in a tainted turn."""

    ASK = "ask"
    """A person is asked; where there is none to ask, it is not run."""
    REFUSE = "refuse"
    """It is not run."""
    ALLOW = "allow"
    """It is run."""


class ToolStatus(StrEnum):
    """How a call came out."""

    OK = "ok"
    FAILED = "failed"
    """The tool ran and could not do what was asked. The text says why, in words for the model."""
    TIMED_OUT = "timed_out"
    """Its deadline passed; it was cancelled. For an `effect` tool the work may have been done in part."""
    REFUSED = "refused"
    """It was not run: unknown tool, arguments that do not fit, not allowed."""
    UNKNOWN = "unknown"
    """It was started and nobody knows how it ended (the process died)."""


class DoubtCause(StrEnum):
    """Why nobody knows how a call ended."""

    UNSAID = ""
    """As its status says."""
    RESTARTED = "restarted"
    SLOW = "slow"
    WENT_AWAY = "went_away"
    """What carries it out ended, or was lost."""
    NO_RESULT = "no_result"
    """There was an answer, and no result in it."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is declared, to the model and to the turn machine."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON Schema (2020-12) of the arguments; `additionalProperties` false."""
    effect: EffectClass
    housekeeping: bool = False
    """True for bookkeeping of the model's own (memory, to-do lists): text beside such calls can be the answer."""
    deadline_seconds: float = 60.0
    heartbeat: bool = False
    """True if the tool reports life through `ToolContext.heartbeat` while it works."""
    approval: bool = False
    """A person has to agree to each call."""
    reach: Reach = Reach.HERE
    """Who sees anything of a call, in any case that its arguments allow."""
    foreign: bool = False
    """Its results hold words that neither the person nor the operator wrote: pages, files, names, what other programs say."""
    foreign_words: bool = False
    """So does its declaration, which the model reads with every request."""
    links: bool = False
    """Addresses in its results were all written elsewhere: it gives back nothing that the model could have put together, but where it searches for
    an address (`agent_core.turn.toolround.gives_links`)."""
    checked: Mapping[str, Json] | None = None
    """What arguments are checked against before a call, if that is less than `parameters`: the tool's own server checks the rest."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a call gives back to the model."""

    status: ToolStatus
    text: str
    left_out_chars: int = 0
    """How many characters of the result were cut; the text itself says so too."""
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Small facts for logs and the tool activity on screen (paths, byte counts). Never secrets."""
    foreign: bool | None = None
    """Whether the text holds words of others, where it is otherwise with this call than `ToolSpec.foreign` says."""
    doubt: DoubtCause = DoubtCause.UNSAID
    """Why it is not known how it ended, if it is not."""


class NotPossible(Exception):
    """A call cannot be carried out, and nothing was done; the words are for the model."""

    facts: Mapping[str, Json] = {}
    """Of the outcome."""


def holds_foreign(spec: ToolSpec, outcome: ToolOutcome) -> bool:
    """Whether what a call gave back holds words of others."""
    return spec.foreign if outcome.foreign is None else outcome.foreign


class NotPaid(Exception):
    """There is no room in a budget for a call that somebody would have to pay."""

    def __init__(self, spend: Spend) -> None:
        super().__init__(spent_words(spend))
        self.spend = spend


class Purse(Protocol):
    """What pays for calls that are no model's reply, such as those of speech, on behalf of whoever a turn works for."""

    async def pay(
        self, kind: str, model: str, most: CallSpent, call: Callable[[], Awaitable[tuple[T, CallSpent]]]
    ) -> T:
        """What `call` gives, beside what it used. `most` is held for it meanwhile. Raises `NotPaid` instead of making it."""
        ...


FULL = "full"
"""Among an outcome's facts: the `Kind` of which there was no room, and the figures."""


class NoRoom(NotPossible):
    """There is no room for what a call would write."""

    def __init__(self, full: Full) -> None:
        super().__init__(for_model(full))
        self.full = full
        self.facts = {FULL: [*written(full)]}


class Space(Protocol):
    """The room of whoever a call works for. Everything that a tool keeps is held here first."""

    def hold(self, adding: Amounts, place: Path | None = None) -> AbstractAsyncContextManager[None]:
        """Room for what is written in the block; raises `NoRoom` before it. Left by an exception, nothing counts as written.

        `place` is the folder that it is written into, if that is not the workspace.
        """
        ...

    async def left(self) -> Amounts:
        """How much more there is room for, of what has a limit: for whoever cannot say beforehand what will be written."""
        ...

    async def changed(self) -> None:
        """Something was written that was not held: it is counted before room is asked for again."""
        ...


class Unlimited:
    """Where nobody counts."""

    @asynccontextmanager
    async def hold(self, adding: Amounts, place: Path | None = None) -> AsyncGenerator[None]:  # noqa: ARG002 - a `Space` is asked so
        """There is always room."""
        yield

    async def left(self) -> Amounts:
        """Nothing has a limit."""
        return {}

    async def changed(self) -> None:
        """Nobody counts."""


UNLIMITED: Space = Unlimited()


async def nobody_asked(_: ToolQuestion) -> ToolAnswer:
    """Where there is nobody to ask."""
    return NOBODY


async def _kept_by_nobody(_: Json) -> None:
    """Where there is no journal, an intention is not kept."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running call may know and use."""

    turn: str
    call: str
    key: str
    """``turn:call``: the idempotency key of a *keyed* tool."""
    workspace: Path
    """The session's own folder. Everything a file tool touches lies below it. It may not exist yet."""
    memory_scope: str
    """Whose memory `remember` and `recall` use."""
    clock: Clock
    heartbeat: Callable[[str], None]
    """Called with a few words about progress; resets the silence limit, not the deadline."""
    intention: Json = None
    """What `prepare` gave, or what the call itself put down since; it is committed."""
    again: bool = False
    """The call was begun before by a process that is dead: it may have been done."""
    intend: Callable[[Json], Awaitable[None]] = _kept_by_nobody
    """Puts down another intention in place of the first. It counts, whatever happens, from the return on."""
    ask: Callable[[ToolQuestion], Awaitable[ToolAnswer]] = nobody_asked
    """Asks the person something, and waits for the answer. What is asked and answered is put down as the call's intention."""
    space: Space = UNLIMITED
    """Where room is held for what the call keeps."""
    purse: Purse | None = None
    """What pays for what it asks of others; None: nobody counts."""
    tainted: bool = False
    """The model has read words of others in this conversation: what it wants kept may be theirs."""
    memories: MemoryScopes | None = None
    """The memories of the turn, where there are more than that of `memory_scope`."""
    author: str = ""
    """Who asks, as ACCOUNT/PERSON; empty if nobody knows."""
    writer: str = ""
    """Their name."""
    skills: frozenset[str] | None = None
    """Those that the turn's agent may read; None: all."""

    @property
    def scopes(self) -> MemoryScopes:
        """The memories of the turn."""
        return self.memories or MemoryScopes(self.memory_scope)

    @property
    def source(self) -> MemorySource:
        """What an entry that is kept now says of where it came from."""
        return MemorySource(self.turn, self.author, self.writer, self.tainted)


class Tool(Protocol):
    """A tool: a declaration and one coroutine. `arguments` have been checked against `spec.parameters`."""

    @property
    def spec(self) -> ToolSpec: ...

    def run(self, arguments: Mapping[str, Json], context: ToolContext) -> Awaitable[ToolOutcome]: ...


@runtime_checkable
class PreparedTool(Tool, Protocol):
    """A *keyed* tool whose calls, begun again, find out what they did before."""

    def prepare(self, arguments: Mapping[str, Json], context: ToolContext) -> Awaitable[Json]:
        """What the call is about to do. Only looks; what it gives is committed before `run`. Raises `NotPossible`."""
        ...


@runtime_checkable
class ChangingTool(Tool, Protocol):
    """A tool that can say beforehand what a call makes of a file."""

    def change(self, arguments: Mapping[str, Json], context: ToolContext) -> Awaitable[FileChange | None]:
        """What the file would be, against what it is. Only looks. Raises `NotPossible`."""
        ...


@runtime_checkable
class ChoosingTool(Tool, Protocol):
    """A tool of which a turn may have only some choices (`ToolContext.skills`)."""

    def among(self, names: frozenset[str]) -> ToolSpec:
        """Its declaration with these alone."""
        ...


class MemoryStore(Protocol):
    """Where `remember`, `recall` and `todo` keep what they are told; durable when the call returns."""

    async def put(
        self, scope: str, kind: str, name: str, value: str, *, at_ms: int, source: MemorySource = UNKNOWN_SOURCE
    ) -> None:
        """Store or replace one entry."""
        ...

    async def remembered(self, scopes: Sequence[str], query: str = "") -> tuple[list[Remembered], int]:
        """What is remembered in these scopes and fits, best first (without a query: all, newest first); and how much there is in all."""
        ...

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        """Remove one entry; True if it was there."""
        ...

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        """All entries as (name, value, stored-at ms), oldest first."""
        ...
