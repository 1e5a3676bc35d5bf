"""What must hold after a scenario, whatever happened in it. Each broken law is a sentence."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import Protocol

from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.journal.replay import replay
from agent_core.journal.replaywords import difference_words
from agent_core.journal.rows import completed, decode, turn_of
from agent_core.machine.turn import Turn
from agent_core.settings import LadderCounts
from agent_core.store.turns.rows import JournalRow, timed
from agent_core.tools.base import EffectClass
from agent_core.turn.events import Event, RemedyChosen, TakenOver, ToolReturned, ToolStarted, TurnEnded
from agent_core.turn.state import Segment, ToolItem
from agent_core.turn.transcript import closed_turn_messages, problems, repaired
from agent_core.turn.view import BubbleKind, View, view
from gateway.setaside.takeup import SET_ASIDE
from tests.journalrows import OF_TURN
from tests.sim.bodies import whole
from tests.sim.people import TEXT, Said
from tests.sim.scenario import TURN, Result
from tests.sim.tools import EFFECTS, PUT, Runs
from tests.sim.world import EPOCH_MS

FORBIDDEN = frozenset(
    {"lane.failed", "turn.driver_failed", "turn.work_ignores_cancellation", "turn.unreadable", "turn.overtaken",
     "invariant.broken"}
)  # fmt: skip
SEEN_WITHIN = 25.0
"""Seconds after its turn's end within which a person who looks must have seen it (their own pauses included)."""


CALLS_A_STEP = 1 + sum(astuple(LadderCounts()))
"""Each class of failure has a ladder of its own: a step in which every one of them fails uses up all of them."""

LONG_AWAY_SECONDS = 30.0


class Judged(Protocol):
    """What is judged of a scenario, whichever it is."""

    @property
    def runs(self) -> Runs: ...

    @property
    def storage(self) -> Sequence[tuple[float, float, bool]]: ...


def broken(result: Result) -> list[str]:
    """The laws that `result` breaks, in words."""
    database = sqlite3.connect(f"file:{result.path}?mode=ro", uri=True)
    try:
        found = list(_of_the_whole(result))
        turns: dict[str, Turn] = {}
        for (turn,) in database.execute("SELECT turn FROM turns").fetchall():
            found += of_a_turn(database, turn, turns, result)
        if not any(happens for _, _, happens in result.plan.storage):
            # Who was told "not stored" about a message that was stored offers it again later, and others may have passed.
            found += of_the_order(database)
        found += _of_the_budgets(database, result)
        for said in result.plan.said:
            found += of_a_message(database, said, turns)
            found += _in_time(database, said, result)
    finally:
        database.close()
    return found


def _of_the_whole(result: Result) -> Iterator[str]:
    yield from result.violations
    for repeated in result.runs.twice():
        yield f"a tool with effects was run twice: {repeated}"
    troubled = bool(result.plan.storage)
    for event in result.logged:
        if event["event"] in FORBIDDEN and not troubled:
            yield f"logged {event['event']}: {event}"
    ended = Counter(event["turn"] for event in result.logged if event["event"] == "turn.ended")
    for turn, count in ended.items():
        if count > 1:
            yield f"turn {turn} was logged as ended {count} times"


def _of_the_budgets(database: sqlite3.Connection, result: Result) -> Iterator[str]:
    """What is held is what calls under way hold, and after an orderly end with its storage there, that is nothing."""
    held: Counter[tuple[str, int]] = Counter()
    for call, pots, tokens in database.execute("SELECT call, pots, held_tokens FROM reservations WHERE state = 'open'"):
        for scope, window in json.loads(pots):
            held[scope, window] += tokens
        if not result.plan.storage:
            yield f"something is still held for call {call}"
    for scope, window, spent, holds in database.execute(
        'SELECT scope, "window", spent_tokens, held_tokens FROM budgets'
    ):
        if holds != held[scope, window] or spent < 0:
            yield f"budget {scope} says that {holds} are held and {spent} spent; its calls hold {held[scope, window]}"


def of_the_order(database: sqlite3.Connection) -> Iterator[str]:
    """Within a session, turns begin in the order in which their messages arrived."""
    rows = database.execute(
        "SELECT t.session, t.turn, i.arrival FROM turns t JOIN inbox i ON i.turn = t.turn ORDER BY t.session, t.number"
    ).fetchall()
    for (session, _, before), (other, turn, after) in pairwise(rows):
        if session == other and after < before:
            yield f"turn {turn} of {session} overtook an earlier message"


def _journal(database: sqlite3.Connection, turn: str) -> list[tuple[int, str, bytes]]:
    """The rows of a turn's journal: number, kind and whole body."""
    rows = database.execute(f"SELECT seq, kind, body, at FROM journal WHERE {OF_TURN} ORDER BY seq", (turn,))
    return [(seq, kind, whole(database, timed(body, at))) for seq, kind, body, at in rows.fetchall()]


