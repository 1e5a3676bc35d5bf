"""The parts that a turn's state is made of. Only data: what may happen to it is decided in `turn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias, assert_never

from typing_extensions import override

from agent_core.causes import BreakCause
from agent_core.failures.leftout import Suspect
from agent_core.failures.remedies import Advice, AdviceItem, Failure, Put, Remedy
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import Full
from agent_core.messages import InputMessage
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting, offered
from agent_core.rules.overlap import OverlapRemover
from agent_core.rules.taint import AskedWhy
from agent_core.rules.whole import may_say_nothing_more
from agent_core.text.diffs import FileChange
from agent_core.text.shown import something_to_see
from agent_core.text.tongue import speak
from agent_core.tools.base import DoubtCause, ToolStatus
from agent_core.turn.events import (
    ReasoningArrived,
    RemedyChosen,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    call_id,
)


class Phase(StrEnum):
    """What a turn is waiting for."""

    NEW = "new"
    CALLING = "calling"
    """The model."""
    WAITING = "waiting"
    """The pause before a retry."""
    ACTING = "acting"
    """Tools, or somebody's approval."""
    COMPACTING = "compacting"
    ASKING = "asking"
    """The model's word whether its reply is finished."""
    ENDED = "ended"


class SegmentKind(StrEnum):
    """What a piece of the model's text is, as far as is known."""

    PARTIAL = "partial"
    """Still coming, or cut for good."""
    INTERIM = "interim"
    """Said beside tool calls: progress."""
    ANSWER = "answer"


@dataclass(slots=True)
class Segment:
    """One visible piece of the model's text. Only ever grows, or is taken back whole (`Draft.take_back`)."""

    key: str
    pieces: list[str] = field(default_factory=list[str])
    kind: SegmentKind = SegmentKind.PARTIAL
    final: bool = False
    refusal: bool = False
    """The model refuses."""
    repeats: str = ""
    """Text already on screen that the model may be saying again, because its call was repeated; while this segment is
    the beginning of it, there is nothing new to see."""
    unsaid: str = ""
    """What the model was asked to reply if it has nothing to add. It is for the gateway: while this segment is the beginning of it, it is
    not shown."""

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def visible(self) -> str:
        """What a person should see of it."""
        text = self.text
        if not something_to_see(text) or (self.repeats and self.repeats.startswith(text.strip())) or self.adds_nothing:
            return ""
        return text

    @property
    def adds_nothing(self) -> bool:
        """It says no more than that there is nothing to add."""
        return bool(self.unsaid) and self.unsaid.startswith(self.text.strip())


class ActivityState(StrEnum):
    """Where a tool call stands, for the screen."""

    WAITING = "waiting"
    APPROVAL = "approval"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    NOT_RUN = "not_run"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Decided:
    """What somebody decided about a call."""

    given: bool
    by: str = ""
    lasts: Lasting = Lasting.ONCE


@dataclass(frozen=True, slots=True)
class ConsentGiven:
    """That somebody has agreed to more than one call."""

    lasts: Lasting
    by: str
    at: int
    """ms."""


@dataclass(slots=True)
class Activity:
    """One tool call, and how it goes. The same object serves the screen and the decisions."""

    key: str
    call: str
    name: str
    arguments: str
    state: ActivityState = ActivityState.WAITING
    since: int = 0
    """When the state was entered, ms."""
    seconds: float = 0
    status: ToolStatus | None = None
    doubt: DoubtCause = DoubtCause.UNSAID
    """Why it is not known how it ended, if it is not."""
    started: bool = False
    """`ToolStarted` was journalled: it may have had its effect from there on."""
    intention: Json = None
    """What it is about to do, as its tool put it down before it began; what counts is what was put down last."""
    approved: bool = False
    approval_deadline: int = 0
    why: AskedWhy = AskedWhy.ALWAYS
    """Why somebody has to agree to it."""
    sources: tuple[str, ...] = ()
    """Where words of others stand that the model had read."""
    change: FileChange | None = None
    """What it would make of a file, as whoever decides about it is shown."""
    decided: Decided | None = None
    result: str = ""
    """What it gave, as the model read it."""
    file: str = ""
    """The file that the call handed over to be sent."""
    full: Full | None = None
    """There was no room for what it would have kept."""
    drawn: object = field(default=None, compare=False, repr=False)
    """What `view` has made of it, once it is back."""

    @property
    def returned(self) -> bool:
        return self.status is not None

    @property
    def offers(self) -> tuple[Lasting, ...]:
        """For how long somebody may agree to it."""
        return offered(self.name, self.arguments, tainted=bool(self.sources), once=self.why.once)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that people hear of a call while the turn goes on: what was left out of it, parts of the conversation or the tools."""

    key: str
    left_out: tuple[Suspect, ...]
    endpoint: str
    model: str
    cause: BreakCause | None = None
    """How the provider had refused it; None: in an earlier turn."""
    toolless: bool = False


@dataclass(frozen=True, slots=True)
class Mended:
    """A failure and the remedy that helped: told where a surface shows status, never among the model's words."""

    failure: Failure
    remedy: Remedy
    seconds: float
    """How long the model was silent in the calls that failed."""
    tool: str = ""
    """Whose call was arriving."""
    model: str = ""
    """Which model came to a good end."""
    number: int = 0

    @property
    def key(self) -> str:
        return f"mended{self.number}"


