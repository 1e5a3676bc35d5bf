"""What a model is asked: of a conversation the latest, of what was said all that counts, and each question paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from agent_core.causes import BreakCause
from agent_core.driver.modelcalls import ModelCaller, client_tools
from agent_core.failures.complaints import Complaint
from agent_core.jsonvalue import Json
from agent_core.judging.compaction import SessionMemory, estimate_tokens
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage, Message
from agent_core.model.client import ModelClient, ModelRequest, Sink
from agent_core.signals import CANCELLED, ModelCalled
from agent_core.turn.effects import CallModel
from agent_core.turn.events import CallBroke, Compacted, Event, ReplyFinished, TextArrived, TextTakenBack
from tests.agent_core.turns import ROUTE, Rig, opened
from tests.store.support import FakeClock

TOOLS = client_tools([{"type": "function", "function": {"name": name}} for name in ("read", "write")])


@dataclass
class Client:
    """Says the same to everything, and keeps what it was asked."""

    says: str = "words"
    first: Sequence[Event] = ()
    reason: str = "stop"
    window: int = 0
    slow_arguments: bool = False
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])

    def endpoint(self, _: str) -> Any:
        return SimpleNamespace(
            context_tokens=self.window, slow_arguments=self.slow_arguments, extra_body={}, max_output_tokens=0
        )

    async def ask(self, request: ModelRequest, sink: Sink) -> ReplyFinished | CallBroke:
        self.asked.append(request)
        sink([*self.first, TextArrived(at=1, text=self.says)])
        return ReplyFinished(at=1, reason=self.reason, input_tokens=3, output_tokens=5, cached_tokens=2)


class Paid:
    """Notes which calls are paid for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def ask(
        self, name: str, model: str, tokens: int, limit: int, listen: Callable[[Any], Awaitable[Any]], sink: Any
    ) -> Any:
        self.names.append(name)
        return await listen(sink)


def caller_of(client: Client, paid: Paid | None = None) -> ModelCaller:
    spending = cast("Any", paid)
    return ModelCaller(cast("ModelClient", client), FakeClock(), "Be kind.", SessionMemory(), TOOLS, spending=spending)


def past(count: int, size: int = 10) -> tuple[Message, ...]:
    said: list[Message] = []
    for number in range(count):
        said.append({"role": "user", "content": f"question {number}"})
        said.append({"role": "assistant", "content": "x" * size})
    return tuple(said)


def turn_of(history: Sequence[Message] = (), request: dict[str, Json] | None = None) -> Turn:
    turn = Turn()
    turn.feed(replace(opened(), own_history=tuple(history), request=request or {}))
    return turn


def call(number: int = 1) -> CallModel:
    return CallModel(number=number, route=ROUTE, offer_tools=True)


async def asked(turn: Turn, client: Client | None = None) -> ModelRequest:
    client = client or Client()
    heard: list[Event] = []
    await caller_of(client).call(turn, call(), heard.extend)
    return client.asked[-1]


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (3, 0), (3, 1), (3, 2), (3, 3)])
async def test_a_compaction_keeps_the_latest(count: int, kept: int) -> None:
    turn = turn_of(past(count))
    turn.compacted = Compacted(at=1, summary="what came before", kept_turns=kept, helped=True, tokens_before=9)
    sent = (await asked(turn)).messages
    told = [str(one["content"]) for one in sent if one["role"] == "user"]
    assert told == [*(f"question {number}" for number in range(count - kept, count)), "hello"]
    assert "what came before" in str(sent[0]["content"])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "read"}}, "auto"])
async def test_a_tool_that_is_demanded_is_demanded_once(choice: Json) -> None:
    turn = turn_of(request={"tool_choice": choice, "temperature": 1})
    assert (await asked(turn)).parameters == {"tool_choice": choice, "temperature": 1}
    turn.step = 2
    left: dict[str, Json] = {"tool_choice": "auto"} if choice == "auto" else {}
    assert (await asked(turn)).parameters == {**left, "temperature": 1}


@pytest.mark.parametrize(("known", "told"), [(1_000_000, 3_000), (3_000, 1_000_000), (3_000, 0), (0, 3_000)])
async def test_of_two_windows_the_smaller_one_counts(known: int, told: int) -> None:
    turn, client = turn_of(past(8, 2_000)), Client(window=known)
    turn.last_break = CallBroke(at=1, cause=BreakCause.CONTEXT_OVERFLOW, complaint=Complaint(window=told))
    made = await caller_of(client).compact(turn)
    assert (made.helped, made.kept_turns < 3) == (True, True)


