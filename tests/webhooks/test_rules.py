"""What is sent next, what follows from an attempt, which receiver hears of what, and signatures: the pure rules."""

from __future__ import annotations

import base64
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_core.retry import HOOK, HOOK_RECEIVER
from agent_core.store.webhooks.rows import HookRow, HookState, ReceiverRow, StoredHook
from gateway.webhooks import signing
from gateway.webhooks.deciding import (
    DAY_MS,
    HOUR_MS,
    LONGEST_PAUSE_MS,
    OLD_MS,
    WANTED,
    Attempt,
    again,
    given_up,
    next_up,
    pause_ms,
    settled,
    too_old,
)
from gateway.webhooks.events import (
    MOST_BODY_BYTES,
    HookEvent,
    HookFact,
    HookRule,
    body,
    message,
    messages,
    wants,
)

NOW = 1_800_000_000_000
ON = ReceiverRow("deploy", "https://example.org/hook")
KEY = b"k" * 32
keys = st.binary(min_size=24, max_size=64)


def row(number: int, session: str = "s", **more: object) -> HookRow:
    made = HookRow(f"msg_{number}", "deploy", "turn.ended", session, f"t_{number}", b"{}", NOW)
    return replace(made, **more)


# ---------------------------------------------------------------------- signatures


def test_a_signature_is_the_one_of_the_specifications_own_libraries() -> None:
    # https://github.com/standard-webhooks/standard-webhooks, the vector of its libraries' tests
    key = signing.key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signing.signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.lists(keys, min_size=1, max_size=3, unique=True), st.binary(max_size=200), st.integers(0, 10**10))
def test_what_is_signed_with_several_secrets_is_good_with_each_of_them(
    secrets: list[bytes], content: bytes, seconds: int
) -> None:
    heads = signing.headers(secrets, "msg_1", seconds * 1000, content)
    stamp, signed = heads["webhook-timestamp"], heads["webhook-signature"]
    for key in secrets:
        assert signing.unsigned([key], "msg_1", stamp, signed, content, seconds * 1000) is None


@given(keys, keys, st.binary(max_size=50), st.binary(max_size=50), st.integers(-(10**7), 10**7))
def test_nothing_else_is_found_good(ours: bytes, other: bytes, content: bytes, changed: bytes, apart: int) -> None:
    assume(ours != other and content != changed)
    heads = signing.headers([ours], "msg_1", NOW, content)
    stamp, signed = heads["webhook-timestamp"], heads["webhook-signature"]
    at = int(stamp) * 1000
    late = at + apart
    found = signing.unsigned([ours], "msg_1", stamp, signed, content, late)
    if abs(apart) <= signing.TOLERANCE_MS:
        assert found is None
    else:
        assert found is (signing.Unsigned.TOO_OLD if apart > 0 else signing.Unsigned.TOO_NEW)
    wrong = signing.Unsigned.WRONG
    assert signing.unsigned([other], "msg_1", stamp, signed, content, at) is wrong
    assert signing.unsigned([ours], "msg_1", stamp, signed, changed, at) is wrong
    assert signing.unsigned([ours], "msg_2", stamp, signed, content, at) is wrong
    assert signing.unsigned([ours], "msg_1", str(int(stamp) + 1), signed, content, at) is wrong


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=60), st.binary(max_size=20))
def test_any_headers_are_refused_without_a_mistake(name: str, stamp: str, signed: str, content: bytes) -> None:
    assert signing.unsigned([b"k" * 32], name, stamp, signed, content, NOW) is not None
    assert signing.github_unsigned([b"k"], signed, content) is not None


def test_githubs_signature_is_the_one_of_its_documentation() -> None:
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    heads = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert signing.github_unsigned([b"other", b"It's a Secret to Everybody"], heads, b"Hello, World!") is None
    assert signing.github_unsigned([b"It's a Secret to Everybody"], heads, b"Hello, World?") is signing.Unsigned.WRONG


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!!!", f"whsec_{base64.b64encode(b'short').decode()}", "geheim€"])
def test_a_secret_that_is_none_is_refused_without_being_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match=r"base64|bytes") as caught:
        signing.key_of(secret)
    assert secret not in str(caught.value)


