"""The stand-in for Slack in Socket Mode: what a Bolt app is told, and everything that befalls its connections."""

# The libraries' annotations leave out what handlers get and what answers hold, so the client is `Any` here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp

from tests.fakes.slack import Answer, Farewell, Reason, SlackFake, internal_error
from tests.fakes.slack.library import connected, library

QUICK: dict[str, Any] = {"ack_seconds": 0.3, "retries_seconds": (0.0, 0.1, 0.2)}
"""Slack's rule about telling again, much faster."""


@pytest.fixture
async def fake() -> AsyncGenerator[SlackFake]:
    async with SlackFake() as running:
        yield running


@pytest.fixture
async def quick() -> AsyncGenerator[SlackFake]:
    async with SlackFake(**QUICK) as running:
        yield running


class Listener:
    """A Bolt app that notes the events it is told."""

    def __init__(self, fake: SlackFake, *kinds: str) -> None:
        self.app = AsyncApp(client=library(fake))
        self.heard: list[dict[str, Any]] = []
        for kind in kinds or ("message", "app_mention"):
            self.app.event(kind)(self.hear)

    async def hear(self, event: dict[str, Any]) -> None:
        """Note an event."""
        self.heard.append(event)

    @property
    def texts(self) -> list[str]:
        """What the events say."""
        return [str(event.get("text", event.get("subtype"))) for event in self.heard]


@asynccontextmanager
async def raw_socket(fake: SlackFake) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
    """A connection without a library, after its `hello`."""
    url = str((await library(fake).apps_connections_open(app_token=fake.app_token))["url"])
    async with aiohttp.ClientSession() as http, http.ws_connect(url, autoping=False) as ws:
        hello = await ws.receive_json()
        assert (hello["type"], hello["num_connections"]) == ("hello", len(fake.sockets.open))
        yield ws


# --- what is told ---


async def test_a_bolt_app_hears_answers_and_edits(fake: SlackFake) -> None:
    app = AsyncApp(client=library(fake))

    @app.event("message")
    async def answer(message: dict[str, Any], say: Any, client: Any) -> None:
        said = await say("thinking", thread_ts=message["ts"])
        await client.chat_update(channel=message["channel"], ts=said["ts"], text="you said " + message["text"])

    async with connected(fake, app):
        ada = fake.people.user("Ada")
        dm = fake.people.dm(ada)
        asked = fake.people.say(dm, ada, "a < b")
        seen = await fake.until_shown(dm, lambda now: "you said a < b" in now.texts, thread=asked)
        assert seen.answers[0].earlier == ("thinking",)
        assert (await fake.answer_to(asked)).text == "you said a < b"
        await fake.until_settled()
    first, echo, change = fake.told("message")
    assert (first.attempts[0].number, len(first.attempts)) == (0, 1)
    assert first.ack_seconds is not None
    # The app hears of its own doings too; the library does not pass them on.
    for envelope, subtype in ((echo, None), (change, "message_changed")):
        event = envelope.payload["event"]
        assert isinstance(event, dict)
        assert (event.get("subtype"), envelope.acked) == (subtype, True)


async def test_everything_that_people_do_is_told(fake: SlackFake) -> None:
    kinds = ("message", "app_mention", "app_home_opened", "reaction_added", "reaction_removed", "member_joined_channel")
    listener = Listener(fake, *kinds)
    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    room = fake.people.channel("room", ada)
    people = fake.people
    async with connected(fake, listener.app):
        people.open_app(ada)
        people.open_app(ada, "home")
        people.join(room, bob, inviter=ada)
        said = people.say(room, bob, "hello")
        people.edit(said, "hello!")
        people.react(said, ada, "eyes")
        people.unreact(said, ada, "eyes")
        people.delete(said)
        people.upload(room, ada, "a.txt", b"x")
        people.say(people.dm(ada), ada, "psst")
        people.say(people.group_dm(ada, bob), ada, "us")
        people.say(people.channel("secret", ada, private=True), ada, "private")
        people.say(people.channel("away", ada, bot=False), ada, "not for the app")
        await fake.until_settled()
    what = [
        (event["type"], event.get("subtype") or event.get("channel_type") or event.get("tab"))
        for event in listener.heard
    ]
    assert len(what) == 12
    assert set(what) == {
        ("app_home_opened", "messages"),
        ("app_home_opened", "home"),
        ("member_joined_channel", "C"),
        ("message", "channel"),
        ("message", "message_changed"),
        ("reaction_added", None),
        ("reaction_removed", None),
        ("message", "message_deleted"),
        ("message", "file_share"),
        ("message", "im"),
        ("message", "mpim"),
        ("message", "group"),
    }
    changed = next(event for event in listener.heard if event.get("subtype") == "message_changed")
    assert (changed["message"]["text"], changed["previous_message"]["text"]) == ("hello!", "hello")
    deleted = next(event for event in listener.heard if event.get("subtype") == "message_deleted")
    assert deleted["deleted_ts"] == said.ts