def mended_words(mended: Mended) -> str:
    """As people read it."""
    how = speak(mended.remedy.recipe.mended, model=mended.model or speak("another model"))
    return speak("{broke}; {how} – recovered.", broke=_broke(mended), how=how)


def _broke(mended: Mended) -> str:
    match mended.failure:
        case Failure.IN_TOOL_CALL | Failure.LENGTH_IN_TOOL_CALL:
            return (
                speak("The model's call of {tool} broke off", tool=mended.tool)
                if mended.tool
                else speak("The model's call of a tool broke off")
            )
        case Failure.IN_TEXT | Failure.NOTHING_MORE | Failure.THOUGHT_MORE:
            return speak("The reply broke off")
        case Failure.LENGTH:
            return speak("The reply reached the model's output limit")
        case Failure.BEFORE_CONTENT | Failure.CREDENTIAL | Failure.REQUEST:
            return speak("The model did not answer")
        case Failure.EMPTY:
            return speak("The model returned nothing")
        case Failure.THINKING_ONLY:
            return speak("The model thought and said nothing")
        case Failure.PROMISED:
            return speak("The model announced something and stopped")
        case Failure.OVERFLOW | Failure.TOO_LARGE:
            return speak("The conversation was too large for the model")
        case _:
            assert_never(mended.failure)


class ThoughtText:
    """What a model thought in a turn, for whoever shows it: it only grows, and each call's begins a paragraph."""

    __slots__ = ("_paused", "_pieces", "_places", "chars")

    def __init__(self) -> None:
        self.chars = 0
        self._pieces: list[str] = []
        self._places: list[tuple[int, str]] = []
        """Where what was thought in another place begins, and the bubble behind which that is."""
        self._paused = False

    @override
    def __repr__(self) -> str:
        return f"ThoughtText({self.chars} characters)"

    def add(self, text: str, behind: str = "") -> None:
        """`behind` is the key of the bubble after which it was thought; empty: before all."""
        if self._paused and self._pieces:
            text = f"\n\n{text}"
        self._paused = False
        if self.chars < SHOWN_THOUGHT_CHARS:
            if not self._places or self._places[-1][1] != behind:
                self._places.append((self.chars, behind))
            self._pieces.append(text)
            self.chars += len(text)

    def pause(self) -> None:
        """What comes now is another thought."""
        self._paused = True

    def beyond(self, chars: int) -> str:
        """What stands behind so many characters."""
        if self.chars <= chars:
            return ""
        behind: list[str] = []
        missing = self.chars - chars
        for piece in reversed(self._pieces):
            behind.append(piece[-missing:])
            missing -= len(behind[-1])
            if missing <= 0:
                break
        return "".join(reversed(behind))

    def placed(self, chars: int) -> list[tuple[str, str]]:
        """The same by its places: (the bubble behind which it was thought, what was thought there)."""
        text = self.beyond(chars)
        if not text:
            return []
        begun = next((n for n in range(len(self._places) - 1, -1, -1) if self._places[n][0] <= chars), 0)
        cuts = [*(max(0, at - chars) for at, _ in self._places[begun:]), len(text)]
        return [(self._places[begun + n][1], text[cuts[n] : cuts[n + 1]]) for n in range(len(cuts) - 1)]

    def beginning(self, most: int) -> ThoughtText:
        """Itself, or as much of it as is kept of turns that are over."""
        if self.chars <= most:
            return self
        kept = ThoughtText()
        kept.add(f"{self.beyond(0)[:most]} …")
        return kept


