"""Where a turn stands: all that it has taken so far. Changed by `taking` alone, read by whoever judges, shows, tells or logs it.

It is apart from the machine so that rules can read a turn without knowing the machine that asks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from agent_core.causes import BreakCause
from agent_core.failures.errors import ProtocolError
from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.leftout import Leaving, LeftOut, Suspect, fitting
from agent_core.failures.remedies import Failure, Remedy
from agent_core.failures.troubles import TurnTroubles
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, said_by_the_person, text_of
from agent_core.records import NONE
from agent_core.settings import Route, TurnSettings, patience
from agent_core.turn.events import (
    CallBroke,
    Compacted,
    DoneSaid,
    TurnOpened,
)
from agent_core.turn.questions import (
    CallOver,
    Question,
)
from agent_core.turn.state import (
    Ask,
    AssistantItem,
    CallItem,
    Draft,
    DraftCall,
    Item,
    PersonItem,
    Phase,
    Segment,
    ThoughtText,
    TimelineEntry,
    ToolItem,
)
from agent_core.turn.toolround import ToolRound

Silence: TypeAlias = "tuple[float, float]"
"""Seconds that a model call may say nothing: before its first content, and between two pieces of it."""


class Standing:
    """One turn as it is. The attributes are for reading."""

    __slots__ = (
        "ask",
        "attempts",
        "cached_tokens",
        "calls_made",
        "chosen",
        "closing",
        "compacted",
        "done_asked",
        "done_said",
        "doubted",
        "draft",
        "exit",
        "failed_seconds",
        "failing",
        "ids",
        "input_tokens",
        "items",
        "kept_out",
        "last_break",
        "leaving",
        "left",
        "life_at",
        "made",
        "opened",
        "output_tokens",
        "phase",
        "phase_since",
        "promised",
        "questions",
        "reasoning_tokens",
        "remedies",
        "restarts",
        "round",
        "route_index",
        "steers",
        "step",
        "thoughts",
        "timeline",
        "to_hand",
        "troubles",
        "trying",
        "unsent",
        "wait_until",
        "withheld",
    )  # fmt: skip

    @property
    def language(self) -> str:
        """Its person's, see `agent_core.text.tongue`; empty: English."""
        return self.opened.language if self.opened is not None else ""

    def __init__(self) -> None:
        self.opened: TurnOpened | None = None
        self.phase = Phase.NEW
        self.exit: Exit | None = None
        self.questions: list[Question] = []
        """What is not judged yet, the next one first. Empty outside `feed`, except where a journal ends."""
        self.timeline: list[TimelineEntry] = []
        self.items: list[Item] = []
        self.thoughts = ThoughtText()
        """What its model thought, as it came."""
        self.made: Mapping[str, Json] = {}
        """What the latest reply that made something beside text made."""
        self.reasoning_tokens: int = 0  # of the output tokens
        self.unsent: tuple[str, ...] = ()
        """Parameters that were wished and left out."""
        self.to_hand: tuple[str, ...] = ()
        """Calls of the client's that wait for the others of their reply."""
        self.step = 0
        self.calls_made: int = 0
        self.route_index = 0
        self.phase_since = 0
        """When the current phase began, ms."""
        self.life_at = 0  # when the last content came from the model, or the call began, ms
        self.wait_until = 0
        self.last_break: CallBroke | None = None
        """Why the current step's last call failed, until one succeeds."""
        self.failing: Failure | None = None
        self.attempts = 0  # failed calls of the current step
        self.failed_seconds = 0.0  # that they took
        self.restarts = 0  # that broke off the current step
        self.left = False
        """The process that ran it has ended in order, and no other has taken it over yet."""
        self.remedies: tuple[tuple[Failure, Remedy], ...] = ()
        self.chosen: dict[tuple[Failure, Remedy], int] = {}
        """How often each remedy was chosen in the current step."""
        self.input_tokens: int = 0
        self.output_tokens: int = 0
        self.cached_tokens: int = 0  # of the input tokens
        self.round = ToolRound(TurnSettings(routes=()), self.items)  # the tools of the current step
        self.compacted: Compacted | None = None
        self.kept_out: tuple[LeftOut, ...] = ()
        """What providers have refused of the conversation in this turn, and was left out with success."""
        self.leaving = Leaving()  # what is left out in this step, and how far the search has come
        self.draft = Draft(Segment("s0"))
        self.ask = Ask()
        self.troubles = TurnTroubles()
        self.closing: Exit | None = None
        """How the turn ends after the model's last words, if these are wanted now."""
        self.promised = ""
        """What the latest reply of the current step announced."""
        self.done_asked = 0  # how often the model was asked whether a reply is finished
        self.done_said: DoneSaid | None = None  # of the latest reply
        self.doubted: CallOver | None = None  # that reply
        self.steers: tuple[PersonItem, ...] = ()
        """What the person added and the model has not been told; at the end it must become a turn of its own."""
        self.withheld: frozenset[str] = NONE
        """Own tools that are not offered, because their calls broke off too often."""
        self.trying = False  # what earlier failures taught; until the first failure
        self.ids: dict[str, None] = {}  # of all tool calls of the turn

    @property
    def settings(self) -> TurnSettings:
        if self.opened is None:
            raise ProtocolError("the turn is not open")
        return self.opened.settings

    @property
    def deadline_at(self) -> int:
        """When the turn's own time is up, ms."""
        return (self.opened.at if self.opened else 0) + self.settings.turn_seconds * 1000

    @property
    def route(self) -> Route:
        if self.opened is None:
            raise ProtocolError("the turn is not open")
        return self.opened.settings.routes[self.route_index]

    @property
    def hurried(self) -> bool:
        """The model is asked again after it was silent for a whole limit: it is given less time, so that a remedy that does not help is seen soon."""
        silent = self.last_break is not None and self.last_break.cause in (BreakCause.NO_CONTENT, BreakCause.STALLED)
        return silent and not (self.remedies and self.remedies[-1][1] is Remedy.AS_USUAL)

    def may_be_silent(self, prompt_tokens: int = 0, slow: float = 1.0) -> Silence:
        """How long a call may say nothing. A long prompt takes its time to be read; `slow` is what an endpoint may take longer between two pieces."""
        settings, grown = self.settings, patience(prompt_tokens)
        found = settings.first_content_seconds * grown, settings.stall_seconds * grown * slow
        most = settings.remedy_seconds * grown
        return (min(found[0], most), min(found[1], most)) if self.hurried else found

    @property
    def steps_done(self) -> int:
        """Model steps that came to a good end."""
        return len([item for item in self.items if isinstance(item, AssistantItem)])

    @property
    def thinking(self) -> bool:
        """The model is reasoning, and has not begun to reply."""
        return self.phase is Phase.CALLING and bool(self.draft.reasoning) and not self.draft.said

    @property
    def naming(self) -> str:
        """The tool whose call is arriving right now, or an empty string."""
        names = self.draft.call_names
        return names[-1] if self.phase is Phase.CALLING and names else ""

    @property
    def arriving_chars(self) -> int:
        """How many characters of tool-call arguments have arrived in the current call."""
        return sum(len(piece) for call in self.draft.calls.values() for piece in call.pieces)

    @property
    def handed_calls(self) -> tuple[CallItem, ...]:
        """The calls that were handed to the API client, if the turn ended so."""
        if self.exit is None or self.exit.code is not ExitCode.HANDED_TO_CLIENT:
            return ()
        back = {item.call for item in self.items if isinstance(item, ToolItem)}
        last = next((item for item in reversed(self.items) if isinstance(item, AssistantItem)), None)
        return tuple(call for call in last.calls if call.call not in back) if last is not None else ()

    @property
    def reply_thoughts(self) -> Mapping[str, Json]:
        """What of the last reply's thoughts goes back to its model."""
        last = next((item for item in reversed(self.items) if isinstance(item, AssistantItem)), None)
        return last.thoughts if last is not None else {}

    @property
    def left_out(self) -> tuple[Suspect, ...]:
        """What of the conversation the model is not sent."""
        assert self.opened is not None
        if not (self.opened.left_out or self.kept_out or self.leaving.parts):
            return ()
        route = self.route
        known = fitting((*self.opened.left_out, *self.kept_out), route.endpoint, route.model)
        return tuple(dict.fromkeys((*known, *self.leaving.parts)))

    @property
    def foreign(self) -> tuple[str, ...]:
        """Where words of others stand that the model has read, each once; empty: nowhere."""
        assert self.opened is not None
        asked = (one.foreign for one in self.opened.input)
        added = (item.input.foreign for item in self.items if isinstance(item, PersonItem))
        return tuple(dict.fromkeys(one for one in (*self.opened.foreign, *asked, *added, *self.round.foreign) if one))

    @property
    def input_of_others(self) -> Sequence[InputMessage]:
        """Messages in which words of others stand."""
        assert self.opened is not None
        added = (item.input for item in self.items if isinstance(item, PersonItem))
        return [one for one in (*self.opened.input, *added) if one.foreign]

    @property
    def said(self) -> tuple[str, ...]:
        """What the person wrote themselves."""
        assert self.opened is not None
        added = (item.input for item in self.items if isinstance(item, PersonItem))
        own = (one for one in (*self.opened.input, *added) if not one.foreign and one.role == "user")
        before = (one for one in self.opened.own_history or () if one.get("role") == "user")
        return tuple(
            said_by_the_person(text_of(content))
            for content in (*(one.content for one in own), *(one.get("content") for one in before))
        )

    @property
    def reply_text(self) -> str:
        """What the reply says that is over, with what it went on from."""
        return self.draft.segment.text if self.ask.continues else self.draft.own_text

    @property
    def reply_calls(self) -> list[DraftCall]:
        return [call for _, call in sorted(self.draft.calls.items())]