async def test_a_mention_comes_twice_under_two_event_ids(fake: SlackFake) -> None:
    listener = Listener(fake)
    ada = fake.people.user("Ada")
    room = fake.people.channel("room", ada)
    async with connected(fake, listener.app):
        said = fake.people.mention(room, ada, "help")
        fake.people.mention(fake.people.dm(ada), ada, "no pair here")
        await fake.until_settled()
    pair = [event for event in listener.heard if event["ts"] == said.ts]
    assert sorted(event["type"] for event in pair) == ["app_mention", "message"]
    assert {event["text"] for event in pair} == {f"<@{fake.bot.id}> help"}
    assert len({envelope.event_id for envelope in fake.envelopes}) == 3
    fake.unsubscribe("message.channels", "app_mention")
    fake.people.mention(room, ada, "nobody listens")
    assert len(fake.envelopes) == 3


async def test_the_echo_can_be_switched_off(fake: SlackFake) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))
    await library(fake).chat_postMessage(channel=dm.id, text="one")
    fake.world.settings.echo = False
    await library(fake).chat_postMessage(channel=dm.id, text="two")
    assert len(fake.told("message")) == 1


async def test_another_bot_is_heard_as_one(fake: SlackFake) -> None:
    other = fake.people.robot("Helper")
    room = fake.people.channel("room", other)
    fake.people.say(room, other, "beep")
    event = fake.told("message")[0].payload["event"]
    assert isinstance(event, dict)
    assert (event["bot_id"], event["app_id"], event["user"]) == (other.bot_id, other.app_id, other.id)


async def test_events_come_in_another_order_and_again(fake: SlackFake) -> None:
    async with raw_socket(fake) as ws:
        ada = fake.people.user("Ada")
        dm = fake.people.dm(ada)
        fake.hold_events()
        for word in ("one", "two", "three"):
            fake.people.say(dm, ada, word)
        fake.release_events([2, 0, 1])
        frames = [await ws.receive_json() for _ in range(3)]
        assert [frame["payload"]["event"]["text"] for frame in frames] == ["three", "one", "two"]
        for frame in frames:
            await ws.send_json({"envelope_id": frame["envelope_id"]})
        await fake.until_settled()
        fake.repeat(fake.envelopes[0], reason=Reason.TIMEOUT)
        again = await ws.receive_json()
        assert again["payload"]["event_id"] == fake.envelopes[0].event_id
        assert (again["retry_attempt"], again["retry_reason"]) == (1, "timeout")
        assert again["envelope_id"] != frames[1]["envelope_id"]


# --- acknowledgements ---


async def test_what_is_not_acknowledged_is_told_again_three_times(quick: SlackFake) -> None:
    async with raw_socket(quick) as ws:
        ada = quick.people.user("Ada")
        quick.people.say(quick.people.dm(ada), ada, "hello?")
        frames = [await ws.receive_json() for _ in range(4)]
        assert [(frame["retry_attempt"], frame["retry_reason"]) for frame in frames] == [
            (0, ""),
            (1, "timeout"),
            (2, "timeout"),
            (3, "timeout"),
        ]
        await quick.until_settled()
        envelope = quick.envelopes[0]
        assert (envelope.lost, envelope.acked) == (True, False)
        times = [attempt.at for attempt in envelope.attempts]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        # The wait for the acknowledgement, and then the pause.
        assert all(pause >= least for pause, least in zip(pauses, (0.3, 0.4, 0.5), strict=True))
        # Too late, and unknown.
        await ws.send_json({"envelope_id": frames[0]["envelope_id"]})
        await ws.send_json({"envelope_id": "never-sent"})
        await quick.until(lambda: quick.outbox.strange_acks == ["never-sent"])
        assert envelope.lost
        assert envelope.attempts[0].acked_at is not None


