"""The stand-in for Slack: streamed messages, sessions of agents, Stop, and the older status of assistants."""

# The library's annotations leave out what its `**kwargs` and answers hold, so its client is `Any` here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import TEAM, Channel, Message, SessionStatus, SlackFake, StreamState, Task, User


@pytest.fixture
async def fake() -> AsyncGenerator[SlackFake]:
    async with SlackFake() as running:
        yield running


@pytest.fixture
async def client(fake: SlackFake) -> AsyncGenerator[Any]:
    yield AsyncWebClient(token=fake.bot_token, base_url=fake.base_url, retry_handlers=[])
    assert {(call.route, name) for call in fake.log for name in call.ignored} == set()


async def refused(request: Awaitable[Any]) -> str:
    """The word with which a request is refused."""
    with pytest.raises(SlackApiError) as raised:
        await request
    return str(raised.value.response["error"])


def asked(fake: SlackFake) -> tuple[User, Channel, Message]:
    """A person who has asked something in direct messages."""
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    return ada, dm, fake.people.say(dm, ada, "go")


# --- streams ---


async def test_a_stream_grows_and_ends(fake: SlackFake, client: Any) -> None:
    _, dm, root = asked(fake)
    started = await client.chat_startStream(channel=dm.id, thread_ts=root.ts, markdown_text="one ")
    where = {"channel": dm.id, "ts": started["ts"]}
    assert fake.shown(dm, root).answers[0].stream is StreamState.OPEN
    await client.chat_appendStream(markdown_text="two ", **where)
    assert fake.shown(dm, root).texts[-1] == "one two "
    assert await refused(client.chat_update(text="x", **where)) == "streaming_state_conflict"
    assert await refused(client.chat_delete(**where)) == "cant_delete_message"
    stored = {"event_type": "turn", "event_payload": {"id": "t"}}
    again = {
        "type": "actions",
        "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Again"}, "action_id": "again"}],
    }
    await client.chat_stopStream(markdown_text="three", blocks=[again], metadata=stored, **where)
    seen = fake.shown(dm, root).answers[0]
    assert (seen.text, seen.stream, seen.captions, seen.edits) == ("one two three", StreamState.DONE, ["Again"], 0)
    assert seen.metadata == stored
    for request in (client.chat_appendStream(markdown_text="x", **where), client.chat_stopStream(**where)):
        assert await refused(request) == "message_not_in_streaming_state"
    await client.chat_update(text="edited", **where)
    assert fake.shown(dm, root).texts[-1] == "edited"


async def test_the_library_streams_with_chunks(fake: SlackFake, client: Any) -> None:
    ada, dm, root = asked(fake)
    stream = await client.chat_stream(
        channel=dm.id, thread_ts=root.ts, recipient_team_id=TEAM, recipient_user_id=ada.id, buffer_size=4
    )
    await stream.append(markdown_text="hello ")
    step = {"type": "task_update", "id": "1", "title": "Look", "status": "in_progress", "details": "a"}
    await stream.append(chunks=[{"type": "plan_update", "title": "Plan"}, step])
    await stream.append(chunks=[{**step, "status": "complete", "details": "b"}])
    await stream.stop(markdown_text="world")
    seen = fake.shown(dm, root).answers[0]
    assert (seen.text, seen.plan, seen.tasks) == ("hello world", "Plan", (Task("1", "Look", "complete", "ab"),))
    assert fake.log.routes() == ["chat.startStream", "chat.appendStream", "chat.appendStream", "chat.stopStream"]


