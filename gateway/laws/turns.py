"""The laws of turns: taken, in order, under one ownership, ended once, as they say they ended. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import orjson

from agent_core.failures.errors import ProtocolError, UnreadableJournal
from agent_core.journal.rows import decode, fold
from agent_core.machine.turn import Turn
from agent_core.store.evidence import LONG_MS, KeptRow, TurnEvidence
from agent_core.store.tables import row_id
from agent_core.store.turns.ops import LAST_AT_STEP_MS
from agent_core.store.turns.rows import FORGOTTEN, TurnRow, TurnState
from agent_core.text.wellformed import storable
from agent_core.turn.events import ApprovalAnswered, ToolStarted, TurnEnded, TurnOpened, Verdict
from agent_core.turn.invariants import ending_problems
from agent_core.turn.state import Activity
from gateway.laws.law import KEPT_MS, LATE_MS, UNCLAIMED_MS, Breach, Law, Viewpoint
from gateway.queues.inbox import NORMAL_LANE

BY_AGE = "[retention]"
"""What stands in the words about a journal that retention has removed: a week is the least that one is kept."""
ENDED, OPENED = TurnEnded.kind(), TurnOpened.kind()


def of_turn(seen: TurnEvidence, moment: Viewpoint) -> list[Breach]:
    """The laws that a turn breaks, but for what its chat shows."""
    return [
        *_messages(seen, moment),
        *_place(seen),
        *_owner(seen, moment),
        *_journal(seen, moment),
        *_end(seen),
        *_figures(seen, moment),
        *_conversation(seen, moment),
    ]


def breach(seen: TurnEvidence, law: Law, what: str, since: int = 0) -> Breach:
    """A law that this turn breaks."""
    chat = seen.session.key if seen.session is not None else ""
    return Breach(law, what, seen.turn.turn, chat, since or seen.turn.closed_at or seen.turn.opened_at)


def folded(seen: TurnEvidence) -> Turn | None:
    """The turn that its journal tells; None if it is not kept, or cannot be read."""
    if seen.turn.removed or seen.unreadable or not seen.journal:
        return None
    try:
        return fold((one.row.kind, one.row.body) for one in seen.journal)
    except (ProtocolError, UnreadableJournal):
        return None


def _messages(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """The messages with which it began are its own, and no others are."""
    turn = seen.turn
    if turn.first_message <= 0 or turn.last_message <= 0 or turn.removed or moment.now - turn.opened_at > KEPT_MS:
        return
    known = {one.id: one for one in seen.messages}
    for number in dict.fromkeys((turn.first_message, turn.last_message)):
        message = known.get(number)
        if message is None:
            yield breach(seen, Law.LOST, f"The message {number} with which turn {turn.turn} began is not there.")
        elif message.turn != turn.turn:
            whose = message.turn or "no turn"
            yield breach(
                seen, Law.LOST, f"Turn {turn.turn} began with message {number}, which says that {whose} has it."
            )
    if seen.heard_before:
        words = f"Message {seen.heard_before} has turn {turn.turn}, and the turn before it has heard it: it is answered twice."
        yield breach(seen, Law.TWICE, words)
    for message in seen.messages:
        if message.session != turn.session:
            yield breach(seen, Law.LOST, f"Message {message.id} of turn {turn.turn} is of another conversation.")
        if message.turn == turn.turn and not turn.first_message <= message.id <= turn.last_message:
            yield breach(
                seen, Law.LOST, f"Message {message.id} says that turn {turn.turn} has it, which does not know it."
            )
        mine = message.turn == turn.turn
        if mine and message.person and (message.account, message.person) not in asked_by(turn):
            yield breach(
                seen, Law.LOST, f"Whoever wrote message {message.id} is not among those who asked turn {turn.turn}."
            )
        if mine and message.lane != NORMAL_LANE:
            words = f"Message {message.id} of turn {turn.turn} is kept as one that no turn answers ({message.lane})."
            yield breach(seen, Law.LOST, words)
        if message.turn == turn.turn and message.state.value not in ("taken", "done"):
            yield breach(
                seen, Law.LOST, f"Message {message.id} of turn {turn.turn} is marked as {message.state.value}."
            )


def asked_by(turn: TurnRow) -> Sequence[tuple[str, str]]:
    """Who asked a turn, as its row says; nobody if that makes no sense."""
    try:
        return [(str(account), str(person)) for account, person in orjson.loads(turn.people or "[]")]
    except (orjson.JSONDecodeError, TypeError, ValueError):
        return []


def _place(seen: TurnEvidence) -> Iterator[Breach]:
    """Turns follow each other as their messages did."""
    turn, before = seen.turn, seen.before
    if turn.follows >= turn.number:
        words = (
            f"Turn {turn.number} of the conversation says that it follows turn {turn.follows}, which is no earlier one."
        )
        yield breach(seen, Law.MISPLACED, words)
    if before is None:
        return
    if before.number != turn.number - 1:
        words = f"Between turns {before.number} and {turn.number} of the conversation, {_turns(turn.number - before.number - 1)} not there."
        yield breach(seen, Law.HOLE, words)
    if 0 < turn.first_message < before.last_message:
        words = f"Turn {turn.turn} began with message {turn.first_message}, the turn before it with message {before.last_message}."
        yield breach(seen, Law.MISPLACED, words)
    if before.state is TurnState.OPEN:
        yield breach(seen, Law.MISPLACED, f"Turn {turn.turn} began before turn {before.turn} had ended.")


def _turns(count: int) -> str:
    return "one turn is" if count == 1 else f"{count} turns are"


def _owner(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """An open turn has an owner that lives, and ends in time; nothing was written by anybody else."""
    turn, session = seen.turn, seen.session
    if session is None:
        yield breach(seen, Law.UNREADABLE, f"The conversation of turn {turn.turn} is not there.")
        return
    epochs = [one.epoch for one in seen.journal]
    if any(later < before for before, later in pairwise(epochs)):
        yield breach(seen, Law.EPOCH, f"The epochs in the journal of turn {turn.turn} go backwards: {_runs(epochs)}.")
    newest = max([*epochs, *(one.epoch for one in seen.parts if one.session == session.session)], default=0)
    if epochs and any(one.epoch < epochs[0] for one in seen.parts if one.session == session.session):
        yield breach(seen, Law.EPOCH, f"A part of turn {turn.turn} was written in an epoch before the turn began.")
    if newest > session.epoch:
        words = f"Turn {turn.turn} was written to in epoch {newest}; its conversation is in epoch {session.epoch}."
        yield breach(seen, Law.EPOCH, words)
    if turn.state is not TurnState.OPEN or session.quarantined is not None:
        return
    if session.owner is None:
        yield breach(seen, Law.UNCLAIMED, f"Turn {turn.turn} is open, and its conversation is nobody's.")
    elif not moment.alive(session.owner):
        since = max(turn.opened_at, moment.dead_since(session.owner))
        if moment.now - since > UNCLAIMED_MS:
            words = f"Turn {turn.turn} is open, and process {session.owner}, which has it, is over.{moment.idle}"
            yield breach(seen, Law.UNCLAIMED, words, since)
    deadline = min(turn.deadline, _deadline(seen))
    if moment.now - deadline > moment.late:
        words = f"Turn {turn.turn} is open, and its time was over {_span(moment.now - deadline)} ago.{moment.idle}"
        yield breach(seen, Law.OVERDUE, words, deadline)


def _deadline(seen: TurnEvidence) -> int:
    """When its time is over by its journal; if that does not tell, by its row."""
    told = folded(seen)
    opened = told.opened if told is not None else None
    return opened.at + opened.settings.turn_seconds * 1000 if opened is not None else seen.turn.deadline


def _runs(epochs: Sequence[int]) -> str:
    return ", ".join(str(epoch) for epoch in dict.fromkeys(epochs))


def _span(ms: int) -> str:
    return f"{ms // 60_000} min" if ms < 2 * 3_600_000 else f"{ms // 3_600_000} h"


def _journal(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """It begins with its opening, has no hole, and each row is where it belongs."""
    turn, rows = seen.turn, seen.journal
    if turn.removed:
        yield from _removed(seen, moment)
        return
    if seen.unreadable:
        yield breach(seen, Law.UNREADABLE, f"The journal of turn {turn.turn} cannot be read: {seen.unreadable}")
        return
    if not rows:
        yield breach(seen, Law.HOLE, f"Turn {turn.turn} has no journal.")
        return
    if (hole := _hole(turn, rows)) is not None:
        yield breach(
            seen, Law.HOLE, f"Row {hole} of the journal of turn {turn.turn} is not there, or not in its place."
        )
        return
    try:
        events = [decode(one.row.kind, one.row.body) for one in rows]
        fold((one.row.kind, one.row.body) for one in rows)
    except (ProtocolError, UnreadableJournal) as error:
        yield breach(seen, Law.UNREADABLE, f"The journal of turn {turn.turn} does not fit together: {error}.")
        return
    intended, begun = {one.call for one in seen.calls}, [one.call for one in events if isinstance(one, ToolStarted)]
    for one in events:
        if isinstance(one, ApprovalAnswered) and one.verdict is not Verdict.EXPIRED and not one.by:
            words = (
                f"In turn {turn.turn}, call {one.call} was decided ({one.verdict.value}), and nobody is named who did."
            )
            yield breach(seen, Law.UNREADABLE, words)
    missing = [call for call in begun if call not in intended]
    if missing:
        words = f"Of turn {turn.turn}, {len(missing)} tool call(s) were begun and are not recorded as intended: {missing[0]}."
        yield breach(seen, Law.LOST, words)
    yield from _calls(seen)
    for call in sorted(intended.difference(begun)):
        yield breach(
            seen, Law.LOST, f"Tool call {call} is recorded for turn {turn.turn}, whose journal does not know it."
        )


def _removed(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """What says that it is removed is, all at once; and only what somebody did not want to be kept, or what is old."""
    turn, rows = seen.turn, seen.journal
    why = "is forgotten" if turn.removed == FORGOTTEN else "says that its journal is removed"
    if rows:
        yield breach(seen, Law.UNREADABLE, f"Turn {turn.turn} {why}, and {len(rows)} rows of it are there.")
    if turn.removed == FORGOTTEN and seen.parts:
        words = f"Turn {turn.turn} is forgotten, and {len(seen.parts)} parts of it are there."
        yield breach(seen, Law.UNREADABLE, words)
    if BY_AGE in turn.removed and turn.closed_at is not None and 0 <= moment.now - turn.closed_at < KEPT_MS:
        yield breach(seen, Law.HOLE, f"The journal of turn {turn.turn} was removed for its age, and the turn is young.")


def _calls(seen: TurnEvidence) -> Iterator[Breach]:
    """A call is recorded as what it is: by its tool and its key a program knows it again that has carried it out."""
    turn, told = seen.turn.turn, folded(seen)
    names = {one.call: one.name for one in told.timeline if isinstance(one, Activity)} if told is not None else {}
    for one in seen.calls:
        if one.tool != storable(names.get(one.call, one.tool)) or one.key != f"{turn}:{one.call}":
            words = f"Tool call {one.call} of turn {turn} is recorded as another one than in its journal."
            yield breach(seen, Law.UNREADABLE, words)


def _hole(turn: TurnRow, rows: Sequence[KeptRow]) -> int | None:
    """The first place in the journal whose row is missing or another's."""
    for number, one in enumerate(rows):
        if one.row.seq != number or one.id != row_id(turn.first_message, number):
            return number
    return None if rows[0].row.kind == OPENED else 0