async def test_slacks_own_times_can_be_turned_forward(fake: SlackFake) -> None:
    ada = fake.people.user("Ada")
    fake.people.say(fake.people.dm(ada), ada, "anyone?")
    envelope = fake.envelopes[0]
    # Nobody is there: the first attempt and the one at once come to nothing.
    await fake.until(lambda: len(envelope.attempts) == 2)
    assert [attempt.via for attempt in envelope.attempts] == [None, None]
    async with raw_socket(fake) as ws:
        fake.advance(60)
        frame = await ws.receive_json()
        assert frame["retry_attempt"] == 2
        fake.advance(3)
        await fake.until(lambda: envelope.due is not None)
        fake.advance(300)
        frame = await ws.receive_json()
        await ws.send_json({"envelope_id": frame["envelope_id"]})
        await fake.until(lambda: envelope.acked)


async def test_a_press_and_a_command_are_told_once(quick: SlackFake) -> None:
    async with raw_socket(quick) as ws:
        ada = quick.people.user("Ada")
        failed = quick.people.command(quick.people.dm(ada), ada, "/ask", "why")
        frame = await ws.receive_json()
        assert (frame["type"], frame["payload"]["text"], frame["accepts_response_payload"]) == (
            "slash_commands",
            "why",
            True,
        )
        assert "retry_attempt" not in frame
        await quick.until(lambda: failed.envelope.lost)
        assert len(failed.envelope.attempts) == 1


async def test_a_slow_handler_of_bolt_does_not_delay_the_acknowledgement_of_events(fake: SlackFake) -> None:
    app = AsyncApp(client=library(fake))
    gate = asyncio.Event()

    @app.event("message")
    async def wait() -> None:
        await gate.wait()

    async with connected(fake, app):
        ada = fake.people.user("Ada")
        fake.people.say(fake.people.dm(ada), ada, "x")
        await fake.until_settled(within=2)
        gate.set()


async def test_an_acknowledgement_that_slack_does_not_hear_is_none(quick: SlackFake) -> None:
    listener = Listener(quick)
    ada = quick.people.user("Ada")
    async with connected(quick, listener.app):
        quick.sockets.latest.deaf = True
        quick.people.say(quick.people.dm(ada), ada, "x")
        await quick.until(lambda: quick.sockets.latest.unread > 1)
        quick.sockets.latest.deaf = False
        await quick.until_settled()
    assert quick.envelopes[0].acked
    assert set(listener.texts) == {"x"}
    assert len(listener.texts) == len(quick.envelopes[0].attempts) > 1


async def test_the_library_does_not_acknowledge_what_no_listener_takes(quick: SlackFake) -> None:
    async with connected(quick, AsyncApp(client=library(quick))):
        ada = quick.people.user("Ada")
        quick.people.say(quick.people.dm(ada), ada, "x")
        await quick.until_settled()
    assert (quick.envelopes[0].lost, len(quick.envelopes[0].attempts)) == (True, 4)


# --- several sockets ---


async def test_each_envelope_goes_to_exactly_one_socket(fake: SlackFake) -> None:
    first, second = Listener(fake), Listener(fake)
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    async with connected(fake, first.app), connected(fake, second.app):
        for number in range(6):
            fake.people.say(dm, ada, str(number))
        await fake.until_settled()
        assert (len(first.heard), len(second.heard)) == (3, 3)
        fake.sockets.favour(fake.sockets.all[1])
        for number in range(6, 9):
            fake.people.say(dm, ada, str(number))
        await fake.until_settled()
    assert sorted([*first.texts, *second.texts]) == [str(number) for number in range(9)]
    assert second.texts[-3:] == ["6", "7", "8"]


async def test_a_ghost_eats_events_until_they_are_told_again(quick: SlackFake) -> None:
    listener = Listener(quick)
    ada = quick.people.user("Ada")
    async with connected(quick, listener.app):
        ghost = quick.sockets.ghost()
        quick.sockets.favour(ghost)
        quick.people.say(quick.people.dm(ada), ada, "boo")
        await quick.until(lambda: bool(ghost.told))
        quick.sockets.favour(quick.sockets.all[0])
        await quick.until_settled()
        quick.sockets.bury(ghost)
        assert len(quick.sockets.open) == 1
    assert [attempt.via for attempt in quick.envelopes[0].attempts] == [2, 1]
    assert listener.texts == ["boo"]


async def test_the_eleventh_socket_is_turned_away(fake: SlackFake) -> None:
    for _ in range(10):
        fake.sockets.ghost()
    url = str((await library(fake).apps_connections_open(app_token=fake.app_token))["url"])
    async with aiohttp.ClientSession() as http, http.ws_connect(url) as ws:
        assert (await ws.receive_json())["reason"] == "too_many_websockets"
        assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE


# --- connections that end ---


