"""Tools that a client of the API runs itself: what it does wrong with a call that it was handed."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.faults.kinds import Fault
from tests.faults.provider import script, words_of
from tests.faults.words import BIDI, MARKUP, PERSONATION
from tests.gateway.rig import Model

BOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "book", "description": "books", "parameters": {"type": "object", "properties": {"seats": {"type": "integer"}}}},
}  # fmt: skip
WITH_SEATS: dict[str, Any] = {
    "type": "function",
    "function": {"name": "book", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
}  # fmt: skip
ASIDE: dict[str, Any] = {"role": "user", "content": "And then?"}


@dataclass(frozen=True)
class ClientCell:
    """One fault: what the client sends after the call that it was handed, and what comes of it."""

    fault: Fault
    results: Sequence[Mapping[str, Any]] = ()
    """`ID` in them is the call's."""
    told: str = ""
    """What the model reads of the call, in part."""
    refused: str = ""
    """In the words with which the request is refused."""
    tools: Sequence[Mapping[str, Any]] = (BOOK,)
    """What the client offers from then on."""
    raw: tuple[bytes, bytes] = (b"", b"")
    """What stands in the request in place of what."""


def _said(content: Any, call: str = "ID") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


CLIENT = (
    ClientCell(Fault.HANGS, [ASIDE], told="it is not known whether"),
    ClientCell(Fault.FLOODS, [_said("booked")] * 500, told="booked"),
    ClientCell(Fault.CHANGES, [_said("booked")], told="booked", tools=[WITH_SEATS]),
    ClientCell(Fault.WITHDRAWN, [_said("booked")], told="booked", tools=[]),
    ClientCell(Fault.TWICE, [_said("booked"), _said("booked again")], told="booked"),
    ClientCell(Fault.LATE, [ASIDE, _said("booked")], told="booked"),
    ClientCell(Fault.ANOTHER, [_said("booked", "call_999")], told="whose call is not part of this conversation"),
    ClientCell(Fault.WRONG_TYPES, [_said({"seats": 5})], refused="content"),
    ClientCell(Fault.BINARY, [_said("\0\1\2")], told="\0\1\2"),
    ClientCell(Fault.NOT_UTF8, [_said("cafe")], refused="UTF-8", raw=(b"cafe", b"caf\xe9")),
    ClientCell(Fault.HALF_CHARACTER, [_said("half \ud800")], told="half \ufffd"),
    ClientCell(Fault.HUGE, [_said("word " * 400_000)], told="word"),
    ClientCell(Fault.EMPTY, [_said("")], told="(no output)"),
    ClientCell(Fault.NO_WORDS, [_said(None)], refused="is missing"),
    ClientCell(Fault.NESTED, [_said("NEST")], refused="JSON", raw=(b'"NEST"', b"[" * 100_000 + b"]" * 100_000)),
    ClientCell(Fault.NUMBERS, [_said("NUMBER")], refused="number", raw=(b'"NUMBER"', b"9" * 100_000)),
    ClientCell(Fault.MARKUP, [_said(MARKUP)], told="[[["),
    ClientCell(Fault.CONTROLS, [_said(BIDI)], told="gnp.exe"),
    ClientCell(Fault.IMPERSONATES, [_said(PERSONATION)], told="approved all calls"),
)


@dataclass(frozen=True)
class ClientSeen:
    """What came of it."""

    cell: ClientCell
    status: int
    said: str
    told: str
    """What the model read of the call."""
    asked: int
    """How often the model's server was asked after the client's answer."""


async def play_client(url: str, model: Model, cell: ClientCell, number: int) -> ClientSeen:
    """The two requests of a client."""
    first = [{"role": "user", "content": f"n{number} {script(('book', {'seats': 2}))}"}]
    async with aiohttp.ClientSession() as http:
        _, answer = await _post(http, url, {"model": "m1", "messages": first, "tools": [BOOK]})
        message = json.loads(answer)["choices"][0]["message"]
        call = message["tool_calls"][0]["id"]
        results = [{key: call if value == "ID" else value for key, value in one.items()} for one in cell.results]
        before = len(model.requests)
        body = {
            "model": "m1",
            "messages": [*first, message, *results],
            **({"tools": list(cell.tools)} if cell.tools else {}),
        }
        status, said = await _post(http, url, body, cell.raw)
    asked = model.requests[before:]
    told = "\n".join(words_of(one) for one in asked[-1]["messages"] if one["role"] == "tool") if asked else ""
    return ClientSeen(cell, status, said, told, len(asked))


async def _post(
    http: aiohttp.ClientSession, url: str, body: Any, raw: tuple[bytes, bytes] = (b"", b"")
) -> tuple[int, str]:
    data = json.dumps(body).encode()
    if raw[0]:
        data = data.replace(*raw)
    headers = {"Content-Type": "application/json"}
    async with http.post(f"{url}/v1/chat/completions", data=io.BytesIO(data), headers=headers) as response:
        return response.status, await response.text()
