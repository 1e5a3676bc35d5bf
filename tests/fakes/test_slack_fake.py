"""The stand-in for Slack, driven by the real library: messages, edits, threads, history, files, views, and what is refused."""

# The library's annotations leave out what its `**kwargs` and answers hold, so its client is `Any` here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import TEAM, Rates, SlackFake, TokenState


@pytest.fixture
async def fake() -> AsyncGenerator[SlackFake]:
    async with SlackFake() as running:
        yield running
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("slack fake")] == []


@pytest.fixture
async def client(fake: SlackFake) -> AsyncGenerator[Any]:
    yield library(fake)
    # Everything that the library sent is known to the fake.
    assert {(call.route, name) for call in fake.log for name in call.ignored} == set()


def library(fake: SlackFake, token: str = "") -> Any:
    """A client that does not try again by itself."""
    return AsyncWebClient(token=token or fake.bot_token, base_url=fake.base_url, retry_handlers=[])


async def refused(request: Awaitable[Any]) -> str:
    """The word with which a request is refused."""
    with pytest.raises(SlackApiError) as raised:
        await request
    return str(raised.value.response["error"])


# --- who and where ---


async def test_the_app_says_who_it_is_and_the_token_must_be_right(fake: SlackFake, client: Any) -> None:
    me = await client.auth_test()
    assert (me["user_id"], me["bot_id"], me["team_id"]) == (fake.bot.id, fake.bot.bot_id, TEAM)
    assert "chat:write" in me.headers["X-OAuth-Scopes"].split(",")
    assert await refused(library(fake, "xoxb-wrong").auth_test()) == "invalid_auth"
    assert await refused(library(fake, fake.app_token).auth_test()) == "not_allowed_token_type"
    assert await refused(client.apps_connections_open(app_token=fake.bot_token)) == "not_allowed_token_type"
    for state in (TokenState.REVOKED, TokenState.INACTIVE):
        fake.tokens(state)
        assert await refused(client.auth_test()) == state.value
    fake.tokens(TokenState.GOOD)
    await client.auth_test()


async def test_without_a_token_nothing_goes_and_unknown_methods_do_not_exist(fake: SlackFake, client: Any) -> None:
    assert await refused(client.api_call("chat.sendTelepathy")) == "unknown_method"
    async with aiohttp.ClientSession() as http:
        async with http.post(f"{fake.base_url}auth.test") as answer:
            assert (answer.status, await answer.json()) == (200, {"ok": False, "error": "not_authed"})
        async with http.post(f"{fake.base_url}auth.test", data={"token": fake.bot_token}) as answer:
            assert (await answer.json())["ok"] is True
        async with http.get(f"{fake.origin}/elsewhere") as answer:
            assert answer.status == 404


async def test_a_scope_that_is_missing_is_named(fake: SlackFake, client: Any) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))
    fake.withdraw("chat:write")
    with pytest.raises(SlackApiError) as raised:
        await client.chat_postMessage(channel=dm.id, text="hi")
    answer = raised.value.response
    assert (answer["error"], answer["needed"]) == ("missing_scope", "chat:write")
    assert "im:history" in answer["provided"]
    fake.grant("chat:write")
    await client.chat_postMessage(channel=dm.id, text="hi")
    assert fake.shown(dm).texts == ["hi"]


async def test_people_bots_the_team_and_channels_can_be_looked_up(fake: SlackFake, client: Any) -> None:
    ada, bob = fake.people.user("Ada", real_name="Ada L."), fake.people.user("Bob")
    general = fake.people.channel("general", ada, bob)
    secret = fake.people.channel("secret", ada, private=True, bot=False)
    found = await client.users_info(user=ada.id, include_locale=True)
    assert (found["user"]["real_name"], found["user"]["locale"]) == ("Ada L.", "en-US")
    assert await refused(client.users_info(user="U404")) == "user_not_found"
    assert (await client.bots_info(bot=fake.bot.bot_id))["bot"]["user_id"] == fake.bot.id
    assert (await client.team_info())["team"]["id"] == TEAM
    about = (await client.conversations_info(channel=general.id, include_num_members=True))["channel"]
    assert (about["name"], about["is_channel"], about["num_members"]) == ("general", True, 3)
    assert await refused(client.conversations_info(channel=secret.id)) == "channel_not_found"
    opened = (await client.conversations_open(users=[ada.id]))["channel"]["id"]
    assert opened == fake.people.dm(ada).id
    several = (await client.conversations_open(users=[ada.id, bob.id], return_im=True))["channel"]
    assert several["is_mpim"] is True
    first = await client.conversations_members(channel=general.id, limit=2)
    rest = await client.conversations_members(channel=general.id, cursor=first["response_metadata"]["next_cursor"])
    assert [*first["members"], *rest["members"]] == [ada.id, bob.id, fake.bot.id]


