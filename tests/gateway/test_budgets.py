"""Budgets with everything real beneath them: nothing runs away, nothing stays held, everybody is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import openai
import pytest
from aiohttp import web

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.callers import KeyTerms
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.limits.budgets import Amount, BudgetRules, Level, Payer, Price
from agent_core.limits.spend import Budget
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.tools.base import EffectClass
from gateway.explain.story import why
from gateway.limits.budgets import BudgetBook, BudgetWarning, payer_of
from gateway.limits.standing import AS_CONFIGURED, TurnStanding
from tests.gateway.rig import QUICK, CountingTool, Rig, call_chunk, chunk, gateway
from tests.serving import served
from tests.store.support import FakeClock

Messages = list[dict[str, Any]]
PRICE = Price(1_000_000, 2_000_000, 500_000)


CALM = replace(QUICK, first_content_seconds=60, stall_seconds=60)
"""Many at once on a busy machine: nobody is to be taken for silent."""


def usage(given: int, said: int, cached: int = 0) -> bytes:
    told = {"prompt_tokens": given, "completion_tokens": said, "prompt_tokens_details": {"cached_tokens": cached}}
    return b"data: " + json.dumps({"choices": [], "usage": told}).encode() + b"\n\ndata: [DONE]\n\n"


async def hundred(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
    """Uses 100 tokens."""
    await asyncio.sleep(0.02)
    await response.write(chunk({"content": "Yes."}, "stop"))
    await response.write(usage(90, 10, 40))


def rules(output: int = 100, **limits: int) -> BudgetRules:
    """Limits in tokens."""
    return BudgetRules(
        limits={Budget(name): Amount(tokens) for name, tokens in limits.items()},
        prices=(("m1", PRICE),),
        currency="EUR",
        assumed_output_tokens=output,
    )


async def levels(rig: Rig, words: str = "x") -> dict[str, Level]:
    assert rig.hub.budgets is not None
    pots = rig.hub.budgets.rules.pots(payer_of(rig.inbound(words)), "", SystemClock().now_ms())
    found = await rig.store.budgets.levels([pot.key for pot in pots])
    return {scope: level for (scope, _), level in found.items()}


async def test_what_the_provider_tells_is_settled_for_person_chat_and_day(tmp_path: Path):
    async with gateway(tmp_path, hundred, settings=CALM, budgets=rules(day=10_000)) as rig:
        assert (await rig.say("hello")).exit.code is ExitCode.ANSWERED
        cost = 50 * 1000 + 40 * 500 + 10 * 2000
        spent = Level(spent=Amount(100, cost), calls=1)
        assert await levels(rig) == {"person:test": spent, "chat:test/a/s//": spent, "day:all": spent}


async def test_a_hundred_turns_at_once_overrun_a_day_by_at_most_one_call(tmp_path: Path):
    async with gateway(tmp_path, hundred, settings=CALM, budgets=rules(day=1_000)) as rig:
        ends = await asyncio.gather(*(rig.say("hello", session=f"s{n}") for n in range(100)))
        codes = [end.exit.code for end in ends]
        assert set(codes) == {ExitCode.ANSWERED, ExitCode.SPEND_LIMIT}
        day = (await levels(rig))["day:all"]
        # What is held is at least what a call uses here, so calls at once use no more than calls one by one.
        assert day.held == Amount()
        assert day.spent.tokens == 100 * len(rig.model.requests) == 100 * codes.count(ExitCode.ANSWERED)
        assert day.spent.tokens < 1_000 + 100
        refused = next(end for end in ends if end.exit.code is ExitCode.SPEND_LIMIT)
        assert "gateway's budget for today" in refused.view.text


async def test_calls_that_use_more_than_was_held_overrun_by_that_and_no_more(tmp_path: Path):
    async with gateway(tmp_path, hundred, settings=CALM, budgets=rules(output=1, day=200)) as rig:
        before = await asyncio.gather(*(rig.say("hello", session=f"s{n}") for n in range(30)))
        answered = sum(end.exit.code is ExitCode.ANSWERED for end in before)
        day = (await levels(rig))["day:all"]
        assert day.spent.tokens == 100 * answered
        assert (await rig.say("more")).exit.code is ExitCode.SPEND_LIMIT
        assert len(rig.model.requests) == answered


async def test_the_notice_says_which_budget_how_much_and_when_it_opens(tmp_path: Path):
    async with gateway(tmp_path, hundred, settings=CALM, budgets=rules(person=100)) as rig:
        await rig.say("hello")
        end = await rig.say("again")
        assert end.exit.code is ExitCode.SPEND_LIMIT
        assert "Your budget for today is used up (100 of 100 tokens)." in end.view.text
        assert "opens again at" in end.view.text
        assert "00:00 UTC" in end.view.text
        assert isinstance(end.exit, exits.SpendLimit)
        spend = end.exit.spend
        assert spend is not None
        assert 0 < spend.opens_in_seconds <= 24 * 3600
        assert "is used up" in "\n".join(await why(rig.store, end.turn, SystemClock().now_ms))


async def test_a_limit_in_money_counts_by_the_price(tmp_path: Path):
    money = BudgetRules(limits={Budget.DAY: Amount(0, 150_000)}, prices=(("m*", PRICE),), currency="EUR")
    async with gateway(tmp_path, hundred, settings=CALM, budgets=money) as rig:
        assert [(await rig.say("hello")).exit.code for _ in range(3)] == [
            ExitCode.ANSWERED,
            ExitCode.ANSWERED,
            ExitCode.SPEND_LIMIT,
        ]


async def test_a_turns_own_limit_ends_it_before_its_next_call(tmp_path: Path):
    async def loops(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        await response.write(call_chunk("count", json.dumps({"n": len(messages)})))
        await response.write(usage(90, 10))

    tool = CountingTool("count", EffectClass.EFFECT, tmp_path / "runs")
    async with gateway(tmp_path, loops, tools=[tool], budgets=rules(turn=250)) as rig:
        end = await rig.say("go")
        assert end.exit.code is ExitCode.SPEND_LIMIT
        assert "The budget for one message is used up (300 of 250 tokens)." in end.view.text
        assert "Done before that: count ×3" in end.view.text
        assert len(rig.model.requests) == 3


async def test_without_usage_it_is_estimated(tmp_path: Path):
    async def silent(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        await response.write(chunk({"content": "x" * 360}, "stop"))

    async with gateway(tmp_path, silent, budgets=rules(day=10_000)) as rig:
        await rig.say("hello")
        day = (await levels(rig))["day:all"]
        assert day.spent == day.estimated
        assert day.spent.tokens > 100


async def test_a_stopped_call_is_settled_by_an_estimate_and_nothing_stays_held(tmp_path: Path):
    async def endless(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        for number in range(400):
            await response.write(chunk({"content": f"{number} "}))
            await asyncio.sleep(0.01)

    async with gateway(tmp_path, endless, budgets=rules(output=5_000, day=100_000)) as rig:
        ticket = await rig.hub.accept(rig.inbound("go"))
        await rig.until_text(ticket, "0 1")
        assert (await levels(rig))["day:all"].held.tokens > 5_000
        await rig.hub.stop(SessionKey("test", "a", "s"))
        day = (await levels(rig))["day:all"]
        assert (day.held, day.calls) == (Amount(), 1)
        assert 0 < day.estimated.tokens < 5_000


async def test_a_provider_that_refuses_costs_nothing(tmp_path: Path):
    async def refuses(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        await response.write(b'data: {"error": {"message": "bad key", "code": 401}}\n\n')

    async with gateway(tmp_path, refuses, budgets=rules(day=100_000)) as rig:
        assert (await rig.say("go")).exit.code is ExitCode.NOT_AUTHORISED
        assert (await levels(rig))["day:all"].spent == Amount()


async def test_a_summary_of_the_conversation_is_paid_for_as_well(tmp_path: Path):
    overflow = False

    async def grows(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        nonlocal overflow
        if overflow:
            overflow = False
            error = {"message": "maximum context length exceeded", "code": "context_length_exceeded"}
            await response.write(b"data: " + json.dumps({"error": error}).encode() + b"\n\n")
        else:
            await hundred(messages, response, request)

    async with gateway(tmp_path, grows, budgets=rules(day=100_000)) as rig:
        for words in ("one", "two", "three"):
            await rig.say(words)
        overflow = True
        assert (await rig.say("four")).exit.code is ExitCode.ANSWERED
        assert len(rig.model.requests) == 6  # the one that did not fit, the summary, and the one that did
        day = (await levels(rig))["day:all"]
        assert (day.calls, day.spent.tokens) == (6, 500)


async def test_the_warning_is_told_once_with_the_message_that_it_is_about(tmp_path: Path):
    told: list[BudgetWarning] = []

    async def warned(warning: BudgetWarning) -> None:
        told.append(warning)

    async with gateway(tmp_path, hundred, settings=CALM, budgets=rules(person=400), warn=warned) as rig:
        for words in ("one", "two", "three", "four", "five"):
            await rig.say(words)
    assert [(one.inbound.input[0].content, one.reached.level.spent.tokens) for one in told] == [("four", 400)]
    assert told[0].said().startswith("ℹ️ 100 % of your budget for today is used: 400 of 400 tokens.")


async def test_usage_tells_limits_money_and_estimates(tmp_path: Path):
    async with gateway(tmp_path, hundred, settings=CALM, budgets=rules(person=400)) as rig:
        await rig.say("hello")
        assert rig.hub.budgets is not None
        person, chat, day = await rig.hub.budgets.usage(rig.inbound("x"))
        assert person.startswith("You today: 100 of 400 tokens (25 %), 0.0001 EUR; anew at ")
        assert chat == "This chat today: 100 tokens, 0.0001 EUR"
        assert day == "Everybody today: 100 tokens, 0.0001 EUR"


@pytest.mark.parametrize(("session", "stateless", "chat"), [("mine", False, "api/key/mine//"), ("once-1", True, "")])
def test_the_api_pays_by_user_and_by_named_session(session: str, stateless: bool, chat: str) -> None:
    inbound = FromApi(
        account="api",
        platform_key="k",
        session=SessionKey("api", "key", session),
        input=(InputMessage("x"),),
        surface="api",
        memory_scope="api/ada",
        own_history=() if stateless else None,
    )
    assert payer_of(inbound) == Payer("api/ada", chat)


# --- over the API ---


PATIENT = {"OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "60", "OUTSPOKEN_MODEL__STALL_SECONDS": "60"}


def client_of(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)


async def test_a_request_without_budget_gets_429_in_openais_shape_and_an_old_one_its_answer(tmp_path: Path):
    async with (
        served(tmp_path, {**PATIENT, "OUTSPOKEN_BUDGETS__PERSON_TOKENS": "1"}) as up,
        client_of(up.url) as client,
    ):
        hello: list[Any] = [{"role": "user", "content": "hello"}]
        key = {"Idempotency-Key": "K1"}
        first = await client.chat.completions.create(model="outspoken", messages=hello, extra_headers=key)
        assert first.choices[0].finish_reason == "stop"
        for stream in (False, True):
            with pytest.raises(openai.RateLimitError) as refused:
                await client.chat.completions.create(model="outspoken", messages=hello, stream=stream)
            assert (refused.value.code, refused.value.type) == ("insufficient_quota", "insufficient_quota")
            assert "Your budget for today is used up" in refused.value.message
            assert int(refused.value.response.headers["Retry-After"]) > 0
        again = await client.chat.completions.create(model="outspoken", messages=hello, extra_headers=key)
        assert again.choices[0].message.content == first.choices[0].message.content
        other = await client.chat.completions.create(model="outspoken", messages=hello, user="somebody else")
        assert other.choices[0].finish_reason == "stop"


async def test_requests_at_once_are_answered_or_refused_and_never_in_between(tmp_path: Path):
    async with served(tmp_path, {**PATIENT, "OUTSPOKEN_BUDGETS__DAY_TOKENS": "1"}) as up, client_of(up.url) as client:

        async def ask() -> str:
            try:
                reply = await client.chat.completions.create(
                    model="outspoken", messages=[{"role": "user", "content": "hello"}]
                )
            except openai.RateLimitError as refused:
                return str(refused.code)
            return str(reply.choices[0].finish_reason)

        assert sorted(await asyncio.gather(*(ask() for _ in range(8)))) == ["insufficient_quota"] * 7 + ["stop"]


LIMIT = {Budget.PERSON: Amount(400)}
OWN = TurnStanding(terms=KeyTerms(day_tokens=300), key="k")


@pytest.mark.parametrize("standing", [AS_CONFIGURED, OWN])
@pytest.mark.parametrize("limits", [{}, LIMIT])
async def test_whoever_has_a_limit_sees_how_it_stands(limits: Mapping[Budget, Amount], standing: TurnStanding) -> None:
    """Of the configuration, or of what answers alone."""

    async def levels(_: object) -> dict[tuple[str, int], Level]:
        return {}

    store = SimpleNamespace(budgets=SimpleNamespace(levels=levels))
    spender = SimpleNamespace(rules=BudgetRules(limits=limits))
    book = BudgetBook(cast("Any", spender), cast("Any", store), FakeClock())
    asked = FromApi(
        account="api", platform_key="k", session=SessionKey("api", "key", "s"), input=(InputMessage("x"),), surface="api",
        memory_scope="api/ada", key=standing.key,
    )  # fmt: skip
    found = await book.usage(asked, standing)
    assert bool(found) is bool(limits or standing.days)
    for has, words in ((limits, "of 400 tokens"), (standing.days, "of 300 tokens")):
        assert any(words in line for line in found) is bool(has)
