"""Known-bad endpoints: each row changes the requests that it is about, on the wire, and no others; the operator's routing wins."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.jsonvalue import Json
from agent_core.model.client import ModelClient, ModelRequest
from agent_core.model.endpoints import Credential, Endpoint, applied, overdue
from agent_core.model.knownbad import ROUTING, ROWS, KnownBad, avoiding
from agent_core.ports import SystemClock
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke, ReplyFinished

TODAY = date(2026, 11, 21)
OPENROUTER = "https://openrouter.ai/api/v1"
AVOIDING = {
    "ignore": ["minimax"],
    "order": ["fireworks", "novitaai", "google-vertex", "atlascloud", "together"],
}


def endpoint(url: str = OPENROUTER, model: str = "minimax/minimax-m2", **extra: Json) -> Endpoint:
    return Endpoint("up", url, (Credential("k", "sk-very-secret"),), (model,), extra_body=extra)


# ---------------------------------------------------------------------- on the wire


@asynccontextmanager
async def server() -> AsyncGenerator[tuple[int, list[dict[str, Any]]]]:
    """A model server on this machine; gives its port and the bodies that it was sent."""
    bodies: list[dict[str, Any]] = []

    async def complete(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        end = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
        await response.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
        return response

    app = web.Application()
    app.router.add_post("/api/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1], bodies
    finally:
        await runner.cleanup()


def all_names_lead_here(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def here(_: str, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)


async def sent(
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    model: str,
    extra: Mapping[str, Json] | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> dict[str, Any]:
    """The body that reaches `host`, by the real client; every name leads to this machine."""
    all_names_lead_here(monkeypatch)
    async with server() as (port, bodies):
        made = Endpoint(
            "up", f"http://{host}:{port}/api/v1", (Credential("k", "sk-very-secret"),), (model,), extra_body=extra or {}
        )
        client = ModelClient((made,), SystemClock(), Redactor.of(["sk-very-secret"]))
        try:
            request = ModelRequest(
                Route(model, "up", "k"), 1, [{"role": "user", "content": "x"}], parameters=parameters or {}
            )
            await client.ask(request, lambda _: None)
        finally:
            await client.aclose()
        (body,) = bodies
        return body


@pytest.mark.parametrize(
    ("host", "model"),
    [
        ("openrouter.ai", "minimax/minimax-m2"),
        ("OpenRouter.AI", "MiniMax/MiniMax-M2.5"),
        ("openrouter.ai", "minimax/minimax-m2:free"),
        ("openrouter.ai", "minimax/minimax-m2:online"),
        ("openrouter.ai", "minimax/minimax-m2@preset/mine"),
        ("openrouter.ai", "minimax/minimax-m2-20251027"),
    ],
)
async def test_minimax_at_openrouter_is_asked_for_elsewhere(monkeypatch: pytest.MonkeyPatch, host: str, model: str):
    body = await sent(monkeypatch, host, model)
    assert body["provider"] == AVOIDING
    assert body["model"] == model


async def test_a_variant_that_is_a_sort_order_keeps_it_and_the_bad_one_is_left_out(monkeypatch: pytest.MonkeyPatch):
    assert (await sent(monkeypatch, "openrouter.ai", "minimax/minimax-m2:nitro"))["provider"] == {"ignore": ["minimax"]}


@pytest.mark.parametrize("model", ["z-ai/glm-5.2", "z-ai/glm-5.2-20260616", "z-ai/glm-5.2:free"])
async def test_a_release_of_a_model_is_that_model(monkeypatch: pytest.MonkeyPatch, model: str):
    assert (await sent(monkeypatch, "openrouter.ai", model))["provider"] == {"order": ["z-ai"]}


@pytest.mark.parametrize(
    ("host", "model"),
    [
        ("openrouter.ai", "anthropic/claude-sonnet"),
        ("openrouter.ai", "not-minimax/minimax-m2"),
        ("openrouter.ai", "minimax"),
        ("openrouter.ai", "z-ai/glm-5.2-air"),
        ("eu.openrouter.ai", "minimax/minimax-m2"),
        ("openrouter.ai.example.org", "minimax/minimax-m2"),
        ("notopenrouter.ai", "minimax/minimax-m2"),
        ("api.minimax.io", "minimax/minimax-m2"),
    ],
)
async def test_nothing_else_is_touched(monkeypatch: pytest.MonkeyPatch, host: str, model: str):
    assert "provider" not in await sent(monkeypatch, host, model)


@pytest.mark.parametrize(
    ("own", "becomes"),
    [
        ({"sort": "price"}, {"sort": "price", "ignore": ["minimax"]}),
        ({"data_collection": "deny"}, {"data_collection": "deny", **AVOIDING}),
        ({"order": ["minimax"]}, {"order": ["minimax"]}),
        ({"order": ["together"]}, {"order": ["together"], "ignore": ["minimax"]}),
        ({"only": ["MiniMax", "together"]}, {"only": ["MiniMax", "together"]}),
        ({"ignore": ["x"]}, {"ignore": ["x"], "order": AVOIDING["order"]}),
        ({}, AVOIDING),
    ],
)
async def test_the_operators_routing_wins_key_by_key_and_the_rest_is_filled_in(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, Json], becomes: dict[str, Json]
):
    extra: dict[str, Json] = {"top_p": 0.5, "models": ["minimax/minimax-m2", "x/y"], "provider": own}
    body = await sent(monkeypatch, "openrouter.ai", "minimax/minimax-m2", extra=extra)
    assert body["provider"] == becomes
    assert (body["top_p"], body["models"]) == (0.5, extra["models"])


@pytest.mark.parametrize("own", ["together", ["together"], 7, False])
def test_a_routing_of_another_form_is_left_as_it_is(own: Json):
    added = avoiding(OPENROUTER, "minimax/minimax-m2", {"provider": own})
    assert added.get("provider", own) == own


async def test_a_clients_own_routing_wins_too(monkeypatch: pytest.MonkeyPatch):
    body = await sent(
        monkeypatch, "openrouter.ai", "minimax/minimax-m2", parameters={"provider": {"only": ["together"]}}
    )
    assert body["provider"] == {"only": ["together"], "ignore": ["minimax"]}


# ---------------------------------------------------------------------- for any row


@given(st.sampled_from(ROWS), st.text("abc.-:/@", max_size=8), st.text("abc.-:/@", max_size=8))
def test_only_the_very_host_is_meant(row: KnownBad, before: str, after: str):
    model = row.model.replace("*", "x")
    url = f"https://{before}{row.host}{after}/v1"
    added = avoiding(url, model, {})
    if added:
        authority = f"{before}{row.host}{after}".partition("/")[0]
        host = authority.rpartition("@")[2].partition(":")[0]
        assert host.removesuffix(".") == row.host
    assert avoiding(f"https://{row.host}/v1", model, {}) == dict(row.extra_body)


routings = st.dictionaries(
    st.sampled_from(["order", "sort", "only", "ignore", "data_collection", "zdr"]),
    st.lists(st.sampled_from(["minimax", "MiniMax", "z-ai", "together"]), max_size=2),
    max_size=4,
)


@given(st.sampled_from(ROWS), routings, st.sampled_from(["", ":free", ":nitro", "@preset/x"]))
def test_whatever_key_is_set_keeps_its_value_and_filling_in_twice_is_once(
    row: KnownBad, own: dict[str, Json], variant: str
):
    url, model = f"https://{row.host}/v1", row.model.replace("*", "x") + variant
    given_body: dict[str, Json] = {"provider": own}
    filled = {**given_body, **avoiding(url, model, given_body)}
    provider = filled["provider"]
    assert isinstance(provider, dict)
    assert {key: provider[key] for key in own} == own
    assert avoiding(url, model, filled) == {}


def test_every_row_is_whole():
    for row in ROWS:
        assert row.host == row.host.lower()
        assert row.model == row.model.lower()
        assert row.report.startswith("https://")
        assert set(row.extra_body) <= ROUTING
        assert row.fault
        assert row.remedy
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_an_address_that_is_none_concerns_no_row():
    assert avoiding("https://[openrouter.ai/v1", "minimax/m2", {}) == {}


# ---------------------------------------------------------------------- nobody else is there


async def test_where_the_avoided_one_is_the_only_one_it_is_asked_after_all(monkeypatch: pytest.MonkeyPatch):
    all_names_lead_here(monkeypatch)
    bodies: list[dict[str, Any]] = []

    async def complete(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        if "provider" in bodies[-1]:
            return web.json_response(
                {"error": {"code": 404, "message": "All providers have been ignored."}}, status=404
            )
        end = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
        return web.Response(text=f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made = endpoint(f"http://openrouter.ai:{runner.addresses[0][1]}/v1", "minimax/minimax-m2:free")
    client = ModelClient((made,), SystemClock(), Redactor())
    try:
        request = ModelRequest(Route("minimax/minimax-m2:free", "up", "k"), 1, [{"role": "user", "content": "x"}])
        first = await client.ask(request, lambda _: None)
        second = await client.ask(request, lambda _: None)
    finally:
        await client.aclose()
        await runner.cleanup()
    assert isinstance(first, CallBroke)
    assert first.cause is BreakCause.SERVER_ERROR  # which is tried again
    assert isinstance(second, ReplyFinished)


# ---------------------------------------------------------------------- said to the operator


def test_what_applies_is_said_with_its_report():
    (words,) = applied((endpoint(), endpoint(model="x/y")), TODAY)
    assert "minimax/minimax-m2 at openrouter.ai" in words
    assert ROWS[0].report in words
    assert "To be looked at again by 2027-03-01" in words
    assert applied((endpoint(model="x/y"), endpoint("http://127.0.0.1:1/v1")), TODAY) == ()


def test_it_is_said_how_far_the_operators_routing_counts():
    (words,) = applied((endpoint(provider={"order": ["minimax"]}),), TODAY)
    assert "your own routing counts" in words
    (words,) = applied((endpoint(provider={"sort": "price"}),), TODAY)
    assert "as far as your own routing leaves it open" in words
    assert "2027-03-01" in words


def test_a_row_past_its_date_is_said_and_still_applies():
    row = ROWS[0]
    assert overdue((endpoint(),), row.look_again) == ()
    late = row.look_again + timedelta(days=1)
    assert overdue((endpoint(),), late) == (row,)
    assert overdue((endpoint(model="x/y"),), late) == ()
    assert "may be mended by now" in applied((endpoint(),), late)[0]
    old = replace(row, look_again=date(2020, 1, 1))
    assert avoiding(OPENROUTER, "minimax/m2", {}, (old,)) == dict(row.extra_body)
