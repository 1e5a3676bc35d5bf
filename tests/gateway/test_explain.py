"""`outspoken explain`: what an id is, what is told of it, and that nobody's words are told unasked."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event as sql_event
from sqlalchemy.engine import Engine

from agent_core.explain.why import MOST_LINES, Sentence, StoryEnd, fitted, told
from agent_core.failures import exits
from agent_core.failures.exits import Exit
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.deliveries.rows import AdapterStateRow, DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.reading import open_reads
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import Store
from agent_core.store.troubles.rows import IncidentRow, IncidentState
from agent_core.store.turns.rows import JournalRow
from agent_core.turn.events import DriverFailed, Event, Steered, TurnEnded
from gateway.explain.ids import CannotExplain, IdKind, kinds_of, origins_in, platform_of, time_in, when
from gateway.explain.story import Explainer, ToldStory
from tests.agent_core.journals import rows_of
from tests.agent_core.turns import SETTINGS, Rig
from tests.store.support import FakeClock, opened

NOW = 1_700_000_000_000
SECRET_WORDS = "the meeting is at noon in Lisbon"
BODY = (
    b'{"account":"telegram/1","input":[{"content":"' + SECRET_WORDS.encode() + b'"}],"chat":{"address":'
    b'{"platform":"telegram","account":"1","chat":"7"},"kind":"private","person":{"id":"3","name":"Ada"}}}'
)
SURFACE = "telegram/1/7/"


# ---------------------------------------------------------------------- what an id is


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("t_01m7zeta6tce0f6tbnk2", IdKind.TURN),
        ("s_01m7zeta6mnpf4eb9ng0", IdKind.SESSION),
        ("err_01m7zeta6mnpf4eb9ng0", IdKind.REFERENCE),
        ("i_01m7zeta6mnpf4eb9ng0", IdKind.INCIDENT),
        ("12", IdKind.MESSAGE),
        ("inbox:12", IdKind.MESSAGE),
        ("message:999999999999999999", IdKind.MESSAGE),
        ("message:9999999999999999999", IdKind.PLATFORM_MESSAGE),  # no database can look for it
        (f"delivery:{'9' * 5_000}", IdKind.PLATFORM_MESSAGE),
        ("delivery:12", IdKind.DELIVERY),
        ("telegram/1/7//t_1/text-1/0", IdKind.DELIVERY_KEY),
        ("1304567890123456789", IdKind.PLATFORM_MESSAGE),
        ("C1:1700000000.000100", IdKind.PLATFORM_MESSAGE),
        ("my-own-request", IdKind.PLATFORM_MESSAGE),
        ("resp_s_01m7zeta6mnpf4eb9ng0_12", IdKind.ANSWER),
        ("chatcmpl-s_01m7zeta6mnpf4eb9ng0-12", IdKind.ANSWER),
        ("msg_s_01m7zeta6mnpf4eb9ng0_12_text0", IdKind.ANSWER),
        ("rs_t_01m7zeta6mnpf4eb9ng0_1_0", IdKind.TURN),
    ],
)
def test_the_form_of_an_id_says_what_it_is_looked_up_as_first(text: str, first: IdKind):
    assert kinds_of(text)[0].kind is first


@given(st.text(min_size=1))
def test_any_text_may_be_an_id_of_a_platform_or_a_request(text: str):
    kinds = {wanted.kind for wanted in kinds_of(text)}
    named = text.strip().partition(":")
    prefixed = named[0] in ("inbox", "message", "queue", "delivery") and named[2].isdigit()
    assert prefixed or {IdKind.PLATFORM_MESSAGE, IdKind.REQUEST} <= kinds


@given(st.integers(1_600_000_000_000, 1_900_000_000_000))
def test_an_id_of_ours_and_of_platforms_tells_when_it_was_made(at: int):
    assert time_in(SystemIds(FakeClock(at)).new("err")) == at
    assert time_in(f"7:{(at - 1_420_070_400_000) << 22}") == at
    assert time_in(f"C1:{at // 1000}.{at % 1000:03d}000") == at
    assert platform_of(f"C1:{at // 1000}.000100") == "slack"


@given(
    st.sampled_from(["t_1", "inbox:4", "attached:C1/7:abc", "elsewhere:t_1/x/y"]),
    st.sampled_from(["", "'", "''"]),
    st.integers(0, 9),
)
def test_a_deliverys_key_holds_what_it_belongs_to(origin: str, marks: str, part: int):
    assert origin in origins_in(f"{SURFACE}/{origin}/text-1/{part}{marks}")


@given(st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)), st.integers(0, 23), st.integers(0, 59))
def test_a_time_of_day_is_the_latest_that_has_been(now: datetime, hour: int, minute: int):
    zoned = now.replace(tzinfo=timezone(timedelta(hours=2)))
    at = when(f"{hour}:{minute:02d}", zoned)
    assert timedelta(0) <= zoned - at < timedelta(days=1)
    assert (at.hour, at.minute) == (hour, minute)


@pytest.mark.parametrize("text", ["", "noon", "25:00", "14:61", "2026-13-01 10:00"])
def test_what_is_no_time_is_said_to_be_none(text: str):
    with pytest.raises(CannotExplain, match="is no time"):
        when(text, datetime(2026, 11, 21, tzinfo=UTC))


# ---------------------------------------------------------------------- the form of a story


@given(st.lists(st.booleans(), max_size=60), st.integers(3, 15))
def test_a_story_is_short_in_order_and_keeps_its_frame(frames: list[bool], most: int):
    lines = [Sentence(i, f"line {i}", frame) for i, frame in enumerate(frames)]
    kept = fitted(lines, most)
    assert len(kept) <= most
    assert [line.at for line in kept] == sorted(line.at for line in kept)
    shown = [line for line in kept if not line.words.startswith("…")]
    if sum(frames) < most:
        assert set(shown) >= {line for line in lines if line.frame}
    left = len(lines) - len(shown)
    assert (f"… {left} more events …" in [line.words for line in kept]) is (left > 0)


def test_times_are_of_one_zone_and_another_day_is_named():
    lines = [Sentence(NOW, "one"), Sentence(NOW + 90_000_000, "two")]
    assert told("It.", lines, timezone(timedelta(hours=1), "CET")) == (
        "It. Times are CET (+01:00), 2023-11-14.",
        "23:13:20.0  one",
        "11-16 00:13:20.0  two",
    )


# ---------------------------------------------------------------------- what is stored


def arrival(key: str, lane: str = "normal", at: int = NOW, refused: str = "", body: bytes = BODY) -> NewMessage:
    ids = SystemIds(SystemClock())
    return NewMessage("telegram/1", key, "telegram/1/7//", lane, body, at, None, ids.new("s"), refused)


@asynccontextmanager
async def explaining(place: str, now: int = NOW + 60_000, *, show_text: bool = False) -> AsyncGenerator[Explainer]:
    async with open_reads(place) as reads:
        yield Explainer(reads, lambda: now, show_text=show_text)


def part(turn: str, number: int = 0, **more: object) -> DeliveryRow:
    row = DeliveryRow(
        surface=SURFACE, origin=turn, bubble="text-1", part=number, place=number, want=b"{}", want_hash="h",
        key=f"{SURFACE}/{turn}/text-1/{number}", state=DeliveryState.SENT, platform_id=str(900 + number), at=NOW + 9_000,
    )  # fmt: skip
    return replace(row, **more)


async def begun(
    store: Store, inbox_ids: Sequence[int], session: str, turn: str, at: int
) -> tuple[int, list[JournalRow], Rig]:
    """A turn that has called a tool and answered, as far as its last row but one."""
    rig = Rig(SETTINGS, now=at)
    rig.calls_tool("read", text=SECRET_WORDS)
    rig.returns(SECRET_WORDS)
    rig.says(SECRET_WORDS)
    rows = rows_of(rig.fed)
    epoch = await store.sessions.claim(session)
    await store.turns.start(session, epoch, turn, inbox_ids, rows[0], at, at + 900_000)
    return epoch, rows[1:], rig


async def answered(
    store: Store, keys: Sequence[str], turn: str, at: int = NOW, parts: Sequence[DeliveryRow] = (), more: Sequence[Event] = (),
    ending: Exit | None = None, heard: Sequence[int] = (),
) -> list[int]:  # fmt: skip
    """Messages that were taken together and answered; their numbers."""
    accepted = [await store.inbox.accept(arrival(key, at=at)) for key in keys]
    numbers = [one.inbox_id for one in accepted]
    session = accepted[0].session
    epoch, rows, rig = await begun(store, numbers, session, turn, at + 1_500)
    all_rows = [*rows, *rows_of([*more, TurnEnded(at=rig.now, exit=ending or rig.exit or exits.Answered())])]
    numbered = [replace(row, seq=i) for i, row in enumerate(all_rows, 1)]
    code = (ending or exits.Answered()).code.value
    await store.turns.close(session, epoch, turn, numbered, code, rig.now, parts, (0, 0), heard)
    return numbers


async def told_of(place: str, text: str, *, show_text: bool = False) -> tuple[ToldStory, str]:
    async with explaining(place, show_text=show_text) as explainer:
        found = await explainer.of(text)
    shown = found.text(UTC)
    assert len(shown.splitlines()) <= MOST_LINES
    assert show_text or not any(word in shown for word in ("meeting", "noon", "Lisbon"))
    return found, shown


async def test_a_turn_is_found_by_every_id_that_belongs_to_it(where: str):
    sent = [part("t_1", 0), part("t_1", 1, failures=2, trouble='it cannot read "at noon"', labelled=True)]
    async with opened(where) as store:
        (number,) = await answered(store, ["7:41"], "t_1", parts=sent)
        session = (await store.inbox.inputs("t_1"))[0].session
    for text in (
        "t_1",
        str(number),
        f"inbox:{number}",
        "7:41",
        "41",
        "900",
        "901",
        f"{SURFACE}/t_1/text-1/1",
        "delivery:1",
    ):
        found, shown = await told_of(where, text)
        assert (found.turn, found.exit, found.ending) == ("t_1", "answered", "ended"), text
        assert "The turn was answered." in shown
        assert "Delivered to telegram/1/7/ as message 900 (text-1, part 1)." in shown
        assert "after 2 failed calls (the last: it cannot read “…”), marked as possibly there twice" in shown
        assert "read: done" in shown
    found, shown = await told_of(where, session)
    assert found.kind is IdKind.SESSION
    assert "Turn t_1 began: answered" in shown


async def test_words_are_shown_only_when_asked_for(where: str):
    async with opened(where) as store:
        (number,) = await answered(store, ["7:41"], "t_1")
    _, shown = await told_of(where, str(number), show_text=True)
    assert SECRET_WORDS in shown
    _, shown = await told_of(where, str(number))
    assert f"{len(SECRET_WORDS)} characters" in shown


async def test_messages_that_were_merged_know_of_each_other(where: str):
    async with opened(where) as store:
        first, second = await answered(store, ["7:41", "7:42"], "t_1")
    _, shown = await told_of(where, "7:42")
    assert f"taken together with message {first}" in shown
    assert f"number {second}, id 7:42" in shown


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not allowed to talk", "its person may not talk"),
        ("too_old", "it came too late"),
        ("queue_full", "too many messages were waiting"),
        ("some_new_reason", "It was refused: some new reason."),
    ],
)
async def test_a_refused_message_says_why(sqlite: str, reason: str, words: str):
    async with opened(sqlite) as store:
        accepted = await store.inbox.accept(arrival("7:41", "refused", refused=reason))
        epoch = await store.sessions.claim(accepted.session)
        said = part(f"inbox:{accepted.inbox_id}", platform_id="77")
        await store.deliveries.put(accepted.session, epoch, [said])
    found, shown = await told_of(sqlite, "7:41")
    assert found.ending == StoryEnd.REFUSED.value
    assert words in shown
    assert "Delivered to telegram/1/7/ as message 77" in shown
    assert (await told_of(sqlite, "77"))[0].ending == StoryEnd.REFUSED.value


async def test_a_message_that_waits_says_behind_what(where: str):
    async with opened(where) as store:
        running = await store.inbox.accept(arrival("7:41"))
        await begun(store, [running.inbox_id], running.session, "t_1", NOW + 10)
        await store.inbox.accept(arrival("7:42", at=NOW + 20_000))
        await store.inbox.accept(arrival("7:43", at=NOW + 30_000))
    found, shown = await told_of(where, "7:43")
    assert found.ending == StoryEnd.WAITING.value
    assert "It has waited for 30 s, behind an earlier message and the turn t_1" in shown
    assert (await told_of(where, "t_1"))[0].ending == StoryEnd.RUNNING.value


async def test_a_message_that_waited_says_how_long_and_behind_what(where: str):
    async with opened(where) as store:
        first = await store.inbox.accept(arrival("7:41"))
        second = await store.inbox.accept(arrival("7:42", at=NOW + 1_000))
        epoch, rows, rig = await begun(store, [first.inbox_id], first.session, "t_1", NOW + 10)
        end = rows_of([TurnEnded(at=rig.now, exit=exits.RateLimited())])
        numbered = [replace(row, seq=i) for i, row in enumerate([*rows, *end], 1)]
        await store.turns.close(first.session, epoch, "t_1", numbered, "rate_limited", NOW + 8_000, (), (0, 0), ())
        await begun(store, [second.inbox_id], second.session, "t_2", NOW + 9_000)
    _, shown = await told_of(where, "7:42")
    assert "It had waited for 8.0 s, behind 1 earlier turn: t_1 (rate limited)." in shown


async def test_a_message_that_was_taken_back_or_given_up_says_so(where: str):
    async with opened(where) as store:
        accepted = await store.inbox.accept(arrival("7:41"))
        await store.inbox.drop(accepted.inbox_id, "withdrawn by the person")
    found, shown = await told_of(where, "7:41")
    assert found.ending == StoryEnd.DROPPED.value
    assert "the person took it back" in shown


async def test_a_message_that_was_put_into_a_running_turn_is_found_there(where: str):
    async with opened(where) as store:
        first = await store.inbox.accept(arrival("7:41"))
        steer = await store.inbox.accept(arrival("7:42", at=NOW + 1_000))
        steered = Steered(at=NOW + 1_100, input=InputMessage(SECRET_WORDS), inbox=steer.inbox_id)
        epoch, rows, rig = await begun(store, [first.inbox_id], first.session, "t_1", NOW + 10)
        end = rows_of([steered, TurnEnded(at=rig.now, exit=exits.Answered())])
        numbered = [replace(row, seq=i) for i, row in enumerate([*rows, *end], 1)]
        await store.turns.close(
            first.session, epoch, "t_1", numbered, "answered", NOW + 8_000, (), (0, 0), (steer.inbox_id,)
        )
        assert (await store.inbox.one(steer.inbox_id)) is not None
    found, shown = await told_of(where, "7:42")
    assert (found.ending, found.turn) == (StoryEnd.STEERED.value, "t_1")
    assert "It went into the turn t_1" in shown


async def test_a_command_is_no_turns_and_its_words_are_found(where: str):
    command = BODY.replace(SECRET_WORDS.encode(), b"/steer " + SECRET_WORDS.encode())
    async with opened(where) as store:
        accepted = await store.inbox.accept(arrival("7:41", "command", body=command))
        epoch = await store.sessions.claim(accepted.session)
        led = await store.inbox.accept(arrival("steer:7:41"))
        waiting, _ = await told_of(where, "7:41")
        assert waiting.ending == StoryEnd.WAITING.value
        said = part(f"inbox:{accepted.inbox_id}", platform_id="88")
        await store.sessions.respond(accepted.session, epoch, accepted.inbox_id, SessionChange(), [said])
    found, shown = await told_of(where, "7:41")
    assert found.ending == StoryEnd.COMMAND.value
    assert "The command /steer came from" in shown
    assert f"it led to message {led.inbox_id}" in shown
    assert (await told_of(where, "88"))[0].ending == StoryEnd.COMMAND.value


@pytest.mark.parametrize(
    ("command", "led"),
    [
        ("/new " + SECRET_WORDS, "new:7:41"),
        ("/redo t_1 " + SECRET_WORDS, "redo:7:41:0"),
        ("/press continue:t_9", "continue:t_9"),
        ("/press retry:t_9", "retry:7:41:0"),
        ("/occurred", "scheduled:w1:5"),
    ],
)
async def test_what_a_command_or_a_button_led_to_is_found(sqlite: str, command: str, led: str):
    async with opened(sqlite) as store:
        body = BODY.replace(SECRET_WORDS.encode(), command.encode())
        key = "schedule:w1:5" if led.startswith("scheduled:") else "7:41"
        accepted = await store.inbox.accept(arrival(key, "command", body=body))
        made = await store.inbox.accept(arrival(led))
        epoch = await store.sessions.claim(accepted.session)
        await store.sessions.respond(accepted.session, epoch, accepted.inbox_id, SessionChange(), [])
    _, shown = await told_of(sqlite, key)
    assert f"it led to message {made.inbox_id}" in shown


async def test_a_message_that_was_kept_until_its_time_is_a_message(where: str):
    command = BODY.replace(SECRET_WORDS.encode(), b"/hold 1700000000000 " + SECRET_WORDS.encode())
    async with opened(where) as store:
        accepted = await store.inbox.accept(arrival("7:41", "command", body=command))
        epoch = await store.sessions.claim(accepted.session)
        _, waiting = await told_of(where, "7:41")
        assert "It is kept, and runs when its time comes." in waiting
        led = await store.inbox.accept(arrival("hold:7:41"))
        await store.sessions.respond(accepted.session, epoch, accepted.inbox_id, SessionChange(), [])
    _, shown = await told_of(where, "7:41")
    assert "A message came from" in shown
    assert f"{len(SECRET_WORDS)} characters" in shown
    assert "it was kept, and run later" in shown
    assert f"it led to message {led.inbox_id}" in shown
    assert "/hold" not in shown


async def test_an_error_reference_leads_to_its_turn(where: str):
    reference = SystemIds(FakeClock(NOW + 2_000)).new("err")
    ending = exits.InternalError(reference=reference)
    async with opened(where) as store:
        failed = DriverFailed(at=NOW + 2_000, reference=reference)
        await answered(store, ["7:41"], "t_1", more=[failed], ending=ending)
    found, shown = await told_of(where, reference)
    assert (found.kind, found.turn) == (IdKind.REFERENCE, "t_1")
    assert f"the log has it under {reference}" in shown
    other = SystemIds(FakeClock(NOW + 2_000)).new("err")
    with pytest.raises(CannotExplain, match="Nothing is stored"):
        await told_of(where, other)


async def test_a_request_is_found_by_the_id_that_its_client_gave(where: str):
    def request(key: str) -> NewMessage:
        return replace(arrival(key, body=b'{"input":[{"content":"x"}]}'), account="api")

    async with opened(where) as store:
        keys = ("key:abc", "rid:trace%1:digest", "req_1", "keyed:abcd:mark", "sdk:digest:req_2")
        numbers = [(await store.inbox.accept(request(key))).inbox_id for key in keys]
    for text, number in zip(("abc", "trace%1", "req_1", "abcd", "req_2"), numbers, strict=True):
        assert (await told_of(where, text))[0].id == str(number)


async def test_an_incident_tells_what_it_is_about_and_what_helped(where: str):
    row = IncidentRow(
        incident="i_1", fingerprint="rate_limited|h|m1|-|-", state=IncidentState.OPEN, code="rate_limited", endpoint="h", model="m1",
        tool="", opened_at=NOW, last_at=NOW + 5_000, conversations=3, turns=4, remedy="next_route",
    )  # fmt: skip
    async with opened(where) as store:
        await store.troubles.put_incident(row)
    found, shown = await told_of(where, "i_1")
    assert (found.kind, found.ending) == (IdKind.INCIDENT, "open")
    assert "rate limited of m1 at h" in shown
    assert "4 turns of 3 conversations so far. What helped most: next route." in shown


# ---------------------------------------------------------------------- what never came


@pytest.mark.parametrize("chat", ["telegram/7", "telegram/1/7", "telegram/7***1/7/", "telegram/1/7/22"])
async def test_a_chat_at_a_time_tells_the_message_that_came_then(where: str, chat: str):
    async with opened(where) as store:
        (number,) = await answered(store, ["7:41"], "t_1")
        await answered(store, ["7:42"], "t_2", at=NOW + 120_000)
    async with explaining(where, NOW + 3_600_000) as explainer:
        found = await explainer.chat_at(chat, NOW + 5_000)
        other = await explainer.chat_at("telegram/8", NOW)
    assert (found.id, found.turn, found.found) == (str(number), "t_1", True)
    assert "came 2 min later" in found.text(UTC)
    assert not other.found


async def test_a_message_that_never_came_tells_how_the_adapter_was_doing(where: str):
    down = "The bot's token is not accepted."
    hour = 3_600_000
    async with opened(where) as store:
        await store.inbox.accept(arrival("7:41", at=NOW - hour))
        for row in (
            AdapterStateRow("telegram/1", NOW - 2 * hour, "up"),
            AdapterStateRow("telegram/1", NOW - 60_000, "needs a person", down),
            AdapterStateRow("telegram/1", NOW + 300_000, "up"),
            AdapterStateRow("discord/9", NOW - hour, "up"),
        ):
            await store.deliveries.note_adapter(row)
            await store.deliveries.note_adapter(row)  # whoever is not sure repeats it
    async with explaining(where, NOW + hour) as explainer:
        found = await explainer.chat_at("telegram/7", NOW)
        snowflake = await explainer.of(str((NOW - 1_420_070_400_000) << 22))
    shown = found.text(UTC)
    assert (found.found, found.ending) == (False, "never arrived")
    assert f"The adapter telegram/1 needed a person from then on: {down}" in shown
    assert "The adapter needed a person, so it cannot have come" in shown
    assert "discord" not in shown
    assert "The adapter was up: either it did not reach us" in snowflake.text(UTC)


async def test_old_states_of_adapters_go_and_the_one_in_force_stays(where: str):
    clock = FakeClock(NOW)
    day = 24 * 3_600_000
    async with opened(where, clock) as store:
        for days, state in ((30, "up"), (20, "down"), (10, "up"), (1, "down")):
            await store.deliveries.note_adapter(AdapterStateRow("telegram/1", NOW - days * day, state))
        await store.deliveries.note_adapter(AdapterStateRow("discord/9", NOW - 40 * day, "up"))
        await store.keeping.prune(NOW)
        rows = await store.deliveries.adapter_states(0, NOW)
    assert [(row.account, (NOW - row.at) // day) for row in rows] == [
        ("discord/9", 40), ("telegram/1", 10), ("telegram/1", 1),
    ]  # fmt: skip


async def test_nothing_is_invented_for_an_id_that_is_unknown(sqlite: str):
    async with opened(sqlite):
        pass
    for text in ("t_none", "s_none", "i_none", "12345", "nonsense", "telegram/1/7//t_9/x/0"):
        with pytest.raises(CannotExplain, match="Nothing is stored under"):
            await told_of(sqlite, text)


async def test_a_number_of_a_message_that_was_cleaned_up_says_so(where: str):
    clock = FakeClock(NOW)
    day = 24 * 3_600_000
    async with opened(where, clock) as store:
        old = await store.inbox.accept(arrival("7:41", "refused", at=NOW - 9 * day, refused="queue_full"))
        new = await store.inbox.accept(arrival("7:42", at=NOW))
        await store.keeping.prune(NOW)
        assert await store.inbox.one(old.inbox_id) is None
    for text in (str(old.inbox_id), f"inbox:{old.inbox_id}"):
        found, shown = await told_of(where, text)
        assert (found.found, found.ending) == (False, StoryEnd.FORGOTTEN.value)
        assert "is not stored any more. Messages and deliveries are kept for 7 days" in shown
        assert f"It came before this: the next one that is stored, number {new.inbox_id}." in shown
    with pytest.raises(CannotExplain, match="Nothing is stored"):
        await told_of(where, str(new.inbox_id + 1))
    async with explaining(where, NOW) as explainer:
        never = await explainer.chat_at("telegram/7", NOW - 9 * day)
    assert "one may have come then and been forgotten" in never.text(UTC)


async def test_a_telegram_message_that_never_came_is_told_by_its_neighbours(where: str):
    async with opened(where) as store:
        await store.deliveries.note_adapter(AdapterStateRow("telegram/1", NOW - 60_000, "up"))
        before = await store.inbox.accept(arrival("7:41"))
        after = await store.inbox.accept(arrival("7:44", at=NOW + 30_000))
    found, shown = await told_of(where, "7:42")
    assert (found.found, found.ending) == (False, "never arrived")
    assert f"(number {before.inbox_id})" in shown
    assert f"(number {after.inbox_id})" in shown
    assert "The adapter was up: either it did not reach us" in shown
    for text in ("8:42", "7:99"):
        with pytest.raises(CannotExplain, match="Nothing is stored"):
            await told_of(where, text)


async def test_turns_of_a_time_are_found_among_many(sqlite: str):
    """As a plain look at all of them would, whatever the gaps."""
    chance = random.Random(5)
    async with opened(sqlite) as store:
        session = (await store.inbox.accept(arrival("7:1"))).session
    spans: list[tuple[int, int, int]] = []
    at = NOW
    for number in range(1, 301):
        at += chance.randrange(1, 9_000)
        closed = at + chance.randrange(1, 5_000)
        spans.append((number, at, closed))
        at = closed
    with closing(sqlite3.connect(sqlite)) as conn, conn:
        conn.executemany(
            "INSERT INTO turns (turn, session, number, state, exit, opened_at, closed_at, deadline) "
            "VALUES (?, ?, ?, 'closed', 'answered', ?, ?, 0)",
            [(f"t_{n}", session, n, begun, closed) for n, begun, closed in spans if n % 7],
        )
    async with open_reads(sqlite) as reads:
        for _ in range(60):
            since = chance.randrange(NOW - 10_000, at + 10_000)
            until = since + chance.randrange(0, 60_000)
            found = [turn.number for turn in await reads.turns.between(session, since, until)]
            assert found == [n for n, begun, closed in spans if n % 7 and begun <= until and closed >= since], (
                since,
                until,
            )
        assert await reads.turns.between("s_none", NOW, at) == []


# ---------------------------------------------------------------------- what it costs


async def test_no_question_reads_a_whole_table(sqlite: str):
    """However many events there are: each look-up is a search in an index."""
    async with opened(sqlite) as store:
        reference = SystemIds(FakeClock(NOW)).new("err")
        await answered(store, ["7:41"], "t_1", parts=[part("t_1")])
        await store.deliveries.note_adapter(AdapterStateRow("telegram/1", NOW, "up"))
    asked: list[tuple[str, object]] = []

    def note(_conn: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        asked.append((statement, parameters))

    sql_event.listen(Engine, "before_cursor_execute", note)
    try:
        async with explaining(sqlite) as explainer:
            for text in (
                "t_1",
                "1",
                "7:41",
                "41",
                "900",
                f"{SURFACE}/t_1/text-1/0",
                "delivery:1",
                "s_1",
                "i_1",
                reference,
                "no",
                "7:40",
                "a-request",
                "remind:x",
                "config:x",
                "inbox:0",
                "1700000000.000100",
            ):
                try:
                    await explainer.of(text)
                except CannotExplain:
                    continue
            await explainer.chat_at("telegram/7", NOW)
            await explainer.chat_at("telegram/7", NOW - 9_000_000)
    finally:
        sql_event.remove(Engine, "before_cursor_execute", note)
    assert len(asked) > 50
    with closing(sqlite3.connect(re.sub(r"^sqlite:///", "", sqlite))) as conn, conn:
        for statement, parameters in asked:
            if not statement.lstrip().upper().startswith("SELECT"):
                continue
            plan = [str(row[3]) for row in conn.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]  # type: ignore[arg-type]
            whole = [
                line
                for line in plan
                if re.match(
                    r"SCAN (journal|inbox|turns|deliveries|sessions|troubles|schedules|occurrences|reservations|adapter_states)\b",
                    line,
                )
            ]
            assert not whole, (whole, statement)
            if "inbox.session IN" in statement:  # else all messages of two days would be read
                assert any("inbox_of_session" in line for line in plan), (plan, statement)
