"""What a turn may have to judge. A fact that rules have something to say about leaves one of these open, and nothing is decided by itself.

Theory. In the daemon `agent_core.judging.judge` answers it by today's rules, and the answers go into the journal behind their fact. In a fold the
journal answers it: by the judgement that stands there, or, where the next event is none, by the *ordinary* (nothing was found, nothing
special is done), which is not written. A question to which silence is no answer is in `MUST_BE_ANSWERED`: a journal that goes on without
an answer is not whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from agent_core.failures.exits import Exit
from agent_core.failures.remedies import Failure
from agent_core.records import dataclass
from agent_core.turn.events import (
    ApprovalAsked,
    CallBroke,
    CallSettled,
    Event,
    FailureJudged,
    Happened,
    LoopFound,
    OverlapFound,
    RemedyChosen,
    RemedyJudged,
    ReplyFinished,
    ReplyJudged,
    SpendRefused,
    SummaryAsked,
    TakenOver,
    TurnBegun,
    TurnResumed,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """How does the turn begin? Ordinarily at its first route, without advice."""

    at: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """What of the text that went on from another is said again? Ordinarily nothing."""

    at: int


@dataclass(frozen=True, slots=True)
class CallOver:
    """What does the model call amount to that is over now?"""

    event: ReplyFinished | CallBroke | SpendRefused

    @property
    def at(self) -> int:
        return self.event.at


@dataclass(frozen=True, slots=True)
class Promised:
    """The reply only announces an action. Which failure is that?"""

    at: int


@dataclass(frozen=True, slots=True)
class RemedyWanted:
    """What is done about a failure?"""

    failure: Failure
    broke: CallBroke

    @property
    def at(self) -> int:
        return self.broke.at


@dataclass(frozen=True, slots=True)
class Result:
    """Is there a loop, or another reason to end, now that this call is back? Ordinarily none."""

    at: int
    call: str


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A person did not approve this call, or did not answer. What now?"""

    at: int
    call: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PendingCalls:
    """What becomes of the calls that wait? Ordinarily they run; that they were begun stands in the journal."""

    at: int


@dataclass(frozen=True, slots=True)
class NextStep:
    """All tools are back. Are these to be the last words? Ordinarily not."""

    at: int


@dataclass(frozen=True, slots=True)
class Restart:
    """How does the turn go on in another process?"""

    event: TakenOver
    left: bool
    """The process before it had left it in order."""

    @property
    def at(self) -> int:
        return self.event.at


@dataclass(frozen=True, slots=True)
class End:
    """The turn ends; with which facts?"""

    at: int
    exit: Exit


Question: TypeAlias = (
    Beginning
    | Overlap
    | CallOver
    | Promised
    | RemedyWanted
    | Result
    | CallRefused
    | PendingCalls
    | NextStep
    | Restart
    | End
)
MUST_BE_ANSWERED = CallOver | Promised | RemedyWanted | CallRefused | Restart | End


ANSWERS: Mapping[type[Happened], tuple[type[Question], ...]] = {
    TurnBegun: (Beginning,),
    OverlapFound: (Overlap,),
    ReplyJudged: (CallOver, Restart),
    FailureJudged: (CallOver, Promised, Restart),
    RemedyChosen: (RemedyWanted,),
    RemedyJudged: (CallOver, Promised, Restart),  # beside the answer: the question stays open
    LoopFound: (Result,),
    ApprovalAsked: (PendingCalls,),
    CallSettled: (PendingCalls, CallRefused),
    SummaryAsked: (NextStep,),
    TurnResumed: (Restart,),
}
"""Which judgement is about which questions. A turn's end answers every one, and is not asked about here."""


def answers(event: Event, question: Question) -> bool:
    """Whether an event is a judgement about this question."""
    return isinstance(question, ANSWERS.get(type(event), ()))
