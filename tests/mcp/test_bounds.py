"""What comes of a server has an end: answers, lists, and the wait for what is late; and what it says of itself is told as what it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

from agent_core.jsonvalue import Json
from agent_core.tools.asking import AnswerAction, ToolAnswer
from agent_core.tools.mcp import server
from agent_core.tools.mcp.http import _Watched
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.server import McpServer
from agent_core.tools.mcp.session import MOST_PAGES, Connected, _elicited, _Sifted

types: Any = import_module("mcp.types")
ADDRESS, MOST = "https://desk.example/mcp", 100


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.pieces:
            yield self.pieces.pop(0)


async def answered(
    status: int = 200, pieces: list[bytes] | None = None, kind: str = "application/json", *,
    session: bool = False, login: bool = False, address: str = ADDRESS, method: str = "POST", configured: str = ADDRESS,
) -> tuple[McpLink, bytes, list[bytes]]:  # fmt: skip
    """What the link knows behind an answer, what of it was read, and what of it was left where it was."""
    left = list(pieces or [])

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": kind}, stream=Pieces(left))

    link, read = McpLink(), b""
    watched = _Watched(httpx2.MockTransport(answer), link, MOST, configured, login=login)
    request = httpx2.Request(method, address, headers={"mcp-session-id": "s1"} if session else {})
    response = await watched.handle_async_request(request)
    stream = cast("httpx2.AsyncByteStream", response.stream)
    try:
        async for piece in stream:
            read += piece
    except httpx2.StreamError:
        pass
    return link, read, left


@pytest.mark.parametrize(("count", "whole"), [(1, True), (10, True), (11, False), (1_000, False)])
async def test_an_answer_is_read_up_to_its_bound_and_no_further(count: int, whole: bool) -> None:
    link, read, left = await answered(pieces=[b"0123456789"] * count)
    assert (len(read), link.failed == "") == ((10 * count, True) if whole else (MOST, False))
    assert len(left) == (0 if whole else count - 11)
    assert link.came == 10 * min(count, 11)


@pytest.mark.parametrize(
    ("status", "session", "login", "over", "refused", "failed"),
    [
        (404, True, False, True, False, False),
        (404, False, False, False, False, False),
        (401, True, False, False, True, False),
        (403, True, True, False, True, False),
        (401, True, True, False, False, False),
        (500, True, False, False, False, True),
        (503, False, False, False, False, True),
        (200, True, False, False, False, False),
    ],
)
async def test_what_a_status_means_for_the_connection(
    status: int, session: bool, login: bool, over: bool, refused: bool, failed: bool
) -> None:
    link, _, _ = await answered(status, session=session, login=login)
    assert (link.over.is_set(), bool(link.refused), bool(link.failed)) == (over, refused, failed)
    elsewhere, _, _ = await answered(status, session=session, login=login, address="https://login.example/token")
    assert (elsewhere.over.is_set(), elsewhere.refused, elsewhere.failed) == (False, "", ""), (
        "whoever asked judges that"
    )


@pytest.mark.parametrize("address", ["https://DESK.example/mcp", "https://desk.example:443/mcp"])
async def test_an_address_is_the_same_however_it_is_spelt(address: str) -> None:
    link, _, _ = await answered(404, session=True, configured=address)
    assert link.over.is_set()
    link, read, _ = await answered(pieces=[b"x"] * (MOST + 1), configured=address)
    assert (len(read), bool(link.failed)) == (MOST, True)


@pytest.mark.parametrize("status", [401, 403, 405, 500, 501, 503])
async def test_that_a_server_has_no_stream_of_its_own_says_nothing_of_a_call(status: int) -> None:
    link, _, _ = await answered(status, session=True, method="GET")
    assert (link.over.is_set(), link.refused, link.failed) == (False, "", "")
    gone, _, _ = await answered(404, session=True, method="GET")
    assert gone.over.is_set(), "but that it has forgotten us"


def connected(pages: list[tuple[int, str | None]]) -> tuple[Connected, list[str | None]]:
    """A server with so many tools on each page, and the cursor that each names; which it was asked for."""
    asked: list[str | None] = []

    async def list_tools(params: Any = None) -> Any:
        asked.append(params.cursor if params is not None else None)
        count, cursor = pages[min(len(asked), len(pages)) - 1]
        tools = [types.Tool(name=f"t{len(asked)}_{n}", input_schema={"type": "object"}) for n in range(count)]
        return SimpleNamespace(tools=tools, next_cursor=cursor)

    client: Any = SimpleNamespace(session=SimpleNamespace(list_tools=list_tools))
    return Connected(client, McpLink(), ""), asked


@pytest.mark.parametrize(
    ("pages", "most", "found", "questions"),
    [
        ([(2, "a"), (2, "b"), (2, None)], 100, 6, 3),
        ([(2, "a"), (2, "b"), (2, None)], 3, 3, 2),
        ([(2, "a"), (2, "a")], 100, 4, 2),
        ([(0, "a"), (0, "b")] * MOST_PAGES, 100, 0, MOST_PAGES),
    ],
)
async def test_a_list_of_tools_has_an_end(
    pages: list[tuple[int, str | None]], most: int, found: int, questions: int
) -> None:
    there, asked = connected(pages)
    async with asyncio.timeout(20):
        assert len(await there.tools(most)) == found
    assert len(asked) == questions
    assert asked[1:] == [cursor for _, cursor in pages[: questions - 1]]


@pytest.mark.parametrize("action", AnswerAction)
@pytest.mark.parametrize("address", ["", "https://desk.example/pay"])
async def test_a_server_gets_what_was_said_where_somebody_agreed_and_nothing_else(
    action: AnswerAction, address: str
) -> None:
    asked: list[tuple[str, Json, str]] = []

    async def ask(*what: Any) -> ToolAnswer:
        asked.append(what)
        return ToolAnswer(action, {"seats": 3})

    form: dict[str, Any] = {"type": "object", "properties": {"seats": {"type": "integer"}}}
    params = (
        types.ElicitRequestURLParams(message="Pay?", url=address, elicitation_id="e1")
        if address
        else types.ElicitRequestFormParams(message="How many?", requested_schema=form)
    )
    said = await _elicited(params, ask)
    assert said.action == action.value
    assert said.content == ({"seats": 3} if action is AnswerAction.ACCEPT and not address else None)
    assert asked == [("Pay?", {}, address) if address else ("How many?", form, "")]


@pytest.mark.parametrize("comes", [True, False])
async def test_what_is_late_is_waited_for_a_while_and_then_no_more(
    comes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LATE_SECONDS", 60.0 if comes else 0.01)
    heard: list[Mapping[str, Json]] = []

    async def late(found: Mapping[str, Json]) -> None:
        heard.append(found)

    async def answers() -> Mapping[str, Json]:
        if not comes:
            await asyncio.Event().wait()
        return {"text": "done"}

    of: Any = SimpleNamespace(terms=SimpleNamespace(name="desk"), _late=set())
    request = asyncio.create_task(answers())
    McpServer._wait_on(of, request, late)
    async with asyncio.timeout(20):
        await asyncio.wait(of._late)
        await asyncio.wait([request])
    assert heard == ([{"text": "done"}] if comes else [])
    assert request.cancelled() is not comes


class Coming:
    """What comes by the way to a server, in its order."""

    def __init__(self, *items: Any) -> None:
        self.items = [*items]

    async def receive(self) -> Any:
        return self.items.pop(0)

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("way", ["receive", "iterate"])
async def test_of_a_list_of_tools_the_sound_ones_are_taken_and_the_others_are_named(way: str) -> None:
    sound: Any = [{"name": name, "inputSchema": {"type": "object"}} for name in ("look", "act")]
    odd: Any = ["no tool", {"name": "", "inputSchema": {}}, 7]
    results: list[Any] = [{"tools": [sound[0], *odd, sound[1]]}, {"tools": odd}, {"content": []}]
    rpc: Any = import_module("mcp.types.jsonrpc")
    message: Any = import_module("mcp.shared.message")
    link, error = McpLink(), ValueError("no message")
    items = [message.SessionMessage(rpc.JSONRPCResponse(jsonrpc="2.0", id=1, result=one)) for one in results]
    coming: Any = Coming(*items, error)
    coming.__anext__ = coming.receive
    sifted: Any = _Sifted(coming, link)
    read: list[Any] = [await (sifted.receive() if way == "receive" else sifted.__anext__()) for _ in range(4)]
    assert [tool["name"] for tool in read[0].message.result["tools"]] == ["look", "act"]
    assert read[1].message.result == {"tools": odd}, "that is no list of tools at all, as the package says"
    assert (read[2].message.result, read[3]) == ({"content": []}, error)
    assert len(link.left_out) == len(odd)
