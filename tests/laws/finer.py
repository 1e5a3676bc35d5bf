"""Finer sabotages: small shifts, exchanged numbers, counts that are wrong by one, rows that are gone from the middle. See `sabotages`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, delete, insert, select, update

from agent_core.store import tables as t
from agent_core.store.turns.rows import ROWS_A_TURN
from gateway.laws.law import Law
from tests.laws.sabotages import Sabotage, long_turn, one

_u, _d, _i, _j, _s, _h, _p = t.turns.c, t.deliveries.c, t.inbox.c, t.journal.c, t.sessions.c, t.hooks.c, t.pieces.c


def _exchanged(
    conn: Connection, key: Column[Any], which: tuple[Any, Any], column: Column[Any], between: object
) -> None:
    """Two rows have what the other had."""
    (first,), (second,) = (one(conn, select(column).where(key == each)) for each in which)
    for row, value in ((which[0], between), (which[1], first), (which[0], second)):
        conn.execute(update(column.table).where(key == row).values({column.name: value}))


def _first_parts(conn: Connection) -> tuple[int, int]:
    rows = conn.execute(select(_d.id).where(_d.origin == long_turn(conn)).order_by(_d.part).limit(2)).all()
    return rows[0][0], rows[1][0]


# ---------------------------------------------------------------------- of parts


def two_parts_have_changed_their_numbers(conn: Connection) -> None:
    _exchanged(conn, _d.id, _first_parts(conn), _d.part, 99)


def two_parts_have_changed_their_receipts(conn: Connection) -> None:
    _exchanged(conn, _d.id, _first_parts(conn), _d.platform_id, "for a moment")


def a_part_has_the_receipt_of_a_message_to_come(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == _first_parts(conn)[0]).values(platform_id="999999"))


def a_part_has_the_receipt_of_the_question(conn: Connection) -> None:
    (key,) = one(conn, select(_i.platform_key).where(_i.turn == long_turn(conn)))
    number = str(key).rpartition(":")[2]
    conn.execute(update(t.deliveries).where(_d.id == _first_parts(conn)[0]).values(platform_id=number))


def a_part_was_sent_before_its_turn_began(conn: Connection) -> None:
    conn.execute(
        update(t.deliveries).where(_d.id == _first_parts(conn)[0]).values(sending_at=_d.sending_at - 3_600_000)
    )


def a_part_was_written_before_its_turn_had_an_owner(conn: Connection) -> None:
    conn.execute(update(t.deliveries).where(_d.id == _first_parts(conn)[0]).values(epoch=0))


def the_decision_about_a_call_is_not_shown(conn: Connection) -> None:
    row = one(conn, select(_d.id).where(_d.bubble.like("%.asked")))
    conn.execute(delete(t.deliveries).where(_d.id == row[0]))


# ---------------------------------------------------------------------- of turns


def _turn_with(conn: Connection, **values: object) -> None:
    conn.execute(update(t.turns).where(_u.turn == long_turn(conn)).values(**values))


def a_turn_ended_a_second_earlier(conn: Connection) -> None:
    _turn_with(conn, closed_at=_u.closed_at - 1_000)


def a_turn_began_a_second_earlier(conn: Connection) -> None:
    _turn_with(conn, opened_at=_u.opened_at - 1_000)


def a_turn_had_a_minute_more(conn: Connection) -> None:
    _turn_with(conn, deadline=_u.deadline + 60_000)


def _conversation_with(conn: Connection, **values: object) -> None:
    (session,) = one(conn, select(_u.session).where(_u.turn == long_turn(conn)))
    conn.execute(update(t.sessions).where(_s.session == session).values(**values))


def a_conversation_is_told_from_a_turn_to_come(conn: Connection) -> None:
    _conversation_with(conn, since=9_999)


def a_conversation_goes_on_behind_a_turn_to_come(conn: Connection) -> None:
    _conversation_with(conn, tip=9_999)


def nobody_has_spoken_in_a_conversation_for_a_year(conn: Connection) -> None:
    """By this it is old, and may be removed."""
    _conversation_with(conn, last_at=_s.last_at - 365 * 24 * 3_600_000)


def the_settings_of_a_conversation_cannot_be_read(conn: Connection) -> None:
    _conversation_with(conn, policy="{{")


def a_conversation_belongs_to_a_process_that_never_was(conn: Connection) -> None:
    _conversation_with(conn, owner=4_711)


def a_call_was_approved_by_nobody(conn: Connection) -> None:
    number, body = one(conn, select(_j.id, _j.body).where(_j.kind == "ApprovalAnswered"))
    before, mark, behind = bytes(body).partition(b'"by":"')
    assert mark
    conn.execute(update(t.journal).where(_j.id == number).values(body=before + mark + b'"' + behind.partition(b'"')[2]))


# ---------------------------------------------------------------------- of messages


def _message_with(conn: Connection, **values: object) -> None:
    conn.execute(update(t.inbox).where(_i.turn == long_turn(conn)).values(**values))


def a_message_of_a_turn_counts_as_a_command(conn: Connection) -> None:
    _message_with(conn, lane="command")


def a_message_came_some_seconds_after_its_turn_began(conn: Connection) -> None:
    """Behind those that came next, too."""
    turn, number = one(conn, select(_u.turn, _u.first_message).where(_u.number == 2, _u.first_message > 1))
    (behind,) = one(conn, select(_i.received_at).where(_i.id == number + 1))
    conn.execute(update(t.inbox).where(_i.turn == turn).values(received_at=behind + 5_000))


def a_request_is_gone_with_all_that_came_of_it(conn: Connection) -> None:
    """But for its number, which no other has."""
    session, turn, first = one(
        conn,
        select(_u.session, _u.turn, _u.first_message)
        .join(t.sessions, _s.session == _u.session)
        .where(_s.key.like("api/once/%")),
    )
    rows = (_j.id >= first * ROWS_A_TURN, _j.id < (first + 1) * ROWS_A_TURN)
    conn.execute(delete(t.journal).where(*rows))
    for table, which in (
        (t.hooks, _h.turn == turn), (t.reservations, t.reservations.c.session == session), (t.inbox, _i.id == first),
        (t.turns, _u.turn == turn), (t.sessions, _s.session == session),
    ):  # fmt: skip
        conn.execute(delete(table).where(which))


# ---------------------------------------------------------------------- of what is told outside


def _told(conn: Connection) -> tuple[str, str]:
    """The message and the turn of a webhook that was told in the middle."""
    rows = conn.execute(select(_h.message, _h.turn).where(_h.event == "turn.ended").order_by(_h.number)).all()
    assert len(rows) > 2
    return rows[1][0], rows[1][1]


def what_a_webhook_was_told_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.hooks).where(_h.message == _told(conn)[0]))


def a_webhook_was_told_of_another_exit(conn: Connection) -> None:
    message, _ = _told(conn)
    (body,) = one(conn, select(_h.body).where(_h.message == message))
    assert b'"exit":"answered"' in bytes(body)
    changed = bytes(body).replace(b'"exit":"answered"', b'"exit":"cancelled"')
    conn.execute(update(t.hooks).where(_h.message == message).values(body=changed))


def a_webhook_was_told_of_another_turn(conn: Connection) -> None:
    message, turn = _told(conn)
    (other,) = one(conn, select(_u.turn).where(_u.turn != turn))
    conn.execute(update(t.hooks).where(_h.message == message).values(turn=other))


def a_webhook_was_told_of_a_turn_that_is_not_there(conn: Connection) -> None:
    conn.execute(update(t.hooks).where(_h.message == _told(conn)[0]).values(turn="t_nobody"))


def a_webhook_was_told_of_an_earlier_end(conn: Connection) -> None:
    """Or its turn says that it ended later."""
    _, turn = _told(conn)
    conn.execute(update(t.turns).where(_u.turn == turn).values(closed_at=_u.closed_at + 2_000))


# ---------------------------------------------------------------------- of what is stored once for many


def _piece(conn: Connection) -> int:
    return int(one(conn, select(_p.piece).order_by(_p.refs.desc(), _p.piece))[0])


def a_long_text_counts_as_needed_once_more(conn: Connection) -> None:
    conn.execute(update(t.pieces).where(_p.piece == _piece(conn)).values(refs=_p.refs + 1))


def a_long_text_counts_as_needed_once_less(conn: Connection) -> None:
    conn.execute(update(t.pieces).where(_p.piece == _piece(conn), _p.refs > 1).values(refs=_p.refs - 1))


def a_long_text_is_not_there(conn: Connection) -> None:
    conn.execute(delete(t.pieces).where(_p.piece == _piece(conn)))


def a_long_text_is_shorter_than_it_says(conn: Connection) -> None:
    conn.execute(update(t.pieces).where(_p.piece == _piece(conn)).values(size=_p.size + 1))


# ---------------------------------------------------------------------- of budgets, times and pauses


def a_budget_counts_a_call_more(conn: Connection) -> None:
    b = t.budgets.c
    conn.execute(update(t.budgets).where(b.scope.not_like("daily:%")).values(calls=b.calls + 1))


def a_budget_takes_what_is_known_for_an_estimate(conn: Connection) -> None:
    b = t.budgets.c
    conn.execute(update(t.budgets).where(b.scope.not_like("daily:%")).values(estimated_tokens=b.spent_tokens + 1))


def _fired(conn: Connection) -> Any:
    return one(conn, select(t.occurrences.c.schedule, t.occurrences.c.due_at))


def what_has_come_may_come_once_more(conn: Connection) -> None:
    conn.execute(update(t.schedules).where(t.schedules.c.schedule == _fired(conn)[0]).values(done_to=0))


def what_has_come_names_another_message(conn: Connection) -> None:
    (other,) = one(conn, select(_i.id).where(_i.turn == long_turn(conn)))
    conn.execute(update(t.occurrences).where(t.occurrences.c.schedule == _fired(conn)[0]).values(inbox=other))


def what_is_to_come_at_one_time_comes_a_little_later(conn: Connection) -> None:
    c = t.schedules.c
    conn.execute(
        update(t.schedules).where(c.state == "active", c.rule.like("once%")).values(next_at=c.next_at + 60_000)
    )


def what_comes_again_and_again_comes_a_little_later(conn: Connection) -> None:
    c = t.schedules.c
    which = (c.state == "active", c.rule.like("every%"))
    conn.execute(update(t.schedules).where(*which).values(next_at=c.next_at + 600_000))


def what_is_to_come_is_to_be_seen_by_others(conn: Connection) -> None:
    c = t.schedules.c
    conn.execute(update(t.schedules).where(c.state == "active").values(surface="telegram/7000000001/4711/"))


def a_platform_wants_to_be_left_alone_for_ten_years(conn: Connection) -> None:
    rests = {"account": "telegram/7000000001", "bucket": "", "not_before": 4_000_000_000_000, "reason": "x", "at": 1}
    conn.execute(insert(t.gates).values(**rests))


FINER: tuple[Sabotage, ...] = (
    Sabotage(Law.MISPLACED, two_parts_have_changed_their_numbers),
    Sabotage(Law.NO_RECEIPT, two_parts_have_changed_their_receipts),
    Sabotage(Law.NO_RECEIPT, a_part_has_the_receipt_of_a_message_to_come),
    Sabotage(Law.NO_RECEIPT, a_part_has_the_receipt_of_the_question),
    Sabotage(Law.MISPLACED, a_part_was_sent_before_its_turn_began),
    Sabotage(Law.EPOCH, a_part_was_written_before_its_turn_had_an_owner),
    Sabotage(Law.GAP, the_decision_about_a_call_is_not_shown),
    Sabotage(Law.MISPLACED, a_turn_ended_a_second_earlier),
    Sabotage(Law.MISPLACED, a_turn_began_a_second_earlier),
    Sabotage(Law.MISPLACED, a_turn_had_a_minute_more),
    Sabotage(Law.MISPLACED, a_conversation_is_told_from_a_turn_to_come),
    Sabotage(Law.MISPLACED, a_conversation_goes_on_behind_a_turn_to_come),
    Sabotage(Law.MISPLACED, nobody_has_spoken_in_a_conversation_for_a_year),
    Sabotage(Law.UNREADABLE, the_settings_of_a_conversation_cannot_be_read),
    Sabotage(Law.UNREADABLE, a_call_was_approved_by_nobody),
    Sabotage(Law.LOST, a_message_of_a_turn_counts_as_a_command),
    Sabotage(Law.MISPLACED, a_message_came_some_seconds_after_its_turn_began),
    Sabotage(Law.OTHER_WORDS, a_webhook_was_told_of_another_exit),
    Sabotage(Law.OTHER_WORDS, a_webhook_was_told_of_another_turn),
    Sabotage(Law.LOST, a_webhook_was_told_of_a_turn_that_is_not_there),
    Sabotage(Law.MISPLACED, a_webhook_was_told_of_an_earlier_end),
    Sabotage(Law.CHANGED, a_long_text_counts_as_needed_once_more),
    Sabotage(Law.CHANGED, a_long_text_counts_as_needed_once_less),
    Sabotage(Law.CHANGED, a_long_text_is_not_there),
    Sabotage(Law.CHANGED, a_long_text_is_shorter_than_it_says),
    Sabotage(Law.SPENT, a_budget_counts_a_call_more),
    Sabotage(Law.SPENT, a_budget_takes_what_is_known_for_an_estimate),
    Sabotage(Law.TWICE, what_has_come_may_come_once_more),
    Sabotage(Law.LOST, what_has_come_names_another_message),
    Sabotage(Law.NOT_FIRED, what_is_to_come_at_one_time_comes_a_little_later),
    Sabotage(Law.NOT_FIRED, what_comes_again_and_again_comes_a_little_later),
    Sabotage(Law.OTHER_CHAT, what_is_to_come_is_to_be_seen_by_others),
    Sabotage(Law.UNDELIVERED, a_platform_wants_to_be_left_alone_for_ten_years),
)

ON_SQLITE: tuple[Sabotage, ...] = (
    Sabotage(Law.EPOCH, a_conversation_belongs_to_a_process_that_never_was),
    Sabotage(Law.LOST, a_request_is_gone_with_all_that_came_of_it),
    Sabotage(Law.LOST, what_a_webhook_was_told_is_not_there),
)
"""What a server does not let anybody do; and what is known by a number that is missing, where numbers are given one after the other."""