# ---------------------------------------------------------------------- what is sent next


waits = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(0, 3), st.integers(-HOUR_MS, HOUR_MS)), max_size=12
)


@given(waits, st.integers(1, 6), st.integers(0, 4), st.data())
def test_never_more_is_under_way_than_may_and_only_one_to_a_receiver_that_fails(
    found: list[tuple[str, int, int]], most: int, failures: int, data: st.DataObject
) -> None:
    waiting = [
        StoredHook(n, row(n, session, attempt=tries, retry_at=NOW + later if tries else 0))
        for n, (session, tries, later) in enumerate(found)
    ]
    count = data.draw(st.integers(0, min(most, len(waiting))))
    under_way = [one.row for one in waiting[:count]]
    todo = next_up(waiting, under_way, replace(ON, failures=failures), NOW, most)
    assert len(todo.send) + count <= max(count, 1 if failures else most)
    chosen = [one.row.message for one in todo.send]
    assert len(set(chosen)) == len(chosen)
    assert not set(chosen) & {one.message for one in under_way}
    assert all(one.row.retry_at <= NOW for one in todo.send)
    sessions = [one.session for one in under_way if one.session] + [
        one.row.session for one in todo.send if one.row.session
    ]
    of_each = {session: sessions.count(session) for session in set(sessions)}
    assert all(of_each[one.row.session] == 1 for one in todo.send if one.row.session)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=15), st.integers(1, 4), st.integers(0, 2**32))
def test_first_attempts_of_a_conversation_are_made_in_order_whatever_fails(
    sessions: list[str], most: int, seed: int
) -> None:
    chance, now = Random(seed), NOW
    rows = {n: row(n, session) for n, session in enumerate(sessions)}
    receiver, under_way = ON, dict[int, HookRow]()
    first = defaultdict[str, list[int]](list)
    for _ in range(10_000):
        waiting = [
            StoredHook(n, one) for n, one in rows.items() if one.state is HookState.WAITING and one.retry_at <= now
        ]
        for one in next_up(waiting, list(under_way.values()), receiver, now, most).send:
            under_way[one.number] = one.row
            if not one.row.attempt:
                first[one.row.session].append(one.number)
        if not under_way:
            left = [one for one in rows.values() if one.state is HookState.WAITING]
            if not left:
                break
            now = max(now + 1, min(max(one.retry_at, receiver.not_before) for one in left))
            continue
        number = chance.choice([*under_way])
        came = Attempt(chance.choice([200, 200, 500, 0]))
        rows[number], receiver = settled(under_way.pop(number), receiver, came, now, chance.random())
        now += chance.randrange(5_000)
    assert all(one.state is not HookState.WAITING for one in rows.values()), "something was never sent or given up"
    assert all(numbers == sorted(numbers) for numbers in first.values())


def test_nothing_is_sent_to_a_receiver_that_is_off_or_wants_a_pause() -> None:
    waiting = [StoredHook(1, row(1))]
    assert next_up(waiting, [], replace(ON, off="it answered 410"), NOW, 4).send == ()
    paused = next_up(waiting, [], replace(ON, not_before=NOW + 5), NOW, 4)
    assert (paused.send, paused.look_at) == ((), NOW + 5)


# ---------------------------------------------------------------------- what follows


@given(st.integers(0, 599), st.integers(0, 20), st.floats(0, 1), st.integers(0, 50))
def test_a_message_is_sent_given_up_or_tried_later_and_never_forgotten(
    code: int, tries: int, chance: float, failures: int
) -> None:
    before = row(1, attempt=tries)
    receiver = replace(ON, failures=failures, failing_since=NOW - 5 if failures else 0)
    after, there = settled(before, receiver, Attempt(code, "no answer"), NOW, chance)
    assert (after.message, after.body) == (before.message, before.body)
    if 200 <= code < 300:
        assert after.state is HookState.SENT
        assert (there.failures, there.failing_since, there.not_before, there.off) == (0, 0, 0, "")
    elif code == 410:
        assert after.state is HookState.GIVEN_UP
        assert there.off
    else:
        given = HOOK.over(tries + 1)
        assert after.state is (HookState.GIVEN_UP if given else HookState.WAITING)
        assert given or after.retry_at > NOW
        assert after.cause
        assert there.failures == failures + 1
        assert NOW < there.not_before <= NOW + 60_000