@pytest.mark.parametrize("withheld", [(), ("read",), ("write",), ("read", "write"), ("another",)])
async def test_a_model_is_offered_what_the_turn_may_use_and_nothing_else(withheld: tuple[str, ...]) -> None:
    turn, client = turn_of(), Client()
    turn.withheld = frozenset(withheld)
    caller = caller_of(client)
    await caller.call(turn, call(), lambda _: None)
    request, kept = client.asked[-1], [name for name in ("read", "write") if name not in withheld]
    told = [one["function"]["name"] for one in orjson.loads(request.tools)] if request.tools else []
    assert told == [*caller.offered(turn)] == kept
    assert request.offered == frozenset(kept)
    await caller.call(turn, replace(call(), offer_tools=False), lambda _: None)
    assert (client.asked[-1].tools, client.asked[-1].offered) == (b"", frozenset())


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
async def test_a_summary_counts_only_if_it_is_whole_and_is_paid_for(reason: str) -> None:
    client, paid = Client(says="they spoke of apples and", reason=reason, window=3_000), Paid()
    made = await caller_of(client, paid).compact(turn_of(past(8, 2_000)))
    assert ("they spoke of apples and" in made.summary) == (reason == "stop")
    assert made.summary
    assert paid.names == ["summary1"]


async def test_where_arguments_come_whole_a_silence_may_last_longer_but_not_the_one_before_the_first_word() -> None:
    usual, slow = [await asked(turn_of(), Client(slow_arguments=slow)) for slow in (False, True)]
    assert slow.stall_seconds >= 2 * usual.stall_seconds
    assert slow.first_content_seconds == usual.first_content_seconds


@pytest.mark.parametrize(
    ("share", "asks"), [(0.0, True), (0.5, True), (1.0, True), (1.04, True), (1.07, False), (2.0, False)]
)
async def test_what_is_certain_not_to_fit_is_not_asked_and_everything_else_is(share: float, asks: bool) -> None:
    turn = turn_of(past(8, 20_000))
    probe = Client()
    await caller_of(probe).call(turn, call(), lambda _: None)
    tokens = estimate_tokens(probe.asked[0].messages, len(probe.asked[0].tools))
    client = Client(window=round(tokens / share) if share else 0)
    ending = await caller_of(client).call(turn, call(), lambda _: None)
    assert bool(client.asked) is asks
    assert isinstance(ending, ReplyFinished) is asks
    if isinstance(ending, CallBroke):
        assert ending.cause is BreakCause.CONTEXT_OVERFLOW
        turn.compacted = Compacted(at=1, summary="s", kept_turns=8, helped=True, tokens_before=9)
        await caller_of(client).call(turn, call(), lambda _: None)
        assert client.asked, "it was shortened, and more cannot be done"


async def test_a_question_beside_a_turn_is_paid_for() -> None:
    paid = Paid()
    said, _ = await caller_of(Client(), paid).briefly(turn_of(), "title", [{"role": "user", "content": "?"}], 5)
    assert (said, paid.names) == ("words", ["title"])


async def test_what_was_a_thought_is_in_no_title_and_no_summary() -> None:
    client = Client(first=[TextArrived(at=1, text="let me think"), TextTakenBack(at=1)], window=3_000)
    said, _ = await caller_of(client).briefly(turn_of(), "title", [{"role": "user", "content": "?"}], 5)
    made = await caller_of(client).compact(turn_of(past(8, 2_000)))
    assert (said, made.summary) == ("words", "words")


@pytest.mark.parametrize("broke", [None, CallBroke(at=1, cause=BreakCause.STALLED, status=529, input_tokens=3)])
async def test_of_each_call_all_its_figures_are_told(broke: CallBroke | None) -> None:
    told: list[object] = []

    class Breaks(Client):
        async def ask(self, request: ModelRequest, sink: Sink) -> ReplyFinished | CallBroke:
            said = await super().ask(request, sink)
            return broke or said

    caller = caller_of(Breaks())
    caller.tell = told.append
    await caller.call(turn_of(), call(), lambda _: None)
    (one,) = told
    assert isinstance(one, ModelCalled)
    assert (one.endpoint, one.model, one.name) == (ROUTE.endpoint, ROUTE.model, "1")
    figures = one.reason, one.error, one.status, one.input_tokens, one.output_tokens, one.cached_tokens
    assert figures == (("stop", "", 0, 3, 5, 2) if broke is None else ("", "stalled", 529, 3, 0, 0))
    assert one.content_at == one.ended_at > 0


@pytest.mark.parametrize("results", [0, 1, 3])
async def test_of_a_refusal_it_is_known_what_of_the_conversation_is_answered_just_now(results: int) -> None:
    class Refuses(Client):
        async def ask(self, request: ModelRequest, sink: Sink) -> ReplyFinished | CallBroke:
            return CallBroke(at=1, cause=BreakCause.BAD_REQUEST, status=400)

    function: Json = {"name": "look", "arguments": "{}"}
    calls: list[Json] = [{"id": f"c{n}", "type": "function", "function": function} for n in range(results)]
    before: list[Message] = [*past(2)]
    if results:
        before.append({"role": "user", "content": "look"})
        before.append({"role": "assistant", "content": None, "tool_calls": calls})
    asked_now = tuple([InputMessage(f"seen {n}", "tool", f"c{n}") for n in range(results)]) or (InputMessage("hello"),)
    turn = Turn()
    turn.feed(replace(opened(), own_history=tuple(before), input=asked_now))
    ending = await caller_of(Refuses()).call(turn, call(), lambda _: None)
    assert isinstance(ending, CallBroke)
    assert sorted(one.role for one in ending.suspects if one.now) == ["tool"] * results, "a person's own words are none"
    earlier = [one.role for one in ending.suspects if not one.now]
    assert (earlier.count("tool"), earlier.count("user")) == (0, 2), "nor are those that the results belong to"


