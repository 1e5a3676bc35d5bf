"""What a turn wants done. Each is a frozen wish in the imperative; the driver performs it and feeds back what happened."""

from __future__ import annotations

from typing import TypeAlias

from agent_core.failures.exits import Exit
from agent_core.failures.leftout import Suspect
from agent_core.failures.remedies import Advice
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.settings import Route
from agent_core.turn.events import Judgement


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model for the next reply. Comes back as stream events, then `ReplyFinished` or `CallBroke`."""

    number: int
    """Counts the model calls of the turn, from 1."""
    route: Route
    offer_tools: bool
    partial: str = ""
    """Text of this reply that is already on screen; the model is to go on from it."""
    advice: Advice | None = None
    reasoning: str = ""
    """What the model had thought, where it is asked to go on from there."""
    detail: str = ""
    """A tool's name or an announced sentence that the advice speaks of."""
    left_out: tuple[Suspect, ...] = ()
    """What of the conversation is not sent, because the provider does not take it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Pause, then feed `WaitEnded`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RunTool:
    """Check the arguments; if they hold, journal `ToolStarted`, run the tool, and feed `ToolReturned`.

    All `RunTool` of one list may run at the same time.
    """

    call: str
    name: str
    arguments: str
    intention: Json = None
    """What it was about to do when it was begun before."""
    again: bool = False
    """It was begun before, by a process that is dead: it may have been done."""


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Feed `ApprovalAnswered` once a person decides, or after `seconds`."""

    call: str
    name: str
    arguments: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Shorten the history, then feed `Compacted`."""


@dataclass(frozen=True, slots=True)
class AskDone:
    """Ask the model whether this reply of its is finished, then feed `DoneSaid`. Nobody sees it, and it takes seconds at most."""

    route: Route
    text: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """The credential is no good for a while; other turns try the others first."""

    credential: str
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Record:
    """Journal a judgement, in the commit of the fact that it is about."""

    event: Judgement


@dataclass(frozen=True, slots=True)
class EndTurn:
    """Cancel whatever is still running, then close the turn with this exit. Always the last effect of a turn."""

    exit: Exit
    answer: str = ""
    """As in `TurnEnded`."""


Effect: TypeAlias = CallModel | Wait | RunTool | AskApproval | Compact | AskDone | SetAside | Record | EndTurn