def _end(seen: TurnEvidence) -> Iterator[Breach]:
    """Exactly one exit, as the last row of a turn that is closed; and the row of the turn says the same."""
    turn, rows = seen.turn, seen.journal
    if turn.removed or seen.unreadable or not rows:
        return
    ends = [number for number, one in enumerate(rows) if one.row.kind == ENDED]
    if turn.state is TurnState.OPEN:
        if ends:
            yield breach(seen, Law.UNENDED, f"The journal of turn {turn.turn} has its exit, and the turn is open.")
        return
    aside = seen.session is not None and seen.session.quarantined is not None
    if ends != [len(rows) - 1] and not (aside and not ends):
        words = f"Turn {turn.turn} is closed, and its journal has {len(ends)} exits"
        yield breach(seen, Law.UNENDED, f"{words}{', not as its last row' if len(ends) == 1 else ''}.")
        return
    if not turn.exit or turn.closed_at is None:
        yield breach(seen, Law.UNENDED, f"Turn {turn.turn} is closed, and does not say how or when.")
    if not ends:
        return
    try:
        ending = decode(rows[-1].row.kind, rows[-1].row.body)
    except UnreadableJournal:
        return  # told as such
    if isinstance(ending, TurnEnded) and ending.exit.code.value != turn.exit:
        words = f"Turn {turn.turn} ended with {turn.exit}, and with {ending.exit.code.value} in its journal."
        yield breach(seen, Law.OTHER_EXIT, words)