def test_it_is_tried_for_about_a_day_as_the_specification_asks() -> None:
    for chance, least, most in ((0.0, 22, 24), (1.0, 24, 27)):
        one, now = row(1), NOW
        while one.state is HookState.WAITING:
            one, _ = settled(one, ON, Attempt(500), now, chance)
            now = max(now, one.retry_at)
        assert least <= (now - NOW) / HOUR_MS <= most


@given(st.sampled_from([429, 503]), st.integers(0, 10**9), st.integers(0, 30))
def test_what_a_receiver_asks_for_is_waited_for_and_is_no_failure_of_the_message(
    code: int, seconds: int, tries: int
) -> None:
    after, there = settled(row(1, attempt=tries), ON, Attempt(code, retry_after=str(seconds)), NOW, 0.5)
    wait = max(min(seconds * 1000, LONGEST_PAUSE_MS), HOOK_RECEIVER.ms(1, 0.5))
    assert (after.state, after.attempt, after.retry_at, there.not_before) == (
        HookState.WAITING, tries, NOW + wait, NOW + wait,
    )  # fmt: skip


@pytest.mark.parametrize("header", ["0", "Fri, 01 Jan 1999 00:00:00 GMT"])
def test_who_asks_for_no_pause_is_asked_as_slowly_as_who_says_nothing(header: str) -> None:
    one, there, now = row(1), ON, NOW
    for _ in range(30):
        one, there = settled(one, there, Attempt(503, retry_after=header), now, 1.0)
        now = max(one.retry_at, there.not_before)
    assert now - NOW > 20 * 60_000, "else it would be asked without an end, each time at once"


@given(st.text(max_size=40))
def test_any_retry_after_is_read_or_left(header: str) -> None:
    found = pause_ms(header, NOW)
    assert found is None or 0 <= found <= LONGEST_PAUSE_MS


def test_a_retry_after_may_be_a_date() -> None:
    at = datetime.fromtimestamp((NOW + 90_000) / 1000, UTC)
    assert pause_ms(format_datetime(at, usegmt=True), NOW) == 90_000
    assert pause_ms("Fri, 01 Jan 1999 00:00:00 GMT", NOW) == 0


def test_what_is_old_is_given_up_only_where_its_receiver_has_taken_nothing_for_a_day() -> None:
    old, new = StoredHook(1, row(1, at=NOW - OLD_MS - 1)), StoredHook(2, row(2, at=NOW - 5))
    assert too_old([old, new], ON, NOW) == []
    assert too_old([old, new], replace(ON, failing_since=NOW - DAY_MS + 1), NOW) == []
    gone = too_old([old, new], replace(ON, failing_since=NOW - DAY_MS), NOW)
    assert [one.message for one in gone] == ["msg_1"]


@pytest.mark.parametrize("attempt", [Attempt(500), Attempt(429, retry_after="60"), Attempt(words="nobody answers")])
def test_what_somebody_has_sent_again_is_tried_once_more_however_old_it_is_and_whatever_became_of_its_receiver(
    attempt: Attempt,
) -> None:
    failing = replace(ON, failures=9, failing_since=NOW - 2 * DAY_MS)
    gone = given_up(row(1, at=NOW - 2 * OLD_MS, attempt=3), "why", NOW)
    wanted = again(gone, NOW)
    assert wanted.state is HookState.WAITING
    assert too_old([StoredHook(1, wanted)], failing, NOW + 5) == []
    assert next_up([StoredHook(1, wanted)], (), failing, NOW, 4).send == (StoredHook(1, wanted),)
    tried, after = settled(wanted, failing, attempt, NOW + 9, 0.5)
    assert [one.message for one in too_old([StoredHook(1, tried)], after, NOW + 9)] == ["msg_1"]
    taken, _ = settled(wanted, failing, Attempt(200), NOW + 9, 0.5)
    assert (taken.state, taken.cause) == (HookState.SENT, "")


# ---------------------------------------------------------------------- who hears of what