# --- messages ---


async def test_a_message_is_what_its_blocks_say_and_the_text_only_without_blocks(fake: SlackFake, client: Any) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))
    plain = await client.chat_postMessage(channel=dm.id, text="1 &lt; 2")
    await client.chat_update(channel=dm.id, ts=plain["ts"], text="2 &gt; 1")
    blocks = [
        {"type": "markdown", "text": "**bold**"},
        {"type": "section", "text": {"type": "mrkdwn", "text": "a &amp; b"}},
        {"type": "actions", "elements": [button("Stop", "stop:1")]},
    ]
    rich = await client.chat_postMessage(channel=dm.id, text="for the bell", blocks=blocks)
    assert rich["message"]["bot_id"] == fake.bot.bot_id
    first, second = fake.shown(dm).answers
    assert (first.text, first.edits, first.earlier) == ("2 > 1", 1, ("1 < 2",))
    assert (second.text, second.fallback, second.captions) == ("**bold**\na & b", "for the bell", ["Stop"])
    # Blocks stay until others come, or none.
    await client.chat_update(channel=dm.id, ts=rich["ts"], text="not seen")
    assert fake.shown(dm).texts[1] == "**bold**\na & b"
    await client.chat_update(channel=dm.id, ts=rich["ts"], text="seen", blocks=[])
    assert fake.shown(dm).texts[1] == "seen"
    await client.chat_delete(channel=dm.id, ts=rich["ts"])
    assert fake.shown(dm).texts == ["2 > 1"]


def button(caption: str, value: str) -> dict[str, Any]:
    """A button of Block Kit."""
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": caption},
        "action_id": f"press-{caption.lower()}",
        "value": value,
    }


async def test_limits_of_length(fake: SlackFake, client: Any) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))

    async def post(text: str = "", **more: Any) -> str:
        return await refused(client.chat_postMessage(channel=dm.id, text=text, **more))

    await client.chat_postMessage(channel=dm.id, text="x" * 40_000)
    assert await post("x" * 40_001) == "msg_too_long"
    sent = await client.chat_postMessage(channel=dm.id, markdown_text="y" * 12_000)
    assert await refused(client.chat_postMessage(channel=dm.id, markdown_text="y" * 12_001)) == "msg_too_long"
    half = {"type": "markdown", "text": "z" * 6_001}
    assert await post("f", blocks=[half, half]) == "msg_too_long"
    await client.chat_postMessage(channel=dm.id, text="f", blocks=[{"type": "markdown", "text": "z" * 12_000}])
    assert await refused(client.chat_update(channel=dm.id, ts=sent["ts"], text="x" * 4_001)) == "msg_too_long"
    long_section = {"type": "section", "text": {"type": "mrkdwn", "text": "s" * 3_001}}
    with pytest.raises(SlackApiError) as raised:
        await client.chat_postMessage(channel=dm.id, text="f", blocks=[long_section])
    assert raised.value.response["error"] == "invalid_blocks"
    assert "/blocks/0/text/text" in raised.value.response["response_metadata"]["messages"][0]
    assert await post("f", blocks=[{"type": "divider"}] * 51) == "invalid_blocks"
    assert await post("f", blocks=[{"type": "hologram"}]) == "invalid_blocks"
    assert await post("f", markdown_text="g") == "markdown_text_conflict"
    empty = client.api_call("chat.postMessage", json={"channel": dm.id, "text": " "})
    assert await refused(empty) == "no_text"
    assert await post("f", metadata={"event_type": 1}) == "invalid_metadata_schema"
    big = {"event_type": "e", "event_payload": {"x": "y" * 9_000}}
    assert await post("f", metadata=big) == "metadata_too_large"
    assert len(fake.shown(dm).answers) == 3


