"""The laws of webhooks, of platforms' positions, and of when messages came, as functions of rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.discord.platform import PLATFORM as DISCORD
from agent_core.messages import InputMessage
from agent_core.store.evidence import LONG_MS, Cursor, EvidencePage, HookEvidence, MessageEvidence
from agent_core.store.inbox.rows import CursorRow, InboxState
from agent_core.store.turns.rows import TurnRow, TurnState
from agent_core.store.webhooks.rows import HookRow, HookState, ReceiverRow
from gateway.laws.auditor import SETTLES_MS, Audited, Auditor
from gateway.laws.law import Law, Viewpoint
from gateway.laws.others import of_message
from gateway.laws.outside import AHEAD_MS, of_cursors, of_hooks
from gateway.laws.shown import doubled
from gateway.queues.inbox import COMMAND_LANE, encode
from gateway.webhooks.deciding import again, given_up, settled
from gateway.webhooks.posting import Attempt
from tests.laws.test_laws import ALIVE, NODE, NOW, SESSION, sent, stored

DUE = HookRow("msg_1", "crm", "turn.ended", "s_1", "t_1", b"{}", 0)
LATE = ALIVE.late
AROUND = st.integers(NOW - 2 * LATE, NOW + 2 * LATE)


@given(AROUND, AROUND, AROUND, AROUND, st.booleans(), st.booleans())
def test_a_message_to_a_webhook_waits_too_long_exactly_when_nothing_keeps_it_back(
    at: int, retry_at: int, not_before: int, up_since: int, off: bool, runs: bool
) -> None:
    row = replace(DUE, at=at, retry_at=retry_at)
    receiver = ReceiverRow("crm", "https://crm", off="it is gone" if off else "", not_before=not_before)
    moment = replace(ALIVE, nodes=(replace(NODE, started_at=up_since),), runs=runs)
    found = {one.law for one in of_hooks(HookEvidence((row,), (), (receiver,)), moment)}
    since = max(at, retry_at, not_before, up_since if runs else 0)
    assert found == ({Law.UNDELIVERED} if not off and NOW - since > LATE else set())


ATTEMPTS = st.builds(
    Attempt,
    st.sampled_from([0, 200, 204, 302, 410, 429, 500, 503]),
    st.just("it did not answer"),
    st.sampled_from(["", "60"]),
)


@given(st.lists(ATTEMPTS, max_size=15), st.integers(0, 15))
def test_what_its_sender_makes_of_a_message_breaks_none(attempts: list[Attempt], asked_again: int) -> None:
    row, receiver, now = replace(DUE, at=NOW), ReceiverRow("crm", "https://crm"), NOW
    for number, attempt in enumerate(attempts):
        if row.state is HookState.WAITING and not receiver.off:
            now = max(now, row.retry_at, receiver.not_before)
            row, receiver = settled(row, receiver, attempt, now, 0.5)
        elif receiver.off:
            row = given_up(row, receiver.off, now) if row.state is HookState.WAITING else row
        if number == asked_again:
            row = again(row, now)
        unfounded = (row.state is HookState.SENT and not row.attempt) or (
            row.state is HookState.GIVEN_UP and not row.cause
        )
        assert not unfounded
        due = (row,) if row.state is HookState.WAITING and row.retry_at <= now - LATE else ()
        assert list(of_hooks(HookEvidence(due, (), (receiver,)), replace(ALIVE, now=now))) == []


@given(AROUND, AROUND, AROUND, st.integers(-2 * AHEAD_MS, 3 * AHEAD_MS))
def test_a_channel_is_ahead_exactly_when_it_is_so_of_all_that_is_known_of_the_time(
    now: int, latest: int, started: int, ahead: int
) -> None:
    known = max(now, latest, started)
    number = str((known + ahead - 1_420_070_400_000) << 22)
    assert DISCORD.written_at(number) == known + ahead
    moment = Viewpoint(now, (replace(NODE, started_at=started),), runs=True)
    rows = [CursorRow("discord/1", channel, number) for channel in ("77", "heard:0")]
    others = [
        CursorRow("discord/1", "dm:5", "-"),
        CursorRow("discord/1", "starts:a", str(now)),
        CursorRow("cli/x", "y", "z"),
    ]
    found = [one.law for one in of_cursors([*rows, *others], replace(moment, latest=latest))]
    assert found == ([Law.AHEAD] * 2 if ahead > AHEAD_MS else [])


@given(st.integers(0, 2 * LATE), st.none() | st.integers(0, 2 * LATE), st.sampled_from([None, "damaged"]))
def test_a_message_waits_since_it_came_whatever_it_says_itself(said: int, by: int | None, aside: str | None) -> None:
    waiting = stored(turn=None, state=InboxState.NEW, received_at=NOW - said)
    seen = MessageEvidence(waiting, replace(SESSION, quarantined=aside), None, came_by=None if by is None else NOW - by)
    stranded = Law.STRANDED in {one.law for one in of_message(seen, ALIVE)}
    assert stranded == (max(said, by or 0) > LATE)


def test_a_message_came_before_its_turn_ended_unless_the_clock_was_set() -> None:
    turn = TurnRow("t_1", "s_1", 1, TurnState.CLOSED, "answered", NOW, NOW, NOW, first_message=1, last_message=1)
    late = stored(received_at=NOW + LONG_MS + 1)

    def broken(*beside: int) -> bool:
        seen = MessageEvidence(late, SESSION, turn, beside=beside)
        return Law.MISPLACED in {one.law for one in of_message(seen, ALIVE)}

    assert broken(NOW, NOW)
    assert broken(NOW)
    assert not broken(NOW, NOW + 1_000), "the clock was set, and others came meanwhile"
    assert not broken()


@given(st.integers(-LATE, 3 * LATE), st.integers(0, 3 * LATE))
def test_a_message_that_waits_for_a_running_turn_waits_no_longer_than_that_may_run(left: int, said: int) -> None:
    open_turn = TurnRow("t_1", "s_1", 1, TurnState.OPEN, None, NOW, None, NOW + left, first_message=1, last_message=1)
    waiting = stored(2, turn=None, state=InboxState.NEW, received_at=NOW - said)
    seen = MessageEvidence(waiting, SESSION, None, open_turn=open_turn)
    assert (Law.STRANDED in {one.law for one in of_message(seen, ALIVE)}) == (min(said, -left) > LATE)


def test_a_message_that_was_taken_away_may_have_given_its_receipt_to_another() -> None:
    parts = [sent(0, platform_id="5", gone=True), sent(1, platform_id="5")]
    assert [*doubled(parts, parts)] == []


def test_a_chat_with_another_id_counts_its_messages_anew() -> None:
    before = sent(0, platform_id="5", surface="telegram/1/-9/", key="telegram/1/5//t1/b/0", origin="t1")
    after = sent(1, platform_id="5", surface="telegram/1/-9/", key="telegram/1/-9//t1/b/1", origin="t1")
    assert [*doubled([before, after], [])] == []


async def test_what_has_ended_only_just_now_is_looked_at_once_more() -> None:
    """Others that are stored behind it may have ended before it."""

    async def closed_turns(after: Cursor, limit: int) -> EvidencePage[TurnRow]:
        del limit
        return EvidencePage((), () if after[0] == NOW else ((NOW - 60_000, "t_1"), (NOW, "t_2")))

    found = Audited()
    await Auditor(cast("Any", SimpleNamespace(closed_turns=closed_turns)), ALIVE)._ended_turns(found)
    assert found.mark.turns == (NOW - SETTLES_MS, "")


@pytest.mark.parametrize("said", ["/status", "/hold 5 hello"])
def test_what_a_person_asks_is_answered_and_what_the_gateway_gives_to_itself_may_be_silent(said: str) -> None:
    origin = ChatOrigin(ChatAddress("telegram", "1", "7"), ChatKind.PRIVATE, ChatPerson("7", "Ada"))
    asked = FromChat(
        account="telegram/1", platform_key="k", session=SessionKey("telegram", "1", "7"), input=(InputMessage(said),),
        surface="telegram", memory_scope="s", chat=origin,
    )  # fmt: skip
    done = stored(turn=None, state=InboxState.DONE, lane=COMMAND_LANE, body=encode(asked))
    unseen = Law.UNSEEN in {one.law for one in of_message(MessageEvidence(done, SESSION, None), ALIVE)}
    assert unseen == (said == "/status")


def test_whose_conversation_is_not_there_is_told() -> None:
    assert Law.UNREADABLE in {one.law for one in of_message(MessageEvidence(stored(), None, None), ALIVE)}
