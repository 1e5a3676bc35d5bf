"""What somebody, or a mistake, can do to a database, and the law that is broken by it. Each is done to a copy that breaks none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from zlib import compress

from sqlalchemy import Connection, delete, func, insert, select, update

from adapters.contract.contents import decode, encode
from adapters.delivery.reconcile import want_hash
from adapters.text.styled import Styled
from agent_core.limits.retention import Keep
from agent_core.store import tables as t
from agent_core.store.turns.rows import FORGOTTEN, ROWS_A_TURN
from gateway.laws.law import Law

_u, _d, _i, _j, _s = t.turns.c, t.deliveries.c, t.inbox.c, t.journal.c, t.sessions.c
DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True)
class Sabotage:
    """One of them."""

    law: Law
    do: Callable[[Connection], object]
    story: str = "rest"
    later_ms: int = 0
    """So much later it is looked at."""

    @property
    def name(self) -> str:
        return self.do.__name__


def one(conn: Connection, query: Any) -> Any:
    """The first row; there has to be one."""
    row = conn.execute(query).first()
    assert row is not None, str(query)
    return row


def long_turn(conn: Connection) -> str:
    """The turn whose answer has several parts."""
    counted = select(_d.origin).where(_d.origin.like("t_%"), _d.bubble == "text0").group_by(_d.origin)
    return str(one(conn, counted.having(func.count() > 2))[0])


def noticed(conn: Connection) -> str:
    """The turn that ended with a notice."""
    return str(one(conn, select(_u.turn).where(_u.exit.not_in(["answered"])))[0])


def a_part(conn: Connection) -> Any:
    """A part of the long answer that was sent."""
    return one(conn, select(_d.id, _d.want, _d.platform_id).where(_d.origin == long_turn(conn), _d.part == 1))


def other_words(want: bytes, old: str, new: str) -> bytes:
    content = decode(want)
    assert old in content.body.text, content.body.text[:200]
    return encode(replace(content, body=Styled(content.body.text.replace(old, new, 1))))


# ---------------------------------------------------------------------- of parts


def the_text_of_a_part_is_another(conn: Connection) -> None:
    row = a_part(conn)
    conn.execute(update(t.deliveries).where(_d.id == row[0]).values(want=other_words(row[1], "word", "lord")))


def the_text_of_a_part_is_another_and_its_fingerprint_too(conn: Connection) -> None:
    row = a_part(conn)
    made = other_words(row[1], "word", "lord")
    conn.execute(update(t.deliveries).where(_d.id == row[0]).values(want=made, want_hash=want_hash(made)))


def a_part_in_the_middle_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.deliveries).where(_d.id == a_part(conn)[0]))


def the_last_part_is_not_there(conn: Connection) -> None:
    turn = long_turn(conn)
    last = one(conn, select(func.max(_d.part)).where(_d.origin == turn, _d.bubble == "text0"))[0]
    conn.execute(delete(t.deliveries).where(_d.origin == turn, _d.bubble == "text0", _d.part == last))


def an_answer_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.deliveries).where(_d.origin == long_turn(conn)))


def a_notice_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.deliveries).where(_d.origin == noticed(conn), _d.bubble == "notice"))


def a_notice_was_taken_back(conn: Connection) -> None:
    which = (_d.origin == noticed(conn), _d.bubble == "notice")
    conn.execute(update(t.deliveries).where(*which).values(gone=1, state="skipped"))


def a_notice_says_something_else(conn: Connection) -> None:
    row = one(conn, select(_d.id, _d.want).where(_d.origin == noticed(conn), _d.bubble == "notice"))
    content = decode(row[1])
    made = encode(replace(content, body=Styled("⚠️ All is well.")))
    conn.execute(update(t.deliveries).where(_d.id == row[0]).values(want=made, want_hash=want_hash(made)))


def a_receipt_is_not_there(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(platform_id=None))


def two_parts_have_one_receipt(conn: Connection) -> None:
    turn = long_turn(conn)
    first = one(conn, select(_d.platform_id).where(_d.origin == turn, _d.part == 0))[0]
    conn.execute(update(t.deliveries).where(_d.origin == turn, _d.part == 1).values(platform_id=first))


def a_part_is_there_twice(conn: Connection) -> None:
    row = one(conn, select(t.deliveries).where(_d.origin == long_turn(conn), _d.part == 1))
    twin = {**row._mapping, "bubble": "text9", "key": f"{row.key}-twin", "platform_id": "987654", "id": row.id + 10_000}
    conn.execute(insert(t.deliveries).values(**twin))


def two_parts_have_changed_their_places(conn: Connection) -> None:
    turn = long_turn(conn)
    rows = conn.execute(select(_d.id, _d.place).where(_d.origin == turn).order_by(_d.part).limit(2)).all()
    for row, other in (rows, rows[::-1]):
        conn.execute(update(t.deliveries).where(_d.id == row[0]).values(place=other[1]))


def two_parts_have_changed_their_texts(conn: Connection) -> None:
    turn = long_turn(conn)
    rows = conn.execute(select(_d.id, _d.want).where(_d.origin == turn).order_by(_d.part).limit(2)).all()
    for row, other in (rows, rows[::-1]):
        made = {"want": other[1], "want_hash": want_hash(bytes(other[1]))}
        conn.execute(update(t.deliveries).where(_d.id == row[0]).values(**made))


def a_part_was_never_sent(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(state="wanted", platform_id=None))


def a_part_failed_and_nobody_says_why(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(state="failed", cause=""))


def a_part_is_of_a_turn_that_is_not_there(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(origin="t_nobody"))


def a_part_was_written_in_an_epoch_to_come(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(epoch=7))


def a_file_that_is_to_be_sent_is_not_there(conn: Connection) -> None:
    rows = conn.execute(select(_d.id, _d.want)).all()
    which, want = next((row[0], row[1]) for row in rows if decode(bytes(row[1])).file)
    made = encode(replace(decode(bytes(want)), file="/nowhere/notes.txt"))
    values = {"want": made, "want_hash": want_hash(made), "state": "wanted", "platform_id": None}
    conn.execute(update(t.deliveries).where(_d.id == which).values(**values))


def a_part_stands_in_the_chat_of_others(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(surface="telegram/7000000001/4711/"))


def an_answer_in_one_part_stands_in_the_chat_of_others(conn: Connection) -> None:
    alone = select(_d.origin).where(_d.origin.like("t_%")).group_by(_d.origin).having(func.count() == 1)
    turn = one(conn, alone.order_by(_d.origin))[0]
    conn.execute(update(t.deliveries).where(_d.origin == turn).values(surface="telegram/7000000001/4711/"))


def two_parts_have_one_key(conn: Connection) -> None:
    turn = long_turn(conn)
    key = one(conn, select(_d.key).where(_d.origin == turn, _d.part == 0))[0]
    conn.execute(update(t.deliveries).where(_d.origin == turn, _d.part == 1).values(key=key))


def the_answer_to_a_long_question_is_not_there(conn: Connection) -> None:
    """One that is cut out of its message, as it is long."""
    packed = select(_i.turn).where(func.length(_i.body) < 4_000, func.substr(_i.body, 1, 1) == b"P")
    conn.execute(delete(t.deliveries).where(_d.origin == one(conn, packed)[0]))


def a_file_that_was_sent_is_not_among_the_parts(conn: Connection) -> None:
    rows = conn.execute(select(_d.id, _d.want)).all()
    conn.execute(delete(t.deliveries).where(_d.id == next(row[0] for row in rows if decode(bytes(row[1])).file)))


def the_answer_to_a_command_is_not_there(conn: Connection) -> None:
    rows = conn.execute(select(_i.id, _i.body).where(_i.lane == "command")).all()
    number = next(row[0] for row in rows if b"/usage" in bytes(row[1]))
    conn.execute(delete(t.deliveries).where(_d.origin == f"inbox:{number}"))


def what_is_said_beside_turns_waits_from_a_time_to_come(conn: Connection) -> None:
    later = {"state": "wanted", "platform_id": None, "at": _d.at + 3_650 * DAY_MS}
    conn.execute(update(t.deliveries).where(_d.origin.like("inbox:%")).values(**later))


# ---------------------------------------------------------------------- of turns


def a_turn_ended_in_ten_years(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(closed_at=_u.closed_at + 3_650 * DAY_MS))


def a_turn_began_ten_years_ago(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(opened_at=_u.opened_at - 3_650 * DAY_MS))


def a_journal_is_there_that_was_removed(conn: Connection) -> None:
    """By these words nothing of a turn is looked at any more."""
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(removed=Keep().words("journals_days")))


def a_journal_of_a_young_turn_was_removed_for_its_age(conn: Connection) -> None:
    a_journal_is_not_there(conn)
    a_journal_is_there_that_was_removed(conn)


def a_turn_names_another_key(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(key="ceo"))


def nobody_asked_a_turn(conn: Connection) -> None:
    """Whoever is forgotten later would leave it behind."""
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(people=""))


def two_conversations_have_changed_their_names(conn: Connection) -> None:
    """Whoever writes next goes on with what somebody else has said."""
    this, other = conn.execute(select(_s.session, _s.key).where(_s.key.like("telegram/%")).limit(2)).all()
    for session, key in ((this[0], "for a moment"), (other[0], this[1]), (this[0], other[1])):
        conn.execute(update(t.sessions).where(_s.session == session).values(key=key))


def what_a_turn_said_is_another_in_its_journal(conn: Connection) -> None:
    rows = conn.execute(select(_j.id, _j.body).where(_j.kind == "TextArrived")).all()
    which, body = next((row[0], bytes(row[1])) for row in rows if b"hello Bob" in bytes(row[1]))
    conn.execute(update(t.journal).where(_j.id == which).values(body=body.replace(b"hello Bob", b"hello Rob")))


def a_tool_call_is_recorded_that_nobody_made(conn: Connection) -> None:
    row = one(conn, select(t.tool_calls))
    conn.execute(insert(t.tool_calls).values(**{**row._mapping, "turn": long_turn(conn)}))


def a_turn_is_forgotten_and_its_words_are_there(conn: Connection) -> None:
    turn = long_turn(conn)
    conn.execute(delete(t.journal).where(*_rows(_first(conn, turn))))
    conn.execute(update(t.turns).where(_u.turn == turn).values(removed=FORGOTTEN, undone=1))


def an_open_turn_has_ten_years(conn: Connection) -> None:
    turn = one(conn, select(_u.turn).where(_u.state == "open"))[0]
    conn.execute(update(t.turns).where(_u.turn == turn).values(deadline=_u.deadline + 3_650 * DAY_MS))


def _rows(first: int) -> Any:
    return (_j.id >= first * ROWS_A_TURN, _j.id < (first + 1) * ROWS_A_TURN)


def _first(conn: Connection, turn: str) -> int:
    return int(one(conn, select(_u.first_message).where(_u.turn == turn))[0])


def a_row_of_a_journal_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.journal).where(*_rows(_first(conn, long_turn(conn))), _j.seq == 1))


def a_journal_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.journal).where(*_rows(_first(conn, long_turn(conn)))))


def an_exit_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.journal).where(*_rows(_first(conn, long_turn(conn))), _j.kind == "TurnEnded"))


def a_turn_says_that_it_is_closed(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.state == "open").values(state="closed"))


def a_turn_does_not_say_when_it_ended(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(closed_at=None))


def a_turn_follows_one_that_is_still_to_come(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(follows=999))


def an_exit_is_there_twice(conn: Connection) -> None:
    row = one(conn, select(t.journal).where(*_rows(_first(conn, long_turn(conn))), _j.kind == "TurnEnded"))
    conn.execute(insert(t.journal).values(**{**row._mapping, "id": row.id + 1, "seq": row.seq + 1}))


def a_turn_is_open_again(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == noticed(conn)).values(state="open", exit=None, closed_at=None))


def a_turn_has_another_exit(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == noticed(conn)).values(exit="answered"))


def the_epochs_of_a_journal_go_backwards(conn: Connection) -> None:
    first = _first(conn, long_turn(conn))
    conn.execute(update(t.journal).where(*_rows(first), _j.seq == 0).values(epoch=2))


def a_conversation_has_an_earlier_epoch(conn: Connection) -> None:
    session = one(conn, select(_u.session).where(_u.turn == long_turn(conn)))[0]
    conn.execute(update(t.sessions).where(_s.session == session).values(epoch=0))


def a_turn_is_not_there(conn: Connection) -> None:
    turn = long_turn(conn)
    for table in (t.tool_calls, t.troubles):
        conn.execute(delete(table).where(table.c.turn == turn))
    conn.execute(delete(t.turns).where(_u.turn == turn))


def two_turns_have_changed_their_numbers(conn: Connection) -> None:
    session = one(conn, select(_u.session).where(_u.turn == long_turn(conn)))[0]
    rows = conn.execute(select(_u.turn, _u.number).where(_u.session == session).order_by(_u.number).limit(2)).all()
    conn.execute(update(t.turns).where(_u.turn == rows[0][0]).values(number=1_000_000))
    conn.execute(update(t.turns).where(_u.turn == rows[1][0]).values(number=rows[0][1]))
    conn.execute(update(t.turns).where(_u.turn == rows[0][0]).values(number=rows[1][1]))


def a_turn_used_less_than_its_journal_says(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(input_tokens=1))


def a_tool_call_is_not_recorded(conn: Connection) -> None:
    conn.execute(delete(t.tool_calls).where(t.tool_calls.c.turn == one(conn, select(t.tool_calls.c.turn))[0]))


def an_open_turn_is_nobodys(conn: Connection) -> None:
    session = one(conn, select(_u.session).where(_u.state == "open"))[0]
    conn.execute(update(t.sessions).where(_s.session == session).values(owner=None))


def an_open_turn_is_left_for_long(conn: Connection) -> None:
    one(conn, select(_u.turn).where(_u.state == "open"))


# ---------------------------------------------------------------------- of messages


def a_message_is_new_again(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(state="new", turn=None))


def a_message_of_a_turn_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.inbox).where(_i.turn == long_turn(conn)))


def a_message_is_taken_by_nobody(conn: Connection) -> None:
    last = one(conn, select(func.max(_i.id)).where(_i.turn.is_not(None)))[0]
    conn.execute(update(t.inbox).where(_i.id == last).values(turn="t_nobody"))


def a_message_waits_and_nobody_takes_it(conn: Connection) -> None:
    row = one(conn, select(t.inbox).where(_i.turn.is_not(None)).order_by(_i.id.desc()))
    number = one(conn, select(func.max(_i.id)))[0] + 1
    new = {"id": number, "arrival": number, "platform_key": "again", "state": "new", "turn": None}
    conn.execute(insert(t.inbox).values(**{**row._mapping, **new}))


def what_was_said_into_a_running_turn_was_not_heard(conn: Connection) -> None:
    """As if the message had been marked without having been put before the model."""
    row = one(conn, select(t.inbox).where(_i.turn.is_not(None)).order_by(_i.id.desc()))
    number = one(conn, select(func.max(_i.id)))[0] + 1
    new = {"id": number, "arrival": number, "platform_key": "again", "state": "done", "turn": None}
    conn.execute(insert(t.inbox).values(**{**row._mapping, **new}))


def a_message_was_given_up_without_a_word(conn: Connection) -> None:
    row = one(conn, select(t.inbox).where(_i.turn.is_not(None)).order_by(_i.id.desc()))
    number = one(conn, select(func.max(_i.id)))[0] + 1
    new = {"id": number, "arrival": number, "platform_key": "again", "state": "dropped", "turn": None}
    conn.execute(insert(t.inbox).values(**{**row._mapping, **new, "reason": "its turn could not be opened"}))


def _steered(conn: Connection) -> Any:
    """What was said into a running turn, which heard it."""
    return one(conn, select(_i.id, _i.session).where(_i.state == "done", _i.turn.is_(None), _i.lane == "normal"))


def what_was_heard_waits_once_more(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.id == _steered(conn)[0]).values(state="new"))


def what_was_heard_has_a_turn_as_well(conn: Connection) -> None:
    """As if a turn had been begun with it although the one before had it: the one behind that becomes its."""
    number, session = _steered(conn)
    behind = one(conn, select(_u.turn, _u.first_message).where(_u.session == session, _u.first_message > number))
    conn.execute(update(t.inbox).where(_i.id == behind[1]).values(state="dropped", turn=None, reason="withdrawn"))
    conn.execute(update(t.inbox).where(_i.id == number).values(turn=behind[0]))
    moved = [update(t.turns).where(_u.turn == behind[0]).values(first_message=number, last_message=number)]
    shift = (number - behind[1]) * ROWS_A_TURN
    moved.append(update(t.journal).where(*_rows(behind[1])).values(id=_j.id + shift))
    for statement in moved:
        conn.execute(statement)


def a_message_waits_in_a_conversation_that_was_set_aside(conn: Connection) -> None:
    a_message_waits_and_nobody_takes_it(conn)
    session = one(conn, select(_i.session).where(_i.state == "new"))[0]
    conn.execute(update(t.sessions).where(_s.session == session).values(quarantined="it was unreadable"))


def an_answer_stands_in_the_chat_of_others_under_its_name(conn: Connection) -> None:
    """All of it, as if it had been made for that chat."""
    other = "telegram/7000000001/4711/"
    for row in conn.execute(select(_d.id, _d.key, _d.surface).where(_d.origin == long_turn(conn))).all():
        key = row[1].replace(row[2], other, 1)
        conn.execute(update(t.deliveries).where(_d.id == row[0]).values(surface=other, key=key))


def a_message_cannot_be_read(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(body=b"{}"))


def a_message_has_another_place(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(arrival=999))


def a_message_that_waits_comes_in_ten_years(conn: Connection) -> None:
    """So that by its own time it does not wait at all; those that came behind it say when it came."""
    session = one(conn, select(_i.session).where(_i.state == "new"))[0]
    row = one(conn, select(t.inbox).where(_i.session == session, _i.turn.is_not(None)).order_by(_i.id))
    conn.execute(update(t.inbox).where(_i.state == "new").values(received_at=_i.received_at + 3_650 * DAY_MS))
    number = one(conn, select(func.max(_i.id)))[0] + 1
    new = {
        "id": number,
        "arrival": number,
        "platform_key": "again",
        "state": "dropped",
        "turn": None,
        "reason": "withdrawn",
    }
    conn.execute(insert(t.inbox).values(**{**row._mapping, **new}))


def a_message_came_after_its_turn(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(received_at=_i.received_at + 3_650 * DAY_MS))


def a_message_is_of_another_person(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(person="4711"))


def a_message_says_something_else(conn: Connection) -> None:
    row = one(conn, select(_i.id, _i.body).where(_i.turn == long_turn(conn)))
    assert b"long 1800" in bytes(row[1])
    conn.execute(update(t.inbox).where(_i.id == row[0]).values(body=bytes(row[1]).replace(b"long 1800", b"long 1900")))


def a_message_is_kept_under_another_key(conn: Connection) -> None:
    """When its platform brings it again, it is new."""
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(platform_key="1:1"))


def what_could_not_be_read_was_told_nobody(conn: Connection) -> None:
    kept = {
        "account": "telegram/1", "platform_key": "1:1", "body": b"{}", "words": "why", "version": "0", "received_at": 1_700_000_000_000,
        "chat": "telegram/1/1/", "state": "given_up", "tries": 9, "tried_at": 1_700_000_000_000, "told": 0,
    }  # fmt: skip
    conn.execute(insert(t.unread).values(**kept))


def somebody_is_to_be_forgotten_for_days(conn: Connection) -> None:
    job = {"forget": "f_1", "who": "[]", "stage": "turns", "after": "", "told": "{}", "at": 1_700_000_000_000}
    conn.execute(insert(t.forgets).values(**job))


def a_part_is_of_another_conversation(conn: Connection) -> None:
    session = one(conn, select(_u.session).where(_u.turn == long_turn(conn)))[0]
    other = one(conn, select(_s.session).where(_s.session != session))[0]
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(session=other))


def a_part_has_the_key_of_another_turn(conn: Connection) -> None:
    former, later = _two_answers(conn)
    key = one(conn, select(_d.key).where(_d.id == former.id))[0]
    conn.execute(update(t.deliveries).where(_d.id == later.id).values(key=key))


def a_tool_call_is_recorded_as_one_of_another_tool(conn: Connection) -> None:
    c = t.tool_calls.c
    row = one(conn, select(c.turn, c.call))
    conn.execute(update(t.tool_calls).where(c.turn == row[0], c.call == row[1]).values(tool="rm"))


# ---------------------------------------------------------------------- of what is told outside, and of platforms' positions


def _hook(conn: Connection, **more: object) -> None:
    row = {
        "message": "msg_1", "receiver": "crm", "event": "turn.ended", "session": "", "turn": "", "body": b"{}", "at": 1_700_000_000_000,
        "state": "waiting", "attempt": 0, "retry_at": 0, "cause": "", "done_at": 0,
    }  # fmt: skip
    conn.execute(insert(t.hooks).values(**{**row, **more}))


def a_message_to_a_webhook_waits_for_ever(conn: Connection) -> None:
    _hook(conn)


def a_message_to_a_webhook_was_given_up_without_a_cause(conn: Connection) -> None:
    _hook(conn, state="given_up", done_at=1_700_000_000_000)


def a_message_to_a_webhook_was_sent_without_a_try(conn: Connection) -> None:
    _hook(conn, state="sent", done_at=1_700_000_000_000)


def a_message_to_a_webhook_waits_for_a_time_to_come(conn: Connection) -> None:
    _hook(conn, at=4_000_000_000_000)


def a_webhook_rests_for_ten_years(conn: Connection) -> None:
    rests = {
        "receiver": "crm",
        "url": "https://crm",
        "off": "",
        "failures": 1,
        "failing_since": 1,
        "not_before": 4_000_000_000_000,
        "at": 1,
    }
    conn.execute(insert(t.receivers).values(**rests))


def a_webhook_was_told_twice_of_one_end(conn: Connection) -> None:
    for number in (1, 2):
        _hook(conn, message=f"msg_{number}", turn=long_turn(conn), state="sent", attempt=1, done_at=1_700_000_000_000)


def a_channel_of_slack_counts_as_read_for_ten_years(conn: Connection) -> None:
    conn.execute(insert(t.cursors).values(account="slack/T1", channel="C1", last_seen="2100000000.000100"))


def a_channel_of_discord_counts_as_read_for_ten_years(conn: Connection) -> None:
    conn.execute(insert(t.cursors).values(account="discord/1", channel="23", last_seen=str(700_000_000_000 << 22)))


# ---------------------------------------------------------------------- of budgets and times


def a_budget_forgot_what_was_spent(conn: Connection) -> None:
    conn.execute(update(t.budgets).where(t.budgets.c.scope.not_like("daily:%")).values(spent_tokens=1))


def a_call_used_less_than_its_turn(conn: Connection) -> None:
    """And its budgets were told the same."""
    r, b = t.reservations.c, t.budgets.c
    row = one(conn, select(r.call, r.used_tokens).where(r.call.like(f"{long_turn(conn)}:%")))
    conn.execute(update(t.reservations).where(r.call == row[0]).values(used_tokens=1))
    conn.execute(update(t.budgets).where(b.scope.not_like("daily:%")).values(spent_tokens=b.spent_tokens - row[1] + 1))


def what_makes_no_sense_hides_nothing_beside_it(conn: Connection) -> None:
    what_a_call_holds_makes_no_sense(conn)
    a_channel_of_slack_counts_as_read_for_ten_years(conn)


def a_budget_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.budgets).where(t.budgets.c.scope.not_like("daily:%")))


def what_a_call_was_paid_from_cannot_be_read(conn: Connection) -> None:
    conn.execute(update(t.reservations).values(pots="[[day"))


def a_file_or_a_long_text_is_another(conn: Connection) -> None:
    row = one(conn, select(t.pieces.c.digest).where(t.pieces.c.how == "zlib"))
    conn.execute(update(t.pieces).where(t.pieces.c.digest == row[0]).values(stored=compress(b"something else")))


def a_long_text_counts_as_needed_by_nobody(conn: Connection) -> None:
    conn.execute(update(t.pieces).values(refs=0))


def a_long_text_cannot_be_unpacked(conn: Connection) -> None:
    row = one(conn, select(t.pieces.c.digest).where(t.pieces.c.how == "zlib"))
    conn.execute(update(t.pieces).where(t.pieces.c.digest == row[0]).values(stored=b"x"))


def what_was_asked_by_a_command_is_not_there(conn: Connection) -> None:
    row = one(conn, select(_i.id).where(_i.lane == "command"))
    conn.execute(delete(t.inbox).where(_i.id == row[0]))


def a_budget_counted_money_that_nobody_spent(conn: Connection) -> None:
    conn.execute(update(t.budgets).where(t.budgets.c.scope.not_like("daily:%")).values(spent_nanos=5_000))


def a_budget_holds_something_for_nobody(conn: Connection) -> None:
    conn.execute(update(t.budgets).where(t.budgets.c.scope.not_like("daily:%")).values(held_tokens=500))


def a_call_is_open_for_ever(conn: Connection) -> None:
    r = t.reservations.c
    conn.execute(update(t.reservations).where(r.call == one(conn, select(r.call))[0]).values(state="open"))


def something_due_did_not_happen(conn: Connection) -> None:
    _schedule(conn, next_at=1_000)


def something_active_has_no_time(conn: Connection) -> None:
    _schedule(conn, next_at=None)


def _schedule(conn: Connection, next_at: int | None) -> None:
    due = {
        "schedule": "x_1", "kind": "say", "session_key": "telegram/1/2//", "surface": "telegram/1/2/", "number": 1, "rule": "once",
        "body": b"{}", "next_at": next_at, "done_to": 0, "state": "active", "rev": 1, "at": 0,
    }  # fmt: skip
    conn.execute(insert(t.schedules).values(**due))


def something_active_comes_in_ten_years(conn: Connection) -> None:
    _schedule(conn, next_at=4_000_000_000_000)
    conn.execute(update(t.schedules).values(rule="every 3600 0", at=1_700_000_000_000))


def something_that_comes_again_and_again_is_over(conn: Connection) -> None:
    _schedule(conn, next_at=None)
    conn.execute(update(t.schedules).values(rule="every 3600 0", state="done", done_to=1_700_000_000_000))


def a_reminder_is_over_and_never_came(conn: Connection) -> None:
    _schedule(conn, next_at=None)
    conn.execute(update(t.schedules).values(rule="once 1700000000000", state="done", at=1_700_000_000_000))


def what_comes_cannot_be_read(conn: Connection) -> None:
    _schedule(conn, next_at=4_000_000_000_000)
    conn.execute(update(t.schedules).values(rule="once 4000000000000"))


def something_counts_as_done_for_ten_years(conn: Connection) -> None:
    _schedule(conn, next_at=4_000_000_000_000)
    conn.execute(update(t.schedules).values(rule="every 3600 0", done_to=3_999_999_000_000))


def when_something_comes_cannot_be_read(conn: Connection) -> None:
    _schedule(conn, next_at=4_000_000_000_000)


def what_a_call_holds_makes_no_sense(conn: Connection) -> None:
    r = t.reservations.c
    conn.execute(update(t.reservations).where(r.call == one(conn, select(r.call))[0]).values(state="held"))


def a_message_is_in_a_state_that_does_not_exist(conn: Connection) -> None:
    conn.execute(update(t.inbox).where(_i.id == one(conn, select(_i.id))[0]).values(state="seen"))


def a_part_is_in_a_state_that_does_not_exist(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == a_part(conn)[0]).values(state="read"))


def a_message_to_a_webhook_is_in_a_state_that_does_not_exist(conn: Connection) -> None:
    _hook(conn, state="lost")


def something_to_come_is_in_a_state_that_does_not_exist(conn: Connection) -> None:
    _schedule(conn, next_at=1_000)
    conn.execute(update(t.schedules).values(state="perhaps"))


def a_turn_is_in_a_state_that_does_not_exist(conn: Connection) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(state="over"))


def _two_answers(conn: Connection) -> tuple[Any, Any]:
    """The end of a turn's answer, and the beginning of the next turn's."""
    parts = conn.execute(
        select(_d.id, _d.place, _d.want, _d.want_hash, _u.session, _u.number)
        .join(t.turns, _u.turn == _d.origin)
        .where(_d.bubble.like("text%"))
        .order_by(_u.session, _u.number, _d.place)
    ).all()
    return next(
        (former, later)
        for former, later in pairwise(parts)
        if former.session == later.session and later.number == former.number + 1
    )


def two_turns_have_changed_their_answers(conn: Connection) -> None:
    former, later = _two_answers(conn)
    for this, other in ((former, later), (later, former)):
        conn.execute(update(t.deliveries).where(_d.id == this.id).values(want=other.want, want_hash=other.want_hash))


def the_answers_of_two_turns_have_changed_their_places(conn: Connection) -> None:
    former, later = _two_answers(conn)
    for this, other in ((former, later), (later, former)):
        conn.execute(update(t.deliveries).where(_d.id == this.id).values(place=other.place))


ALL = (
    Sabotage(Law.GAP, a_file_that_was_sent_is_not_among_the_parts),
    Sabotage(Law.UNSEEN, the_answer_to_a_command_is_not_there),
    Sabotage(Law.UNDELIVERED, what_is_said_beside_turns_waits_from_a_time_to_come),
    Sabotage(Law.MISPLACED, a_turn_ended_in_ten_years),
    Sabotage(Law.MISPLACED, a_turn_began_ten_years_ago),
    Sabotage(Law.UNREADABLE, a_journal_is_there_that_was_removed),
    Sabotage(Law.HOLE, a_journal_of_a_young_turn_was_removed_for_its_age),
    Sabotage(Law.UNREADABLE, a_turn_names_another_key),
    Sabotage(Law.LOST, nobody_asked_a_turn),
    Sabotage(Law.OTHER_CHAT, two_conversations_have_changed_their_names),
    Sabotage(Law.TWICE, a_message_is_kept_under_another_key),
    Sabotage(Law.UNTOLD, what_could_not_be_read_was_told_nobody),
    Sabotage(Law.NOT_FIRED, somebody_is_to_be_forgotten_for_days),
    Sabotage(Law.UNDELIVERED, a_message_to_a_webhook_waits_for_a_time_to_come),
    Sabotage(Law.UNDELIVERED, a_webhook_rests_for_ten_years),
    Sabotage(Law.TWICE, a_webhook_was_told_twice_of_one_end),
    Sabotage(Law.SPENT, a_call_used_less_than_its_turn),
    Sabotage(Law.AHEAD, what_makes_no_sense_hides_nothing_beside_it),
    Sabotage(Law.CHANGED, a_long_text_counts_as_needed_by_nobody),
    Sabotage(Law.UNREADABLE, what_comes_cannot_be_read),
    Sabotage(Law.NOT_FIRED, something_counts_as_done_for_ten_years),
    Sabotage(Law.UNENDED, a_turn_says_that_it_is_closed, "middle"),
    Sabotage(Law.UNENDED, a_turn_does_not_say_when_it_ended),
    Sabotage(Law.MISPLACED, a_turn_follows_one_that_is_still_to_come),
    Sabotage(Law.SPENT, a_budget_is_not_there),
    Sabotage(Law.UNREADABLE, what_a_call_was_paid_from_cannot_be_read),
    Sabotage(Law.CHANGED, a_file_or_a_long_text_is_another),
    Sabotage(Law.CHANGED, a_long_text_cannot_be_unpacked),
    Sabotage(Law.LOST, what_was_asked_by_a_command_is_not_there),
    Sabotage(Law.STRANDED, a_message_that_waits_comes_in_ten_years, "middle", later_ms=DAY_MS // 2),
    Sabotage(Law.MISPLACED, a_message_came_after_its_turn),
    Sabotage(Law.LOST, a_message_is_of_another_person),
    Sabotage(Law.OTHER_WORDS, a_message_says_something_else),
    Sabotage(Law.EPOCH, a_part_is_of_another_conversation),
    Sabotage(Law.TWICE, a_part_has_the_key_of_another_turn),
    Sabotage(Law.UNREADABLE, a_tool_call_is_recorded_as_one_of_another_tool),
    Sabotage(Law.UNDELIVERED, a_message_to_a_webhook_waits_for_ever),
    Sabotage(Law.GIVEN_UP, a_message_to_a_webhook_was_given_up_without_a_cause),
    Sabotage(Law.NO_RECEIPT, a_message_to_a_webhook_was_sent_without_a_try),
    Sabotage(Law.AHEAD, a_channel_of_slack_counts_as_read_for_ten_years),
    Sabotage(Law.AHEAD, a_channel_of_discord_counts_as_read_for_ten_years),
    Sabotage(Law.UNSEEN, the_answer_to_a_long_question_is_not_there),
    Sabotage(Law.OTHER_CHAT, an_answer_in_one_part_stands_in_the_chat_of_others),
    Sabotage(Law.TWICE, two_parts_have_one_key),
    Sabotage(Law.OTHER_WORDS, what_a_turn_said_is_another_in_its_journal),
    Sabotage(Law.LOST, a_tool_call_is_recorded_that_nobody_made),
    Sabotage(Law.UNREADABLE, a_turn_is_forgotten_and_its_words_are_there),
    Sabotage(Law.OVERDUE, an_open_turn_has_ten_years, "middle", DAY_MS // 2),
    Sabotage(Law.UNREADABLE, a_message_cannot_be_read),
    Sabotage(Law.SPENT, a_budget_counted_money_that_nobody_spent),
    Sabotage(Law.UNREADABLE, a_message_is_in_a_state_that_does_not_exist),
    Sabotage(Law.UNREADABLE, a_part_is_in_a_state_that_does_not_exist),
    Sabotage(Law.UNREADABLE, a_message_to_a_webhook_is_in_a_state_that_does_not_exist),
    Sabotage(Law.UNREADABLE, something_to_come_is_in_a_state_that_does_not_exist),
    Sabotage(Law.UNREADABLE, a_turn_is_in_a_state_that_does_not_exist),
    Sabotage(Law.OTHER_WORDS, two_turns_have_changed_their_answers),
    Sabotage(Law.MISPLACED, the_answers_of_two_turns_have_changed_their_places),
    Sabotage(Law.CHANGED, the_text_of_a_part_is_another),
    Sabotage(Law.OTHER_WORDS, the_text_of_a_part_is_another_and_its_fingerprint_too),
    Sabotage(Law.GAP, a_part_in_the_middle_is_not_there),
    Sabotage(Law.GAP, the_last_part_is_not_there),
    Sabotage(Law.UNSEEN, an_answer_is_not_there),
    Sabotage(Law.UNSEEN, a_notice_is_not_there),
    Sabotage(Law.UNSEEN, a_notice_was_taken_back),
    Sabotage(Law.OTHER_WORDS, a_notice_says_something_else),
    Sabotage(Law.NO_RECEIPT, a_receipt_is_not_there),
    Sabotage(Law.TWICE, two_parts_have_one_receipt),
    Sabotage(Law.TWICE, a_part_is_there_twice),
    Sabotage(Law.MISPLACED, two_parts_have_changed_their_places),
    Sabotage(Law.MISPLACED, two_parts_have_changed_their_texts),
    Sabotage(Law.UNDELIVERED, a_part_was_never_sent, later_ms=400_000),
    Sabotage(Law.OTHER_CHAT, a_part_stands_in_the_chat_of_others),
    Sabotage(Law.GIVEN_UP, a_part_failed_and_nobody_says_why),
    Sabotage(Law.LOST, a_part_is_of_a_turn_that_is_not_there),
    Sabotage(Law.EPOCH, a_part_was_written_in_an_epoch_to_come),
    Sabotage(Law.NO_FILE, a_file_that_is_to_be_sent_is_not_there),
    Sabotage(Law.HOLE, a_row_of_a_journal_is_not_there),
    Sabotage(Law.HOLE, a_journal_is_not_there),
    Sabotage(Law.UNENDED, an_exit_is_not_there),
    Sabotage(Law.UNENDED, an_exit_is_there_twice),
    Sabotage(Law.UNENDED, a_turn_is_open_again),
    Sabotage(Law.OTHER_EXIT, a_turn_has_another_exit),
    Sabotage(Law.EPOCH, the_epochs_of_a_journal_go_backwards),
    Sabotage(Law.EPOCH, a_conversation_has_an_earlier_epoch),
    Sabotage(Law.LOST, a_turn_is_not_there),
    Sabotage(Law.MISPLACED, two_turns_have_changed_their_numbers),
    Sabotage(Law.SPENT, a_turn_used_less_than_its_journal_says),
    Sabotage(Law.LOST, a_tool_call_is_not_recorded),
    Sabotage(Law.UNCLAIMED, an_open_turn_is_nobodys, "middle"),
    Sabotage(Law.UNCLAIMED, an_open_turn_is_left_for_long, "middle", DAY_MS // 24),
    Sabotage(Law.OVERDUE, an_open_turn_is_left_for_long, "middle", DAY_MS // 2),
    Sabotage(Law.STRANDED, an_open_turn_is_left_for_long, "middle", DAY_MS // 2),
    Sabotage(Law.LOST, a_message_is_new_again),
    Sabotage(Law.OVERTAKEN, a_message_is_new_again),
    Sabotage(Law.LOST, a_message_of_a_turn_is_not_there),
    Sabotage(Law.LOST, a_message_is_taken_by_nobody),
    Sabotage(Law.STRANDED, a_message_waits_and_nobody_takes_it, later_ms=400_000),
    Sabotage(Law.LOST, what_was_said_into_a_running_turn_was_not_heard),
    Sabotage(Law.UNTOLD, a_message_was_given_up_without_a_word),
    Sabotage(Law.MISPLACED, a_message_has_another_place),
    Sabotage(Law.SPENT, a_budget_forgot_what_was_spent),
    Sabotage(Law.SPENT, a_budget_holds_something_for_nobody),
    Sabotage(Law.HELD, a_call_is_open_for_ever, later_ms=400_000),
    Sabotage(Law.NOT_FIRED, something_active_has_no_time),
    Sabotage(Law.NOT_FIRED, something_active_comes_in_ten_years),
    Sabotage(Law.NOT_FIRED, something_that_comes_again_and_again_is_over),
    Sabotage(Law.NOT_FIRED, a_reminder_is_over_and_never_came),
    Sabotage(Law.UNREADABLE, when_something_comes_cannot_be_read),
    Sabotage(Law.TWICE, what_was_heard_waits_once_more),
    Sabotage(Law.TWICE, what_was_heard_has_a_turn_as_well),
    Sabotage(Law.STRANDED, a_message_waits_in_a_conversation_that_was_set_aside, later_ms=400_000),
    Sabotage(Law.OTHER_CHAT, an_answer_stands_in_the_chat_of_others_under_its_name),
    Sabotage(Law.UNREADABLE, what_a_call_holds_makes_no_sense),
    Sabotage(Law.NOT_FIRED, something_due_did_not_happen, "middle", later_ms=400_000),
)