def of_a_turn(database: sqlite3.Connection, turn: str, turns: dict[str, Turn], result: Judged) -> Iterator[str]:
    """The laws that one turn breaks; folded, it is put into `turns`."""
    rows = _journal(database, turn)
    state, exit_code = database.execute("SELECT state, exit FROM turns WHERE turn = ?", (turn,)).fetchone()
    if state != "closed":
        yield f"turn {turn} is still {state}"
        return
    if [row[0] for row in rows] != list(range(len(rows))):
        yield f"turn {turn} has holes in its journal"
    events = [decode(row[1], row[2]) for row in rows]
    ends = [event for event in events if isinstance(event, TurnEnded)]
    if len(ends) != 1 or events[-1] is not ends[0]:
        yield f"turn {turn} has {len(ends)} exits in its journal: {[row[1] for row in rows]}"
        return
    if ends[0].exit.code.value != exit_code:
        yield f"turn {turn} ended with {ends[0].exit.code} in the journal and with {exit_code} in the table"
    journal = [JournalRow(seq, kind, body, event.at) for (seq, kind, body), event in zip(rows, events, strict=True)]
    yield from (f"turn {turn}, judged again: {difference_words(one)}" for one in replay(journal).differences)
    folded = turn_of(completed(events))
    turns[turn] = folded
    yield from _of_its_tools(turn, events)
    yield from _of_what_is_not_known(turn, events, folded)
    shelf = Counter(result.runs.shelf.decode().splitlines())
    for item in folded.items:
        key = f"{turn}:{item.call}" if isinstance(item, ToolItem) else ""
        if shelf[key] > 1:
            yield f"{key} was put on the shelf {shelf[key]} times"
        if isinstance(item, ToolItem) and item.text.startswith(PUT) and not shelf[key]:
            yield f"{key} was said to be on the shelf, and is not there"
    yield from (f"turn {turn} leaves an invalid history: {p}" for p in problems(repaired(closed_turn_messages(folded))))
    yield from _of_its_ending(turn, folded)
    longest = max((end - begin for begin, end, _ in result.storage), default=0.0)
    if longest < LONG_AWAY_SECONDS:  # a turn pauses for as long as nothing can be stored
        yield from _of_what_takes_too_long(turn, folded)
    for event in events:
        if isinstance(event, RemedyChosen) and event.number > _most(event):
            yield f"turn {turn} used {event.remedy} against {event.failure} {event.number} times in one step"
    restarts = sum(isinstance(event, TakenOver) for event in events)
    if folded.calls_made > CALLS_A_STEP * (folded.steps_done + 1) + 2 * restarts:
        yield f"turn {turn} called the model {folded.calls_made} times for {folded.steps_done} good steps"


def _most(event: RemedyChosen) -> int:
    use = event.remedy.recipe.against.get(event.failure)
    return use.times(LadderCounts()) if use is not None else 1


def _of_its_tools(turn: str, events: Sequence[Event]) -> Iterator[str]:
    returned = Counter(event.call for event in events if isinstance(event, ToolReturned))
    for call, count in returned.items():
        if count > 1:
            yield f"call {call} of {turn} came back {count} times"
    open_calls: set[str] = set()
    for event in events:
        if isinstance(event, ToolStarted):
            open_calls.add(event.call)
        elif isinstance(event, ToolReturned) and not event.refusal.value and event.call not in open_calls:
            yield f"call {event.call} of {turn} came back before it was journalled as started"


def _of_what_is_not_known(turn: str, events: Sequence[Event], folded: Turn) -> Iterator[str]:
    """A tool with effects that was under way when its process died is told to the model and to the person."""
    effects = {name for name, effect in EFFECTS.items() if effect is EffectClass.EFFECT}
    names = {item.call: item.name for item in folded.items if isinstance(item, ToolItem) and item.name in effects}
    told = {item.call for item in folded.items if isinstance(item, ToolItem) and "may have been done" in item.text}
    seen = {bubble.key for bubble in view(folded, folded.phase_since).bubbles if bubble.kind is BubbleKind.NOTE}
    begun: set[str] = set()
    for event in events:
        if isinstance(event, ToolStarted):
            begun.add(event.call)
        elif isinstance(event, ToolReturned):
            begun.discard(event.call)
        elif isinstance(event, TakenOver):
            for call in begun & {*names}:
                if call not in told or f"{call}.unsure" not in seen:
                    yield f"nobody was told that {names[call]} ({call} of {turn}) may have been done"
            begun.clear()


def _of_its_ending(turn: str, folded: Turn) -> Iterator[str]:
    assert folded.exit is not None
    shown = view(folded, folded.phase_since)
    kinds = [bubble.kind for bubble in shown.bubbles]
    if shown.open or BubbleKind.STATUS in kinds:
        yield f"turn {turn} is over and looks as if it went on"
    match folded.exit.code:
        case ExitCode.ANSWERED:
            if kinds.count(BubbleKind.ANSWER) != 1 or BubbleKind.NOTICE in kinds:
                yield f"turn {turn} was answered, and shows {kinds}"
        case ExitCode.HANDED_TO_CLIENT:
            pass
        case _:
            if kinds.count(BubbleKind.NOTICE) != 1 or not shown.bubbles[-1].text.strip():
                yield f"turn {turn} ended with {folded.exit.code} and no notice"


