"""The gateway as a server of tools, used by the protocol's own client over both ways, and by clients that are odd."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import jsonschema
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from gateway.daemon import Serving
from tests.program import program
from tests.serving import served

ON = {"OUTSPOKEN_SERVER__MCP": "true"}
LEGACY = "2025-11-25"


@asynccontextmanager
async def by_http(up: Serving, key: str = "", mode: str = "auto") -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{up.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def by_stdio(
    home: Path, url: str, *more: str, mode: str = "auto", env: Mapping[str, str] | None = None
) -> AsyncGenerator[Client]:
    began = StdioServerParameters(
        command=str(program(home)),
        args=["mcp", "serve", "--url", url, *more],
        env={"OUTSPOKEN_HOME": str(home), "PATH": os.environ["PATH"], **(env or {})},
    )
    async with Client(stdio_client(began, errlog=sys.__stderr__ or sys.stderr), mode=mode) as client:
        yield client


async def asked(client: Client, question: str, **more: Any) -> tuple[bool, Mapping[str, Any], list[str]]:
    seen: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        assert progress > 0
        assert total is None
        seen.append(message or "")

    result = await client.call_tool("ask", {"question": question, **more}, progress_callback=heard)
    return result.is_error, result.structured_content, seen


async def use(client: Client) -> None:
    """What a client does, from the list to the answer that is none."""
    tools = {one.name: one for one in (await client.session.list_tools()).tools}
    assert {"ask", "explain", "list_sessions", "read_session", "reset_session"} <= set(tools)
    failed, answer, seen = await asked(client, "count to 30 slowly", session="work")
    assert not failed
    assert "30" in answer["answer"]
    assert (answer["exit"], answer["exit_code"]) == ("answered", 0)
    assert seen
    failed, answer, _ = await asked(client, "rehearse unauthorised")
    assert failed
    assert (answer["exit"], answer["exit_code"]) == ("not_authorised", 10)
    assert "check the key" in answer["notice"]
    jsonschema.validate(answer, tools["ask"].output_schema or {})
    for name, arguments in (
        ("list_sessions", {}), ("read_session", {"session": "work"}), ("explain", {"id": answer["turn"]}),
        ("reset_session", {"session": "work"}),
    ):  # fmt: skip
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result
        jsonschema.validate(result.structured_content, tools[name].output_schema or {})
    assert (await client.call_tool("read_session", {"session": "nobody's"})).is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_ways_in_both_generations_of_the_protocol(tmp_path: Path, mode: str):
    async with served(tmp_path, ON, patient=True) as up:
        async with by_http(up, mode=mode) as client:
            await use(client)
            result = await client.call_tool("triage", {})
            assert result.structured_content["failures"] == 1
            assert (await client.call_tool("send", {"to": "telegram/1", "text": "x"})).is_error
        async with by_stdio(tmp_path, up.url, mode=mode) as client:
            await use(client)


async def test_a_call_that_is_cancelled_stops_its_turn(tmp_path: Path):
    async with served(tmp_path, ON, patient=True) as up:
        for way in (by_http(up), by_http(up, mode="legacy"), by_stdio(tmp_path, up.url)):
            async with way as client:
                task = asyncio.ensure_future(asked(client, "count to 3000 slowly", session="long"))
                async with asyncio.timeout(20):
                    while not any(True for _ in up.hub.running()):
                        await asyncio.sleep(0.02)
                task.cancel()
                async with asyncio.timeout(20):
                    while any(True for _ in up.hub.running()):
                        await asyncio.sleep(0.02)


async def test_a_gateway_that_restarts_under_a_question_is_waited_for_and_the_work_is_done_once(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"OUTSPOKEN_SERVER__PORT": str(port), "OUTSPOKEN_SERVER__DRAIN_SECONDS": "0"}
    async with by_stdio(tmp_path, f"http://127.0.0.1:{port}") as client:
        failed, answer, _ = await asked(client, "hello")
        assert failed
        assert "outspoken run" in answer["notice"]
        async with served(tmp_path, env, patient=True) as up:
            asking = asyncio.ensure_future(asked(client, "count to 60 slowly", session="s"))
            async with asyncio.timeout(20):
                while not any(True for _ in up.hub.running()):
                    await asyncio.sleep(0.02)
        async with served(tmp_path, env, patient=True):
            failed, answer, seen = await asking
            assert not failed, answer
            assert "60" in answer["answer"]
            assert any("interrupted" in words or "lost" in words for words in seen)
            listed = await client.call_tool("read_session", {"session": "s"})
            said = [one for one in listed.structured_content["items"] if one["by"] == "user"]
            assert len(said) == 1


async def test_by_http_a_stop_of_the_gateway_is_told_with_the_key_to_ask_again(tmp_path: Path):
    env = {**ON, "OUTSPOKEN_SERVER__DRAIN_SECONDS": "0"}
    async with served(tmp_path, env, patient=True) as up:
        client = await _entered(by_http(up))
        asking = asyncio.ensure_future(asked(client[1], "count to 60 slowly", session="s", key="mine"))
        async with asyncio.timeout(20):
            while not any(True for _ in up.hub.running()):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
    failed, answer, _ = await asking
    assert failed
    assert answer["exit"] == "left_open"
    assert 'key "mine"' in answer["notice"]
    await client[0].aclose()
    async with served(tmp_path, env, patient=True) as up, by_http(up) as again:
        failed, answer, _ = await asked(again, "count to 60 slowly", session="s", key="mine")
        assert not failed
        assert "60" in answer["answer"]


async def _entered(way: Any) -> tuple[Any, Client]:
    from contextlib import AsyncExitStack

    stack = AsyncExitStack()
    return stack, await stack.enter_async_context(way)


async def test_each_key_has_its_own_tools_and_sessions(tmp_path: Path):
    keys = {"OUTSPOKEN_SERVER__API_KEY": "for-talking-1", "OUTSPOKEN_SERVER__OPERATOR_KEY": "for-operating-1"}
    async with served(tmp_path, {**ON, **keys}, patient=True) as up:
        async with by_http(up, "for-talking-1") as client:
            names = {one.name for one in (await client.session.list_tools()).tools}
            assert "ask" in names
            assert not {"triage", "send"} & names
            with pytest.raises(MCPError, match="no tool"):
                await client.call_tool("triage", {})
        async with by_http(up, "for-operating-1") as client:
            names = {one.name for one in (await client.session.list_tools()).tools}
            assert names == {"explain", "triage", "send"}
            assert not (await client.call_tool("triage", {"since": "2h"})).is_error
            assert "since" in (await client.call_tool("triage", {"since": "soon"})).structured_content["error"]
        async with aiohttp.ClientSession() as http:
            begun = await http.post(f"{up.url}/mcp", json=INITIALIZE, headers=head("for-talking-1"))
            session = begun.headers["Mcp-Session-Id"]
            theirs = {**head("for-operating-1"), "Mcp-Session-Id": session}
            assert (await http.post(f"{up.url}/mcp", json=LIST, headers=theirs)).status == 404
            assert (await http.post(f"{up.url}/mcp", json=LIST, headers=head("wrong"))).status == 401


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "odd", "version": "1"}},
}  # fmt: skip
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def head(key: str = "") -> dict[str, str]:
    found = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return found | ({"Authorization": f"Bearer {key}"} if key else {})


async def test_odd_clients_are_answered_and_the_gateway_goes_on(tmp_path: Path):
    async with (
        served(tmp_path, ON | {"OUTSPOKEN_SERVER__MAX_BODY_BYTES": "150000"}, patient=True) as up,
        aiohttp.ClientSession() as http,
    ):
        at = f"{up.url}/mcp"
        for body, headers, status in (
            (b"{", head(), 400),
            (b"[]", head(), 400),
            (b'{"jsonrpc":"2.0"}', head(), 400),
            (b"x" * 200_000, head(), 413),
            (b"[" * 100_000, head(), 400),
            (b"{}", head() | {"Origin": "https://evil.example"}, 403),
            (b"{}", head() | {"Host": "evil.example"}, 401),
            (b"{}", head() | {"Mcp-Session-Id": "made up"}, 404),
            (b"{}", {"Content-Type": "text/plain"}, 400),
        ):
            async with http.post(at, data=body, headers=headers) as answer:
                assert answer.status == status or (status == 400 and answer.status in (406, 415)), (
                    body[:20],
                    answer.status,
                )
        wrong = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "1999-01-01"}}
        async with http.post(at, json=wrong, headers=head()) as answer:
            assert answer.status == 200
            assert "protocolVersion" in await answer.text()
        async with http.post(at, json=LIST, headers=head()) as answer:  # without initialize
            assert answer.status < 500
        call = {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "ask", "arguments": {"question": "hello"}},
        }
        begun = await http.post(at, json=INITIALIZE, headers=head())
        session = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"], **head()}
        with pytest.raises(asyncio.TimeoutError):  # goes away before the answer
            await http.post(at, json=call, headers=session, timeout=aiohttp.ClientTimeout(total=0.01))
        async with by_http(up) as client:
            assert not (await asked(client, "hello"))[0]


async def test_it_is_off_unless_the_configuration_turns_it_on(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:
        answer = await http.post(f"{up.url}/mcp", json=INITIALIZE, headers=head())
        assert answer.status == 404
        assert "mcp = true" in await answer.text()


async def test_by_stdio_what_is_no_message_is_passed_over_and_the_end_of_input_is_the_end(tmp_path: Path):
    running = await asyncio.create_subprocess_exec(
        program(tmp_path), "mcp", "serve", "--url", "http://127.0.0.1:9",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={"OUTSPOKEN_HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert running.stdin is not None
    assert running.stdout is not None
    import orjson

    for line in (b"nonsense\n", b"{}\n", b"\xff\xfe\n", orjson.dumps(INITIALIZE) + b"\n"):
        running.stdin.write(line)
    async with asyncio.timeout(60):
        while b"protocolVersion" not in (line := await running.stdout.readline()):
            assert line
        half = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "ask", "arguments": {"question": "half \ud83d"}},
        }
        running.stdin.write(json.dumps(half).encode() + b"\n")  # as JavaScript spells a text that was cut
        assert b'"id":7' in await running.stdout.readline()
        running.stdin.close()
        assert await running.wait() == 0
