"""The document of the API: every route that is served, with shapes that are what is sent, and codes of a closed set."""

from __future__ import annotations

import ast
import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from aiohttp import web

from adapters.http.openapi.codes import CODES, REQUESTS
from adapters.http.openapi.document import document
from adapters.http.openapi.operations import OPERATIONS
from adapters.http.routes import HttpRoute
from adapters.http.web import wire
from gateway.http import server
from tests.adapters.scripted import ended, example, text, tool
from tests.serving import served
from tests.source import nodes

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"/v1/{path}", "/{path}"}
"""What answers where there is nothing."""
NOT_EVERYWHERE = {HttpRoute.SLACK, HttpRoute.HOOK, HttpRoute.LIST_WEBHOOKS, HttpRoute.CHANGE_WEBHOOKS}
"""Served where they are configured."""


def test_every_route_has_its_operation_and_stands_in_the_document_once():
    assert set(OPERATIONS) == set(HttpRoute)
    whole: Any = document("1")
    found = {(method.upper(), path) for path, each in whole["paths"].items() for method in each}
    assert found == {(route.method, route.path) for route in HttpRoute}
    names = [each["operationId"] for item in whole["paths"].values() for each in item.values()]
    assert len(names) == len(set(names))


def test_a_body_is_asked_for_exactly_where_nothing_is_done_without_one():
    whole: Any = document("1")
    for route, operation in OPERATIONS.items():
        body = whole["paths"][route.path][route.method.lower()].get("requestBody")
        assert (body is None) is (operation.body is None)
        assert body is None or body["required"] is operation.body_needed
    assert any(not one.body_needed for one in OPERATIONS.values())


async def test_what_a_gateway_serves_are_the_rows_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    apps: list[web.Application] = []
    listening = server._listening

    async def seen(config: Any, app: web.Application, *more: Any) -> str:
        apps.append(app)
        return await listening(config, app, *more)

    monkeypatch.setattr(server, "_listening", seen)
    async with served(tmp_path):
        routes = {
            (route.method, route.resource.canonical) for route in apps[0].router.routes() if route.resource is not None
        }
    found = {(method, path) for method, path in routes if path not in ELSEWHERE and method != "HEAD"}
    table = {(route.method, route.path): route for route in HttpRoute}
    assert found <= set(table), "a route that is in no row"
    assert {route for key, route in table.items() if key not in found} == NOT_EVERYWHERE


def test_no_route_is_made_beside_the_table():
    """Telegram's has the operator's path, Slack's is named in the table; the rehearsal model is a server of its own."""
    made = re.compile(r"web\.(?:get|post|put|patch|delete|view|route|options)\(")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("adapters", "gateway", "agent_core")
        for path in (ROOT / folder).rglob("*.py")
        if made.search(path.read_text())
    }
    assert found == {
        "adapters/http/routes.py", "adapters/http/api/surface.py", "adapters/slack/adapter.py", "adapters/telegram/webhook.py",
        "gateway/http/entry.py", "agent_core/model/rehearsal/server.py",
    }  # fmt: skip


def test_every_schema_is_one_and_every_reference_leads_somewhere():
    whole: Any = document("1")
    schemas = whole["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for reference in references(whole):
        found: Any = whole
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
    assert {reference.rpartition("/")[2] for reference in references(whole)} >= set(schemas), "one that nothing uses"


def references(value: Any) -> Iterator[str]:
    match value:
        case {"$ref": str(name)}:
            yield name
        case dict():
            for each in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from references(each)
        case list():
            for each in value:  # pyright: ignore[reportUnknownVariableType]
                yield from references(each)
        case _:
            pass


def codes_in(source: str) -> Iterator[str]:
    """What is given as the code of a problem."""
    for node in nodes(source):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant) and keyword.value.value:
                    yield str(keyword.value.value)
            if isinstance(node.func, ast.Name) and node.func.id == "_Bad" and len(node.args) == 3:
                yield from (str(arg.value) for arg in node.args[2:] if isinstance(arg, ast.Constant) and arg.value)