def _of_what_takes_too_long(turn: str, folded: Turn) -> Iterator[str]:
    """Endings that a turn comes to here only if something hangs or breaks in the gateway itself."""
    assert folded.exit is not None
    if folded.exit.code is ExitCode.TIME_LIMIT:
        yield f"turn {turn} ran into its own time limit: nothing here takes that long unless something hangs"
    # What is taken up by two processes in a row that are killed soon afterwards cannot be told from what kills them.
    if isinstance(folded.exit, exits.InternalError) and folded.exit.detail != SET_ASIDE:
        yield f"turn {turn} ended with an internal error ({folded.exit.reference})"


def _words(shown: View) -> list[tuple[str, str, str]]:
    return [(b.key, b.kind.value, b.text) for b in shown.bubbles if b.kind in TEXT]


def of_a_message(database: sqlite3.Connection, said: Said, turns: dict[str, Turn]) -> Iterator[str]:
    """The laws that concern one message and what its person saw."""
    yield from (f"message {said.key}: {complaint}" for complaint in said.complaints)
    if len({ticket.inbox_id for ticket in said.tickets}) > 1:
        yield f"message {said.key} was stored more than once: {said.tickets}"
    if said.ended is None:
        yield f"message {said.key} has no end"
        return
    if not said.ended.view.bubbles and not said.ended.handed:
        yield f"message {said.key} ended in silence ({said.ended.exit.code})"
    inbox = said.tickets[0].inbox_id
    answered = [
        row[0] for row in database.execute("SELECT turn FROM inbox WHERE id = ? AND turn IS NOT NULL", (inbox,))
    ]
    if said.ended.turn and answered != [said.ended.turn]:
        yield f"message {said.key} saw the end of {said.ended.turn} and is part of {answered}"
    if not said.ended.turn:
        if answered:
            yield f"message {said.key} was told that it was not run, and is part of {answered}"
        return
    folded = turns.get(said.ended.turn)
    if folded is None:
        return
    journalled = view(folded, folded.phase_since)
    if _words(journalled) != _words(said.ended.view):
        yield f"message {said.key} was shown {_words(said.ended.view)}, and the journal has {_words(journalled)}"
    texts = {bubble.key: bubble.text for bubble in journalled.bubbles}
    for (turn, bubble), text in said.settled.items():
        if turn == said.ended.turn and texts.get(bubble) != text:
            yield f"message {said.key} was shown bubble {bubble} as final, and it is not in the journal as it was shown"
    yield from _of_what_was_taken_back(database, said, turns)


def _of_what_was_taken_back(database: sqlite3.Connection, said: Said, turns: dict[str, Turn]) -> Iterator[str]:
    """What was shown goes away only if it was found to be a thought (`TextTakenBack`), and that is journalled: soon, as text is, so that it may be lost
    with its process. Then it stands there again, as if the process had died a moment earlier."""
    for (turn, bubble), (text, at) in said.taken_back.items():
        folded = turns.get(turn)
        found = folded.timeline if folded is not None else ()
        events = [decode(kind, body) for _, kind, body in _journal(database, turn)]
        if not lost_with_its_process(events, at) and not any(
            isinstance(one, Segment) and one.key == bubble and one.final and not one.text for one in found
        ):
            yield f"bubble {bubble} of {turn} was {text!r} and went away, and was no thought"


def lost_with_its_process(events: Sequence[Event], at: float) -> bool:
    """Whether nothing is stored of what a turn came to from `at` (seconds of virtual time) on until it was taken over: its journal is in order, so what
    was noted just before may be lost as well."""
    seen = EPOCH_MS + round(at * 1000)
    later = next((event for event in events if event.at >= seen), None)
    return isinstance(later, TakenOver)


def _in_time(database: sqlite3.Connection, said: Said, result: Result) -> Iterator[str]:
    if said.ended is None or not said.ended.turn:
        return
    opened, closed = database.execute(
        "SELECT opened_at, closed_at FROM turns WHERE turn = ?", (said.ended.turn,)
    ).fetchone()
    trouble = sum(end - begin for begin, end, _ in result.plan.storage)
    if (closed - opened) / 1000 > TURN.turn_seconds + 10 + trouble + 6 * len(result.plan.kills):
        yield f"turn {said.ended.turn} took {(closed - opened) / 1000} s of virtual time"
    same = sum(other.session == said.session for other in result.plan.said)
    limit = same * (TURN.turn_seconds + 10) + trouble + 20 * len(result.plan.kills) + SEEN_WITHIN
    if said.ended_at - said.accepted_at > limit:
        yield f"message {said.key} had its end after {said.ended_at - said.accepted_at:.0f} s"
    late = said.ended_at - (closed - EPOCH_MS) / 1000
    if late > SEEN_WITHIN + trouble + 35 * len(result.plan.kills):
        yield f"message {said.key} was shown its end {late:.1f} s after the turn was over"
