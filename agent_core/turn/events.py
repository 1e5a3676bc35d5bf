"""What can happen to a turn, and what was judged of it. Each is frozen, with a past-tense name and the wall-clock time `at` (ms) it carries.

The journal is the list of these; a turn's state is their fold. *Facts* come from outside: the model, tools, people, the process. A
*judgement* (`Judgement`, at the end of this file) is what the rules of that time made of a fact; it is journalled in the fact's own commit,
and whoever reads the journal takes it. Where nothing stands, the ordinary was judged: see `agent_core.turn.questions`.
 Adjacent `TextArrived` (and likewise reasoning and argument
pieces) may be merged, keeping the later `at`, without changing the fold: how a stream was cut never matters.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from agent_core.causes import BreakCause
from agent_core.failures.complaints import NOTHING_SAID, Complaint
from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.known import Known
from agent_core.failures.leftout import LeftOut, Suspect
from agent_core.failures.remedies import Advice, AdviceItem, Failure, Remedy
from agent_core.jsonvalue import Json
from agent_core.limits.spend import Spend
from agent_core.messages import InputMessage, Message
from agent_core.records import dataclass
from agent_core.rules.consents import Kind, Lasting
from agent_core.rules.taint import AskedWhy
from agent_core.settings import TurnSettings
from agent_core.text.diffs import FileChange
from agent_core.text.tongue import sentence
from agent_core.text.worded import Worded
from agent_core.tools.base import DoubtCause, ToolStatus


class Refusal(StrEnum):
    """Why a call was not even started."""

    NONE = ""
    UNKNOWN_TOOL = "unknown_tool"
    UNREADABLE_ARGUMENTS = "unreadable_arguments"


class Verdict(StrEnum):
    """What became of a request for approval."""

    GIVEN = "given"
    DENIED = "denied"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Base of all events."""

    at: int
    """Wall-clock time in ms, from the injected clock."""

    @classmethod
    def kind(cls) -> str:
        """What it is called in the journal: its class's name, or the name that its class had when it was first stored."""
        return cls.__name__


_AS_RUNG = {"alias": "rung"}
"""A remedy's key in stored events: it had that name first, and stored names stay."""


