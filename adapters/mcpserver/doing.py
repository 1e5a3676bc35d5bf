"""What each tool does, over the gateway's own API: the same whichever way a client came.

A question goes to the gateway under a key. Lost on the way, it is asked for again under that key, so it is worked on once; and whoever loses us can do
the same. Whoever cancels a call, or goes away, hangs up on the gateway, which stops the turn.

Law (tests/mcpserver/): each call ends with a result; one that is not clean is an error with words, an exit and its code.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from urllib.parse import quote, urlencode

import orjson

from adapters.mcpserver.catalogue import ServedName, ServedTool
from adapters.mcpserver.reading import ArgumentsRefused, ReadArguments, read
from adapters.terminal.ask import AGAIN_SECONDS, UNFINISHED, Answer, GatewayLost, GatewayRefused, stream, take
from adapters.terminal.operator import Remote, Table, tables
from agent_core.jsonvalue import Json
from agent_core.records import dataclass

WAIT_SECONDS = 300.0
"""A gateway that went away under a question is waited for so long."""
MOST_PICTURES = 8
MOST_PICTURE_CHARS = 4_000_000
INTERRUPTED = "The gateway is interrupted; waiting for it. The work goes on then."
CUT_OFF = "The connection to the gateway was lost; the question is stored, and the gateway is waited for."
PRESSING = frozenset({INTERRUPTED, CUT_OFF})
"""What is told at once, whatever was told just before."""
Heard = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class GatewayWay:
    """How the gateway is reached for one caller, and as whom."""

    url: str
    key: str | None
    operator_key: str | None
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers that go with what is asked for the caller."""
    talks: bool = True
    operates: bool = False
    user: str = ""
    """Whose memory it is, where the key does not say so; empty: the key alone says."""
    wait_seconds: float = WAIT_SECONDS

    def caller(self) -> Remote:
        return Remote(self.url, self.key, self.more)

    def operator(self) -> Remote:
        return Remote(self.url, self.operator_key)


