"""What a turn may by its key and its agent, and who answers: the laws, and gateways with several agents and keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, FromChat, SessionKey, once
from adapters.contract.callers import EVERYTHING, Caller, KeyTerms, may_ask
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted
from agent_core.limits.budgets import Amount
from agent_core.limits.spend import Budget
from agent_core.settings import Route
from agent_core.tools.builtin import tool_names
from agent_core.tools.builtin.notes import OF_MEMORY
from agent_core.turn.events import AgentBy
from gateway.config.agents import agents_of
from gateway.config.reading import ConfigError, load
from gateway.limits.agents import PLAIN, Agent, AgentMemory
from gateway.limits.rates import MINUTE_MS, KeyMeters
from gateway.limits.standing import AS_CONFIGURED, Standings, TurnStanding
from tests.forked import run
from tests.gateway.rig import chunk
from tests.gateway.test_keys import CONFIGURED_KEY, WITH_KEY, add, ask, operate, sdk
from tests.gateway.test_process import environment
from tests.laws.look import breaches
from tests.ports import free_port
from tests.serving import served

TOOLS = tool_names()
MODELS = ("gpt", "mini", "local")
tools = st.none() | st.lists(st.sampled_from(TOOLS), unique=True).map(tuple)
models = st.lists(st.sampled_from(MODELS), unique=True).map(tuple)
agents = st.builds(Agent, st.just("coder"), st.text(max_size=5), models, tools, st.sampled_from(AgentMemory))
terms = st.builds(KeyTerms, models=models, tools=tools)
standings = st.builds(TurnStanding, st.none() | agents, terms, st.sampled_from(["", "laptop"]))
ROUTES = tuple(Route(model, endpoint) for endpoint in ("one", "two") for model in MODELS)


def of_the_api(model: str = "", key: str = "") -> FromApi:
    return FromApi(
        account="api", platform_key="k", session=once("x"), input=(), surface="api", memory_scope="api",
        own_history=(), model=model, key=key,
    )  # fmt: skip


def of_a_chat(chat: str = "7", thread: str = "") -> FromChat:
    address = ChatAddress("telegram", "bot", chat, thread)
    origin = ChatOrigin(address, ChatKind.PRIVATE, ChatPerson("p", "P"))
    return FromChat(
        account="telegram/bot", platform_key="k", session=SessionKey("telegram", "bot", chat), input=(),
        surface="telegram", memory_scope="telegram/bot/7//p", chat=origin,
    )  # fmt: skip


# ------------------------------------------------------------------ the laws


def test_without_keys_and_agents_everything_is_as_configured() -> None:
    for inbound in (of_the_api(), of_the_api("gpt"), of_a_chat()):
        assert Standings().of(inbound) == AS_CONFIGURED
    assert AS_CONFIGURED.routes(ROUTES, "gpt") == ROUTES
    assert AS_CONFIGURED.withheld(TOOLS) == frozenset()
    assert (AS_CONFIGURED.prompt("own"), AS_CONFIGURED.scope("s"), AS_CONFIGURED.days) == ("own", "s", {})


@given(standings)
def test_no_tool_is_offered_that_the_key_or_the_agent_leaves_out(standing: TurnStanding) -> None:
    offered = {*TOOLS} - standing.withheld(TOOLS)
    for allowed in (standing.terms.tools, standing.agent.tools if standing.agent else None):
        assert allowed is None or offered <= {*allowed}
    if standing.agent is not None and standing.agent.memory is AgentMemory.OFF:
        assert not offered & OF_MEMORY
    elif standing.terms.tools is None and (standing.agent is None or standing.agent.tools is None):
        assert offered == {*TOOLS}


@given(standings, st.sampled_from(["", *MODELS]))
def test_no_model_is_asked_that_is_not_on_the_list_and_the_list_is_the_order(
    standing: TurnStanding, asked: str
) -> None:
    found = [route.model for route in standing.routes(ROUTES, asked)]
    allowed = standing.agent.models if standing.agent is not None else standing.terms.models
    if not allowed:
        assert found == [route.model for route in ROUTES]
        return
    assert {*found} == {*allowed}
    assert found[0] == (asked if asked in allowed else allowed[0])
    assert len(found) == len(allowed) * 2, "each of its ways is there"


@given(agents, st.text(max_size=8), st.text(max_size=8))
def test_what_an_agent_keeps_for_itself_is_nobody_elses(agent: Agent, one: str, other: str) -> None:
    mine = TurnStanding(agent).scope(one)
    assert (mine == one) == (agent.memory is not AgentMemory.OWN)
    if agent.memory is AgentMemory.OWN:
        assert mine != TurnStanding(Agent("writer", memory=AgentMemory.OWN)).scope(one)
    assert (TurnStanding(agent).scope(other) == mine) == (one == other)


@given(st.sampled_from(["", "coder", "writer", "gone", PLAIN]), st.sampled_from(["7", "8"]), st.sampled_from(["", "3"]))
def test_a_chat_has_the_agent_that_it_chose_else_the_configured_one(chosen: str, chat: str, thread: str) -> None:
    known = Standings({"coder": Agent("coder"), "writer": Agent("writer", chats=("telegram/7", "telegram/8/3"))})
    found = known.of(of_a_chat(chat, thread), chosen).name
    if chosen in ("coder", "writer"):
        assert found == chosen
    elif chosen == PLAIN:
        assert found == ""
    else:
        assert found == ("writer" if chat == "7" or thread == "3" else "")


def test_why_it_is_that_agent_is_known() -> None:
    ops = Agent("ops", people=("telegram/p",))
    known = Standings({"ops": ops, "coder": Agent("coder", chats=("telegram/8",))})
    chat = of_a_chat()
    elsewhere = replace(
        chat, chat=replace(chat.chat, address=replace(chat.chat.address, chat="8"), person=ChatPerson("q", "Q"))
    )
    assert known.of(chat).by is AgentBy.PERSON
    assert known.of(elsewhere).by is AgentBy.CHAT
    assert known.of(elsewhere, "coder").by is AgentBy.CHOICE
    assert known.of(chat, PLAIN).by is AgentBy.NOT_SAID


def test_an_agent_that_is_held_to_people_answers_them_and_nobody_else() -> None:
    ops = Agent("ops", people=("telegram/p",))
    known = Standings({"ops": ops, "coder": Agent("coder")})
    admin = of_a_chat()
    other = replace(admin, chat=replace(admin.chat, person=ChatPerson("q", "Q")))
    group = replace(admin, chat=replace(admin.chat, kind=ChatKind.GROUP))
    own_in_group = replace(group, session=SessionKey("telegram", "bot", "7", person="p"))
    assert (known.in_chat(admin, ""), known.in_chat(admin, "coder"), known.in_chat(admin, PLAIN)) == (
        "ops",
        "coder",
        "",
    )
    assert known.in_chat(own_in_group, "") == "ops"
    for inbound in (other, group):  # in a group the words of others would come into its turn
        assert known.in_chat(inbound, "ops") == known.in_chat(inbound, "") == ""
        assert known.choices(inbound) == ["coder"]
    assert Standings({"ops": replace(ops, people=("",))}).choices(admin) == [], "admins, and there are none"


@pytest.mark.parametrize("chats", [(), ("telegram/7",), ("telegram/7/3",), ("telegram/8",), ("slack/7", "telegram/8")])
@pytest.mark.parametrize("people", [(), ("telegram/p",), ("telegram/q",), ("telegram/q", "telegram/p")])
def test_an_agent_answers_unasked_in_its_chats_alone_or_if_it_has_none_its_people_everywhere(
    people: tuple[str, ...], chats: tuple[str, ...]
) -> None:
    known = Standings({"ops": Agent("ops", people=people, chats=chats)})
    mine = not people or "telegram/p" in people
    for thread in ("", "3"):
        here = {"telegram/7", f"telegram/7/{thread}"} & {*chats} if chats else people
        chat = of_a_chat("7", thread)
        assert known.in_chat(chat, "") == ("ops" if mine and here else "")
        assert known.in_chat(chat, "ops") == ("ops" if mine else ""), "whoever may have it may choose it anywhere"


def test_a_key_has_to_name_an_agent_that_is_held_to_people() -> None:
    agents = {"ops": Agent("ops", people=("telegram/p",))}
    for listed, may in (((), False), (("ops",), True)):
        known = Standings(agents, lambda _, listed=listed: KeyTerms(models=listed))
        if may:
            assert known.asking(of_the_api("ops", "laptop"), MODELS)
        else:
            with pytest.raises(NotAccepted):
                known.asking(of_the_api("ops", "laptop"), MODELS)
        assert may_ask("ops", "laptop", KeyTerms(models=listed), known.held) == may
    assert Standings(agents).asking(of_the_api("ops"), MODELS)  # the configured key may do everything


keyed = st.sampled_from(["", PLAIN, *MODELS, "coder", "nothing"])


@given(st.lists(st.sampled_from([*MODELS, "coder", PLAIN]), unique=True), keyed)
def test_a_key_asks_for_nothing_that_is_not_on_its_list(listed: list[str], wished: str) -> None:
    known = Standings({"coder": Agent("coder")}, lambda _: KeyTerms(models=tuple(listed)))
    try:
        asked = known.asking(of_the_api(wished, "laptop"), (PLAIN, *MODELS))
    except NotAccepted:
        assert wished == "nothing" or (listed and wished not in listed and wished not in ("", PLAIN))
        return
    assert isinstance(asked, FromApi)
    if not listed or wished in listed:
        assert asked.model == wished
    elif PLAIN in listed:
        assert asked.model in ("", PLAIN)
    else:
        assert asked.model == listed[0]


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=60), st.integers(1, 8))
def test_no_minute_has_more_requests_than_its_limit_and_who_waits_as_told_is_let_in(
    pauses: list[int], limit: int
) -> None:
    rates, now, taken = KeyMeters(), 0, list[int]()
    for pause in pauses:
        now += pause
        early = rates.early("laptop", limit, now)
        if early:
            assert 0 < early <= MINUTE_MS
            now += early
            assert rates.early("laptop", limit, now) == 0
        taken.append(now)
        assert sum(now - MINUTE_MS < at for at in taken) <= limit
    assert rates.early("tablet", limit, now) == 0


def test_limits_of_its_own_are_in_force_beside_those_of_all() -> None:
    standing = TurnStanding(Agent("coder", day=Amount(5)), KeyTerms(day_nanos=7), "laptop")
    assert standing.days == {Budget.KEY: Amount(0, 7), Budget.AGENT: Amount(5)}
    assert TurnStanding(None, EVERYTHING, "laptop").days == {}


# ------------------------------------------------------------------ the configuration

TOML = """
[model]
name = "gpt-5"
base_url = "http://127.0.0.1:1/v1"
fallbacks = ["gpt-5-mini"]

