"""What a program says is nothing for us, and that is seen without reading it: a look at the JSON says no more than reading it would."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.inbound import MessageDeleted, by_a_bot, read_body
from adapters.slack.section import Direct

ME = "U0"

INNER = st.fixed_dictionaries(
    {"ts": st.just("1.000000"), "text": st.sampled_from(["hi", f"<@{ME}> hi", ""])},
    optional={
        "user": st.sampled_from([ME, "U1", "USLACKBOT", None]),
        "bot_id": st.sampled_from(["B0", "", None]),
        "subtype": st.sampled_from(["tombstone", "bot_message", "file_share", "channel_join"]),
    },
)
EVENTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["message", "app_mention", "app_home_opened", "reaction_added"]),
        "channel": st.sampled_from(["D1", "C1"]),
    },
    optional={
        "user": st.sampled_from([ME, "U1"]),
        "bot_id": st.sampled_from(["B0", ""]),
        "text": st.just("hi"),
        "ts": st.just("1.000000"),
        "tab": st.just("messages"),
        "subtype": st.sampled_from(["message_changed", "message_deleted", "bot_message", "file_share"]),
        "deleted_ts": st.just("1.000000"),
        "message": INNER,
        "previous_message": st.one_of(INNER, st.none()),
    },
)


@given(EVENTS)
def test_what_slack_tells_of_a_program_means_nothing_when_it_is_read(event: dict[str, Any]) -> None:
    if not by_a_bot(event, ME):
        return
    read = read_body({"event": event}, ME, "T1", Direct.ONE)
    assert read is None or isinstance(read, MessageDeleted)
    if isinstance(read, MessageDeleted):
        before: dict[str, Any] = event["previous_message"]
        assert before.get("bot_id") or before.get("user") == ME, "a program's own, which no turn answers"


@given(EVENTS)
def test_what_slack_tells_of_a_person_is_always_read(event: dict[str, Any]) -> None:
    told = event.get("message") if event.get("subtype") == "message_changed" else event
    if (
        not (told or {}).get("bot_id")
        and (told or {}).get("user") == "U1"
        and event.get("subtype") != "message_deleted"
    ):
        assert not by_a_bot(event, ME) or (told or {}).get("subtype") == "tombstone"