@dataclass(frozen=True, slots=True)
class ServedPicture:
    """One that the agent made."""

    data: str
    """Base64."""
    kind: str


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a call comes to."""

    text: str
    structured: Mapping[str, Json]
    failed: bool = False
    pictures: tuple[ServedPicture, ...] = ()


async def done(tool: ServedTool, given: Mapping[str, Json], way: GatewayWay, heard: Heard) -> ToolReply:
    """Carry a call out; it ends with words whatever happens, unless it is cancelled."""
    try:
        asked = read(tool, given)
    except ArgumentsRefused as refused:
        return _failed(tool, f"Nothing was done: {refused}")
    if tool.name is ServedName.ASK:
        return await _ask(asked, way, heard)
    try:
        match tool.name:
            case ServedName.LIST_SESSIONS:
                return await _list(asked, way)
            case ServedName.READ_SESSION:
                return await _read(asked, way)
            case ServedName.RESET_SESSION:
                path = f"/v1/outspoken/sessions/{quote(asked.text('session'), safe='')}/reset"
                found = _session(await way.caller().call("POST", path))
                return _told(f"The conversation {found['session']} begins anew.", found)
            case ServedName.EXPLAIN:
                return await _explain(asked, way)
            case ServedName.SEND:
                return await _send(asked, way)
            case ServedName.TRIAGE:
                query = urlencode({"limit": asked.numbers["limit"], "since": asked.text("since")})
                found = await way.operator().call("GET", f"/api/triage?{query}")
                return _told(orjson.dumps(dict(found), option=orjson.OPT_INDENT_2).decode(), found)
    except GatewayRefused as refused:
        return _failed(tool, str(refused))
    except GatewayLost as lost:
        unsure = "" if tool.read_only else " Whether it was done is not known: look before you repeat it."
        return _failed(tool, f"{lost}{_start(lost)}{unsure}")


# ---------------------------------------------------------------------- asking


@dataclass(slots=True)
class _Hearing:
    """What has come of a question so far."""

    answer: Answer = field(default_factory=Answer)
    pictures: list[ServedPicture] = field(default_factory=list[ServedPicture])

    def begin_anew(self) -> None:
        self.answer, self.pictures = Answer(turn=self.answer.turn), []


async def _ask(asked: ReadArguments, way: GatewayWay, heard: Heard) -> ToolReply:
    key = asked.text("key") or secrets.token_hex(12)
    hearing = _Hearing()
    try:
        await _hear(asked, way, key, hearing, heard)
    except GatewayRefused as refused:
        return _not_asked(asked, key, "not_started" if refused.status < 500 else "unknown", str(refused), hearing)
    except GatewayLost as lost:
        words = f"{lost}{_start(lost)} {_again(key)}" if hearing.answer.turn else f"{lost}{_start(lost)}"
        return _not_asked(asked, key, "unknown" if hearing.answer.turn else "not_started", words, hearing)
    return _answered(asked, key, hearing)


async def _hear(asked: ReadArguments, way: GatewayWay, key: str, hearing: _Hearing, heard: Heard) -> None:
    """Until the turn is over, or the gateway has been away for too long. Raises `GatewayLost`, `GatewayRefused`."""
    loop = asyncio.get_running_loop()
    until, left = 0.0, False
    while True:
        try:
            await _listen(asked, way, key, hearing, heard)
        except (GatewayLost, GatewayRefused) as error:
            gone = isinstance(error, GatewayLost) or error.status >= 500
            if not left or not gone or loop.time() >= until:
                raise
        else:
            if not hearing.answer.left or not way.wait_seconds:
                return
            if not left:
                left, until = True, loop.time() + way.wait_seconds
                await heard(INTERRUPTED)
            if loop.time() >= until:
                return
        hearing.begin_anew()
        await asyncio.sleep(AGAIN_SECONDS)


async def _listen(asked: ReadArguments, way: GatewayWay, key: str, hearing: _Hearing, heard: Heard) -> None:
    more = {**way.more, "Idempotency-Key": key, "X-Outspoken-Errors": "words", "X-Outspoken-Disconnect": "cancel"}
    said = 0
    async for kind, data in stream(
        way.url, way.key, asked.text("question"), asked.text("session"), more=more, user=way.user,
        model=asked.text("agent") or "outspoken", back_seconds=way.wait_seconds,
    ):  # fmt: skip
        match kind:
            case "comment":
                if data.startswith("turn "):
                    hearing.answer.turn = data.removeprefix("turn ")
                    await heard("The turn has begun.")
                elif data and data != "keep-alive":
                    await heard(data)
            case "waits":
                await heard(data)
            case "lost":
                await heard(CUT_OFF)
            case "again":
                hearing.begin_anew()
                said = 0
            case _:
                said += len(take(hearing.answer, data))
                hearing.pictures += _pictures(data, MOST_PICTURES - len(hearing.pictures))
                if said:
                    await heard(f"The agent writes: {said} characters.")


def _answered(asked: ReadArguments, key: str, hearing: _Hearing) -> ToolReply:
    answer = hearing.answer
    if not answer.exit:
        words = f"The gateway did not say how it ended. {_again(key)}"
        return _not_asked(asked, key, "unknown", words, hearing)
    text = "".join(answer.text).strip()
    notices = list(answer.notices)
    if answer.left:
        notices.append(f"The gateway is interrupted. The work is not lost and goes on afterwards. {_again(key)}")
    clean = answer.status() == 0
    if not clean and not notices:
        notices.append(f"The answer is not whole: the turn ended as {answer.exit}.")
    structured = _facts(asked, key, answer, text, "\n".join(notices), answer.status())
    shown = "\n\n".join(part for part in (text, *notices, *_mended(answer)) if part)
    return ToolReply(shown or "The agent said nothing.", structured, not clean, tuple(hearing.pictures))


def _not_asked(asked: ReadArguments, key: str, exit_: str, words: str, hearing: _Hearing) -> ToolReply:
    """Nobody knows how it ended, or it was not begun."""
    text = "".join(hearing.answer.text).strip()
    answer = hearing.answer
    answer.exit = exit_
    structured = _facts(asked, key, answer, text, words, UNFINISHED)
    return ToolReply("\n\n".join(part for part in (text, words) if part), structured, failed=True)


def _facts(asked: ReadArguments, key: str, answer: Answer, text: str, notice: str, status: int) -> dict[str, Json]:
    return {
        "answer": text,
        "clean": status == 0,
        "exit": answer.exit,
        "exit_code": status,
        "notice": notice or None,
        "turn": answer.turn or None,
        "session": asked.text("session") or None,
        "key": key,
        "model": answer.model,
        "seconds": answer.seconds,
        "steps": answer.steps,
        "tool_calls": answer.tool_calls,
        "recovered": list(answer.recovered),
    }


def _mended(answer: Answer) -> list[str]:
    return [f"[{words}]" for words in answer.recovered]


def _again(key: str) -> str:
    return f'Ask the same again with key "{key}" to get what came of it; it is not worked on twice.'


def _pictures(data: str, most: int) -> list[ServedPicture]:
    """Pictures in a chunk, those that stand in it themselves."""
    if '"images"' not in data or most <= 0:
        return []
    chunk: Json = orjson.loads(data)
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    images = delta.get("images") if isinstance(delta, dict) else None
    found: list[ServedPicture] = []
    for one in tables(images):
        at = one.get("image_url")
        url = at.get("url") if isinstance(at, dict) else None
        if not isinstance(url, str) or not url.startswith("data:image/") or len(url) > MOST_PICTURE_CHARS:
            continue
        kind, _, coded = url.removeprefix("data:").partition(";base64,")
        try:
            base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError):
            continue
        found.append(ServedPicture(coded, kind))
    return found[:most]


# ---------------------------------------------------------------------- the rest


async def _list(asked: ReadArguments, way: GatewayWay) -> ToolReply:
    query = {"limit": str(asked.numbers["limit"])} | ({"after": asked.text("after")} if asked.text("after") else {})
    page = await way.caller().call("GET", f"/v1/outspoken/sessions?{urlencode(query)}")
    sessions: list[Json] = [_session(one) for one in tables(page.get("data"))]
    lines = [f"{one['session']}: {one['title']} ({one['state']}, turns: {one['turns']})" for one in tables(sessions)]
    structured: dict[str, Json] = {"sessions": sessions, "more": page.get("has_more") is True}
    return _told("\n".join(lines) or "There is no conversation.", structured)


def _session(one: Table) -> dict[str, Json]:
    about = one.get("outspoken")
    facts = about if isinstance(about, dict) else {}
    return {"session": one.get("id")} | {name: facts.get(name) for name in ("title", "state", "turns", "last_at")}


async def _read(asked: ReadArguments, way: GatewayWay) -> ToolReply:
    path = f"/v1/conversations/{quote(asked.text('session'), safe='')}"
    caller = way.caller()
    about = _session(await caller.call("GET", path))
    page = await caller.call("GET", f"{path}/items?{urlencode({'limit': asked.numbers['limit'], 'order': 'desc'})}")
    items: list[Json] = [found for one in reversed(tables(page.get("data"))) if (found := _item(one)) is not None]
    lines = [f"{one['by']}: {one['text']}" for one in tables(items)]
    structured: dict[str, Json] = {
        "session": about["session"], "state": about["state"], "items": items, "more": page.get("has_more") is True,
    }  # fmt: skip
    return _told("\n\n".join(lines) or "Nothing was said in it, or it was begun anew.", structured)


def _item(one: Table) -> Json:
    """An item in words; None for what has none (thoughts)."""
    match one.get("type"):
        case "message":
            parts = tables(one.get("content"))
            text = "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
            others = sum(1 for part in parts if not isinstance(part.get("text"), str))
            more = f"[{others} other parts]" if others else ""
            return {"by": one.get("role"), "text": "\n".join(words for words in (text, more) if words)}
        case "mcp_call" | "function_call" | "custom_tool_call":
            given = one.get("output") or one.get("error") or ""
            text = given if isinstance(given, str) else orjson.dumps(given).decode()
            return {"by": "tool", "tool": one.get("name"), "text": text}
        case _:
            return None


async def _explain(asked: ReadArguments, way: GatewayWay) -> ToolReply:
    what = quote(asked.text("id"), safe="")
    if way.operates:
        found = await way.operator().call("GET", f"/console/api/explain/{what}")
    else:
        found = await way.caller().call("GET", f"/api/turns/{what}/why")
    told = found.get("lines")
    lines = [str(line) for line in told] if isinstance(told, list) else []
    structured: dict[str, Json] = {"id": asked.text("id"), "lines": [*lines]}
    return _told("\n".join(lines) or "Nothing is known of it.", structured)


async def _send(asked: ReadArguments, way: GatewayWay) -> ToolReply:
    key = asked.text("key") or secrets.token_hex(12)
    try:
        found = await way.operator().send(asked.text("to"), asked.text("text"), (), key, agents=True)
    except GatewayLost as lost:
        words = f'{lost}{_start(lost)} Whether it was sent is not known. Send the same again with key "{key}": it is sent once.'
        return ToolReply(words, {"state": "unknown", "key": key, "error": words}, failed=True)
    number, state = str(found.get("id")), str(found.get("state"))
    if state in ("accepted", "pending"):
        try:
            found = await way.operator().delivery(number, 10)
            state = str(found.get("state"))
        except (GatewayLost, GatewayRefused):
            state = "accepted"
    cause = str(found.get("cause") or "")
    words = {
        "sent": "It was sent.",
        "failed": f"It could not be sent: {cause}",
    }.get(
        state,
        f"It is stored, and is sent as soon as that is possible.{f' The last try failed: {cause}' if cause else ''}",
    )
    structured: dict[str, Json] = {"id": number, "state": state, "cause": cause, "key": key}
    return ToolReply(words, structured, state == "failed")


def _told(words: str, structured: Mapping[str, Json]) -> ToolReply:
    return ToolReply(words, {name: value for name, value in structured.items() if value is not None})


def _failed(tool: ServedTool, words: str) -> ToolReply:
    if tool.name is ServedName.ASK:
        return ToolReply(
            words,
            {"answer": "", "clean": False, "exit": "not_started", "exit_code": UNFINISHED, "notice": words},
            failed=True,
        )
    return ToolReply(words, {"error": words}, failed=True)


def _start(lost: GatewayLost) -> str:
    return "" if "outspoken run" in str(lost) else " If it is not running, start it with: outspoken run"
