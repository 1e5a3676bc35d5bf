"""The laws of messages, budgets, files and times. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise, product

from adapters.contract.base import FromChat
from adapters.contract.contents import decode
from adapters.platforms import platform_of
from agent_core.failures.shortage import SHORTAGES
from agent_core.limits.budgets import Amount
from agent_core.limits.spend import Measure
from agent_core.messages import words_of
from agent_core.store.evidence import (
    LONG_MS,
    MOMENT_MS,
    ClaimedTime,
    KeptPart,
    LedgerEvidence,
    MessageEvidence,
    PieceCount,
    PieceEvidence,
)
from agent_core.store.inbox.rows import InboxState, UnreadRow
from agent_core.store.keeping.rows import ForgetRow
from agent_core.store.schedules.rows import ScheduleRow, ScheduleState
from agent_core.store.turns.rows import TurnState
from gateway.commands.registry import BY_NAME
from gateway.laws.law import AHEAD_MS, KEPT_MS, UNCLAIMED_MS, Breach, Law, Viewpoint
from gateway.laws.shown import OPEN
from gateway.queues.inbox import (
    COMMAND_LANE,
    NO_MODEL,
    NORMAL_LANE,
    NOT_OPENED,
    REFUSED_LANE,
    UnreadableMessage,
    chat_of,
)
from gateway.queues.inbox import decode as decode_message
from gateway.schedule import schedules, times
from gateway.schedule.schedules import TASK, UnreadablePlan
from gateway.schedule.times import BadTime, Once
from gateway.setaside.takeup import SET_ASIDE

MUST_BE_TOLD = (NOT_OPENED, NO_MODEL, SET_ASIDE, *SHORTAGES)
"""Why messages are given up by the gateway itself, and not because somebody wanted it."""
_COUNTED = {Measure.TOKENS: "tokens", Measure.MONEY: "billionths of the currency"}
QUARTER_MS = 15 * 60_000
ZONES_MS = 3 * 3_600_000
"""By so much the clocks of a zone may have been set otherwise since a time was reckoned."""


def of_message(seen: MessageEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """The laws that a message breaks."""
    message = seen.message
    if seen.session is None:
        yield _of(seen, Law.UNREADABLE, f"The conversation of message {message.id} is not there.")
    if message.arrival != message.id:
        words = f"Message {message.id} came as number {message.arrival} of its conversation, which is another place."
        yield _of(seen, Law.MISPLACED, words)
    if message.state is not InboxState.DROPPED:  # of those nobody reads more than their keys
        yield from _body(seen)
    match message.state:
        case InboxState.NEW:
            yield from _waits(seen, moment)
        case InboxState.TAKEN:
            yield from _taken(seen)
        case InboxState.DONE:
            yield from _done(seen, moment)
        case InboxState.DROPPED:
            yield from _dropped(seen)


def _body(seen: MessageEvidence) -> Iterator[Breach]:
    """What a message says is its own: by its key it is known when it is brought again."""
    message = seen.message
    try:
        inbound = decode_message(message.body)
    except UnreadableMessage:
        yield _of(seen, Law.UNREADABLE, f"What is stored of message {message.id} cannot be read.")
        return
    if (inbound.account, inbound.platform_key) != (message.account, message.platform_key):
        words = f"Message {message.id} is kept under another key than its own: if it is brought again, it is answered twice."
        yield _of(seen, Law.TWICE, words)


def looks_around(seen_state: InboxState, turn: str | None, lane: str) -> bool:
    """Whether it has to be found out if a running turn has heard the message."""
    return seen_state in (InboxState.DONE, InboxState.NEW) and turn is None and lane == NORMAL_LANE


def _of(seen: MessageEvidence, law: Law, what: str) -> Breach:
    chat = seen.session.key if seen.session is not None else ""
    return Breach(law, what, str(seen.message.id), chat, seen.message.received_at)


def _waits(seen: MessageEvidence, moment: Viewpoint) -> Iterator[Breach]:
    message, session = seen.message, seen.session
    # Numbers only grow: whatever it says itself, it came before those that came after it.
    came = message.received_at if seen.came_by is None else min(message.received_at, seen.came_by)
    if message.turn is not None:
        words = f"Message {message.id} waits for a turn, and says that turn {message.turn} has it."
        yield _of(seen, Law.LOST, words)
    if seen.heard is not None and seen.heard.state is TurnState.CLOSED:
        words = f"Message {message.id} waits for a turn, and turn {seen.heard.turn}, which is over, has heard it."
        yield _of(seen, Law.TWICE, words)
    if session is not None and session.quarantined is not None:
        if moment.now - came > moment.late:
            words = f"Message {message.id} waits in a conversation that was set aside, and no turn will take it."
            yield _of(seen, Law.STRANDED, words)
        return
    if seen.passed and message.lane == NORMAL_LANE:
        words = f"Message {message.id} waits, and message {seen.passed}, which came later, has its turn."
        yield _of(seen, Law.OVERTAKEN, words)
        return
    waited = moment.now - came
    if seen.open_turn is not None and message.lane == NORMAL_LANE:
        waited = min(waited, moment.now - seen.open_turn.deadline)  # it waits for that
    if waited > moment.late:
        words = f"Message {message.id} was accepted {(moment.now - came) // 60_000} min ago, and no turn has taken it.{moment.idle}"
        yield _of(seen, Law.STRANDED, words)


def _taken(seen: MessageEvidence) -> Iterator[Breach]:
    message, turn = seen.message, seen.turn
    if turn is None:
        whose = f"turn {message.turn}, which is not there" if message.turn else "a turn, and does not say which"
        yield _of(seen, Law.LOST, f"Message {message.id} is taken by {whose}.")
        return
    known = turn.session == message.session and turn.first_message <= message.id <= turn.last_message
    # Earlier versions did not say which message was the last.
    if not known and turn.first_message > 0 and turn.last_message > 0:
        yield _of(seen, Law.LOST, f"Message {message.id} is taken by turn {turn.turn}, which does not know it.")
    if message.received_at - turn.opened_at > MOMENT_MS and _not_the_clock(message.received_at, seen.beside):
        words = f"Message {message.id} says that it came after turn {turn.turn} had begun, which answers it."
        yield _of(seen, Law.MISPLACED, words)


def _not_the_clock(came: int, beside: Sequence[int]) -> bool:
    """That it came later than those around it, which are behind it and before it, was written into it: of a clock that was set, more would be known."""
    if any(came - at <= MOMENT_MS for at in beside):
        return False
    return beside[0] >= beside[1] if len(beside) == 2 else any(came - at > LONG_MS for at in beside)


def _done(seen: MessageEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """Somebody's words are done by a turn that took them, by one that heard them, or by what a chat was told."""
    message = seen.message
    if message.turn is not None:
        yield from _taken(seen)
        return
    if message.lane == COMMAND_LANE and not seen.told and moment.now - message.received_at <= KEPT_MS:
        yield from _unanswered(seen)
    if message.lane != NORMAL_LANE or seen.heard is not None or seen.told or moment.now - message.received_at > KEPT_MS:
        return
    if any(turn.removed for turn in seen.around):
        return  # who may have heard it is not kept
    yield _of(seen, Law.LOST, f"Message {message.id} is marked as done, and no turn took or heard it.")