def test_a_list_is_described_as_one():
    told: Any = document("1", [HttpRoute.EARLIER])
    answered = told["paths"]["/api/sessions/{session}/earlier"]["get"]["responses"]["200"]["content"]
    listed = {"type": "array", "items": {"$ref": "#/components/schemas/PageMessage"}}
    assert answered == {"application/json": {"schema": listed}}


def test_codes_of_errors_are_a_closed_set_and_each_is_used():
    found: set[str] = set()
    for folder in ("adapters/http", "gateway/http", "gateway/console", "gateway/webhooks", "gateway/observe"):
        for path in (ROOT / folder).rglob("*.py"):
            found |= set(codes_in(path.read_text()))
    assert found <= CODES
    assert set(REQUESTS) <= found


def validator(name: str) -> Any:
    whole: Any = document("1")
    return jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": whole["components"]})


def test_the_events_of_the_page_are_as_the_document_has_them():
    from adapters.contract.base import MessageState, TurnSight
    from agent_core.failures.exits import ExitCode

    check = validator("PageMessage")
    bubbles = (text("s1", "Hello"), tool("c1", "look", "running", 3))
    check.validate(plain(wire(TurnSight("k", 1, MessageState.QUEUED, "hi", position=2))))
    for code in ExitCode:
        last = ended(example(code), *bubbles)
        sight = TurnSight("k", 1, MessageState.CLOSED, "hi", "t_1", view=last.view, at=5, summary=last.summary)
        check.validate(plain(wire(sight)))
    shape: Any = document("1")
    properties = shape["components"]["schemas"]["PageMessage"]["properties"]
    assert set(properties) == set(wire(TurnSight("k", 1, MessageState.OPEN, "hi")))
    for name in ("PageMessage", "PageBubble", "PageFigures"):
        for field, schema in shape["components"]["schemas"][name]["properties"].items():
            assert schema.get("description"), f"{name}.{field} is not described"


def plain(value: Any) -> Any:
    import orjson

    return orjson.loads(orjson.dumps(value))


async def test_the_document_is_made_once_however_often_it_is_asked_for_and_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It takes more than half a second of a processor, and whoever asks needs no key."""
    made: list[threading.Thread] = []

    def counted(*_: object) -> dict[str, str]:
        made.append(threading.current_thread())
        return {"openapi": "3.1.0"}

    monkeypatch.setattr("adapters.http.openapi.document.document", counted)
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:

        async def asked() -> dict[str, str]:
            async with http.get(f"{up.url}/openapi.json") as response:
                return await response.json()

        told = [*await asyncio.gather(*(asked() for _ in range(3))), await asked()]
    assert told == [{"openapi": "3.1.0"}] * 4
    assert len(made) == 1
    assert made[0] is not threading.current_thread()


async def test_the_document_is_served_to_everybody(tmp_path: Path):
    env = {"OUTSPOKEN_SERVER__API_KEY": "a-key-of-some-length"}
    async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
        async with http.get(f"{up.url}/openapi.json") as response:
            told = await response.json()
        assert (response.status, told["openapi"]) == (200, "3.1.0")
        assert set(told["paths"]) == {route.path for route in set(HttpRoute) - NOT_EVERYWHERE}
        for method, path, allow in (
            ("POST", "/openapi.json", "GET, HEAD"),
            ("PUT", "/v1/responses", "POST"),
            ("DELETE", "/healthz", "GET, HEAD"),
        ):
            headers = {"Authorization": "Bearer a-key-of-some-length"}
            async with http.request(method, f"{up.url}{path}", headers=headers) as response:
                error = (await response.json())["error"]
                assert (response.status, error["code"], response.headers["Allow"]) == (
                    405, "method_not_allowed", allow,
                )  # fmt: skip


def test_whatever_of_a_query_is_read_stands_in_the_document():
    whole: Any = document("1")
    told = {
        one["name"]
        for item in whole["paths"].values()
        for each in item.values()
        for one in each.get("parameters", ())
        if one["in"] == "query"
    }
    sources = [path for folder in ("adapters/http", "gateway/http") for path in (ROOT / folder).rglob("*.py")]
    read = {
        name for path in sources for name in re.findall(r'query\.get(?:all)?\("([a-z_]+)"', path.read_text("utf-8"))
    }
    assert {"starting_after", "limit", "search", "wait"} <= read
    assert read - told == set()
