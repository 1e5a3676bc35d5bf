"""What operations decide, from the facts alone: no database, so that each law and its neighbour cost nothing.

Three laws for all that write for a session: only its owner under its epoch; what is brought again is no second one; who is refused has
changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent_core.limits.budgets import Amount, BudgetRefused, Granted, Pot, Reached, Settled
from agent_core.limits.spend import Budget, Measure
from agent_core.store import tables as t
from agent_core.store.audit import AuditRow
from agent_core.store.batch.facts import Facts, Op, SessionFact
from agent_core.store.budgets.ops import COUNTED_ONCE_MS, Reserve, Settle, charge
from agent_core.store.budgets.rows import BroughtFile, Charge
from agent_core.store.database.mapping import Fact
from agent_core.store.deliveries.ops import Act, PutDeliveries
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Conflict, Fenced, NoRoomToday, OwnedElsewhere, StoreError
from agent_core.store.inbox.ops import Accept, Drop, Reword
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState, NewMessage
from agent_core.store.memory.ops import DeleteMemory, PutMemory
from agent_core.store.schedules.rows import Claimed, OccurrenceOutcome, OccurrenceRow, ScheduleRow
from agent_core.store.sessions.ops import Claim, Respond, change_session
from agent_core.store.sessions.rows import SessionChange, SessionRow
from agent_core.store.slices.rows import Right
from agent_core.store.turns.ops import Append, Close, Start
from agent_core.store.turns.rows import ROWS_A_TURN, CallState, IntendedCall, JournalRow, OpeningTurn, TurnState
from agent_core.store.webhooks.rows import HookRow
from agent_core.tools.base import EffectClass

ME, OTHER = 3, 4
PART = DeliveryRow("api/x", "t", "text0", 0, 1, b"{}", "h", "k")
HOOK = HookRow("m", "r", "turn.ended", "s", "t", b"{}", 1)
POT = Pot(Budget.DAY, "day:all", 0, 10, Amount(100), Amount(80))


def row(seq: int, body: bytes = b"{}") -> JournalRow:
    return JournalRow(seq, "TextArrived", body, 5)


def message(key: str = "m1", account: str = "bot", person: str = "ada", cursor: str = "41") -> NewMessage:
    return NewMessage(account, key, "chat", "normal", b"words", 10, ("room", cursor), "s", person=person)


def facts(owner: int | None = ME, epoch: int = 7) -> Facts:
    """One session, of which nothing is known but whose it is."""
    made = Facts(ME, free_ids=[9, 8, 7, 6, 5])
    session = SessionFact(made_session := SessionRow("s", "chat", owner, epoch, created_at=1, last_at=1), made_session)
    made.sessions["s"] = made.sessions_by_key["chat"] = session
    return made


def begun(heard: int = 0) -> Facts:
    """With an open turn; and with messages that were not taken."""
    made = facts()
    for number in range(1 + heard):
        Accept(message(f"m{number}", person=f"p{number}")).decide(made, None)
    Start(opening(), (5,)).decide(made, None)
    return made


def opening(turn: str = "t", rows: tuple[JournalRow, ...] = (row(0),)) -> OpeningTurn:
    return OpeningTurn("s", 7, turn, rows, 20, 600)


def close(exit_code: str = "answered", rows: tuple[JournalRow, ...] = (row(1),), heard: tuple[int, ...] = ()) -> Close:
    return Close("s", 7, "t", rows, exit_code, 90_000, (PART,), 10, 20, heard, hooks=(HOOK,))


FOR_A_SESSION: dict[str, Callable[[int], Op[object]]] = {
    "start": lambda epoch: Start(replace(opening("t2"), epoch=epoch), (6,)),
    "append": lambda epoch: Append("s", epoch, "t", (row(1),)),
    "close": lambda epoch: replace(close(), epoch=epoch),
    "parts": lambda epoch: PutDeliveries("s", epoch, (PART,), (HOOK,)),
    "by hand": lambda epoch: Act(AuditRow("a", 1, "who", "what", "", ""), "s", epoch, (PART,)),
    "respond": lambda epoch: Respond("s", epoch, 6, SessionChange(), (PART,)),
    "reserve": lambda epoch: Reserve("s", epoch, "c", Amount(1), (POT,), 1),
    "settle": lambda epoch: Settle("s", epoch, "c", Amount(1), False, (POT,), 1),
}


@pytest.mark.parametrize("what", FOR_A_SESSION)
@pytest.mark.parametrize(("owner", "epoch"), [(OTHER, 7), (None, 7), (ME, 6), (ME, 8)])
def test_nobody_writes_for_a_session_but_its_owner_under_its_epoch(what: str, owner: int | None, epoch: int) -> None:
    known = begun(1)
    known.sessions["s"].change(owner=owner)
    before = repr(known)
    with pytest.raises(Fenced):
        FOR_A_SESSION[what](epoch).decide(known, None)
    assert repr(known) == before


def refused(op: Op[object], known: Facts, kind: type[StoreError], words: str) -> None:
    before = repr(known)
    with pytest.raises(kind, match=words):
        op.decide(known, None)
    assert repr(known) == before


# ------------------------------------------------------------------ messages


def test_a_message_is_known_again_in_its_account_alone() -> None:
    known = facts()
    first = Accept(message()).decide(known, None)
    again = Accept(message(cursor="7")).decide(known, None)
    assert (again.inbox_id, again.duplicate, first.duplicate) == (first.inbox_id, True, False)
    assert [given.row.last_seen for given in known.puts[t.CURSOR].values()] == ["41"], "it moves no cursor back"
    assert not Accept(message(account="another")).decide(known, None).duplicate


def test_a_message_whose_commit_was_lost_moves_its_cursor_all_the_same() -> None:
    first = Accept(message()).decide(facts(), None)
    known = facts()
    known.messages["bot", "m1"] = Fact(facts_row := _stored(first))
    assert facts_row.id == first.inbox_id
    assert Accept(message()).decide(known, first) == first
    assert len(known.puts[t.CURSOR]) == 1
    other = facts()
    other.messages["bot", "m1"] = Fact(facts_row)
    twice = replace(first, duplicate=True)
    assert Accept(message()).decide(other, twice) == twice
    assert t.CURSOR not in other.puts, "it was stored by somebody else before"


def _stored(first: Accepted) -> InboxRow:
    known = facts()
    Accept(message()).decide(known, None)
    return known.inbox[first.inbox_id].row


@pytest.mark.parametrize(
    ("owner", "epoch", "open_turn", "refusal", "starts"),
    [
        (ME, 7, None, "", True),
        (OTHER, 7, None, "", False),
        (ME, 6, None, "", False),
        (ME, 7, "t0", "", False),
        (ME, 7, None, "full", False),
    ],
)
def test_a_turn_begins_with_its_message_only_in_a_session_that_is_as_it_expects(
    owner: int, epoch: int, open_turn: str | None, refusal: str, *, starts: bool
) -> None:
    known = facts(owner, epoch)
    known.sessions["s"].open_turn = open_turn
    found = Accept(replace(message(), refused=refusal), opening=opening()).decide(known, None)
    assert (found.started, found.turn, "t" in known.turns) == (starts, "t" if starts else None, starts)
    state = InboxState.TAKEN if starts else InboxState.DROPPED if refusal else InboxState.NEW
    assert known.inbox[found.inbox_id].row.state is state
    assert found.epoch == (epoch if owner == ME else 0)


def test_only_what_waits_is_worded_anew_or_dropped() -> None:
    known = begun(1)
    assert not Reword("bot", "m0", b"new").decide(known, None)
    assert Reword("bot", "m1", b"new").decide(known, None)
    assert known.inbox[6].row.body == b"new"
    assert not Reword("bot", "nobody", b"new").decide(known, None)
    refused(Drop(5, "stop"), known, Conflict, "only a new one")
    refused(Drop(99, "stop"), known, Conflict, "no message 99")
    Drop(6, "stop").decide(known, None)
    Drop(6, "again").decide(known, None)
    assert (known.inbox[6].row.state, known.inbox[6].row.reason) == (InboxState.DROPPED, "stop")


def test_what_is_only_compared_with_a_limit_is_counted_nowhere() -> None:
    whole = Charge("day whole:ada", 0, 10, 30, 100, already=60, counts=False)
    day = Charge("day incoming:ada", 0, 10, 30, 1_000)
    known = facts()
    for number in range(3):  # each has room beside what is there, whatever came in before
        Accept(replace(message(f"m{number}"), charges=(whole, day))).decide(known, None)
    assert whole.key not in known.pots
    assert known.pots[day.key].row.level.spent == Amount(90)
    refused(Accept(replace(message("m9"), charges=(day, replace(whole, already=71)))), known, NoRoomToday, "whole:ada")


# ------------------------------------------------------------------ turns


def test_a_turn_takes_messages_that_wait_in_its_session_and_the_session_has_one() -> None:
    known = begun(1)
    assert (known.inbox[5].row.state, known.inbox[5].row.turn) == (InboxState.TAKEN, "t")
    refused(Start(opening("t2"), (6,)), known, Conflict, "still has turn t open")
    known.sessions["s"].open_turn = None
    refused(Start(opening("t2"), ()), known, Conflict, "answers no message")
    refused(Start(opening("t2"), (6, 6)), known, Conflict, "twice")
    refused(Start(opening("t2"), (5,)), known, Conflict, "is taken")
    refused(Start(opening("t2"), (6, 99)), known, Conflict, "no message 99")
    refused(Start(opening("t2", (row(1),)), (6,)), known, Conflict, "begin with row 0")
    known.inbox[6].change(session="another")
    refused(Start(opening("t2"), (6,)), known, Conflict, "of session another")


def test_a_start_that_comes_again_is_the_same_or_somebody_elses() -> None:
    known = begun(1)
    before = repr(known)
    Start(opening(), (5,)).decide(known, None)
    assert repr(known) == before
    refused(Start(opening(), (6,)), known, Fenced, "other content")
    refused(Start(opening(rows=(row(0, b"other"),)), (5,)), known, Fenced, "other content")


def test_a_journal_has_no_holes_and_no_second_version() -> None:
    known = begun()
    refused(Append("s", 7, "t", (row(2),)), known, Conflict, "leave a hole")
    refused(Append("s", 7, "t", (row(0, b"other"),)), known, Fenced, "stored already")
    refused(Append("s", 7, "nobody", (row(1),)), known, Conflict, "no turn nobody")
    Append("s", 7, "t", (row(0), row(1)), hooks=(HOOK,)).decide(known, None)
    assert [given.row.seq for given in known.added(t.EVENT)] == [0, 1]
    assert len(known.puts[t.HOOK]) == 1
    close(rows=(row(2),)).decide(known, None)
    refused(Append("s", 7, "t", (row(3),)), known, Conflict, "is closed")


def test_a_call_is_intended_once_and_not_behind_the_end() -> None:
    known = begun()
    call = IntendedCall("c", "send", EffectClass.EFFECT, "key")
    for _ in range(2):
        Append("s", 7, "t", (), (call,)).decide(known, None)
    assert known.calls["t", "c"].row.state is CallState.INTENDED
    refused(Append("s", 7, "t", (), (replace(call, key="other"),)), known, Fenced, "must not run again")
    close().decide(known, None)
    refused(Append("s", 7, "t", (), (replace(call, call="e"),)), known, Conflict, "no tool any more")


def test_with_an_end_goes_all_that_follows_from_it() -> None:
    known = begun(2)
    close(heard=(6,)).decide(known, None)
    turn = known.turns["t"].row
    assert (turn.state, turn.exit, turn.closed_at) == (TurnState.CLOSED, "answered", 90_000)
    assert (turn.input_tokens, turn.output_tokens) == (10, 20)
    assert turn.people == '[["bot","p0"],["bot","p1"]]', "who was heard in it has asked it as well"
    assert known.sessions["s"].open_turn is None
    assert known.sessions["s"].row.last_at == 90_000
    assert [known.inbox[n].row.state for n in (5, 6, 7)] == [InboxState.DONE, InboxState.DONE, InboxState.NEW]
    assert [given.row for given in known.puts[t.PART].values()] == [PART]
    assert [given.row for given in known.puts[t.HOOK].values()] == [HOOK]
    before = repr(known)
    close(heard=(6,)).decide(known, None)
    assert repr(known) == before
    refused(close("stopped"), known, Fenced, "cannot end with stopped")


def test_a_message_that_has_its_own_turn_is_not_done_by_another_that_heard_it() -> None:
    known = begun(1)
    known.inbox[6].change(state=InboxState.DROPPED)
    close(heard=(6, 99)).decide(known, None)
    assert known.inbox[6].row.state is InboxState.DROPPED
    assert known.turns["t"].row.people == '[["bot","p0"]]'


# ------------------------------------------------------------------ sessions


@pytest.mark.parametrize(
    ("owner", "dead", "right", "epoch"),
    [
        (ME, False, Right(), 7),
        (None, False, Right(), 8),
        (OTHER, True, Right(), 8),
        (OTHER, False, Right(ours=True), 8),
        (OTHER, False, Right(), 0),
        (OTHER, True, Right(other=5), 0),
        (None, False, Right(other=5), 0),
    ],
)
def test_a_claim_is_for_what_nobody_alive_has_and_makes_a_new_epoch(
    owner: int | None, right: Right, epoch: int, *, dead: bool
) -> None:
    known = facts(owner)
    known.dead, known.rights = frozenset({OTHER} if dead else ()), {"chat": right}
    if not epoch:
        refused(Claim("s"), known, OwnedElsewhere, ".")
        return
    assert Claim("s").decide(known, None) == epoch
    assert (known.sessions["s"].row.owner, known.sessions["s"].row.epoch) == (ME, epoch)


def test_a_command_is_done_with_what_it_answers_and_once() -> None:
    known = begun(1)
    change = SessionChange(forget=True)
    Respond("s", 7, 6, change, (PART,)).decide(known, None)
    assert known.inbox[6].row.state is InboxState.DONE
    assert known.sessions["s"].row.since == known.sessions["s"].last_number == 1
    assert len(known.puts[t.PART]) == 1
    before = repr(known)
    Respond("s", 7, 6, SessionChange(), (replace(PART, part=1),)).decide(known, None)
    assert repr(known) == before
    refused(Respond("s", 7, 5, change, ()), known, Conflict, "is taken")
    refused(Respond("s", 7, 99, change, ()), known, Conflict, "no message 99")


# ------------------------------------------------------------------ budgets


def test_what_is_held_for_a_call_is_held_once_and_let_go_once() -> None:
    known = facts()
    hold = Reserve("s", 7, "c", Amount(60), (POT,), 1)
    for _ in range(2):
        assert hold.decide(known, None) == Granted()
    assert known.pots[POT.key].row.level.held == Amount(60)
    refused(replace(hold, amount=Amount(61)), known, Fenced, "Something else is held")
    assert Reserve("s", 7, "d", Amount(60), (POT,), 1).decide(known, None) == Granted(), "below the limit there is room"
    full = Reserve("s", 7, "e", Amount(1), (POT,), 1)
    said = full.decide(known, None)
    assert isinstance(said, BudgetRefused)
    assert "e" not in known.reservations
    over = Settle("s", 7, "c", Amount(85), True, (POT,), 2)
    first = over.decide(known, None)
    level = known.pots[POT.key].row.level
    assert (level.held, level.spent, level.estimated, level.calls, level.warned) == (
        Amount(60), Amount(85), Amount(85), 1, True,
    )  # fmt: skip
    assert first == Settled((Reached(POT, Measure.TOKENS, replace(level, warned=False)),))
    before = repr(known)
    assert over.decide(known, first) == first
    assert over.decide(known, None) == Settled()
    assert repr(known) == before
    refused(replace(over, used=Amount(84)), known, Fenced, "another amount")
    refused(Settle("s", 7, "nobody", Amount(1), False, (POT,), 1), known, Conflict, "Nothing is held")
    assert full.decide(known, said) == said, "a refusal that was told stays one"


def test_a_message_begins_no_turn_before_one_that_waits() -> None:
    known = facts()
    known.sessions["s"].last_waiting = 4
    found = Accept(message(), opening=opening()).decide(known, None)
    assert (found.started, found.after, known.turns) == (False, 4, {})


@pytest.mark.parametrize("known_before", [False, True])
def test_a_conversation_counts_for_the_day_on_which_it_begins(known_before: bool) -> None:
    begins = Charge("day sessions:ada", 0, 10, 1, 5, new_session=True)
    known = facts()
    key = "chat" if known_before else "another"
    Accept(replace(message(), session_key=key, new_session_id="new", charges=(begins,))).decide(known, None)
    assert (begins.key in known.pots) is not known_before


# ------------------------------------------------------------------ what goes on


@pytest.mark.parametrize(("tip", "follows"), [(-1, -1), (3, -1), (2, 2), (0, 0)])
def test_a_turn_follows_the_one_that_the_conversation_shows_last_and_is_itself_the_last_then(
    tip: int, follows: int
) -> None:
    known = facts()
    Accept(message()).decide(known, None)
    known.sessions["s"].last_number = 3
    known.sessions["s"].change(tip=tip)
    Start(opening(), (5,)).decide(known, None)
    assert (known.turns["t"].row.number, known.turns["t"].row.follows) == (4, follows)
    assert known.sessions["s"].row.tip == -1
    close().decide(known, None)
    change_session(known, known.sessions["s"], SessionChange(undo="t"))
    assert known.sessions["s"].row.tip == (3 if follows < 0 else follows), "what it followed is shown last again"
    known.sessions["s"].change(tip=1)
    change_session(known, known.sessions["s"], SessionChange(undo="t"))
    assert known.sessions["s"].row.tip == 1, "it is taken back already"


@pytest.mark.parametrize(
    ("at", "seen"), [(1_000_000 + 59_999, 1_000_000), (1_000_000 + 60_000, 1_060_000), (5, 1_000_000)]
)
def test_when_a_conversation_was_spoken_in_last_is_known_to_the_minute_and_never_goes_back(at: int, seen: int) -> None:
    known = facts()
    Accept(message()).decide(known, None)
    known.sessions["s"].change(last_at=1_000_000)
    Start(replace(opening(), opened_at=at), (5,)).decide(known, None)
    assert known.sessions["s"].row.last_at == seen


def test_who_asked_a_turn_is_named_once_however_often_they_wrote() -> None:
    known = facts()
    for key, person in (("m1", "ada"), ("m2", "bob"), ("m3", "ada"), ("m4", ""), ("m5", "bob")):
        Accept(message(key, person=person)).decide(known, None)
    Start(opening(), (5, 6, 7)).decide(known, None)
    assert known.turns["t"].row.people == '[["bot","ada"],["bot","bob"]]'
    close(heard=(8, 9)).decide(known, None)
    assert known.turns["t"].row.people == '[["bot","ada"],["bot","bob"]]'


def test_a_journal_has_as_many_rows_as_its_numbers_have_room_for() -> None:
    known = begun()
    known.turns["t"].last_seq = ROWS_A_TURN - 2
    refused(Append("s", 7, "t", (row(ROWS_A_TURN - 1), row(ROWS_A_TURN))), known, Conflict, "is full")
    Append("s", 7, "t", (row(ROWS_A_TURN - 1),)).decide(known, None)
    refused(Append("s", 7, "t", (row(ROWS_A_TURN),)), known, Conflict, "is full")


def test_a_message_that_is_worded_anew_counts_as_it_is_now_and_stays_as_it_was_where_there_is_no_room() -> None:
    day = Charge("day incoming:ada", 0, 10, 30, 50)
    known = facts()
    Accept(message()).decide(known, None)
    assert Reword("bot", "m1", b"longer", charges=(day,), at=7).decide(known, None)
    assert known.pots[day.key].row.level.spent == Amount(30)
    refused(Reword("bot", "m1", b"longer still", charges=(day,), at=8), known, NoRoomToday, "incoming:ada")
    assert not Reword("bot", "nobody", b"x", charges=(replace(day, amount=1),), at=9).decide(known, None)
    assert known.pots[day.key].row.level.spent == Amount(30), "what is not there counts for nothing"


def test_a_file_counts_when_it_is_brought_anew_after_long_and_is_as_old_as_that_from_then_on() -> None:
    file = BroughtFile("file:one:ada", 60)
    day = Charge("day incoming:ada", 0, 10, 0, 1_000, files=(file,))
    known, spent = facts(), list[int]()
    first = 1_000
    for at in (
        first,
        first + COUNTED_ONCE_MS,
        first + COUNTED_ONCE_MS + 1,
        first + 2 * COUNTED_ONCE_MS,
        first + 9 * COUNTED_ONCE_MS,
    ):
        charge(known, [day], at)
        spent.append(known.pots[day.key].row.level.spent.tokens)
    assert spent == [60, 60, 120, 120, 180]
    assert known.pots[file.key].row.at == first + 9 * COUNTED_ONCE_MS


@pytest.mark.parametrize(
    ("due", "rev", "done_to", "new"),
    [(2_000, 3, 2_000, True), (1_000, 3, 1_000, False), (2_000, 4, 2_000, False), (2_000, 3, 1_999, False)],
)
def test_an_occurrence_is_claimed_with_the_message_that_comes_of_it(
    due: int, rev: int, done_to: int, new: bool
) -> None:
    row = ScheduleRow("a", "reminder", "chat", "bot/1/", 1, "every 1", b"{}", 2_000, done_to=1_000, rev=2)
    known = facts()
    known.schedules["a"] = row
    moved = replace(row, next_at=3_000, done_to=done_to, rev=rev)
    claimed = Claimed(moved, OccurrenceRow("a", due, due, 1, OccurrenceOutcome.RUN, 9))
    offer = Accept(replace(message(), claim=claimed))
    if not new:
        refused(offer, known, Conflict, "claimed already")
        return
    found = offer.decide(known, None)
    assert known.schedules["a"] == moved
    assert [given.row for given in known.added(t.OCCURRENCE)] == [replace(claimed.occurrence, inbox=found.inbox_id)]
    refused(replace(offer, message=replace(offer.message, platform_key="m2")), known, Conflict, "claimed already")


@pytest.mark.parametrize(("done_to", "new"), [(2_000, False), (3_999, False), (4_000, True)])
def test_occurrences_that_were_missed_together_are_claimed_up_to_the_last_of_them(done_to: int, new: bool) -> None:
    row = ScheduleRow("a", "reminder", "chat", "bot/1/", 1, "every 1", b"{}", 2_000, done_to=1_000, rev=2)
    known = facts()
    known.schedules["a"] = row
    moved = replace(row, next_at=5_000, done_to=done_to, rev=3)
    offer = Accept(
        replace(message(), claim=Claimed(moved, OccurrenceRow("a", 2_000, 4_000, 3, OccurrenceOutcome.MISSED, 9)))
    )
    if new:
        offer.decide(known, None)
        assert known.schedules["a"] == moved
    else:  # those behind it would come once more
        refused(offer, known, Conflict, "claimed already")


@pytest.mark.parametrize("there", [False, True])
def test_what_is_put_and_removed_in_one_batch_is_not_there_whatever_was(there: bool) -> None:
    known, entry = facts(), ("ada", "memory", "dog")
    if there:
        known.memory.add(entry)
    assert DeleteMemory(*entry).decide(known, None) is there
    assert DeleteMemory(*entry).decide(known, True) is True, "an answer that was lost is told again"
    PutMemory(*entry, b"Rex", 5).decide(known, None)
    assert [given.row.value for given in known.puts[t.MEMORY].values()] == [b"Rex"]
    assert DeleteMemory(*entry).decide(known, None) is True
    assert (known.puts[t.MEMORY], known.memory, known.memory_gone) == ({}, set(), {entry})
