"""The laws themselves, as functions of rows: whatever is stored, they answer; what is in order breaks none; and what is hurt breaks one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.chat import ChatAddress, Content, ContentKind
from adapters.contract.contents import encode
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import new_part, want_hash
from adapters.text.styled import Styled
from agent_core.journal.rows import row_of
from agent_core.messages import InputMessage
from agent_core.store.budgets.rows import PotRow, ReservationRow, ReservationState
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.evidence import KeptPart, KeptRow, LedgerEvidence, MessageEvidence, TurnEvidence, spent_by
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.schedules.rows import ScheduleRow, ScheduleState
from agent_core.store.sessions.rows import NodeRow, SessionRow
from agent_core.store.tables import row_id
from agent_core.store.turns.rows import FORGOTTEN, JournalRow, TurnRow, TurnState
from gateway.laws.law import KEPT_MS, UNCLAIMED_MS, Law, Viewpoint
from gateway.laws.others import ZONES_MS, of_ledger, of_message, of_times, of_times_to_come
from gateway.laws.shown import _behind_the_turn_before, _elsewhere, doubled, of_part, of_shown, waits
from gateway.laws.turns import folded, of_turn
from gateway.queues.inbox import encode as encode_message
from gateway.schedule import schedules
from gateway.schedule import times as times_of_rules
from gateway.schedule.schedules import TASK, claimed, decide, paused, resumed, synced
from gateway.schedule.times import Rule
from tests.agent_core.turns import opened
from tests.gateway.test_schedules import FIRST, HOUR_MS, RULES, plan

NOW = 1_800_000_000_000
NODE = NodeRow(3, "n_3", NOW - 10 * 3_600_000, "0", "boot")
ALIVE = Viewpoint(NOW, (NODE,), runs=True)
SESSION = SessionRow("s_1", "telegram/1/2//", 3, 4)
DONE_TO_IT = ("claimed", "paused", "another rule", "the same")
words, small = st.text(max_size=8), st.integers(-2, 9)
times = st.integers(0, NOW + 1_000_000)
maybe = st.none() | words

turn_rows = st.builds(
    TurnRow, turn=words, session=words, number=small, state=st.sampled_from(TurnState), exit=maybe, opened_at=times,
    closed_at=st.none() | times, deadline=times, removed=words, first_message=small, last_message=small, model=words,
)  # fmt: skip
inbox_rows = st.builds(
    InboxRow, id=small, account=words, platform_key=words, session=words, arrival=small,
    lane=st.sampled_from(["normal", "command", "refused"]), body=st.binary(max_size=8), state=st.sampled_from(InboxState),
    reason=maybe, received_at=times, suspicion=small, person=words, turn=maybe,
)  # fmt: skip
session_rows = st.builds(SessionRow, session=words, key=words, owner=st.none() | small, epoch=small, quarantined=maybe)
kinds = st.sampled_from(["TurnOpened", "TextArrived", "TurnEnded", "ToolStarted", "Nonsense"])
kept_rows = st.builds(
    KeptRow, small, small, st.builds(JournalRow, seq=small, kind=kinds, body=st.binary(max_size=8), at=times)
)
part_rows = st.builds(
    DeliveryRow, surface=words, origin=words, bubble=words, part=small, place=small, want=st.binary(max_size=8), want_hash=words,
    key=words, state=st.sampled_from(DeliveryState), final=st.booleans(), gone=st.booleans(), platform_id=maybe, cause=words, at=times,
)  # fmt: skip
kept_parts = st.builds(KeptPart, small, words, small, part_rows)
moments = st.builds(
    Viewpoint, times, st.lists(st.just(NODE)).map(tuple), st.integers(0, 10_000), words, st.none() | st.booleans()
)
turns_seen = st.builds(
    TurnEvidence, turn_rows, st.none() | session_rows, st.none() | turn_rows, st.lists(kept_rows, max_size=4).map(tuple), words,
    st.lists(inbox_rows, max_size=3).map(tuple), st.lists(kept_parts, max_size=3).map(tuple),
)  # fmt: skip


@given(turns_seen, moments)
def test_whatever_is_stored_of_a_turn_the_laws_answer(seen: TurnEvidence, moment: Viewpoint) -> None:
    for one in (*of_turn(seen, moment), *of_shown(seen, moment)):
        assert one.what.endswith((".", "!")) or ": " in one.what
        assert one.law.advice


@given(
    st.builds(
        MessageEvidence, inbox_rows, st.none() | session_rows, st.none() | turn_rows, st.none() | turn_rows, small
    ),
    moments,
)
def test_whatever_is_stored_of_a_message_the_laws_answer(seen: MessageEvidence, moment: Viewpoint) -> None:
    assert all(one.law.advice for one in of_message(seen, moment))


def open_turn(**more: object) -> TurnEvidence:
    turn = TurnRow(
        "t_1", "s_1", 1, TurnState.OPEN, None, NOW - 5_000, None, NOW + 60_000, first_message=1, last_message=1
    )
    message = InboxRow(1, "telegram/1", "k", "s_1", 1, "normal", b"{}", InboxState.TAKEN, None, NOW - 5_000, turn="t_1")
    rows = tuple(KeptRow(row_id(1, n), 4, JournalRow(n, "TurnOpened", b"{}", NOW)) for n in range(1))
    return replace(TurnEvidence(turn, SESSION, None, rows, messages=(message,)), **more)


def laws(seen: TurnEvidence, moment: Viewpoint = ALIVE) -> set[Law]:
    return {one.law for one in of_turn(seen, moment)} - {Law.UNREADABLE}  # its one row says nothing


def test_an_open_turn_that_somebody_works_on_breaks_none() -> None:
    assert laws(open_turn()) == set()


@given(st.integers(-1_000_000, 1_000_000))
def test_an_open_turn_is_overdue_exactly_when_its_time_was_over_for_too_long(ms: int) -> None:
    moment = replace(ALIVE, now=NOW + 60_000 + ALIVE.late + ms)
    assert (Law.OVERDUE in laws(open_turn(), moment)) == (ms > 0)


@given(st.integers(1, 5), st.booleans(), st.booleans(), st.integers(0, 10 * UNCLAIMED_MS))
def test_an_open_turn_is_unclaimed_exactly_when_its_owner_is_gone_for_too_long(
    owner: int, ended: bool, runs: bool, ago: int
) -> None:
    node = replace(NODE, started_at=NOW - ago, ended_at=NOW - ago if ended else None)
    seen = open_turn(session=replace(SESSION, owner=owner))
    seen = replace(seen, turn=replace(seen.turn, opened_at=NOW - 3_600_000))
    gone = owner != node.node or ended or not runs
    assert (Law.UNCLAIMED in laws(seen, Viewpoint(NOW, (node,), runs=runs))) == (gone and ago > UNCLAIMED_MS)


@given(st.integers(1, 5), st.frozensets(st.integers(1, 5)), st.integers(0, 10 * UNCLAIMED_MS))
def test_of_several_gateways_whoever_lives_may_work(owner: int, living: frozenset[int], ago: int) -> None:
    nodes = tuple(replace(NODE, node=number, started_at=NOW - ago) for number in (3, 2, 1))
    seen = open_turn(session=replace(SESSION, owner=owner))
    seen = replace(seen, turn=replace(seen.turn, opened_at=NOW - 3_600_000))
    moment = Viewpoint(NOW, nodes, runs=True, living=living)
    assert (Law.UNCLAIMED in laws(seen, moment)) == (owner not in living and ago > UNCLAIMED_MS)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
@example([2, 1])
@example([4, 3, 4])
@example([1, 2, 1])
def test_epochs_of_a_journal_only_rise_and_never_beyond_the_conversations(epochs: list[int]) -> None:
    rows = tuple(
        KeptRow(row_id(1, n), epoch, JournalRow(n, "TurnOpened", b"{}", NOW)) for n, epoch in enumerate(epochs)
    )
    broken = Law.EPOCH in laws(open_turn(journal=rows))
    assert broken == (epochs != sorted(epochs) or max(epochs) > SESSION.epoch)


@given(st.integers(0, 9), st.sampled_from([SESSION.session, "s_2"]))
def test_what_a_turn_shows_in_another_conversation_is_of_that_ones_epoch(epoch: int, session: str) -> None:
    row = DeliveryRow("telegram/1/2/", "t_1", "text0", 0, 1, b"{}", "h", "telegram/1/2/t_1/text0/0")
    seen = open_turn(parts=(KeptPart(1, session, epoch, row),))
    assert (Law.EPOCH in laws(seen)) == (session == SESSION.session and epoch != SESSION.epoch), (
        "its turn began in this one"
    )


@given(st.permutations(range(5)), st.integers(0, 4))
def test_a_journal_without_a_row_or_with_two_in_each_others_place_has_a_hole(order: list[int], missing: int) -> None:
    rows = [KeptRow(row_id(1, n), 4, JournalRow(n, "TurnOpened", b"{}", NOW)) for n in order if n != missing]
    assert (Law.HOLE in laws(open_turn(journal=tuple(rows)))) == ([n for n in order if n != missing] != [0, 1, 2, 3])


def sent(number: int = 0, text: str = "hello", **more: object) -> KeptPart:
    content = Content(ContentKind.TEXT, Styled(text))
    part = new_part(WantedPart("text0", number, content, final=True), "telegram/1/2/", "t_1", number)
    row = replace(part.row, state=DeliveryState.SENT, platform_id=str(100 + number), at=NOW)
    return KeptPart(number + 1, "s_1", 4, replace(row, **more))


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_part_is_changed_exactly_when_content_and_fingerprint_part(text: str, other: str) -> None:
    want = encode(Content(ContentKind.TEXT, Styled(other)))
    part = sent(text=text, want=want)
    assert bool([*of_part(part)]) == (want_hash(want) != part.row.want_hash)


@given(st.sampled_from(DeliveryState), st.booleans(), st.none() | st.just("5") | st.just("grows:5"), st.booleans())
def test_what_is_recorded_as_delivered_has_a_receipt(
    state: DeliveryState, gone: bool, receipt: str | None, final: bool
) -> None:
    found = {one.law for one in of_part(sent(state=state, gone=gone, platform_id=receipt, final=final, cause="why"))}
    wanting = state is DeliveryState.SENT and final and not gone and receipt != "5"
    assert (Law.NO_RECEIPT in found) == wanting


@given(st.sampled_from(DeliveryState), st.integers(0, 1_000_000))
def test_a_part_waits_too_long_exactly_when_it_is_open_beyond_its_time(state: DeliveryState, ms: int) -> None:
    open_still = state in (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)
    assert bool([*waits(sent(state=state), NOW - ms, ALIVE)]) == (open_still and ms > ALIVE.late)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_two_parts_of_a_chat_never_have_one_receipt(receipts: list[int]) -> None:
    parts = [sent(n, platform_id=str(one)) for n, one in enumerate(receipts)]
    assert len([*doubled(parts, parts)]) == len(receipts) - len(set(receipts))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=6),
    st.sampled_from(["spent_tokens", "held_tokens", "spent_nanos", "held_nanos"]),
    st.integers(-2, 2),
)
def test_budgets_agree_with_their_calls_to_the_token(calls: list[tuple[bool, int]], what: str, off: int) -> None:
    rows = [
        ReservationRow(f"t:1:{n}", "s_1", 3, ReservationState.OPEN if held else ReservationState.SETTLED,
                       f'[["day:all",{NOW}]]', amount, 7 * amount, amount, 7 * amount, estimated=False, at=NOW)
        for n, (held, amount) in enumerate(calls)
    ]  # fmt: skip
    held, spent = sum(a for is_held, a in calls if is_held), sum(a for is_held, a in calls if not is_held)
    figures = {"spent_tokens": spent, "held_tokens": held, "spent_nanos": 7 * spent, "held_nanos": 7 * held}
    pot = replace(PotRow("day:all", NOW, NOW + 1), **figures | {what: figures[what] + off})
    under_way = tuple(row for row in rows if row.state is ReservationState.OPEN)
    over = spent_by(row for row in rows if row.state is ReservationState.SETTLED)
    found = [*of_ledger(LedgerEvidence((pot,), under_way, over, steady=True), ALIVE)]
    assert bool(found) == bool(off)


SAID = encode_message(
    FromApi(
        account="telegram/1", platform_key="k", session=SessionKey("api", "", "s"), input=(InputMessage("hello"),), surface="api",
        memory_scope="api/ada",
    )
)  # fmt: skip


def stored(number: int = 1, turn: str | None = "t_1", **more: object) -> InboxRow:
    made = InboxRow(number, "telegram/1", "k", "s_1", number, "normal", SAID, InboxState.TAKEN, None, NOW, turn=turn)
    return replace(made, **more)


def taken(message: InboxRow, of: str = "s_1", last: int = 2, **more: object) -> set[Law]:
    """The laws that a message breaks which a turn took, or none did."""
    turn = TurnRow("t_1", of, 1, TurnState.OPEN, None, NOW, None, NOW + 60_000, first_message=1, last_message=last)
    seen = MessageEvidence(message, SESSION, turn if message.turn == turn.turn else None)
    seen = replace(seen, **more)
    return {one.law for one in of_message(seen, ALIVE)}


def test_a_turn_has_the_messages_with_which_it_began_and_no_others() -> None:
    two = replace(open_turn().turn, last_message=2)
    sound = open_turn(turn=two, messages=(stored(), stored(2)))
    assert laws(sound) == set()
    for messages in (
        (stored(),),
        (stored(2),),
        (stored(), stored(2, None)),
        (stored(), stored(2, "t_2")),
        (stored(), stored(2), stored(3)),
        (stored(), stored(2, session="s_2")),
        (stored(), stored(2, state=InboxState.NEW)),
        (stored(), stored(2, state=InboxState.DROPPED)),
    ):
        assert laws(replace(sound, messages=messages)) == {Law.LOST}, messages
    assert laws(replace(sound, messages=(stored(), stored(2, state=InboxState.DONE)))) == set()
    unkept = replace(two, first_message=0)
    assert Law.LOST not in laws(replace(sound, turn=unkept, messages=())), "earlier versions did not say"


def test_a_message_that_is_taken_is_taken_by_a_turn_that_knows_it() -> None:
    for state in (InboxState.TAKEN, InboxState.DONE):
        assert taken(stored(state=state)) == taken(stored(2, state=state)) == set()
        assert taken(stored(3, state=state)) == {Law.LOST}
        assert taken(stored(turn="t_2", state=state)) == {Law.LOST}, "the turn is not there"
        assert taken(stored(state=state), of="s_2") == {Law.LOST}
        assert taken(stored(3, state=state), last=0) == set(), "earlier versions did not say"
    assert taken(stored(turn=None)) == {Law.LOST}


def test_a_message_that_is_done_was_taken_or_heard_or_its_chat_was_told() -> None:
    done = stored(turn=None, state=InboxState.DONE)
    assert taken(done) == {Law.LOST}
    assert taken(done, heard=True) == taken(done, told=True) == set()
    assert taken(replace(done, lane="command")) == set()
    assert taken(replace(done, received_at=NOW - KEPT_MS)) == {Law.LOST}
    assert taken(replace(done, received_at=NOW - KEPT_MS - 1)) == set()
    gone = TurnRow("t_0", "s_1", 1, TurnState.CLOSED, "answered", NOW, NOW, NOW, removed="by wish")
    assert taken(done, around=(gone,)) == set()
    assert taken(done, around=(replace(gone, removed=""),)) == {Law.LOST}


def test_a_turn_that_is_closed_ends_with_its_exit_unless_its_conversation_was_set_aside() -> None:
    turn = replace(open_turn().turn, state=TurnState.CLOSED, exit="internal_error", closed_at=NOW)
    aside = replace(SESSION, quarantined="damaged")

    def ended(*kinds: str, session: SessionRow = SESSION) -> bool:
        rows = [
            KeptRow(row_id(1, n), 4, JournalRow(n, kind, b"{}", NOW)) for n, kind in enumerate(("TurnOpened", *kinds))
        ]
        return Law.UNENDED not in laws(open_turn(turn=turn, session=session, journal=tuple(rows)))

    for session in (SESSION, aside):
        assert not ended("TurnEnded", "TextArrived", session=session)
        assert not ended("TurnEnded", "TurnEnded", session=session)
    assert not ended("TextArrived")
    assert ended("TextArrived", session=aside)


def test_a_turn_that_is_forgotten_breaks_one_exactly_when_something_of_it_is_there() -> None:
    turn = replace(open_turn().turn, state=TurnState.CLOSED, exit="answered", closed_at=NOW - 1_000, removed=FORGOTTEN)
    for parts in ((), (sent(),)):
        found = of_turn(open_turn(turn=turn, journal=(), parts=parts), ALIVE)
        assert any("is forgotten" in one.what for one in found) is bool(parts)


def test_a_turn_is_what_its_journal_tells_and_nothing_without_one() -> None:
    told = KeptRow(row_id(1, 0), 4, row_of(opened(), 0))
    turn = folded(open_turn(journal=(told,)))
    assert turn is not None
    assert turn.opened is not None
    for more in ({"journal": ()}, {"journal": (told,), "unreadable": True}, {"journal": (told, told)}):
        assert folded(open_turn(**more)) is None


def test_what_another_conversation_has_asked_is_anothers_unless_this_one_was_set_aside() -> None:
    chat = ChatAddress("telegram", "1", "2")
    asked: Any = SimpleNamespace(chat=SimpleNamespace(address=chat), session=SessionKey("telegram", "1", "2"))
    here = sent(key=f"{chat.text()}/t_1/text0/0")
    for quarantined, parts, broken in ((None, (here,), True), ("why", (here,), False), (None, (), False)):
        session = replace(SESSION, key="telegram/1/9//", quarantined=quarantined)
        found = list(_elsewhere(open_turn(session=session, parts=parts), asked))
        assert [one.law for one in found] == [Law.OTHER_CHAT] * broken
    assert not list(_elsewhere(open_turn(session=None, parts=(here,)), asked))


def test_what_a_turn_ended_with_stands_behind_the_words_of_the_one_before_and_not_behind_its_buttons() -> None:
    for kind, broken in ((ContentKind.TEXT, True), (ContentKind.APPROVAL, False)):
        before = sent(5, want=encode(Content(kind, Styled("before"))))
        seen = open_turn(parts_before=(before,))
        found = list(_behind_the_turn_before(seen, [sent(3)]))
        assert [one.law for one in found] == [Law.MISPLACED] * broken


# ---------------------------------------------------------------------- of times


@given(
    RULES, RULES, st.lists(st.tuples(st.sampled_from(DONE_TO_IT), st.integers(-3 * HOUR_MS, 8 * HOUR_MS)), max_size=8)
)
def test_a_schedule_breaks_none_whatever_was_done_to_it_and_whatever_the_clock_did(
    rule: Rule, other: Rule, steps: list[tuple[str, int]]
) -> None:
    now, row = FIRST, synced(None, rule, plan(), FIRST)
    for what, step in steps:
        now = max(FIRST, now + step)
        assert row is not None
        assert list(of_times_to_come([row], ALIVE)) == []
        match what:
            case "claimed":
                kept, known = schedules.decode(row)
                while (claim := decide(known, row.next_at, kept.if_missed, 0, now)) is not None:
                    row = claimed(row, kept, claim, now)[0].schedule
            case "paused":
                row = resumed(paused(row, now), times_of_rules.decode(row.rule), now + 60_000) or row
            case "another rule":
                row = synced(row, other, plan(), now) or row
            case _:
                row = synced(row, times_of_rules.decode(row.rule), plan(), now) or row
    assert row is not None
    assert list(of_times_to_come([row], ALIVE)) == []


def test_a_task_that_runs_for_long_has_no_time_and_breaks_none() -> None:
    task = ScheduleRow("task:c", TASK, "web/page/c", "", 1, f"once {NOW}", b"{}", None, at=NOW - 10 * HOUR_MS)
    assert list(of_times([task], ALIVE)) == []
    assert list(of_times_to_come([task, replace(task, state=ScheduleState.DONE)], ALIVE)) == []


@given(RULES, st.integers(ZONES_MS + 1, 10**12))
def test_what_comes_later_than_its_rule_says_breaks_one(rule: Rule, ms: int) -> None:
    row = synced(None, rule, plan(), FIRST)
    assert row is not None
    if row.next_at is not None:
        late = replace(row, next_at=row.next_at + ms)
        assert [one.law for one in of_times_to_come([late], ALIVE)] == [Law.NOT_FIRED]
        over = replace(row, next_at=None, state=ScheduleState.DONE)
        assert [one.law for one in of_times_to_come([over], ALIVE)] == [Law.NOT_FIRED]


def test_where_one_gateway_serves_the_newest_process_lives_until_it_has_ended() -> None:
    ended, before = replace(NODE, ended_at=NOW - 5), replace(NODE, node=2)
    for runs in (True, None, False):
        assert Viewpoint(NOW, (NODE, before), runs=runs).alive(NODE.node) is (runs is not False)
        assert not Viewpoint(NOW, (ended, before), runs=runs).alive(NODE.node)
        assert not Viewpoint(NOW, (NODE, before), runs=runs).alive(before.node)
        assert not Viewpoint(NOW, (), runs=runs).alive(NODE.node)


@pytest.mark.parametrize("runs", [True, None, False])
def test_there_is_somebody_who_does_what_is_due_from_when_the_newest_began_until_it_has_ended(
    runs: bool | None,
) -> None:
    before, ended = replace(NODE, node=NODE.node - 1, started_at=1), replace(NODE, ended_at=NOW - 5)
    since = NODE.started_at if runs is not False else 0
    assert Viewpoint(NOW, (NODE, before), runs=runs).up_since == since
    assert Viewpoint(NOW, (ended, before), runs=runs).up_since == 0
    assert Viewpoint(NOW, (), runs=runs).up_since == 0
