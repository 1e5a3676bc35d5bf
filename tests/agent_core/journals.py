"""Journals as a driver writes them: a machine that is answered, in batches, its decisions behind the events that led to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.journal.rows import encode, merged, recorded
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage
from agent_core.settings import TurnSettings
from agent_core.store.turns.rows import JournalRow
from agent_core.tools.base import ToolStatus
from agent_core.turn.effects import AskApproval, AskDone, CallModel, Compact, Effect, EndTurn, Record, RunTool, Wait
from agent_core.turn.events import (
    ApprovalAnswered,
    CallBroke,
    Compacted,
    DeadlinePassed,
    DoneSaid,
    Event,
    ReasoningArrived,
    Refusal,
    ReplyFinished,
    Steered,
    StopRequested,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    Verdict,
    WaitEnded,
)
from tests.agent_core.turns import SETTINGS, opened


@dataclass
class Writer:
    """Plays the driver for a machine: takes batches, answers nothing by itself, and keeps the journal."""

    settings: TurnSettings = SETTINGS
    turn: Turn = field(default_factory=Turn)
    events: list[Event] = field(default_factory=list[Event])
    wanted: list[Effect] = field(default_factory=list[Effect])
    now: int = 1_000
    causes: Sequence[BreakCause] = tuple(BreakCause)
    """For which model calls break."""

    def __post_init__(self) -> None:
        self.take(opened(self.settings, self.now))

    def tick(self, milliseconds: int = 10) -> int:
        self.now += milliseconds
        return self.now

    def take(self, *batch: Event) -> None:
        """Feed a batch as `TurnDriver._take` does: all events first, then what they lead to, in order."""
        effects: list[Effect] = []
        for event in batch:
            effects += self._feed(event)
        while effects:
            effect = effects.pop(0)
            match effect:
                case Record():
                    pass  # it stands behind its fact
                case RunTool():
                    effects += self._feed(ToolStarted(at=self.now, call=effect.call))
                    self.wanted.append(effect)
                case EndTurn():
                    self.events.append(TurnEnded(at=self.now, exit=effect.exit, answer=effect.answer))
                    self.wanted = []
                case CallModel() | Wait() | Compact() | AskDone() | AskApproval():
                    self.wanted.append(effect)
                case _:
                    pass

    def _feed(self, event: Event) -> list[Effect]:
        if self.turn.exit is not None or self.turn.misfit(event):
            return []
        effects = self.turn.feed(event)
        self.events += recorded(event, effects)
        return effects

    @property
    def over(self) -> bool:
        return self.turn.exit is not None

    def rows(self) -> list[JournalRow]:
        return rows_of(merged(self.events))


def rows_of(events: list[Event]) -> list[JournalRow]:
    """`events` as rows, numbered anew."""
    written = [encode(event) for event in events]
    return [JournalRow(seq, row.kind, row.body, row.at) for seq, row in enumerate(written)]


TEXTS = [
    "a", "Hello there. ", "All is done now, and it works.", "\n", "Now dispatching task 5:", "x" * 30, "Größe: 12 € 😀", "Ich prüfe das jetzt:",
    "现在检查文件：", "Mail me at ann@example.org, 10:30 on 2026-03-04.", "I have written 3 files to /tmp/abc123/out.txt.",
]  # fmt: skip
ARGUMENTS = [
    "{}",
    '{"path": "notes/ann.txt", "content": "Dear Ann,\\nall \\u00e4 is \\ud83d\\ude00 well", "n": 10, "ok": true}',
    '{"a": "cut',
    "",
    "not json",
    '{"a": 1}',
]
RESULTS = [
    "result",
    "took 12 ms at 10:31:02",
    "took 15 ms at 10:31:09",
    "Ann's file was not found",
    "id 123e4567-e89b-12d3-a456-426614174000",
]

# Made once: a strategy that is made where it is drawn from is looked through each time, which took a third of the time of drawing.
LENGTH = st.integers(1, 25)
IN_TEN, IN_TWENTY, IN_THREE = st.integers(0, 9), st.integers(0, 19), st.integers(0, 2)
SAID, GIVEN, GOT = st.sampled_from(TEXTS), st.sampled_from(ARGUMENTS), st.sampled_from(RESULTS)
SAYINGS = st.lists(SAID, max_size=2)
LAST = st.sampled_from([StopRequested, DeadlinePassed])
WHETHER, FINISHED = st.booleans(), st.sampled_from([True, False, None])
VERDICTS = st.sampled_from(list(Verdict))
REFUSALS = st.sampled_from([Refusal.NONE, Refusal.NONE, Refusal.NONE, Refusal.UNKNOWN_TOOL])
STATUSES = st.sampled_from([ToolStatus.OK, ToolStatus.FAILED])
CALLS = st.sampled_from([0, 0, 1, 2])
NAMES = st.sampled_from(["read", "write", "send", "todo", "danger", "nonsense"])
DETAILS = st.sampled_from(["", "Ann's quota is used up"])
REASONS = st.sampled_from(["stop", "tool_calls", "length", "content_filter", ""])


@cache
def place_in(length: int) -> st.SearchStrategy[int]:
    return st.integers(0, length - 1)


@cache
def breaks(causes: Sequence[BreakCause]) -> st.SearchStrategy[BreakCause]:
    """Why a call breaks while its process lives."""
    return st.sampled_from([one for one in causes if one is not BreakCause.RESTARTED])


@st.composite
def journals(
    draw: st.DrawFn,
    settings: TurnSettings = SETTINGS,
    ended: bool = True,
    causes: Sequence[BreakCause] = tuple(BreakCause),
) -> Writer:
    """Any journal that a driver may write, to its end if `ended`."""
    writer = Writer(settings, causes=causes)
    for _ in range(draw(LENGTH)):
        if writer.over:
            break
        batch = _answer(draw, writer)
        if draw(IN_TEN) == 0:
            batch.append(Steered(at=writer.tick(), input=InputMessage(draw(SAID))))
        if draw(IN_TWENTY) == 0:
            batch = [TakenOver(at=writer.tick(), epoch=2)]
            writer.wanted = []
        writer.take(*batch)
    if ended and not writer.over:
        last = draw(LAST)
        writer.take(last(at=writer.tick()))
    return writer


def _answer(draw: st.DrawFn, writer: Writer) -> list[Event]:
    """What happens next to one of the things that the turn waits for."""
    if not writer.wanted:
        return [StopRequested(at=writer.tick())]
    effect = writer.wanted.pop(draw(place_in(len(writer.wanted))))
    match effect:
        case CallModel():
            return _reply(draw, writer, effect.number)
        case RunTool():
            return [_result(draw, writer, effect.call)]
        case Wait():
            return [WaitEnded(at=writer.tick(round(effect.seconds * 1000)))]
        case Compact():
            return [Compacted(at=writer.tick(), summary="Ann asked for a file.", helped=draw(WHETHER))]
        case AskDone():
            return [DoneSaid(at=writer.tick(), finished=draw(FINISHED))]
        case AskApproval():
            verdict = draw(VERDICTS)
            return [ApprovalAnswered(at=writer.tick(), call=effect.call, verdict=verdict, by="ann")]
        case _:
            raise AssertionError(effect)


def _result(draw: st.DrawFn, writer: Writer, call: str) -> Event:
    refusal = draw(REFUSALS)
    status = ToolStatus.REFUSED if refusal else draw(STATUSES)
    text = draw(GOT)
    return ToolReturned(at=writer.tick(), call=call, status=status, text=text, refusal=refusal)


def _reply(draw: st.DrawFn, writer: Writer, number: int) -> list[Event]:
    events: list[Event] = []
    if draw(WHETHER):
        events.append(ReasoningArrived(at=writer.tick(), text=draw(SAID)))
    texts = draw(SAYINGS)
    events += [TextArrived(at=writer.tick(), text=text) for text in texts]
    if draw(IN_TEN) == 0:
        events += [TextTakenBack(at=writer.tick()), TextArrived(at=writer.tick(), text=draw(SAID))]
    for index in range(draw(CALLS)):
        name = draw(NAMES)
        events.append(ToolCallNamed(at=writer.tick(), index=index, call=f"k{number}_{index}", name=name))
        events.append(ToolArgumentsArrived(at=writer.tick(), index=index, text=draw(GIVEN)))
    if draw(IN_TEN) == 0:
        events.append(ToolCallCut(at=writer.tick(), name="write"))
    for event in events:  # content goes into the machine as it comes, not by the batch
        writer.take(event)
    if draw(IN_THREE) == 0:
        cause = draw(breaks(tuple(writer.causes)))
        detail = draw(DETAILS)
        return [CallBroke(at=writer.tick(), cause=cause, waited_seconds=3, detail=detail)]
    return [ReplyFinished(at=writer.tick(), reason=draw(REASONS))]