async def test_where_nothing_stands_before_it_what_a_person_asks_is_what_is_answered() -> None:
    class Refuses(Client):
        async def ask(self, request: ModelRequest, sink: Sink) -> ReplyFinished | CallBroke:
            return CallBroke(at=1, cause=BreakCause.BAD_REQUEST, status=400)

    ending = await replace(caller_of(Refuses()), system_prompt="").call(turn_of(), call(), lambda _: None)
    assert isinstance(ending, CallBroke)
    assert not ending.suspects


@pytest.mark.parametrize(("said", "doubted"), [("Here", False), (" \n", True)])
async def test_results_are_doubted_for_a_failure_before_the_first_word_and_for_none_behind_it(
    said: str, doubted: bool
) -> None:
    class Fails(Client):
        async def ask(self, request: ModelRequest, sink: Sink) -> ReplyFinished | CallBroke:
            sink([TextArrived(at=1, text=said)])
            sink([TextArrived(at=1, text=" ")])
            return CallBroke(at=1, cause=BreakCause.SERVER_ERROR, status=500)

    function: Json = {"name": "look", "arguments": "{}"}
    before: list[Message] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
    ]
    turn = Turn()
    turn.feed(replace(opened(), own_history=tuple(before), input=(InputMessage("seen", "tool", "c"),)))
    ending = await caller_of(Fails()).call(turn, call(), lambda _: None)
    assert isinstance(ending, CallBroke)
    assert bool(ending.suspects) is doubted


async def test_the_ids_of_earlier_calls_are_taken() -> None:
    rig = Rig()
    rig.calls_tool("read")
    made = {one.call for one in rig.turn.round.activities}
    assert made
    assert (await asked(rig.turn)).taken_ids >= made
    rig.returns()
    rig.says("Read.")
    client, memory = Client(), SessionMemory()
    memory.add(rig.turn)
    caller = ModelCaller(cast("ModelClient", client), FakeClock(), "Be kind.", memory, TOOLS)
    await caller.call(Rig().turn, call(), lambda _: None)
    assert client.asked[-1].taken_ids == made  # of the conversation, and of one that a client brings along
    function: Json = {"name": "f", "arguments": "{}"}
    theirs: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "t", "type": "function", "function": function}],
    }
    assert (await asked(turn_of([{"role": "user", "content": "x"}, theirs]))).taken_ids == {"t"}


class Limits(Paid):
    """Notes how much may come of each call at most."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[int] = []

    async def ask(
        self, name: str, model: str, tokens: int, limit: int, listen: Callable[[Any], Awaitable[Any]], sink: Any
    ) -> Any:
        self.limits.append(limit)
        return await super().ask(name, model, tokens, limit, listen, sink)


@pytest.mark.parametrize(
    ("request_says", "endpoint_says", "most", "held"),
    [
        ({}, {}, 0, 0),
        ({}, {}, 11, 11),
        ({}, {"max_tokens": 9}, 11, 9),
        ({"max_tokens": 7}, {"max_tokens": 9}, 11, 7),
        ({"max_completion_tokens": 5, "max_tokens": 7}, {}, 11, 5),
        ({"max_completion_tokens": 5}, {"max_tokens": 9}, 11, 5),
        ({"max_tokens": None}, {}, 11, 11),
    ],
)
async def test_as_much_is_held_for_a_reply_as_may_come(
    request_says: dict[str, Json], endpoint_says: dict[str, Json], most: int, held: int
) -> None:
    class Limiting(Client):
        def endpoint(self, _: str) -> Any:
            return SimpleNamespace(
                context_tokens=0, slow_arguments=False, extra_body=endpoint_says, max_output_tokens=most
            )

    paid, heard = Limits(), list[Event]()
    await caller_of(Limiting(), paid).call(turn_of(request=request_says), call(), heard.extend)
    assert paid.limits == [held]


async def test_a_call_that_is_stopped_is_told_of_as_one() -> None:
    class Silent(Client):
        async def ask(self, request: ModelRequest, sink: Sink) -> ReplyFinished | CallBroke:
            self.asked.append(request)
            await asyncio.Event().wait()
            raise AssertionError

    told: list[object] = []
    client = Silent()
    caller = replace(caller_of(client), tell=told.append)
    heard: list[Event] = []
    calling = asyncio.create_task(caller.call(turn_of(), call(), heard.extend))
    async with asyncio.timeout(20):
        while not client.asked:
            await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    (called,) = told
    assert isinstance(called, ModelCalled)
    assert (called.error, called.reason) == (CANCELLED, "")