class AgentBy(Worded):
    """Why it is that agent that answers, in words behind its name."""

    NOT_SAID = "", ""
    """The gateway's own, or a version that did not say."""
    REQUEST = "request", sentence("which the request asked for, or its key names first")
    CHOICE = "choice", sentence("which was chosen in this conversation")
    CHAT = "chat", sentence("whose configuration names this chat")
    PERSON = "person", sentence("whose configuration names whoever wrote")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOpened(Happened):
    """The turn began. Carries all that its decisions depend on."""

    input: tuple[InputMessage, ...]
    settings: TurnSettings
    seed: int
    """Where the turn's jitter comes from."""
    own_history: tuple[Message, ...] | None = None
    """A stateless API request brings its whole conversation; None means the session's history counts."""
    request: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Sampling parameters and the like, handed to the model as they came."""
    client_tools: tuple[Mapping[str, Json], ...] = ()
    """The schemas of the tools that an API client brought."""
    surface: str = ""
    known: Known = field(default_factory=Known)
    """Earlier failures of this conversation, and open incidents."""
    left_out: tuple[LeftOut, ...] = ()
    """What providers have refused of the conversation so far, and is left out for them from the start."""
    agent: str = ""
    """Which agent answers; empty: the gateway's own."""
    agent_by: AgentBy = AgentBy.NOT_SAID
    key: str = ""
    """The name of the API key that it came with; empty: the configured one, or none."""
    foreign: tuple[str, ...] = ()
    """Where words of others stand that the model reads from the start."""
    consents: tuple[Kind, ...] = ()
    """What people have agreed to for good, or for this conversation, as far as it concerns this turn."""
    language: str = ""
    """In which what the gateway says of it is said; empty: English."""
    asker: str = ""
    """Whose turn it is, where several people share the conversation, as ACCOUNT/PERSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextArrived(Happened):
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningArrived(Happened):
    """A piece of what the model thinks."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTakenBack(Happened):
    """What this call had said so far was a thought: the mark that ends it came without one that begins it."""

    earlier: bool = False
    """So was what earlier calls had said that this one goes on from: nothing says that this model's replies begin otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallNamed(Happened):
    """The model began a tool call and its name is known."""

    index: int
    """Position of the call in the reply, from 0, in order of appearance."""
    call: str
    """The call's id: the provider's if it is usable, else one of ours. In the turn it is known by `call_id` of it."""
    name: str


def call_id(call: str, taken: Container[str]) -> str:
    """By what a call that is named so is known in the turn, where `taken` are those before it: some providers begin anew with each reply."""
    unique, count = call, 0
    while unique in taken:
        count += 1
        unique = f"{call}.{count}"
    return unique


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolArgumentsArrived(Happened):
    """A piece of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallCut(Happened):
    """A tool call in the text form was not completed, or cannot be read; there is no call, and that is known."""

    name: str
    """Empty if it was not known yet."""
    index: int = -1
    """The index under which the call was named before, if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalBegan(Happened):
    """What the model says from here on is its refusal to do what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsRefused(Happened):
    """The provider does not take tools with this request: the reply that begins now was asked for without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFinished(Happened):
    """The model's stream came to an end with a finish reason."""

    reason: str
    """As the provider wrote it; believed only if the content agrees."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens: what the provider had in its cache."""
    reasoning_tokens: int = 0
    """Of the output tokens: what it thought."""
    made: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What it made beside text: where its pictures and sound lie, sources, probabilities (see `model.made`)."""
    unsent: tuple[str, ...] = ()
    """Parameters that were wished and left out, because the provider does not take them."""
    thoughts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What of its thoughts has to come back to this model with the next request; opaque."""
    suspects: tuple[Suspect, ...] = ()
    """Where a filter ended it: what of the conversation may be the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBroke(Happened):
    """The model call failed or its stream broke."""

    cause: BreakCause
    status: int = 0
    retry_after_seconds: float = 0
    waited_seconds: float = 0
    detail: str = ""
    """The provider's own words, redacted, at most 300 characters."""
    complaint: Complaint = NOTHING_SAID
    """What of the request the provider objects to."""
    suspects: tuple[Suspect, ...] = ()
    """What of the conversation may be meant by that, the likeliest first."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRefused(Happened):
    """The model was not asked, because a budget has no room."""

    spend: Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded(Happened):
    """The pause before a retry is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Happened):
    """Journalled before the tool runs: from here on it may have had its effect."""

    call: str
    intention: Json = None
    """What a *keyed* tool found, and what it makes of it: enough to tell later whether it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned(Happened):
    call: str
    status: ToolStatus
    text: str
    """What the model gets to read."""
    refusal: Refusal = Refusal.NONE
    seconds: float = 0
    left_out_chars: int = 0
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    foreign: bool = False
    """Its text holds words of others."""
    doubt: DoubtCause = DoubtCause.UNSAID
    """Why it is not known how it ended, if it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeShown(Happened):
    """What a call would change in a file, looked up when somebody is asked about it."""

    call: str
    change: FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(Happened):
    """Somebody has said whether a call may run, or the time for it is over."""

    call: str
    verdict: Verdict
    by: str = ""
    lasts: Lasting = Lasting.ONCE
    """For how long a consent counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered(Happened):
    """The person added something for the running turn; it is put before the model at the next step."""

    input: InputMessage
    inbox: int = 0
    """The accepted message that it is; 0 if it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Happened):
    by: str = ""
    forgotten: bool = False
    """Nobody said stop: its person is being forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded(Happened):
    """A newer message interrupts the turn, because the session's policy says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed(Happened):
    """The turn's own time is up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Happened):
    """The history was shortened, or could not be."""

    summary: str
    """What stands for the part that was left out; empty if nothing could be left out."""
    kept_turns: int = 0
    """How many of the latest closed turns are still told word for word."""
    helped: bool = True
    tokens_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneSaid(Happened):
    """What the model said when it was asked whether its reply is finished."""

    finished: bool | None = None
    """None: it said neither, or nothing in time."""
    said: str = ""
    """Its words, the first of them."""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainEnded(Happened):
    """The daemon shuts down and could not wait any longer. Only older versions ended a turn so; now it is left open (`TurnLeft`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLeft(Happened):
    """The process ends in order and leaves the turn open; the next one goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver(Happened):
    """A (new) process took the turn over; whatever the old one was doing is over."""

    epoch: int
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFailed(Happened):
    """A bug of ours: the doing failed in a way that the machine has no other word for."""

    reference: str
    why: str = ""
    """Words for the person, if there are any."""


# ---------------------------------------------------------------------- judgements


class Reply(StrEnum):
    """What a reply amounted to that is neither the answer (`TurnEnded` says that) nor a failure (`FailureJudged`)."""

    TOOLS = "tools"
    """It asks for tools."""
    HANDED = "handed"
    """It asks for tools of the client's, which are handed over."""
    SAID = "said"
    """A text that would be the answer, had the person not added something meanwhile."""
    PROMISED = "promised"
    """It only announces an action."""
    UNCLEAR = "unclear"
    """It may; the model is asked."""
    SUMMARY = "summary"
    """The last words of a turn that has to end."""


class Resume(StrEnum):
    """How a turn goes on in another process."""

    CALL = "call"
    """The model is asked as it had been."""
    GO_ON = "go_on"
    """The model is asked to go on from the text that had come."""
    ANEW = "anew"
    """The model is asked again, and what it had said beside a call that was arriving stays."""
    COMPACT = "compact"
    ASK = "ask"
    """The model is asked again whether its reply is finished."""
    ACT = "act"
    """The tools that were not back run again, as far as they may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegun(Happened):
    """How the turn begins, if not at its first route, without advice and with all its tools."""

    route: int = 0
    advice: tuple[AdviceItem, ...] = ()
    withheld: tuple[str, ...] = ()
    """Own tools that are not offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapFound(Happened):
    """What a model call said again of the text that it was to go on from: it is shown as `text` and what followed."""

    dropped: int = 0
    """How many of the call's first characters are not shown."""
    text: str = ""
    """What is shown in place of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyJudged(Happened):
    """What a reply amounted to."""

    reply: Reply = Reply.TOOLS
    promised: str = ""
    """The sentence that announces an action."""
    sign: str = ""
    """By what it was taken for a promise (`promises.PromiseSign`)."""
    solved: tuple[str, ...] = ()
    """Tools whose known stall is over with this reply."""
    taken: int = -1
    """How many of its calls are run; -1: all."""
    words: str = ""
    """For the model, about the calls beyond those."""
    handed: tuple[str, ...] = ()
    """Calls of the client's beside others: they are handed over once those are back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureJudged(Happened):
    """What went wrong with a model call."""

    failure: Failure
    cause: BreakCause
    code: ExitCode
    """The exit that it leads to if nothing helps."""
    detail: str = ""
    aside_seconds: float = 0
    """For how long the route's credential is set aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyChosen(Happened):
    """Which remedy was chosen for which failure, and all that follows from it."""

    failure: Failure
    remedy: Remedy = field(metadata=_AS_RUNG)
    number: int
    """The how-many-th time this remedy is tried against this failure in this step, from 1."""
    cause: BreakCause | None = None
    route: int = -1
    """The route from now on; -1: as before."""
    advice: Advice | None = None
    """What the model is told."""
    detail: str = ""
    """What the advice speaks of."""
    pause_ms: int = 0
    left_out: tuple[Suspect, ...] = ()
    """What of the conversation is not sent from now on, beside what was left out before this step."""
    tried: int = 0
    """How many groups of suspects have been left out by then, this one included."""

    @classmethod
    def kind(cls) -> str:
        return "RungClimbed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyJudged(Happened):
    """Whether the remedy that was chosen last helped."""

    failure: Failure
    remedy: Remedy = field(metadata=_AS_RUNG)
    helped: bool

    @classmethod
    def kind(cls) -> str:
        return "RungJudged"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFound(Happened):
    """What the guardrails found in a tool's result."""

    call: str
    code: ExitCode
    tool: str
    count: int
    stop: bool = False
    words: str = ""
    """For the model, in the tool's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked(Happened):
    """A person is asked whether a call may run."""

    call: str
    seconds: int
    why: AskedWhy = AskedWhy.ALWAYS
    sources: tuple[str, ...] = ()
    """Where words of others stand that the model has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled(Happened):
    """A call gets no result of its tool: it is not run, or nobody knows what came of it."""

    call: str
    words: str
    """For the model, in place of a result."""
    denied: bool = False
    """Nobody approved it."""
    unsure: bool = False
    """It was begun, and may or may not have been done."""
    why: AskedWhy = AskedWhy.ALWAYS
    """Why somebody would have had to agree."""
    sources: tuple[str, ...] = ()
    """Where words of others stand that the model has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAsked(Happened):
    """The model is asked for last words, without tools; then the turn ends so."""

    exit: Exit
    advice: Advice


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResumed(Happened):
    """How the turn goes on after it was taken over."""

    how: Resume


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(Happened):
    """The exit, written in the transaction that closes the turn. It answers every question that is open."""

    exit: Exit
    answer: str = ""
    """The piece of text that is the answer; empty: what the last reply said."""


Fact: TypeAlias = (
    TurnOpened
    | TextArrived
    | ReasoningArrived
    | TextTakenBack
    | RefusalBegan
    | ToolsRefused
    | ToolCallNamed
    | ToolArgumentsArrived
    | ToolCallCut
    | ReplyFinished
    | CallBroke
    | SpendRefused
    | WaitEnded
    | ToolStarted
    | ToolReturned
    | ChangeShown
    | ApprovalAnswered
    | Steered
    | StopRequested
    | Superseded
    | DeadlinePassed
    | Compacted
    | DoneSaid
    | DrainEnded
    | TurnLeft
    | TakenOver
    | DriverFailed
)
Judgement: TypeAlias = (
    TurnBegun
    | OverlapFound
    | ReplyJudged
    | FailureJudged
    | RemedyChosen
    | RemedyJudged
    | LoopFound
    | ApprovalAsked
    | CallSettled
    | SummaryAsked
    | TurnResumed
    | TurnEnded
)
Event: TypeAlias = Fact | Judgement
OfCall: TypeAlias = ToolStarted | ToolReturned | ChangeShown | ApprovalAnswered
"""What happens to one call, and fits only as it stands."""