NO_THOUGHTS = ThoughtText()
SHOWN_THOUGHT_CHARS = 200_000
"""More of what a model thinks in one turn is shown to nobody."""


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A picture or sound that the model made."""

    key: str
    kind: str
    """``image`` or ``audio``."""
    path: str = ""
    url: str = ""
    """Where it can be fetched, if the model only names it."""


TimelineEntry: TypeAlias = Segment | Activity | Remark | Mended | MadeFile


@dataclass(frozen=True, slots=True)
class CallItem:
    """A tool call as the model asked for it."""

    call: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AssistantItem:
    """A reply of the model that came to a good end."""

    text: str
    calls: tuple[CallItem, ...] = ()
    thoughts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What of its thoughts goes back to the same model."""


@dataclass(frozen=True, slots=True)
class ToolItem:
    """A tool's result, as the model reads it."""

    call: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PersonItem:
    """Words of the person that came during the turn."""

    input: InputMessage
    inbox: int = 0
    """The accepted message that they are; 0 if they are none."""


Item: TypeAlias = AssistantItem | ToolItem | PersonItem | AdviceItem


def of_the_start(item: Item) -> bool:
    """Advice with which a turn began because of earlier failures."""
    return isinstance(item, AdviceItem) and item.advice is Advice.SMALLER_FROM_START


@dataclass(slots=True)
class DraftCall:
    """A tool call that is still arriving."""

    call: str
    name: str
    pieces: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


@dataclass(slots=True)
class Draft:
    """What one model call has brought so far."""

    segment: Segment
    partial: str = ""
    """The text of the segment that the model was asked to go on from."""
    went_on: str = field(init=False)
    """The same, and it stays."""
    text_pieces: list[str] = field(default_factory=list[str])
    """What this call itself said, before overlap is removed."""
    reasoning: list[str] = field(default_factory=list[str])
    calls: dict[int, DraftCall] = field(default_factory=dict[int, DraftCall])
    cut: list[str] = field(default_factory=list[str])
    """Names of calls in the text form that were not completed."""
    said_by: tuple[str, str] = ("", "")
    """The endpoint and the model that are asked."""
    bare: bool = True
    """This model alone has said what the segment has, and none of its thoughts were told apart in it."""
    _remover: OverlapRemover | None = None
    _seen: int = 0
    """How many of the text's pieces were put through it."""

    def __post_init__(self) -> None:
        self.went_on = self.partial

    def take(
        self,
        event: TextArrived | ReasoningArrived | ToolCallNamed | ToolArgumentsArrived | ToolCallCut,
        ids: dict[str, None],
    ) -> None:
        """Content has come. `ids` are those of all tool calls of the turn."""
        match event:
            case TextArrived():
                if not event.text:
                    return
                self.text_pieces.append(event.text)
                if not self.partial:
                    self.segment.pieces.append(event.text)
            case ReasoningArrived():
                self.reasoning.append(event.text)
            case ToolCallNamed():
                self.name_call(event.index, event.call, event.name, ids)
            case ToolArgumentsArrived():
                if event.index in self.calls:
                    self.calls[event.index].pieces.append(event.text)
            case ToolCallCut():
                named = self.calls.pop(event.index, None)
                self.cut.append(event.name or (named.name if named else ""))

    def after(self, partial: str, said_by: tuple[str, str]) -> Draft:
        """The draft of the next call, which goes on from `partial`, if that is not empty."""
        bare = not partial or (self.bare and not self.reasoning and self.said_by == said_by)
        return Draft(self.segment, partial, said_by=said_by, bare=bare)

    def take_back(self, segment: Segment, *, earlier: bool) -> None:
        """What this call said was a thought. What earlier calls had said goes on in `segment`, the new last one; or it was
        the beginning of the thought (`earlier`), unless something speaks against that."""
        if earlier and self.bare:
            self.reasoning.append(self.partial)
            self.partial = ""
        self.reasoning.append(self.own_text)
        self.text_pieces.clear()
        self.segment.pieces.clear()
        self.segment.final = True
        segment.repeats, self.segment.repeats = self.segment.repeats, ""
        self.segment = segment
        self._remover, self._seen = None, 0
        if self.partial:
            segment.pieces.append(self.partial)

    def show(self) -> None:
        """Put on the segment what has come to go on from its text, as far as that is no repetition by today's rule.

        Only who looks on needs it: what counts is said once by `settle`, when the call is over.
        """
        if not self.partial or may_say_nothing_more(self.own_text, self.partial):
            return
        self._remover = self._remover or OverlapRemover(self.partial)
        for piece in self.text_pieces[self._seen :]:
            new = self._remover.feed(piece)
            if new:
                self.segment.pieces.append(new)
        self._seen = len(self.text_pieces)

    @property
    def own_text(self) -> str:
        """What this call itself said."""
        return "".join(self.text_pieces)

    @property
    def added(self) -> str:
        """What this call, which is over, put behind the text that it was to go on from."""
        return self.segment.text[len(self.went_on) :]

    def settle(self, shown: str | None = None) -> None:
        """The call is over: `shown` goes on from the text; None: all that it said."""
        if self.partial:
            self.segment.pieces[:] = [self.partial + (self.own_text if shown is None else shown)]
            self.partial, self._remover = "", None

    def name_call(self, index: int, call: str, name: str, taken: dict[str, None]) -> None:
        """Begin a call, once. Two calls of a turn never have one id: the model could not tell their results apart."""
        if index not in self.calls:
            unique = call_id(call, taken)
            taken[unique] = None
            self.calls[index] = DraftCall(unique, name)

    @property
    def begun(self) -> bool:
        """Anything of the reply has come."""
        return bool(self.text_pieces or self.reasoning or self.calls or self.cut)

    @property
    def said(self) -> bool:
        """Whether this call brought any text of its own."""
        return any(piece.strip() for piece in self.text_pieces)

    @property
    def in_tool_call(self) -> bool:
        return bool(self.calls or self.cut)

    @property
    def call_names(self) -> tuple[str, ...]:
        return (*(call.name for _, call in sorted(self.calls.items())), *self.cut)