[agents.coder]
prompt_file = "coder.md"
models = ["gpt-5-mimi"]
tools = ["read_fiel"]

[agents.gpt-5]
memory = "off"

[agents.writer]
colour = "red"
"""


def test_what_agents_name_and_is_not_there_is_told_with_file_line_and_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(TOML)
    (tmp_path / "coder.md").write_text("You write code.")
    with pytest.raises(ConfigError) as told:
        load(file, {}, required=True)
    words = str(told.value)
    assert "outspoken.toml:16: [agents.writer] colour: there is no such key." in words
    file.write_text(TOML[: TOML.index("[agents.writer]")])
    with pytest.raises(ConfigError) as told:
        load(file, {}, required=True)
    words = str(told.value)
    assert (
        "outspoken.toml:9: [agents.coder] models: there is no model called gpt-5-mimi. Did you mean gpt-5-mini?"
        in words
    )
    assert (
        "outspoken.toml:10: [agents.coder] tools: there is no tool called read_fiel. Did you mean read_file?" in words
    )
    assert "outspoken.toml:12: [agents.gpt-5] has the name of a model" in words


def test_skills_and_people_that_cannot_be_are_told(tmp_path: Path) -> None:
    (tmp_path / "skills" / "refunds").mkdir(parents=True)
    (tmp_path / "skills" / "refunds" / "SKILL.md").write_text("---\nname: refunds\ndescription: d\n---\n")
    file = tmp_path / "outspoken.toml"
    file.write_text(
        '[tools]\nskills = "skills"\n[agents.a]\nskills = ["refund"]\n[agents.b]\nskills = ["refunds"]\ntools = ["read_file"]\n'
        '[agents.c]\nskills = ["refunds"]\n'
    )
    with pytest.raises(ConfigError) as told:
        load(file, {}, required=True)
    words = str(told.value)
    assert "outspoken.toml:4: [agents.a] skills: there is no skill called refund. Did you mean refunds?" in words
    assert "outspoken.toml:6: [agents.b] has skills, and its tools do not name read_skill" in words
    assert "agents.c" not in words
    file.write_text('[agents.a]\npeople = ["ada"]\n')
    with pytest.raises(ConfigError, match="Name people as PLATFORM/PERSON, or admins"):
        load(file, {}, required=True)
    file.write_text('[agents.a]\npeople = ["admins", "slack/U1"]\n')
    config = load(file, {}, required=True).config
    assert agents_of(config.agents, ["telegram/7"])["a"].people == ("telegram/7", "slack/u1")


def test_agents_come_from_the_file_with_their_prompts_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text('[agents.coder]\nprompt_file = "coder.md"\nmemory = "own"\nchats = ["telegram/7"]\n')
    (tmp_path / "coder.md").write_text("You write code.")
    config = load(file, {}, required=True).config
    coder = agents_of(config.agents)["coder"]
    assert coder.prompt == "You write code."
    assert coder.memory is AgentMemory.OWN
    env = {"OUTSPOKEN_AGENTS__EACH": json.dumps({"writer": {"tools": []}})}
    assert agents_of(load(None, env).config.agents)["writer"].tools == ()


def test_the_check_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "outspoken.toml").write_text('[agents.coder]\ntools = ["read_fiel"]\n')
    checked = run(["config", "check"], environment(tmp_path / "home", free_port()))
    assert checked.returncode == 78
    assert "outspoken.toml:2: [agents.coder] tools: there is no tool called read_fiel." in checked.stderr


# ------------------------------------------------------------------ running gateways

AGENTS = {
    "coder": {"prompt": "CODER PROMPT", "tools": ["write_file", "list_files"], "memory": "off"},
    "friend": {"memory": "own"},
    "poor": {"day_tokens": 1},
}
WITH_AGENTS = {**WITH_KEY, "OUTSPOKEN_AGENTS__EACH": json.dumps(AGENTS)}


async def names_of(url: str, key: str) -> list[str]:
    async with sdk(url, key) as client:
        return [model.id async for model in client.models.list()]


async def test_agents_are_listed_beside_the_models_and_chosen_by_model(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_AGENTS) as up:
        key = "configured-configured-configured"
        assert {*AGENTS, "outspoken"} <= {*await names_of(up.url, key)}
        assert "I'll write a.txt" in await ask(up.url, key, "write a.txt: hello", model="coder")
        said = await ask(up.url, key, "remember that my dog is called Rex", model="coder", user="ada")
        assert "remember, which is not offered here" in said
        await ask(up.url, key, "remember that my dog is called Rex", model="friend", user="ada")
        assert "Rex" in await ask(up.url, key, "what do you remember", model="friend", user="ada")
        assert "Rex" not in await ask(up.url, key, "what do you remember", user="ada")
        with pytest.raises(openai.NotFoundError, match="coder"):
            await ask(up.url, key, "hello", model="codre")


async def test_explain_says_which_agent_a_turn_ran_as_and_with_which_key(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_AGENTS) as up:
        key = await add(up.url, "laptop", owner="ada")
        async with sdk(up.url, key) as made:
            client: Any = made
            got: Any = await client.chat.completions.create(
                model="coder", messages=[{"role": "user", "content": "hello"}]
            )
        turn = got.model_extra["outspoken"]["turn"]
        story = "\n".join(await up.hub.why(turn, Caller("laptop", "ada"), ""))
        assert "agent coder" in story
        assert "with the API key laptop" in story
        assert key not in story


async def test_budgets_of_agents_and_keys_refuse_with_a_429_that_says_when_to_come_again(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_AGENTS) as up:
        key = await add(up.url, "ci", day_tokens=1)
        other = await add(up.url, "other")
        for one, model in ((key, "outspoken"), (other, "poor")):
            await ask(up.url, one, "hello", model=model)  # what is let through last passes the limit
            with pytest.raises(openai.RateLimitError) as told:
                await ask(up.url, one, "hello", model=model)
            assert told.value.code == "insufficient_quota"
            assert 0 < int(told.value.response.headers["Retry-After"]) <= 25 * 3600
        assert "hello" in await ask(up.url, other, "hello")
        await operate(up.url, {"verb": "change", "name": "ci", "terms": {"day_tokens": 0}})
        assert "hello" in await ask(up.url, key, "hello")


async def test_a_key_that_asks_too_often_is_refused_with_a_429_and_its_repeats_are_not(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        key, other = await add(up.url, "ci", minute_requests=2), await add(up.url, "other")
        first = {"Idempotency-Key": "K"}
        for headers in (first, None):
            assert "hello" in await ask(up.url, key, "hello", headers)
        with pytest.raises(openai.RateLimitError) as told:
            await ask(up.url, key, "hello")
        assert told.value.code == "rate_limit_exceeded"
        assert 0 < int(told.value.response.headers["Retry-After"]) <= 60
        assert "hello" in await ask(up.url, key, "hello", first), "the same request has its answer"
        assert "hello" in await ask(up.url, other, "hello")


async def test_a_key_has_its_models_and_tools_and_no_others(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_AGENTS) as up:
        key = await add(up.url, "ci", models=["coder"], tools=["list_files"])
        assert await names_of(up.url, key) == ["coder"]
        said = await ask(up.url, key, "write a.txt: hello", model="coder")
        assert "write_file, which is not offered here" in said
        assert "not offered" not in await ask(up.url, key, "list files")  # names none, so the first of its list answers
        with pytest.raises(openai.NotFoundError, match="may not ask for"):
            await ask(up.url, key, "hello", model="friend")
        refused = await operate(up.url, {"verb": "add", "name": "x", "terms": {"models": ["codre"]}})
        assert "Did you mean coder?" in refused["error"]["message"]


@asynccontextmanager
async def told(reply: Callable[[int, web.StreamResponse], Awaitable[None]]) -> AsyncGenerator[tuple[str, list[Any]]]:
    """The address of a model, and what it is asked; `reply` answers the n-th request."""
    asked: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(await request.json())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await reply(len(asked), response)
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked
    finally:
        await runner.cleanup()


async def test_a_turn_that_was_left_open_goes_on_as_the_agent_that_began_it(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def reply(number: int, response: web.StreamResponse) -> None:
        await response.write(chunk({"content": "one two three four five " if number == 1 else "and the end."}))
        if number == 1:
            began.set()
            await asyncio.sleep(60)
        await response.write(chunk({}, "stop"))

    async with told(reply) as (url, asked):
        env = {
            **WITH_AGENTS, "OUTSPOKEN_SERVER__DRAIN_SECONDS": "0", "OUTSPOKEN_MODEL__BASE_URL": url,
            "OUTSPOKEN_MODEL__NAME": "gpt", "OUTSPOKEN_MODEL__STALL_SECONDS": "30",
        }  # fmt: skip
        named = {"Idempotency-Key": "K"}
        async with served(tmp_path, env) as up:
            begun = asyncio.create_task(ask(up.url, CONFIGURED_KEY, "count", named, model="coder"))
            async with asyncio.timeout(20):
                await began.wait()
        await asyncio.wait({begun})
        async with served(tmp_path, env) as up:
            assert "and the end." in await ask(up.url, CONFIGURED_KEY, "count", named, model="coder")
    assert len(asked) == 2
    for one in asked:
        assert one["messages"][0]["content"].startswith("CODER PROMPT")
        assert {tool["function"]["name"] for tool in one["tools"]} == {"write_file", "list_files"}


async def test_an_agent_asks_its_models_in_its_order(tmp_path: Path) -> None:
    async def reply(_: int, response: web.StreamResponse) -> None:
        await response.write(chunk({"content": "hello"}, "stop"))

    async with told(reply) as (url, asked):
        env = {
            **WITH_KEY, "OUTSPOKEN_MODEL__BASE_URL": url, "OUTSPOKEN_MODEL__NAME": "gpt", "OUTSPOKEN_MODEL__FALLBACKS": "mini,local",
            "OUTSPOKEN_AGENTS__EACH": json.dumps({"small": {"models": ["local", "mini"]}}),
        }  # fmt: skip
        async with served(tmp_path, env) as up:
            key = await add(up.url, "ci", models=["mini"])
            await ask(up.url, CONFIGURED_KEY, "hello", model="small")
            await ask(up.url, CONFIGURED_KEY, "hello")
            await ask(up.url, key, "hello")
    assert [one["model"] for one in asked] == ["local", "gpt", "mini"]


async def test_an_agent_none_of_whose_models_is_there_says_so_and_not_that_it_was_our_mistake(tmp_path: Path) -> None:
    async def never(number: int, response: web.StreamResponse) -> None:
        raise AssertionError(number)

    async with told(never) as (url, asked):
        agents = json.dumps({"coder": {"models": ["no-such-model"]}})
        env = {"OUTSPOKEN_MODEL__BASE_URL": url, "OUTSPOKEN_AGENTS__EACH": agents}  # which model it has is asked later
        async with served(tmp_path, env) as up, openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="x") as client:
            with pytest.raises(openai.APIStatusError) as caught:
                await client.with_options(max_retries=0).chat.completions.create(
                    model="coder", messages=[{"role": "user", "content": "hi"}]
                )
    assert "no model that may answer it is there" in str(caught.value)
    assert "Asking again will not help" in str(caught.value)
    assert "mistake" not in str(caught.value)
    assert asked == []
    assert await breaches(tmp_path / "outspoken.db") == []