def _unanswered(seen: MessageEvidence) -> Iterator[Breach]:
    """A command of a person's that only tells something has told it, in the commit in which it was done. What the gateway gives to itself may be silent: a
    message that was kept is in its queue then."""
    try:
        inbound = decode_message(seen.message.body)
    except UnreadableMessage:
        return  # told as such
    said = words_of(inbound.input[0].content) if inbound.input else ""
    command = BY_NAME.get(said.removeprefix("/").partition(" ")[0])
    tells = command is not None and not (command.changes or command.own)
    if isinstance(inbound, FromChat) and said.startswith("/") and command is not None and tells:
        words = f"Command {seen.message.id} (/{command.name}) was carried out, and its answer is not among the parts of its chat."
        yield _of(seen, Law.UNSEEN, words)


def _dropped(seen: MessageEvidence) -> Iterator[Breach]:
    message = seen.message
    if not message.reason:
        yield _of(seen, Law.UNTOLD, f"Message {message.id} was given up, and nobody wrote down why.")
    if message.reason not in MUST_BE_TOLD or message.lane == REFUSED_LANE or seen.told:
        return
    try:
        if chat_of(message.body) is not None:
            yield _of(
                seen, Law.UNTOLD, f"Message {message.id} was given up ({message.reason}), and its chat was not told."
            )
    except UnreadableMessage:
        return


