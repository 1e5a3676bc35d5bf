"""The stand-in for Slack: buttons, commands and forms, pressed, given and sent by people and answered by a Bolt app."""

# The libraries' annotations leave out what handlers get and what answers hold, so the client is `Any` here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import aiohttp
import pytest
from slack_bolt.app.async_app import AsyncApp

from tests.fakes.slack import SlackFake
from tests.fakes.slack.library import connected, library


@pytest.fixture
async def fake() -> AsyncGenerator[SlackFake]:
    async with SlackFake() as running:
        yield running


STOP = {
    "type": "actions",
    "elements": [
        {"type": "button", "text": {"type": "plain_text", "text": "Stop"}, "action_id": "stop", "value": "t1"},
        {"type": "button", "text": {"type": "plain_text", "text": "Again"}, "action_id": "again", "value": "t1"},
    ],
}
RATING = {
    "type": "context_actions",
    "elements": [
        {
            "type": "feedback_buttons",
            "action_id": "rating",
            "positive_button": {"text": {"type": "plain_text", "text": "Good"}, "value": "good"},
            "negative_button": {"text": {"type": "plain_text", "text": "Bad"}, "value": "bad"},
        }
    ],
}
FORM = {
    "type": "modal",
    "callback_id": "form",
    "title": {"type": "plain_text", "text": "Why?"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "why",
            "label": {"type": "plain_text", "text": "Why"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
}
Handler = Callable[..., Any]


async def test_buttons_are_pressed_and_answered_by_their_response_url(fake: SlackFake) -> None:
    app = AsyncApp(client=library(fake))
    seen: list[dict[str, Any]] = []

    @app.action("stop")
    async def stop(ack: Handler, respond: Handler, action: dict[str, Any]) -> None:
        await ack()
        seen.append(action)
        await respond(text="stopped", replace_original=True)

    @app.action("rating")
    async def rate(ack: Handler, respond: Handler, action: dict[str, Any]) -> None:
        await ack()
        seen.append(action)
        await respond(text="thanks", response_type="ephemeral", replace_original=False)

    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    room = fake.people.channel("room", ada, bob)
    async with connected(fake, app):
        sent = await library(fake).chat_postMessage(channel=room.id, text="working", blocks=[STOP, RATING])
        message = fake.message(room, sent["ts"])
        press = fake.people.press(message, ada, "Bad")
        await fake.until_shown(room, lambda now: "thanks" in now.texts, viewer=ada)
        assert fake.shown(room, viewer=bob).texts == [""]
        fake.people.press(message, ada, "Stop")
        await fake.until_shown(room, lambda now: now.texts == ["stopped"])
        await fake.until_settled()
        assert press.envelope.acked
    assert [(action["action_id"], action["value"]) for action in seen] == [("rating", "bad"), ("stop", "t1")]
    assert fake.shown(room).answers[0].captions == []
    # It has gone from the screen, but somebody may have pressed it before.
    assert press.button is not None
    fake.people.press_raw(message, bob, press.button)
    with pytest.raises(AssertionError, match="no button"):
        fake.people.press(message, bob, "Stop")


async def test_a_response_url_runs_out(fake: SlackFake) -> None:
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    first, second = (fake.people.command(dm, ada, "/ask") for _ in range(2))
    async with aiohttp.ClientSession() as http:

        async def post(url: str, **body: Any) -> tuple[int, str]:
            async with http.post(url, json=body) as answer:
                return answer.status, await answer.text()

        assert [await post(first.response_url, text="x") for _ in range(5)] == [(200, "ok")] * 5
        assert await post(first.response_url, text="x") == (404, "used_url")
        assert await post(second.response_url) == (200, "no_text")
        fake.advance(1801)
        assert await post(second.response_url, text="x") == (404, "expired_url")
        assert await post(f"{fake.origin}/commands/T/1/x", text="x") == (404, "no_service")
    assert all(one.ephemeral for one in fake.shown(dm).answers)


async def test_a_command_is_answered_with_its_acknowledgement(fake: SlackFake) -> None:
    app = AsyncApp(client=library(fake))

    @app.command("/ask")
    async def ask(ack: Handler, command: dict[str, Any]) -> None:
        public = command["text"] == "loudly"
        await ack(text=f"asked {command['text']}", response_type="in_channel" if public else "ephemeral")

    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    room = fake.people.channel("room", ada, bob)
    async with connected(fake, app):
        fake.people.command(room, ada, "/ask", "softly")
        fake.people.command(room, ada, "/ask", "loudly")
        await fake.until_settled()
    assert sorted(fake.shown(room, viewer=ada).texts) == ["asked loudly", "asked softly"]
    assert fake.shown(room, viewer=bob).texts == ["asked loudly"]


async def test_a_form_is_opened_corrected_and_sent(fake: SlackFake) -> None:
    app = AsyncApp(client=library(fake))

    @app.command("/ask")
    async def ask(ack: Handler, client: Any, body: dict[str, Any]) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=FORM)

    @app.view("form")
    async def take(ack: Handler, view: dict[str, Any]) -> None:
        why = view["state"]["values"]["why"]["text"]["value"]
        await (ack() if why else ack(response_action="errors", errors={"why": "say something"}))

    ada = fake.people.user("Ada")
    async with connected(fake, app):
        asked = fake.people.command(fake.people.dm(ada), ada, "/ask")
        await fake.until(lambda: fake.modal(ada) is not None)
        form = fake.modal(ada)
        assert form is not None
        fake.people.submit(form, {"why": {"text": ""}})
        await fake.until(lambda: form.errors == {"why": "say something"})
        assert form.open
        await library(fake).views_update(view_id=form.id, view=FORM, hash=form.hash)
        assert (form.updates, form.errors) == (1, {})
        fake.people.submit(form, {"why": {"text": "because"}})
        await fake.until(lambda: not form.open)
        await fake.until_settled()
    for trigger, word in ((asked.trigger_id, "exchanged_trigger_id"), ("1.2.3", "invalid_trigger_id")):
        answer = await library_error(fake, trigger)
        assert answer == word
    late = fake.people.command(fake.people.dm(ada), ada, "/ask")
    fake.advance(4)
    assert await library_error(fake, late.trigger_id) == "expired_trigger_id"


async def library_error(fake: SlackFake, trigger_id: str) -> str:
    """Why no form opens."""
    headers = {"Authorization": f"Bearer {fake.bot_token}"}
    body = {"trigger_id": trigger_id, "view": FORM}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{fake.base_url}views.open", json=body, headers=headers) as got,
    ):
        return str((await got.json())["error"])
