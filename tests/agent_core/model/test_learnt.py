"""What a refusal teaches is about that way and that kind of request, ends by itself, and no person can bring it about with words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from agent_core.causes import BreakCause
from agent_core.jsonvalue import Json
from agent_core.messages import Message
from agent_core.model.client import ModelClient, ModelRequest
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.model.learnt import CONFIRMED, KEPT_SECONDS, Learnt, own_words, without_tools
from agent_core.model.manners import AMENDS, POLITE, TOOL_FIELDS, Manners
from agent_core.ports import SystemClock
from agent_core.retry import TOOLS_LEFT_OUT
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke, Event, ReplyFinished, ToolsRefused
from tests.agent_core.model.test_client import HEAD, delta

TOOLS = b'[{"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}]'
PICTURE: Message = {
    "role": "user",
    "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
}
BARE = Manners(frozenset(TOOL_FIELDS))
NO_TOOLS = "No endpoints found that support tool use. To learn more about provider routing, visit the docs."
Refuse = Callable[[dict[str, Json]], tuple[int, str] | None]


@dataclass
class Later(SystemClock):
    """A clock that can be put on."""

    offset: float = 0

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self.offset


@dataclass
class Provider:
    """Refuses what `refuse` says, and answers the rest."""

    client: ModelClient
    clock: Later
    refuse: Refuse = lambda _: None
    asked: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    events: list[Event] = field(default_factory=list[Event])

    async def call(self, said: str | Message = "Hello") -> tuple[list[bool], ReplyFinished | CallBroke]:
        """Whether each request that the call made had tools; how it ended."""
        message: Message = {"role": "user", "content": said} if isinstance(said, str) else said
        self.asked.clear()
        self.events.clear()
        request = ModelRequest(Route("m", "up", "k"), 1, [message], tools=TOOLS, offered=frozenset({"ls"}))
        ending = await self.client.ask(request, self.events.extend)
        return ["tools" in body for body in self.asked], ending


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        body = json.loads(await reader.readexactly(int(lengths[0].split(b":")[1])))
        made.asked.append(body)
        refused = made.refuse(body)
        if refused is None:
            writer.write(HEAD + delta('"content": "Hi"') + delta("", '"stop"'))
        else:
            said = json.dumps({"error": {"message": refused[1]}}).encode()
            writer.write(b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\n" % refused[0])
            writer.write(b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(said) + said)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    clock = Later()
    client = ModelClient((Endpoint("up", address, (Credential("k", "s"),), ("m",)),), clock, Redactor())
    made = Provider(client, clock)
    try:
        yield made
    finally:
        await client.aclose()
        server.close()


def tools_refused(body: dict[str, Json]) -> tuple[int, str] | None:
    return (404, NO_TOOLS) if "tools" in body else None


def taken(_: dict[str, Json]) -> None:
    return None


async def test_a_call_is_put_otherwise_so_many_times_and_no_more():
    def each_in_turn(body: dict[str, Json]) -> tuple[int, str] | None:
        mine = sorted(name for name in body if name.startswith("own_"))
        return (400, f"Unsupported parameter: '{mine[0]}'") if mine else None

    async with provider() as upstream:
        upstream.refuse = each_in_turn
        own: dict[str, Json] = {f"own_{number}": number for number in range(AMENDS + 3)}
        request = ModelRequest(Route("m", "up", "k"), 1, [{"role": "user", "content": "Hello"}], parameters=own)
        ending = await upstream.client.ask(request, upstream.events.extend)
        assert isinstance(ending, CallBroke)
        assert len(upstream.asked) == AMENDS + 1


async def test_one_refusal_of_tools_is_about_one_call_and_is_told_there():
    async with provider() as upstream:
        upstream.refuse = tools_refused
        had, ending = await upstream.call()
        assert (had, type(ending)) == ([True, False], ReplyFinished)
        assert [type(event).__name__ for event in upstream.events][:2] == ["ToolsRefused", "TextArrived"]
        upstream.refuse = taken
        assert (await upstream.call())[0] == [True]
        assert not any(isinstance(event, ToolsRefused) for event in upstream.events)


async def test_a_model_that_takes_no_tools_is_known_after_two_and_asked_again_in_time():
    async with provider() as upstream:
        upstream.refuse = tools_refused
        assert [(await upstream.call())[0] for _ in range(3)] == [[True, False], [True, False], [False]]
        assert isinstance(upstream.events[0], ToolsRefused)
        upstream.clock.offset += TOOLS_LEFT_OUT.first + 1
        assert (await upstream.call())[0] == [True, False]
        upstream.clock.offset += TOOLS_LEFT_OUT.first + 1
        assert (await upstream.call())[0] == [False]
        upstream.clock.offset += TOOLS_LEFT_OUT.first + 1
        upstream.refuse = taken
        assert [(await upstream.call())[0] for _ in range(2)] == [[True], [True]]


async def test_what_is_refused_with_a_picture_is_taken_without_one():
    async with provider() as upstream:
        upstream.refuse = lambda body: (
            (400, "Function calling is not supported together with image input.")
            if "tools" in body and "image_url" in str(body)
            else None
        )
        assert [(await upstream.call(PICTURE))[0] for _ in range(3)] == [[True, False], [True, False], [False]]
        assert (await upstream.call())[0] == [True]


@pytest.mark.parametrize(
    "said",
    [
        "Why does ollama say that model m does not support tools?",
        "Is it true that tools are not supported by this model?",
        "does not support tools",
        "Unsupported parameter: 'stream_options' is what I get",
        "System role not supported",
    ],
)
async def test_words_of_a_person_that_a_refusal_quotes_teach_nothing(said: str):
    async with provider() as upstream:
        upstream.refuse = lambda body: (
            (400, f'Your prompt was rejected by the input guard: "{said}"') if said in str(body["messages"]) and len(upstream.asked) == 1 else None
        )  # fmt: skip
        for _ in range(4):
            await upstream.call(said)
        await upstream.call()
        (body,) = upstream.asked
        assert "tools" in body
        assert "stream_options" in body


async def test_what_did_not_help_is_given_up():
    async with provider() as upstream:
        upstream.refuse = lambda _: (400, "m does not support tools")
        for _ in range(3):
            had, ending = await upstream.call()
            assert had[0]
            assert isinstance(ending, CallBroke)
        upstream.refuse = taken
        assert (await upstream.call())[0] == [True]


async def test_a_field_is_sent_again_after_a_while():
    async with provider() as upstream:
        upstream.refuse = lambda body: (400, "stream_options: Unknown field") if "stream_options" in body else None
        await upstream.call()
        await upstream.call()
        assert ["stream_options" in body for body in upstream.asked] == [False]
        upstream.clock.offset += KEPT_SECONDS + 1
        await upstream.call()
        assert ["stream_options" in body for body in upstream.asked] == [True, False]


@pytest.mark.parametrize("said", ["My key: invalid api key, what now?", "exceeded your current quota"])
async def test_a_quoted_prompt_takes_no_key_from_anybody(said: str):
    async with provider() as upstream:
        upstream.refuse = lambda _: (400, f'Rejected: "{said}"')
        _, ending = await upstream.call(said)
        assert isinstance(ending, CallBroke)
        assert ending.cause is BreakCause.BAD_REQUEST
        _, ending = await upstream.call("Hello")
        assert isinstance(ending, CallBroke)
        assert ending.cause in (BreakCause.UNAUTHORISED, BreakCause.PAYMENT_REQUIRED)


async def test_a_refusal_that_concerns_no_key_is_understood_whatever_else_is_quoted_in_it():
    said = "Why does it say: maximum context length is 8192 tokens?"
    async with provider() as upstream:
        upstream.refuse = lambda _: (400, "maximum context length is 8192 tokens")
        _, ending = await upstream.call(said)
        assert isinstance(ending, CallBroke)
        assert ending.cause is BreakCause.CONTEXT_OVERFLOW


WORDS = st.lists(
    st.sampled_from(["model", "tools", "support", "does", "not", "the", "a", "key", "unsupported"]),
    min_size=1,
    max_size=8,
)


@given(WORDS, WORDS, WORDS)
def test_nothing_of_a_message_that_is_quoted_as_a_whole_is_left(before: list[str], said: list[str], after: list[str]):
    prompt = " ".join(said)
    left = own_words(f"Guard {' '.join(before)}: «{prompt}» {' '.join(after)}", [{"role": "user", "content": prompt}])
    assert f"«{prompt}»" not in str(left)
    assert str(own_words("Guard: x", [{"role": "user", "content": prompt}])) == "Guard: x"


@given(st.lists(st.booleans(), max_size=12))
def test_tools_are_left_out_after_refusals_in_a_row_alone(refused: Sequence[bool]):
    learnt, in_a_row = Learnt(), 0
    for one in refused:
        assert not without_tools(learnt.manners(0.0))
        learnt.taken(POLITE, BARE if one else POLITE, 0.0, tools=True)
        in_a_row = in_a_row + 1 if one else 0
        if in_a_row == CONFIRMED:
            break
    assert without_tools(learnt.manners(0.0)) == (in_a_row == CONFIRMED)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 10_000)), max_size=30))
def test_tools_come_back_however_often_they_were_refused(history: Sequence[tuple[bool, float]]):
    learnt, now = Learnt(), 0.0
    for refused, waited in history:
        now += waited
        began = learnt.manners(now)
        learnt.taken(began, BARE if refused or without_tools(began) else POLITE, now, tools=True)
    assert not without_tools(learnt.manners(now + KEPT_SECONDS))