def of_ledger(seen: LedgerEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """What is held is held for calls, and what calls used was spent."""
    held: defaultdict[tuple[str, int], Amount] = defaultdict(Amount)
    for call in seen.under_way:
        for key in call.keys:
            held[key] += call.held
        if not moment.alive(call.node):
            since = moment.dead_since(call.node)
            if moment.now - since > UNCLAIMED_MS:
                words = f"{call.held_tokens} tokens are held for model call {call.call}, whose process is over."
                yield Breach(Law.HELD, words, call.call.partition(":")[0], "", call.at)
    for one in seen.unpaid:
        if one.at is not None and moment.now - one.at < KEPT_MS:  # of older ones calls may be pruned
            words = f"Turn {one.turn} used {one.used} tokens, and {one.paid} were counted for its calls."
            yield Breach(Law.SPENT, words, one.turn, "", one.at)
    if not seen.steady:
        return
    known = {(pot.scope, pot.window): pot for pot in seen.pots}
    for (key, pot), measure in product(known.items(), Measure):
        what, level = _COUNTED[measure], pot.level
        told, counted = level.held.of(measure), held[key].of(measure)
        if told != counted:
            words = f"Budget {pot.scope} says that {told} {what} are held; its open calls hold {counted}."
            yield Breach(Law.SPENT, words, pot.scope, "", pot.at)
        whole = _all_known(pot.window, seen, moment)
        told, counted = level.spent.of(measure), seen.spent.get(key, Amount()).of(measure)
        if counted > told or (whole and counted < told):
            words = f"Budget {pot.scope} says that {told} {what} are spent; its calls used {counted}."
            yield Breach(Law.SPENT, words, pot.scope, "", pot.at)
        if seen.guessed is not None:
            told, counted = level.estimated.of(measure), seen.guessed.get(key, Amount()).of(measure)
            if counted > told or (whole and counted < told):
                words = f"Budget {pot.scope} says that {told} {what} of it are estimated; of its calls {counted} are."
                yield Breach(Law.SPENT, words, pot.scope, "", pot.at)
    for key, pot in known.items() if seen.calls is not None else ():
        told, counted = pot.calls, (seen.calls or {}).get(key, 0)
        if counted > told or (_all_known(pot.window, seen, moment) and counted < told):
            words = f"Budget {pot.scope} counts {told} calls; {counted} were paid from it."
            yield Breach(Law.SPENT, words, pot.scope, "", pot.at)
    for key in sorted(seen.spent.keys() - known.keys()):
        if _all_known(key[1], seen, moment) and seen.spent[key] != Amount():
            words = f"Calls used {seen.spent[key].tokens} tokens of budget {key[0]}, which is not there."
            yield Breach(Law.SPENT, words, key[0])
    for key in sorted(held.keys() - known.keys()):
        if held[key].tokens:
            words = f"Calls hold {held[key].tokens} tokens in budget {key[0]}, which is not there."
            yield Breach(Law.SPENT, words, key[0])


def _all_known(window: int, seen: LedgerEvidence, moment: Viewpoint) -> bool:
    """Of what began then, neither a call nor a budget can be pruned yet, and all of its calls were counted."""
    return window > 0 and moment.now - window < KEPT_MS and window > seen.since


def of_files(parts: Sequence[KeptPart], there: Callable[[str], bool], chat: str = "") -> Iterator[Breach]:
    """A file that is still to be sent is on the disk."""
    for one in parts:
        if one.row.state in OPEN and not one.row.gone and (file := decode(one.row.want).file) and not there(file):
            words = f"Part {one.row.key} is to send a file that is not on the disk any more."
            yield Breach(Law.NO_FILE, words, one.row.key, chat, one.row.at)


def of_states(rows: Sequence[tuple[str, str]]) -> list[Breach]:
    """Whatever is looked for by its state is in one that exists."""
    words = "{} of {} is none that exists: nobody finds that row."
    return [Breach(Law.UNREADABLE, words.format(column.capitalize(), where), where) for where, column in rows]


def of_pieces(pieces: Sequence[PieceEvidence]) -> list[Breach]:
    """What is stored once for many is what its digest says; it is written once and never changed. What nobody needs any more is not there."""
    words = "A large text or file (piece {}, {} bytes) {}."
    changed, needless = (
        "is not what it was when it was stored",
        "counts as needed by nobody, and will be removed from whoever does",
    )
    return [
        Breach(
            Law.CHANGED,
            words.format(one.number, one.size, needless if one.whole else changed),
            f"piece {one.number}",
            "",
            one.at,
        )
        for one in pieces
        if not one.whole or one.refs <= 0
    ]


def of_references(odd: Sequence[PieceCount]) -> Iterator[Breach]:
    """What is stored once for many counts as needed as often as it is: it goes with the last that needs it, and no sooner or later."""
    for one in odd:
        if not one.number:
            words = f"A large text or file is needed in {one.needed} places, and is not there."
            yield Breach(Law.CHANGED, words, "pieces")
            continue
        comes = "it will be removed too soon" if one.counted < one.needed else "it stays when nobody needs it any more"
        words = f"A large text or file (piece {one.number}) counts as needed in {one.counted} places, and is needed in {one.needed}: {comes}."
        yield Breach(Law.CHANGED, words, f"piece {one.number}")


def of_numbers(kind: str, rows: Sequence[tuple[int, int | None]], moment: Viewpoint) -> Iterator[Breach]:
    """Numbers are given one after the other, and what is younger than a week is not removed: between two such (number, when) none is missing."""
    for (before, came), (number, at) in pairwise(rows):
        if number - before > 1 and all(one is not None and moment.now - one <= KEPT_MS for one in (came, at)):
            which = f"{before + 1}" if number - before == 2 else f"{before + 1} to {number - 1}"
            yield Breach(Law.LOST, f"{kind} {which} was stored, and is not there any more.", which, "", came or 0)


def of_claimed(claimed: Sequence[ClaimedTime], moment: Viewpoint) -> Iterator[Breach]:
    """What came at a time came once, and as the message that says so."""
    for one in claimed:
        row = one.row
        what = f"What came in schedule {row.schedule} at {row.due_at}"
        if row.last_at > one.done_to:
            yield Breach(
                Law.TWICE, f"{what} does not count as done: it would come once more.", row.schedule, "", row.at
            )
        key = f"schedule:{row.schedule}:{row.due_at}"
        if not row.inbox:
            continue
        if one.message_key is not None and one.message_key != key:
            yield Breach(Law.LOST, f"{what} names message {row.inbox}, which is another one.", row.schedule, "", row.at)
        elif one.message_key is None and moment.now - row.at <= KEPT_MS:
            yield Breach(Law.LOST, f"{what} names message {row.inbox}, which is not there.", row.schedule, "", row.at)


def of_owners(nobody: Sequence[tuple[str, int]]) -> Iterator[Breach]:
    """Whoever has something was started once: whose start is unknown can neither be alive nor be taken for dead."""
    for what, node in nobody:
        yield Breach(Law.EPOCH, f"{what} belongs to process {node}, which was never started.", what)


def of_times(overdue: Collection[ScheduleRow], moment: Viewpoint) -> Iterator[Breach]:
    """What is due is claimed soon after, or after the start of the gateway that runs."""
    for one in overdue:
        if one.kind == TASK:
            continue  # it runs, and has no time
        if one.next_at is None:
            words = f"Schedule {one.schedule} is active, and has no time at which it comes."
            yield Breach(Law.NOT_FIRED, words, one.schedule, one.session_key, one.at)
            continue
        due = max(one.next_at, moment.up_since)
        if moment.now - due > moment.late:
            words = f"What was due in schedule {one.schedule} {(moment.now - one.next_at) // 60_000} min ago has not happened.{moment.idle}"
            yield Breach(Law.NOT_FIRED, words, one.schedule, one.session_key, one.next_at)


def of_forgetting(jobs: Sequence[ForgetRow], moment: Viewpoint) -> Iterator[Breach]:
    """Whoever is to be forgotten is, by the gateway that runs: it may take its time, but not days."""
    for one in jobs:
        since = max(one.at, moment.up_since)
        if moment.now - since > AHEAD_MS:
            words = (
                f"Somebody is to be forgotten since {(moment.now - one.at) // 3_600_000} h, and is not.{moment.idle}"
            )
            yield Breach(Law.NOT_FIRED, words, one.forget, "", one.at)


def of_unread(kept: Sequence[UnreadRow], moment: Viewpoint) -> Iterator[Breach]:
    """Whoever said what could not be read is told so."""
    for one in kept:
        if moment.now - max(one.received_at, moment.up_since) > moment.late:
            words = f"What {one.account} brought as {one.platform_key} could not be read, and its chat was not told.{moment.idle}"
            yield Breach(Law.UNTOLD, words, one.platform_key, one.chat, one.received_at)


def of_times_to_come(kept: Sequence[ScheduleRow], moment: Viewpoint) -> Iterator[Breach]:
    """What is active comes when its rule says so, and what is over does not come again. A task has no time: it runs."""
    for one in kept:
        if one.kind == TASK:
            continue
        try:
            rule = times.decode(one.rule)
        except BadTime as error:
            words = f"When schedule {one.schedule} comes cannot be read: {error}"
            yield Breach(Law.UNREADABLE, words, one.schedule, one.session_key, one.at)
            continue
        try:
            schedules.decode(one)
        except UnreadablePlan:
            words = f"What is to happen in schedule {one.schedule} cannot be read."
            yield Breach(Law.UNREADABLE, words, one.schedule, one.session_key, one.at)
        if max(one.at, one.done_to) > moment.ahead:
            words = f"Schedule {one.schedule} counts as done up to a time that is still to come."
            yield Breach(Law.NOT_FIRED, words, one.schedule, one.session_key, 0)
            continue
        since = one.done_to if one.state is ScheduleState.DONE or isinstance(rule, Once) else max(one.at, one.done_to)
        due = times.next_after(rule, since)
        if one.state is ScheduleState.DONE and due is not None:
            words = f"Schedule {one.schedule} is over, and by its rule it comes once more."
            yield Breach(Law.NOT_FIRED, words, one.schedule, one.session_key, one.at)
        elif one.next_at is not None and (due is None or one.next_at - due > ZONES_MS):
            words = f"Schedule {one.schedule} is to come later than its rule says."
            yield Breach(Law.NOT_FIRED, words, one.schedule, one.session_key, one.at)
        elif one.next_at is not None and not _of_rule(rule, one.next_at):
            words = f"Schedule {one.schedule} is to come at a time that is none of its rule's."
            yield Breach(Law.NOT_FIRED, words, one.schedule, one.session_key, one.at)
        chat = _chat_of(one.surface)
        if one.state is ScheduleState.ACTIVE and platform_of(chat[0]) is not None and chat != _chat_of(one.session_key):
            words = f"Schedule {one.schedule} is to be seen in another chat than the one of its conversation."
            yield Breach(Law.OTHER_CHAT, words, one.schedule, one.session_key, one.at)


def _of_rule(rule: times.Rule, at: int) -> bool:
    """It is one of the times of a rule. By the clocks of a zone: since it was reckoned, they may have been set otherwise, by quarters of an hour."""
    due = times.next_after(rule, at - 1)
    return due == at or (isinstance(rule, times.Cron) and due is not None and (due - at) % QUARTER_MS == 0)


def _chat_of(address: str) -> list[str]:
    return address.split("/")[:3]
