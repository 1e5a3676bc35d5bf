"""A scripted model that fails in every way there is, at the level of bytes: the client that reads them is the real one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeAlias

import aiohttp
import orjson

from agent_core.bell import Frames
from agent_core.messages import Message
from agent_core.model.client import ModelClient, ModelRequest
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.model.reach import Theirs, TransportBroke
from agent_core.model.transport import RequestNotTaken, Taker
from agent_core.ports import Clock
from agent_core.text.redaction import Redactor
from agent_core.turn.transcript import problems
from tests.sim import odd
from tests.sim.loop import SimLoop

ENDPOINTS = (
    Endpoint("first", "http://first/v1", (Credential("k1", "x1"), Credential("k2", "x2")), ("m1",)),
    Endpoint("second", "http://second/v1", (Credential("k3", "x3"),), ("m2",)),
)
FOR_EVER = 1e7

Step: TypeAlias = "tuple[float, bytes | Exception]"
"""(seconds to wait before it, what comes)."""

WORDS = ("Hello ", "there. ", "All ", "is ", "well", ".\n\n", "é😀 ", "- one\n", "```py\nx = 1\n```\n", "and ", "so on")
PROMISES = ("Now dispatching task 5:", "Let me check the file now.", "I will now run the tests:")
TOOLS = ("look", "look", "put", "send", "send", "danger", "nosuch")
ARGUMENTS = ('{"n": 1}', "{}", '{"n": 2, "text": "long long long"}', '{"n": ', "[]")


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"\n\n"


def _end(reason: str) -> bytes:
    return _event({}, reason) + b"data: [DONE]\n\n"


class Script:
    """What the model does, drawn anew for each call. `trouble` is the share of calls that go wrong; of an odd one most send what is in no
    documentation."""

    def __init__(self, draw: random.Random, trouble: float, *, is_odd: bool = False) -> None:
        self._draw = draw
        self._trouble = trouble
        self._is_odd = is_odd
        self._calls = 0

    def steps(self, *, tools: bool) -> list[Step]:
        """The bytes of one reply; an exception in them is raised where it stands."""
        draw = self._draw
        if self._is_odd and draw.random() < 0.7:
            return [(self._pause(), b"data: " + payload + b"\n\n") for payload in odd.payloads(draw)] + self._odd_end()
        if draw.random() < self._trouble:
            return self._fault(tools=tools)
        if tools and draw.random() < 0.45:
            return [*self._text(draw.randint(0, 3)), *self._tool_calls(), (0.0, _end("tool_calls"))]
        if draw.random() < 0.04:
            return [(0.1, _event({"content": draw.choice(PROMISES)})), (0.0, _end("stop"))]
        return [*self._text(draw.randint(1, 12)), (0.0, _end("stop"))]

    def _odd_end(self) -> list[Step]:
        """The stream is over, held open, or broken off."""
        return self._draw.choice(([], [], [(FOR_EVER, b"")], [(0.1, aiohttp.ClientPayloadError("reset"))]))

    def _pause(self) -> float:
        return self._draw.choice((0.0, 0.0, 0.01, 0.04, 0.2, 0.9))

    def _text(self, pieces: int) -> list[Step]:
        return [(self._pause(), _event({"content": self._draw.choice(WORDS)})) for _ in range(pieces)]

    def _tool_calls(self) -> list[Step]:
        steps: list[Step] = []
        for index in range(self._draw.choice((1, 1, 1, 2, 3))):
            self._calls += 1
            name, arguments = (
                self._draw.choice(TOOLS),
                self._draw.choice(ARGUMENTS[: 3 if self._draw.random() < 0.9 else 5]),
            )
            half = len(arguments) // 2
            call = {"index": index, "id": f"c{self._calls}", "type": "function"}
            steps.append(
                (
                    self._pause(),
                    _event({"tool_calls": [{**call, "function": {"name": name, "arguments": arguments[:half]}}]}),
                )
            )
            steps.append(
                (self._pause(), _event({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}))
            )
        return steps

    def _fault(self, *, tools: bool) -> list[Step]:
        draw = self._draw
        begun = self._text(draw.randint(0, 4))
        if tools and draw.random() < 0.4:
            begun += self._tool_calls()[: draw.choice((1, 1, 2))]
        kind = draw.choice(
            ("stall", "stall", "drop", "early", "error", "garbage", "length", "filter", "empty", "thinking", "refused",
             "status", "slow", "text_call")
        )  # fmt: skip
        match kind:
            case "stall":
                return [*begun, (FOR_EVER, b"")]
            case "drop":
                return [*begun, (0.1, aiohttp.ClientPayloadError("reset"))]
            case "early":
                return [*begun]
            case "error":
                return [*begun, (0.0, b'data: {"error": {"message": "overloaded", "code": 503}}\n\n')]
            case "garbage":
                return [*begun, (0.0, b"data: {not json\n\n")]
            case "length":
                return [*begun, (0.0, _end("length"))]
            case "filter":
                return [*begun, (0.0, _end("content_filter"))]
            case "empty":
                return [(0.1, _end("stop"))]
            case "thinking":
                return [(0.1, _event({"reasoning_content": "hm, let me think"})), (0.1, _end("stop"))]
            case "refused":
                return [(0.0, aiohttp.ClientConnectionError("no"))]
            case "slow":
                return [(draw.choice((2.0, 4.0)), _event({"content": "late "})), (2.0, _end("stop"))]
            case "text_call":
                return [(0.1, _event({"content": '<tool_call>{"name": "look", "argum'})), (0.0, _end("stop"))]
            case _:
                return [
                    (0.05, _status(draw.choice((400, 401, 404, 429, 429, 500, 503)), draw.choice(("", "1", "700"))))
                ]


def _status(code: int, retry_after: str) -> RequestNotTaken:
    headers = {"retry-after": retry_after} if retry_after else {}
    return RequestNotTaken(code, {"message": "no", "code": code}, headers)


class _Answer:
    """An answer whose body comes by the script."""

    status = 200

    def __init__(self, steps: list[Step]) -> None:
        self._steps = [*steps]

    async def next(self) -> bytes | None:
        while self._steps:
            pause, what = self._steps.pop(0)
            if pause:
                await asyncio.sleep(pause)
            if isinstance(what, Exception):
                raise TransportBroke from what
            if what:
                return what
        return None

    def in_frames(self, frames: Frames, _taker: Taker, _most: int) -> asyncio.Future[None]:
        """As a body is read that is packed: its task is woken for each frame."""
        over = frames.loop.create_future()
        frames.begins(lambda: None if over.done() else over.set_result(None))
        return over


class SimClient(ModelClient):
    """The real client, but for the network."""

    def __init__(self, loop: SimLoop, clock: Clock, script: Script, violations: list[str]) -> None:
        super().__init__(ENDPOINTS, clock, Redactor())
        self._loop = loop
        self._script = script
        self._violations = violations
        self.asked = 0

    @asynccontextmanager
    async def open_stream(self, endpoint: Endpoint, request: ModelRequest) -> AsyncGenerator[Any]:
        self.asked += 1
        messages = [dict(message) for message in request.messages]
        objections = [*problems(messages), *_of_strict_servers(messages)]
        self._violations += [f"invalid conversation for the model: {objection}" for objection in objections]
        steps = self._script.steps(tools=bool(request.tools))
        await asyncio.sleep(self._loop.random.choice((0.0, 0.005, 0.1)))
        first = steps[0][1] if steps else b""
        if isinstance(first, RequestNotTaken | aiohttp.ClientConnectionError):
            with Theirs(RequestNotTaken):
                _raise(first)
        yield _Answer(steps)


def _of_strict_servers(messages: Sequence[Message]) -> Iterator[str]:
    """What some servers object to beside: arguments that are no JSON object (vLLM, llama.cpp), an assistant that speaks twice in a row (templates of
    several models)."""
    for position, message in enumerate(messages):
        calls: Any = message.get("tool_calls") or ()
        for call in calls:
            try:
                readable = isinstance(orjson.loads(call["function"]["arguments"]), dict)
            except orjson.JSONDecodeError:
                readable = False
            if not readable:
                yield f"message {position}: arguments that are no JSON object"
        if message.get("role") == "assistant" == (messages[position - 1].get("role") if position else ""):
            yield f"message {position}: the assistant speaks twice"


def _raise(error: Exception) -> NoReturn:
    raise error