@pytest.mark.parametrize("reason", [Farewell.WARNING, Farewell.REFRESH])
async def test_the_library_comes_back_after_a_disconnect_frame(fake: SlackFake, reason: Farewell) -> None:
    listener = Listener(fake)
    ada = fake.people.user("Ada")
    async with connected(fake, listener.app):
        await fake.sockets.disconnect(reason)
        await fake.until(lambda: len(fake.sockets.all) == 2 and len(fake.sockets.open) == 1)
        fake.people.say(fake.people.dm(ada), ada, "still there?")
        await fake.until_settled()
    assert listener.texts == ["still there?"]


async def test_the_library_comes_back_after_a_cut(fake: SlackFake) -> None:
    listener = Listener(fake)
    ada = fake.people.user("Ada")
    async with connected(fake, listener.app, ping_interval=0.1):
        fake.sockets.cut()
        assert not fake.sockets.open
        await fake.until_connected()
        fake.people.say(fake.people.dm(ada), ada, "hello again")
        await fake.until_settled()
    assert listener.texts == ["hello again"]


async def test_the_library_leaves_a_server_that_has_gone_deaf(fake: SlackFake) -> None:
    listener = Listener(fake)
    async with connected(fake, listener.app, ping_interval=0.1):
        first = fake.sockets.latest
        await fake.until(lambda: first.pings > 0)
        first.deaf = first.mute = True
        await fake.until(lambda: len(fake.sockets.all) > 1)
        await fake.until(lambda: not first.open)


async def test_an_address_is_good_for_one_connection(fake: SlackFake) -> None:
    client = library(fake)
    url = str((await client.apps_connections_open(app_token=fake.app_token))["url"])
    late = str((await client.apps_connections_open(app_token=fake.app_token))["url"])
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(url):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await http.ws_connect(url)
        fake.advance(31)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(late)


async def test_the_library_dials_a_stale_address_for_ever(fake: SlackFake) -> None:
    fake.script("socket", Answer(502))
    handler = AsyncSocketModeHandler(AsyncApp(client=library(fake)), fake.app_token, ping_interval=0.01)
    connecting = asyncio.create_task(handler.connect_async())
    await fake.until(lambda: bool(fake.log.of("socket")))
    fake.advance(31)
    await fake.until(lambda: len(fake.log.of("socket")) > 5)
    assert len(fake.log.of("apps.connections.open")) == 1
    assert {call.status for call in fake.log.of("socket")[1:]} <= {403, None}
    connecting.cancel()
    await asyncio.wait([connecting])
    await handler.close_async()


async def test_socket_mode_is_switched_off(fake: SlackFake) -> None:
    async with raw_socket(fake) as ws:
        await fake.sockets.disconnect(Farewell.LINK_DISABLED)
        assert (await ws.receive_json())["reason"] == "link_disabled"
    answer = await library(fake).api_call("api.test")
    assert answer["ok"]
    refused = await aiohttp_post(fake, "apps.connections.open")
    assert refused == {"ok": False, "error": "link_disabled"}


async def aiohttp_post(fake: SlackFake, method: str) -> Any:
    """What the Web API answers to the app's token."""
    headers = {"Authorization": f"Bearer {fake.app_token}"}
    async with aiohttp.ClientSession() as http, http.post(f"{fake.base_url}{method}", headers=headers) as answer:
        return await answer.json()


async def test_slack_pings_and_hears_the_answer() -> None:
    async with SlackFake(ping_seconds=0.05) as fake:
        listener = Listener(fake)
        async with connected(fake, listener.app):
            await fake.until(lambda: fake.sockets.all[0].pongs >= 2)


async def test_the_handshake_and_the_address_can_fail_by_script(fake: SlackFake) -> None:
    fake.script("socket", Answer(502))
    fake.script("apps.connections.open", internal_error(500))
    client = library(fake)
    assert (await aiohttp_post(fake, "apps.connections.open"))["error"] == "internal_error"
    url = str((await client.apps_connections_open(app_token=fake.app_token))["url"])
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(url)
        async with http.ws_connect(url) as ws:
            assert (await ws.receive_json())["type"] == "hello"


async def test_a_slack_that_is_down_is_found_again(quick: SlackFake) -> None:
    listener = Listener(quick)
    ada = quick.people.user("Ada")
    async with connected(quick, listener.app, ping_interval=0.1):
        await quick.down()
        await asyncio.sleep(0.2)
        await quick.up()
        await quick.until_connected()
        quick.people.say(quick.people.dm(ada), ada, "back")
        await quick.until_settled()
    assert listener.texts == ["back"]