def _figures(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """What the row of a turn says that it used is what its journal says; and its end looks like one."""
    turn, told = seen.turn, folded(seen)
    if told is None or told.exit is None or turn.state is not TurnState.CLOSED:
        return
    yield from _told_of(seen, told, moment)
    if (used := (turn.input_tokens, turn.output_tokens)) != (told.input_tokens, told.output_tokens) and turn.model:
        words = f"Turn {turn.turn} says that it used {used[0]} and {used[1]} tokens, its journal {told.input_tokens} and {told.output_tokens}."
        yield breach(seen, Law.SPENT, words)
    for problem in ending_problems(told):
        yield breach(seen, Law.UNENDED, f"Of turn {turn.turn}: {problem}.")


def _conversation(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """What a conversation says of its turns there is: from which on they are told, which the next one follows, when the last one was. Asked of its last."""
    turn, session = seen.turn, seen.session
    if session is None or session.quarantined is not None or turn.number != seen.last:
        return
    for name, number in (("is told from", session.since), ("goes on behind", session.tip)):
        if number > seen.last:
            words = f"The conversation of turn {turn.turn} {name} turn {number}, and has {seen.last}: what is said in it is not told."
            yield breach(seen, Law.MISPLACED, words)
    if turn.opened_at - session.last_at >= LAST_AT_STEP_MS and turn.opened_at >= moment.ours_since:
        words = f"The conversation of turn {turn.turn} says that nobody has spoken in it since."
        yield breach(seen, Law.MISPLACED, words)
    if not _is_table(session.policy):
        words = f"The settings of the conversation of turn {turn.turn} cannot be read, and do not count."
        yield breach(seen, Law.UNREADABLE, words)


def _is_table(policy: str | None) -> bool:
    try:
        return isinstance(orjson.loads(policy or "{}"), dict)
    except orjson.JSONDecodeError:
        return False


def _told_of(seen: TurnEvidence, told: Turn, moment: Viewpoint) -> Iterator[Breach]:
    """When a turn began and ended, by which model and for which key, its row says as its journal does: both are written at once. Earlier versions
    asked the clock for each."""
    turn, opened, ended = seen.turn, told.opened, seen.journal[-1].row.at
    if opened is None:
        return
    ours = ended >= moment.ours_since
    # That it has ended is stored a moment later, after whatever still ran was stopped.
    least, most = (0, LATE_MS) if ours else (-LONG_MS, LONG_MS)
    if turn.closed_at is not None and not least <= turn.closed_at - ended < most:
        words = f"Turn {turn.turn} says that it ended at another time than its journal."
        yield breach(seen, Law.MISPLACED, words, ended)
    if abs(turn.opened_at - opened.at) > (0 if ours else LONG_MS):
        yield breach(seen, Law.MISPLACED, f"Turn {turn.turn} says that it began at another time than its journal.")
    if ours and turn.deadline != opened.at + opened.settings.turn_seconds * 1000:
        words = f"Turn {turn.turn} says that its time was over at another time than its journal."
        yield breach(seen, Law.MISPLACED, words)
    if turn.model and (turn.model, turn.key) != (told.route.model, opened.key):
        yield breach(seen, Law.UNREADABLE, f"Turn {turn.turn} names another model or key than its journal.")