TURN = HookFact(
    event=HookEvent.TURN_ENDED, subject="t_1", at=NOW, session="s_1", key="telegram/4711/12345/7/",
    turn="t_1", exit="answered", words={"asked": "secret question", "answer": "secret answer"},
)  # fmt: skip
GATEWAY = HookFact(event=HookEvent.INCIDENT_OPENED, subject="i_1", at=NOW, facts={"model": "m"})


@pytest.mark.parametrize(
    ("rule", "heard"),
    [
        (HookRule("r"), True),
        (HookRule("r", events=frozenset({HookEvent.TURN_ENDED})), True),
        (HookRule("r", events=frozenset({HookEvent.ALERT})), False),
        (HookRule("r", exits=frozenset({"answered"})), True),
        (HookRule("r", exits=frozenset({"failed"})), False),
        (HookRule("r", surfaces=frozenset({"telegram"})), True),
        (HookRule("r", surfaces=frozenset({"api"})), False),
        (HookRule("r", chats=frozenset({"telegram/12345"})), True),
        (HookRule("r", chats=frozenset({"telegram/12345/7"})), True),
        (HookRule("r", chats=frozenset({"telegram/12345/8"})), False),
        (HookRule("r", chats=frozenset({"telegram/123"})), False),
        (HookRule("r", sessions=frozenset({"s_1"})), True),
        (HookRule("r", sessions=frozenset({"telegram/4711/12345/7/"})), True),
        (HookRule("r", sessions=frozenset({"s_2"})), False),
    ],
)
def test_a_receiver_hears_of_what_its_rule_names(rule: HookRule, heard: bool) -> None:
    assert wants(rule, TURN) is heard


def test_failed_stands_for_every_end_that_is_not_clean() -> None:
    rule = HookRule("r", exits=frozenset({"failed"}))
    assert wants(rule, replace(TURN, exit="model_silent", clean=False))
    assert not wants(rule, replace(TURN, exit="stopped", clean=True))


def test_what_concerns_the_gateway_is_in_no_chat() -> None:
    assert wants(HookRule("r", chats=frozenset({"telegram/1"}), exits=frozenset({"failed"})), GATEWAY)


def test_words_are_only_told_to_whoever_is_to_have_them() -> None:
    facts, words = messages([HookRule("a"), HookRule("b", words=True)], TURN)
    assert b"secret" not in facts.body
    assert orjson.loads(words.body)["data"]["words"] == {"asked": "secret question", "answer": "secret answer"}
    assert facts.message != words.message


@given(
    st.text(max_size=100), st.text(), st.dictionaries(st.text(max_size=10), st.text()), st.integers(-(10**15), 10**18)
)
def test_any_happening_has_a_body_and_the_same_id_each_time(
    subject: str, said: str, facts: dict[str, str], at: int
) -> None:
    what = HookFact(event=HookEvent.ALERT, subject=subject, at=at, facts=facts, words={"text": said * 3_000})
    one, two = message(HookRule("r", words=True), what), message(HookRule("r", words=True), what)
    assert one == two
    assert "." not in one.message
    assert len(one.body) <= MOST_BODY_BYTES + 1_000 * len(facts)
    assert orjson.loads(one.body)["type"] == "alert"
    assert body(what, words=False) != b""


def test_half_of_a_surrogate_pair_hinders_nothing() -> None:
    what = HookFact(event=HookEvent.ALERT, subject="x", at=NOW, facts={"text": "a\ud83d"}, words={"w": "\udc00"})
    assert orjson.loads(message(HookRule("r", words=True), what).body)["data"]["text"] == "a?"


def test_what_is_under_way_is_not_sent_a_second_time() -> None:
    one, two = row(1, ""), row(2, "")
    waiting = [StoredHook(1, one), StoredHook(2, two)]
    assert [each.row for each in next_up(waiting, [one], ON, NOW, 4).send] == [two]
    assert next_up(waiting, [one, two], ON, NOW, 4).send == ()


def test_of_a_conversation_one_is_sent_at_a_time_and_of_no_conversation_as_many_as_may() -> None:
    waiting = [StoredHook(n, row(n, session)) for n, session in enumerate(("s", "s", "", "", "other"))]
    chosen = next_up(waiting, (), ON, NOW, 9)
    assert [one.number for one in chosen.send] == [0, 2, 3, 4]
    assert [one.number for one in next_up(waiting[1:], (row(0, "s"),), ON, NOW, 9).send] == [2, 3, 4]
    assert [one.number for one in next_up(waiting, (), ON, NOW, 2).send] == [0, 2]


