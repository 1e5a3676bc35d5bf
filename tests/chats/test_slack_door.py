"""What Slack tells comes through Bolt, and only what our middleware has stored is acknowledged. Bolt is the real one; nothing is on a network."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.middleware.authorization.async_multi_teams_authorization import AsyncMultiTeamsAuthorization
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.door import AppDoor

SECRET = "word"
EVENT = {"type": "event_callback", "event_id": "Ev1", "event": {"type": "message", "user": "U1", "text": "hi"}}
FORM = "application/x-www-form-urlencoded"


class Table:
    """Where what is told ends."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.told: list[object] = []

    async def take(self, told: object) -> bool:
        if self.works:
            self.told.append(told)
        return self.works


def door(table: Table, secret: str = SECRET) -> AppDoor:
    return AppDoor("xoxb-1-2-x", secret, table.take)


def signed(body: str, secret: str = SECRET, *, at: float | None = None) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    mark = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mark}"}


def called(body: str, headers: dict[str, str], kind: str = "application/json") -> web.Request:
    request = make_mocked_request("POST", "/slack/events", headers={"Content-Type": kind, **headers})
    request._read_bytes = body.encode()
    return request


async def status(one: AppDoor, told: object) -> int:
    """What Slack is answered when it calls with this."""
    body = json.dumps(told)
    return (await one.call(called(body, signed(body)))).status


async def nobody(**_: object) -> None:
    """Nobody is let in: Bolt answers that with a 200 and words."""


class Acks(AsyncMiddleware):
    """Bolt's way to let something be: it calls its own `ack`."""

    async def async_process(self, *, req: Any, resp: Any, next: Any) -> Any:  # noqa: A002 - Bolt's name
        return await req.context.ack()


def authorizes() -> AsyncMiddleware:
    who: Any = nobody
    return AsyncMultiTeamsAuthorization(authorize=who)


@pytest.mark.parametrize("before", [authorizes, Acks], ids=["an authorization that failed", "an event let be"])
async def test_a_200_of_bolts_own_is_never_passed_on_without_our_storing(before: Any) -> None:
    table = Table()
    one = door(table)
    app: Any = one._app
    app._async_middleware_list.insert(2, before())  # behind the signature, and in front of ours
    assert await status(one, EVENT) == 503
    assert table.told == []


@pytest.mark.parametrize("works", [True, False])
async def test_what_is_stored_is_acknowledged_and_what_is_not_comes_again(works: bool) -> None:
    table = Table(works=works)
    one = door(table)
    assert await status(one, EVENT) == (200 if works else 503)
    assert table.told == ([EVENT] if works else [])


async def test_nobody_is_asked_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(*_: object, **__: object) -> None:
        raise AssertionError("Slack was called")

    monkeypatch.setattr(AsyncWebClient, "_request", asked)
    monkeypatch.setattr(AsyncWebClient, "api_call", asked)
    assert await status(door(Table()), EVENT) == 200


@pytest.mark.parametrize(
    "told",
    [
        {"type": "event_callback", "event": 5},
        {"type": "event_callback", "event": None},
        {"type": "event_callback", "event": {"type": "message"}, "user": 5},
        {"authorizations": 5},
        {"type": ["url_verification"]},
        ["ssl_check"],
        "text",
        None,
        5,
    ],
    ids=repr,
)
async def test_what_bolt_fails_at_is_taken_as_it_came(told: object) -> None:
    table = Table()
    one = door(table)
    assert await status(one, told) == 200
    assert table.told == [told]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("{", "application/json"),
        ("[" * 100_000, "application/json"),
        ("payload={", FORM),
        ("payload=%FF", FORM),
        ("x", ""),
    ],
    ids=range(5),
)
async def test_a_signed_call_that_nobody_can_read_is_taken_raw(body: str, kind: str) -> None:
    table = Table()
    assert (await door(table).call(called(body, signed(body), kind))).status == 200
    assert table.told == [body]


async def test_a_command_that_speaks_of_a_payload_is_taken_whole() -> None:
    table = Table()
    command = {"command": "/outspoken", "text": "explain the payload", "trigger_id": "1"}
    body = urlencode(command)
    assert (await door(table).call(called(body, signed(body), FORM))).status == 200
    assert table.told == [command]


async def test_a_press_comes_as_json_within_a_form() -> None:
    table = Table()
    body = urlencode({"payload": json.dumps({"type": "block_actions"})})
    assert (await door(table).call(called(body, signed(body), FORM))).status == 200
    assert table.told == [{"type": "block_actions"}]


NOT_SIGNED: list[dict[str, str]] = [
    {},
    {**signed(json.dumps(EVENT)), "X-Slack-Signature": ""},
    {**signed(json.dumps(EVENT)), "X-Slack-Signature": "v0=ä"},
    {**signed(json.dumps(EVENT)), "X-Slack-Request-Timestamp": "now"},
    {**signed(json.dumps(EVENT)), "X-Slack-Request-Timestamp": "9" * 5000},
    {**signed(json.dumps(EVENT)), "X-Slack-Request-Timestamp": "-1"},
    signed(json.dumps(EVENT), "another"),
    signed(json.dumps(EVENT), at=1_000_000_000),
    signed("{}"),
    {**signed("{}"), "X-Slack-Bolt-Lazy-Only": "1"},
]


@pytest.mark.parametrize("headers", NOT_SIGNED, ids=range(len(NOT_SIGNED)))
async def test_what_is_not_signed_is_refused_in_peace(
    headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    table = Table()
    with caplog.at_level(logging.WARNING):
        assert (await door(table).call(called(json.dumps(EVENT), headers))).status == 401
    assert table.told == []
    assert not [record for record in caplog.records if record.name.startswith("slack_bolt")]


@pytest.mark.parametrize("secret", ["", " "])
@pytest.mark.parametrize("guess", ["", " ", "unused"])
async def test_without_a_secret_nothing_is_signed(secret: str, guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_SIGNING_SECRET", guess or "environment")
    table = Table()
    body = json.dumps(EVENT)
    assert (await door(table, secret).call(called(body, signed(body, guess)))).status == 401
    assert table.told == []


async def test_the_address_is_verified_if_it_is_slack_that_asks() -> None:
    table = Table(works=False)
    body = json.dumps({"type": "url_verification", "challenge": "c1"})
    answer = await door(table).call(called(body, signed(body)))
    said: Any = answer.body
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert json.loads(said.decode()) == {"challenge": "c1"}
    assert (await door(table).call(called(body, {}))).status == 401
    check = urlencode({"ssl_check": "1", "token": "t"})
    assert (await door(table).call(called(check, signed(check), FORM))).status == 200


async def test_a_start_warns_of_nothing_whatever_is_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1-2-x")
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    with caplog.at_level(logging.WARNING):
        table = Table()
        assert await status(door(table), EVENT) == 200
    assert caplog.records == []