@dataclass(frozen=True, slots=True)
class Ask:
    """How the next model call is put, beside the conversation."""

    advice: Advice | None = None
    reasoning: str = ""
    detail: str = ""
    continues: Failure | None = None
    """The model is to go on from the text of the current segment, because of this failure."""
    cut_by: BreakCause | None = None
    """What had cut that text."""
    by_length: bool = False
    """It was the model's output limit."""


def ask_after(chosen: RemedyChosen, before: Ask, reasoning: str) -> Ask:
    """How the model is asked after a remedy was chosen; it was asked as `before`, and had thought so far."""
    match chosen.remedy.recipe.put:
        case Put.AS_BEFORE:
            return before
        case Put.TO_ANOTHER if chosen.failure not in _ANEW:
            return before
        case Put.THINK_ON:
            return Ask(chosen.advice, reasoning=reasoning)
        case Put.AS_TOLD | Put.TO_ANOTHER if chosen.advice not in (Advice.CONTINUE, Advice.REPEATED):
            return Ask(chosen.advice, detail=chosen.detail)
        case Put.AS_TOLD | Put.TO_ANOTHER | Put.GO_ON:
            cut_by, by_length = chosen.cause, chosen.failure is Failure.LENGTH
            if chosen.failure not in (Failure.IN_TEXT, Failure.LENGTH):  # nothing has come to the text
                cut_by, by_length = before.cut_by or chosen.cause, before.by_length
            return Ask(chosen.advice, "", chosen.detail, chosen.failure, cut_by, by_length)
        case _:
            assert_never(chosen.remedy.recipe.put)


_ANEW = (
    Failure.IN_TEXT, Failure.NOTHING_MORE, Failure.THOUGHT_MORE, Failure.EMPTY, Failure.THINKING_ONLY, Failure.PROMISED,
)  # fmt: skip
"""After these another model is not asked as the first one was asked last, but as it would be at first."""