def test_since_when_a_receiver_fails_is_the_first_time_in_a_row() -> None:
    receiver = ON
    for at in (NOW, NOW + 5, NOW + 9):
        _, receiver = settled(row(1), receiver, Attempt(500), at, 0.5)
        assert (receiver.failing_since, receiver.at) == (NOW, at)
    assert receiver.failures == 3
    _, receiver = settled(row(1), receiver, Attempt(204), NOW + 20, 0.5)
    assert (receiver.failures, receiver.failing_since, receiver.not_before) == (0, 0, 0)
    _, receiver = settled(row(1), receiver, Attempt(500), NOW + 30, 0.5)
    assert receiver.failing_since == NOW + 30


def test_a_message_counts_each_attempt_once_and_is_done_when_it_is_taken_or_its_receiver_is_gone() -> None:
    sent, _ = settled(row(1, attempt=2, cause="x"), ON, Attempt(200), NOW, 0.5)
    assert (sent.state, sent.attempt, sent.cause, sent.done_at) == (HookState.SENT, 3, "", NOW)
    gone, there = settled(row(1, attempt=2), ON, Attempt(410), NOW, 0.5)
    assert (gone.state, gone.attempt, gone.done_at, gone.retry_at) == (HookState.GIVEN_UP, 3, NOW, 0)
    assert there.off == "it answered 410 (gone)"
    failed, there = settled(row(1, attempt=2), replace(ON, failures=4), Attempt(500), NOW, 0.5)
    assert (failed.attempt, there.failures) == (3, 5)
    assert there.not_before == NOW + HOOK_RECEIVER.ms(5, 0.5)
    assert failed.retry_at == NOW + HOOK.ms(3, 0.5)
    anew = again(gone, NOW + 7)
    assert (anew.message, anew.attempt, anew.retry_at, anew.done_at, anew.cause) == ("msg_1", 0, NOW + 7, 0, WANTED)


def test_its_time_has_come_when_it_is_there() -> None:
    one = StoredHook(1, row(1, retry_at=NOW))
    assert next_up([one], (), replace(ON, not_before=NOW), NOW, 1).send == (one,)
    assert next_up([one], (), replace(ON, not_before=NOW + 1), NOW, 1).look_at == NOW + 1
    assert next_up([one], (), ON, NOW - 1, 1).look_at == NOW
    exactly = StoredHook(1, row(1, at=NOW - OLD_MS))
    assert too_old([exactly], replace(ON, failing_since=NOW - DAY_MS), NOW) == []


@pytest.mark.parametrize(("zone", "hours"), [("-0000", 0), ("GMT", 0), ("+0200", -2), ("-0500", 5)])
def test_a_date_counts_in_its_own_zone(zone: str, hours: int) -> None:
    at = datetime.fromtimestamp(NOW / 1000, UTC)
    asked = pause_ms(at.strftime(f"%a, %d %b %Y %H:%M:%S {zone}"), NOW - 90_000)
    assert asked == min(max(0, 90_000 + hours * HOUR_MS), LONGEST_PAUSE_MS)


@pytest.mark.parametrize(("status", "redirect"), [(299, False), (300, True), (399, True), (400, False)])
def test_a_redirect_is_named_as_one(status: int, redirect: bool) -> None:
    assert ("redirects are not followed" in Attempt(status).why) is redirect
    assert Attempt(status).taken is (status == 299)
    assert Attempt(words="no answer").why == "no answer"


@given(st.text(st.characters(min_codepoint=1, max_codepoint=0xDFFF), max_size=20), st.binary(max_size=5))
def test_whatever_stands_in_a_header_is_judged(text: str, content: bytes) -> None:
    """What is no UTF-8 there comes as halves of surrogate pairs."""
    assert signing.unsigned([KEY], text, str(NOW // 1000), f"v1,{text}", content, NOW) is not None
    assert signing.github_unsigned([KEY], f"sha256={text}", content) is not None