async def test_what_a_stream_does_not_take(fake: SlackFake, client: Any) -> None:
    _, dm, root = asked(fake)
    where = {"channel": dm.id, "thread_ts": root.ts}
    long = "x" * 12_001
    assert await refused(client.chat_startStream(markdown_text=long, **where)) == "msg_too_long"
    bare = client.api_call("chat.startStream", json={"channel": dm.id, "markdown_text": "x"})
    assert await refused(bare) == "invalid_arguments"
    chunk = {"type": "markdown_text", "text": "x"}
    both = client.chat_startStream(markdown_text="x", chunks=[chunk], **where)
    assert await refused(both) == "cannot_provide_both_markdown_text_and_chunks"
    started = await client.chat_startStream(markdown_text=long[1:], **where)
    open_one = {"channel": dm.id, "ts": started["ts"]}
    await client.chat_appendStream(markdown_text=long[1:], **open_one)
    assert len(fake.shown(dm, root).texts[-1]) == 24_000
    assert await refused(client.chat_appendStream(markdown_text=long, **open_one)) == "msg_too_long"
    assert await refused(client.chat_appendStream(chunks=[chunk], **open_one)) == "streaming_mode_mismatch"
    assert await refused(client.chat_appendStream(**open_one)) == "no_text"
    bad_task = {"type": "task_update", "id": "1", "title": "t", "status": "dreaming"}
    for chunks in ([{"type": "song"}], [bad_task]):
        asking = client.api_call("chat.appendStream", json={**open_one, "chunks": chunks})
        assert await refused(asking) == "invalid_chunks"
    plain = await client.chat_postMessage(channel=dm.id, text="x")
    not_open = client.chat_appendStream(channel=dm.id, ts=plain["ts"], markdown_text="x")
    assert await refused(not_open) == "message_not_in_streaming_state"
    not_ours = client.chat_appendStream(channel=dm.id, ts=root.ts, markdown_text="x")
    assert await refused(not_ours) == "message_not_owned_by_app"