async def test_where_the_app_may_not_write(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    closed, old = fake.people.channel("closed", ada, bot=False), fake.people.channel("old", ada)
    secret = fake.people.channel("secret", ada, private=True, bot=False)
    fake.people.archive(old)
    for channel, word in {
        closed.id: "not_in_channel",
        old.id: "is_archived",
        secret.id: "channel_not_found",
        "C404": "channel_not_found",
        fake.bot.id: "cannot_dm_bot",
    }.items():
        assert await refused(client.chat_postMessage(channel=channel, text="x")) == word
    assert await refused(client.api_call("chat.postMessage", json={"text": "x"})) == "invalid_arguments"
    # A person's id stands for the direct messages with that person.
    await client.chat_postMessage(channel=ada.id, text="psst")
    assert fake.shown(fake.people.dm(ada)).texts == ["psst"]


async def test_what_is_not_there_or_not_its_own_cannot_be_changed(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    hers = fake.people.say(dm, ada, "mine")
    gone = await client.chat_postMessage(channel=dm.id, text="x")
    await client.chat_delete(channel=dm.id, ts=gone["ts"])
    assert await refused(client.chat_update(channel=dm.id, ts=gone["ts"], text="y")) == "message_not_found"
    assert await refused(client.chat_update(channel=dm.id, ts=hers.ts, text="y")) == "cant_update_message"
    assert await refused(client.chat_delete(channel=dm.id, ts=hers.ts)) == "cant_delete_message"
    assert await refused(client.chat_delete(channel=dm.id, ts=gone["ts"])) == "message_not_found"
    fake.people.delete(hers)
    assert fake.shown(dm).messages == []


async def test_the_same_client_msg_id_writes_once(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    dm, other = fake.people.dm(ada), fake.people.channel("other", ada)
    mark = "11111111-2222-4333-8444-555555555555"

    async def post(channel: str = dm.id, text: str = "once") -> Any:
        return await client.chat_postMessage(channel=channel, text=text, client_msg_id=mark)

    first, second = await post(), await post(text="twice")
    assert (first["ts"], second["message"]["text"]) == (second["ts"], "once")
    assert fake.shown(dm).texts == ["once"]
    assert await refused(post(other.id)) == "duplicate_channel_not_found"
    await client.chat_delete(channel=dm.id, ts=first["ts"])
    assert await refused(post()) == "duplicate_message_not_found"
    fake.world.settings.client_msg_ids = False
    await post()
    assert fake.shown(dm).texts == ["once"]


async def test_threads_and_what_is_left_of_a_deleted_beginning(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    room = fake.people.channel("room", ada)
    root = fake.people.say(room, ada, "question")
    answer = await client.chat_postMessage(channel=room.id, text="answer", thread_ts=root.ts)
    await client.chat_postMessage(channel=room.id, text="loud", thread_ts=root.ts, reply_broadcast=True)
    assert fake.shown(room).texts == ["question", "loud"]
    assert fake.shown(room, root).texts == ["question", "answer", "loud"]
    assert fake.shown(room).messages[0].replies == 2
    fake.people.delete(root)
    assert fake.shown(room, root).texts == ["This message was deleted.", "answer", "loud"]
    assert fake.shown(room, root).messages[0].deleted
    for ts, word in {
        answer["ts"]: "cannot_reply_to_message",
        "1700000000.000001": "thread_not_found",
        "x": "invalid_thread_ts",
    }.items():
        assert await refused(client.chat_postMessage(channel=room.id, text="x", thread_ts=ts)) == word
    found = await client.conversations_replies(channel=room.id, ts=root.ts)
    assert [one["text"] for one in found["messages"]] == ["This message was deleted.", "answer", "loud"]
    assert found["messages"][0]["subtype"] == "tombstone"


async def test_an_ephemeral_message_is_seen_by_one(fake: SlackFake, client: Any) -> None:
    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    room = fake.people.channel("room", ada, bob)
    sent = await client.chat_postEphemeral(channel=room.id, user=ada.id, text="for you")
    assert fake.shown(room, viewer=ada).answers[0].ephemeral
    assert fake.shown(room, viewer=bob).texts == fake.shown(room).texts == []
    lost = client.chat_update(channel=room.id, ts=sent["message_ts"], text="x")
    assert await refused(lost) == "message_not_found"
    assert (await client.conversations_history(channel=room.id))["messages"] == []
    other = fake.people.user("Zoe")
    stray = client.chat_postEphemeral(channel=room.id, user=other.id, text="x")
    assert await refused(stray) == "user_not_in_channel"


# --- history ---


async def test_history_goes_back_page_by_page_and_with_oldest_forward(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    said = [fake.people.say(dm, ada, str(number)) for number in range(5)]
    stored = {"event_type": "turn", "event_payload": {"id": "t1"}}
    await client.chat_postMessage(channel=dm.id, text="5", metadata=stored)
    texts: list[str] = []
    async for page in await client.conversations_history(channel=dm.id, limit=4):
        texts += [message["text"] for message in page["messages"]]
    assert texts == ["5", "4", "3", "2", "1", "0"]
    forward = await client.conversations_history(channel=dm.id, limit=2, oldest=said[1].ts)
    assert [one["text"] for one in forward["messages"]] == ["3", "2"]
    more = await client.conversations_history(
        channel=dm.id, limit=9, oldest=said[1].ts, cursor=forward["response_metadata"]["next_cursor"]
    )
    assert [one["text"] for one in more["messages"]] == ["5", "4"]
    between = {"oldest": said[1].ts, "latest": said[3].ts}
    inside = await client.conversations_history(channel=dm.id, inclusive=True, **between)
    assert [one["text"] for one in inside["messages"]] == ["3", "2", "1"]
    assert [one["text"] for one in (await client.conversations_history(channel=dm.id, **between))["messages"]] == ["2"]
    bare = await client.conversations_history(channel=dm.id, limit=1)
    whole = await client.conversations_history(channel=dm.id, limit=1, include_all_metadata=True)
    assert ("metadata" in bare["messages"][0], whole["messages"][0]["metadata"]) == (False, stored)
    assert await refused(client.conversations_history(channel=dm.id, limit=0)) == "invalid_limit"
    assert await refused(client.conversations_history(channel=dm.id, cursor="bad")) == "invalid_cursor"


async def test_an_app_outside_the_marketplace_reads_once_a_minute(client: Any) -> None:
    rates = Rates(
        history_per_minute=1, history_page=15, post_per_second=1.0, post_burst=2, per_minute={"chat.update": 1}
    )
    async with SlackFake(rates=rates) as fake:
        slow = library(fake)
        ada = fake.people.user("Ada")
        dm = fake.people.dm(ada)
        for number in range(20):
            fake.people.say(dm, ada, str(number))
        assert len((await slow.conversations_history(channel=dm.id, limit=100))["messages"]) == 15
        with pytest.raises(SlackApiError) as raised:
            await slow.conversations_history(channel=dm.id)
        assert raised.value.response.status_code == 429
        assert 55 <= int(raised.value.response.headers["Retry-After"]) <= 60
        fake.advance(60)
        await slow.conversations_history(channel=dm.id)
        sent = [await slow.chat_postMessage(channel=dm.id, text="x") for _ in range(2)]
        assert await refused(slow.chat_postMessage(channel=dm.id, text="x")) == "ratelimited"
        fake.advance(1)
        await slow.chat_postMessage(channel=dm.id, text="x")
        await slow.chat_update(channel=dm.id, ts=sent[0]["ts"], text="y")
        assert await refused(slow.chat_update(channel=dm.id, ts=sent[0]["ts"], text="z")) == "ratelimited"


# --- the rest ---


async def test_reactions(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    where = {"channel": dm.id, "timestamp": fake.people.say(dm, ada, "hi").ts}
    await client.reactions_add(name="eyes", **where)
    assert fake.shown(dm).messages[0].reactions == (("eyes", 1),)
    assert await refused(client.reactions_add(name="eyes", **where)) == "already_reacted"
    assert await refused(client.reactions_add(name="Eyes!", **where)) == "invalid_name"
    await client.reactions_remove(name="eyes", **where)
    assert fake.shown(dm).messages[0].reactions == ()
    assert await refused(client.reactions_remove(name="eyes", **where)) == "no_reaction"
    where["timestamp"] = "1700000000.000001"
    assert await refused(client.reactions_add(name="eyes", **where)) == "message_not_found"


async def test_the_app_uploads_a_file_into_a_thread(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    room = fake.people.channel("room", ada)
    root = fake.people.say(room, ada, "send it")
    done = await client.files_upload_v2(
        filename="report.txt",
        content="hello",
        title="Report",
        channel=room.id,
        thread_ts=root.ts,
        initial_comment="here",
    )
    assert done["file"]["size"] == 5
    shown = fake.shown(room, root).answers[0]
    assert (shown.files, shown.text) == (("report.txt",), "here")
    assert [call.route for call in fake.log] == ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"]
    asked = await client.files_getUploadURLExternal(filename="never.txt", length=3)
    finish = client.files_completeUploadExternal(files=[{"id": asked["file_id"], "title": "t"}])
    assert await refused(finish) == "file_not_found"
    assert (await client.files_info(file=done["file"]["id"]))["file"]["title"] == "Report"


async def test_a_file_of_a_person_is_fetched_with_the_token_and_is_a_login_page_without(fake: SlackFake) -> None:
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    sent = fake.people.upload(dm, ada, "notes.csv", b"a,b", text="look")
    told = fake.told("message")[0].payload["event"]
    assert isinstance(told, dict)
    assert told["subtype"] == "file_share"
    url = str(fake.world.file_json(sent.files[0])["url_private_download"])
    async with aiohttp.ClientSession() as http:
        async with http.get(url, headers={"Authorization": f"Bearer {fake.bot_token}"}) as answer:
            assert (answer.status, answer.content_type, await answer.read()) == (200, "text/csv", b"a,b")
        async with http.get(url) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
        fake.withdraw("files:read")
        async with http.get(url, headers={"Authorization": f"Bearer {fake.bot_token}"}) as answer:
            assert answer.status == 403


async def test_the_home_tab_is_published_and_changed(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    view = {"type": "home", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "welcome"}}]}
    first = await client.views_publish(user_id=ada.id, view=view)
    await client.views_publish(user_id=ada.id, view=view, hash=first["view"]["hash"])
    late = client.views_publish(user_id=ada.id, view=view, hash=first["view"]["hash"])
    assert await refused(late) == "hash_conflict"
    home = fake.home(ada)
    assert home is not None
    assert (home.updates, home.id) == (1, first["view"]["id"])
    assert (
        await refused(client.views_publish(user_id=ada.id, view={"type": "modal", "blocks": []})) == "invalid_arguments"
    )


async def test_some_methods_do_not_read_json(fake: SlackFake, client: Any) -> None:
    ada = fake.people.user("Ada")
    assert await refused(client.api_call("users.info", json={"user": ada.id})) == "invalid_arguments"
    assert (await client.api_call("users.info", data={"user": ada.id}))["user"]["id"] == ada.id
    # And all of them take arguments from the address, also those that write.
    dm = fake.people.dm(ada)
    await client.api_call("chat.postMessage", http_verb="GET", params={"channel": dm.id, "text": "by GET"})
    await client.api_call("conversations.history", json={"channel": dm.id})
    assert fake.shown(dm).texts == ["by GET"]
    assert (await client.api_test())["ok"] is True
    assert await refused(client.api_test(error="my_error")) == "my_error"


async def test_an_argument_that_nobody_knows_is_listed(fake: SlackFake) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))
    await library(fake).chat_postMessage(channel=dm.id, text="x", thread="typo")
    assert fake.log.of("chat.postMessage")[0].ignored == {"thread"}