async def test_in_a_channel_a_stream_is_for_somebody_by_name(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    room = fake.people.channel("room", ada)
    root = fake.people.mention(room, ada, "go")
    where = {"channel": room.id, "thread_ts": root.ts}
    assert await refused(client.chat_startStream(**where)) == "missing_recipient_team_id"
    assert await refused(client.chat_startStream(recipient_team_id=TEAM, **where)) == "missing_recipient_user_id"
    for team, user, word in (("T1", ada.id, "team_not_found"), (TEAM, "U404", "user_not_found")):
        wrong = client.chat_startStream(recipient_team_id=team, recipient_user_id=user, **where)
        assert await refused(wrong) == word
    await client.chat_startStream(recipient_team_id=TEAM, recipient_user_id=ada.id, **where)
    assert fake.shown(room, root).answers[0].stream is StreamState.OPEN


async def test_a_stream_that_is_open_too_long_ends_however_busy_it_is(fake: SlackFake, client: Any) -> None:
    _, dm, root = asked(fake)
    started = await client.chat_startStream(channel=dm.id, thread_ts=root.ts, markdown_text="a")
    where = {"channel": dm.id, "ts": started["ts"]}
    fake.advance(200)
    await client.chat_appendStream(markdown_text="b", **where)
    fake.advance(100)
    assert await refused(client.chat_appendStream(markdown_text="c", **where)) == "message_not_in_streaming_state"
    assert fake.shown(dm, root).answers[0].stream is StreamState.EXPIRED
    await client.chat_update(text="whole", **where)
    assert fake.shown(dm, root).texts[-1] == "whole"


# --- sessions ---


async def test_a_session_has_a_status_and_a_title(fake: SlackFake, client: Any) -> None:
    ada, dm, root = asked(fake)
    where = {"channel_id": dm.id, "thread_ts": root.ts}
    assert await refused(client.agents_sessions_rename(title="x", **where)) == "session_not_found"
    made = await client.agents_sessions_setStatus(status="processing", title="Go", initiator_user_id=ada.id, **where)
    assert (made["status"], made["agent_status"], made.get("warning")) == ("processing", "processing", None)
    seen = fake.shown(dm, root)
    assert (seen.status, seen.title, seen.stoppable) == (SessionStatus.PROCESSING, "Go", True)
    await client.agents_sessions_rename(title="Gone", **where)
    for status in ("suspended", "active", "closed"):
        await client.agents_sessions_setStatus(status=status, title="not new", **where)
    assert (fake.shown(dm, root).status, fake.shown(dm, root).title) == (SessionStatus.CLOSED, "Gone")
    assert [one.value for one in dm.sessions[root.ts].history] == ["processing", "suspended", "active", "closed"]
    assert await refused(client.agents_sessions_setStatus(status="asleep", **where)) == "invalid_arguments"
    long = client.agents_sessions_setStatus(status="active", title="x" * 201, **where)
    assert await refused(long) == "invalid_arguments"
    nowhere = client.agents_sessions_setStatus(channel_id=dm.id, thread_ts="1700000000.000001", status="active")
    assert await refused(nowhere) == "thread_not_found"


async def test_without_the_subscription_there_is_a_warning_and_no_stop(fake: SlackFake, client: Any) -> None:
    ada, dm, root = asked(fake)
    fake.unsubscribe("agent_session_stopped")
    made = await client.agents_sessions_setStatus(channel_id=dm.id, thread_ts=root.ts, status="processing")
    assert made["warning"] == "missing_agent_session_stopped_event_subscription"
    assert made["response_metadata"]["warnings"] == [made["warning"]]
    assert not fake.shown(dm, root).stoppable
    with pytest.raises(AssertionError, match="no Stop"):
        fake.people.stop(dm, ada, root)


async def test_stop_ends_open_streams_and_nothing_else(fake: SlackFake, client: Any) -> None:
    ada, dm, root = asked(fake)
    await client.agents_sessions_setStatus(channel_id=dm.id, thread_ts=root.ts, status="processing")
    started = await client.chat_startStream(channel=dm.id, thread_ts=root.ts, markdown_text="a")
    where = {"channel": dm.id, "ts": started["ts"]}
    envelope = fake.people.stop(dm, ada, root)
    event = envelope.payload["event"]
    assert isinstance(event, dict)
    assert (event["type"], event["streaming_message_ts"]) == ("agent_session_stopped", [started["ts"]])
    assert (event["thread_ts"], event["user"]) == (root.ts, ada.id)
    assert fake.shown(dm, root).status is SessionStatus.PROCESSING
    assert fake.shown(dm, root).answers[0].stream is StreamState.STOPPED
    assert await refused(client.chat_appendStream(markdown_text="b", **where)) == "stopped_by_user"
    assert await refused(client.chat_stopStream(**where)) == "message_not_in_streaming_state"
    again = fake.people.stop(dm, ada, root).payload["event"]
    assert isinstance(again, dict)
    assert again["streaming_message_ts"] == []


async def test_the_end_of_a_stream_can_set_the_status(fake: SlackFake, client: Any) -> None:
    _, dm, root = asked(fake)
    started = await client.chat_startStream(channel=dm.id, thread_ts=root.ts, markdown_text="a")
    await client.chat_stopStream(channel=dm.id, ts=started["ts"], session_status="active")
    assert fake.shown(dm, root).status is SessionStatus.ACTIVE


# --- assistants ---


async def test_thinking_is_shown_until_the_answer_or_two_minutes(fake: SlackFake, client: Any) -> None:
    _, dm, root = asked(fake)
    where = {"channel_id": dm.id, "thread_ts": root.ts}
    await client.assistant_threads_setStatus(status="is thinking…", loading_messages=["Reading"], **where)
    assert fake.shown(dm, root).thinking == "is thinking…"
    fake.advance(121)
    assert fake.shown(dm, root).thinking == ""
    for end in ("", None):
        await client.assistant_threads_setStatus(status="is thinking…", **where)
        assert fake.shown(dm, root).thinking
        if end is None:
            await client.chat_postMessage(channel=dm.id, thread_ts=root.ts, text="done")
        else:
            await client.assistant_threads_setStatus(status=end, **where)
        assert fake.shown(dm, root).thinking == ""
    await client.assistant_threads_setTitle(title="T", **where)
    prompts = [{"title": "Hi", "message": "Say hi"}]
    await client.assistant_threads_setSuggestedPrompts(prompts=prompts, **where)
    seen = fake.shown(dm, root)
    assert (seen.title, [prompt.message for prompt in seen.prompts]) == ("T", ["Say hi"])
    many = client.assistant_threads_setSuggestedPrompts(prompts=prompts * 5, **where)
    assert await refused(many) == "invalid_arguments"
