"""Each option of a key acts, held against real gateways by the real client; and what a key is told of its limits."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.callers import Allowance, KeyTerms
from adapters.http.common import limit_headers
from gateway.limits.rates import MINUTE_MS, KeyMeters
from tests.forked import run
from tests.gateway.test_keys import CONFIGURED_KEY, WITH_KEY, add, ask, operate, sdk
from tests.gateway.test_process import daemon, environment
from tests.ports import free_port
from tests.serving import served

ENV = {
    **WITH_KEY,
    "OUTSPOKEN_AGENTS__EACH": json.dumps({"coder": {"prompt": "You write code."}}),
    "OUTSPOKEN_BUDGETS__PRICES": json.dumps({"*": {"input": 1000, "output": 1000}}),
}
WEATHER: Any = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
Probe = Callable[[str, str], Awaitable[object]]


async def said(url: str, key: str, words: str, headers: dict[str, str] | None = None, **more: Any) -> Any:
    """The message of an answer; or the error's code."""
    async with sdk(url, key) as made:
        client: Any = made
        try:
            found = await client.chat.completions.create(
                model=more.pop("model", "outspoken"),
                messages=[{"role": "user", "content": words}],
                extra_headers=headers,
                **more,
            )
        except openai.APIStatusError as error:
            return error.code
    return found.choices[0].message


async def remembers(url: str, key: str) -> object:
    await said(url, key, "remember that my dog is called Rex")
    return "Rex" in (await said(url, key, "what do you remember")).content


async def tells_users_apart(url: str, key: str) -> object:
    await said(url, key, "remember that my dog is called Rex", {"X-OpenWebUI-User-Id": "one"})
    heard = [await said(url, key, "what do you remember", {"X-OpenWebUI-User-Id": user}) for user in ("one", "two")]
    return ["Rex" in one.content for one in heard]


async def models(url: str, key: str) -> object:
    async with sdk(url, key) as client:
        return [model.id async for model in client.models.list()], await said(url, key, "hello", model="rehearsal")


async def files(url: str, key: str) -> object:
    return "not offered here" in (await said(url, key, "list files")).content


async def twice(url: str, key: str) -> object:
    return [found if isinstance(found := await said(url, key, "hello"), str) else "" for _ in range(2)]


async def failure(url: str, key: str) -> object:
    found = await said(url, key, "rehearse unauthorised")
    return found if isinstance(found, str) else "words"


async def thought(url: str, key: str) -> object:
    return bool(getattr(await said(url, key, "think"), "reasoning_content", None))


async def whose_tools(url: str, key: str) -> object:
    """What becomes of a request without tools, and of one with tools of its own, which speaks of one of each."""
    own = await said(url, key, "list files")
    brought = await said(url, key, "get_weather", tools=[WEATHER])
    beside = brought if isinstance(brought, str) else await said(url, key, "list files", tools=[WEATHER])
    return (
        "not offered here" not in own.content,
        brought if isinstance(brought, str) else bool(brought.tool_calls),
        beside if isinstance(beside, str) else "not offered here" not in (beside.content or ""),
    )


async def opens(url: str, key: str) -> object:
    found = await said(url, key, "hello")
    return found if isinstance(found, str) else "opens"


REFUSED = "tools_not_allowed"
CASES: list[tuple[str, Any, Probe, object, object]] = [
    ("owner", "ada", remembers, True, False),
    ("names_users", True, tells_users_apart, [True, False], [False, False]),
    ("models", ["coder"], models, (["coder"], "model_not_found"), None),
    ("tools", ["write_file"], files, True, False),
    ("day_tokens", 1, twice, ["", "insufficient_quota"], ["", ""]),
    ("day_nanos", 1, twice, ["", "insufficient_quota"], ["", ""]),
    ("minute_requests", 1, twice, ["", "rate_limit_exceeded"], ["", ""]),
    ("errors", "status", failure, "not_authorised", "words"),
    ("thinking", False, thought, False, True),
    ("tools_from", "none", whose_tools, (False, REFUSED, REFUSED), (True, True, False)),
    ("tools_from", "client", whose_tools, (False, True, False), None),
    ("tools_from", "gateway", whose_tools, (True, REFUSED, REFUSED), None),
    ("tools_from", "both", whose_tools, (True, True, True), None),
    ("expires_at", 1, opens, "invalid_api_key", "opens"),
]


@pytest.mark.parametrize(
    ("option", "value", "probe", "wanted", "without"), CASES, ids=[f"{one[0]}-{one[1]}" for one in CASES]
)
async def test_each_option_of_a_key_acts(
    tmp_path: Path, option: str, value: Any, probe: Probe, wanted: object, without: object
) -> None:
    async with served(tmp_path, ENV) as up:
        key, plain = await add(up.url, "one", **{option: value}), await add(up.url, "plain")
        assert await probe(up.url, key) == wanted
        found = await probe(up.url, plain)
        assert found != wanted
        assert without is None or found == without


def test_no_option_of_a_key_is_without_a_case() -> None:
    assert {one[0] for one in CASES} == {one.name for one in fields(KeyTerms)}


async def test_a_request_may_want_less_than_its_key_may_and_never_more(tmp_path: Path) -> None:
    async with served(tmp_path, ENV) as up:
        key = await add(up.url, "one", tools_from="gateway")
        wishes = ("none", "gateway", "client", "both")
        heard = [await said(up.url, key, "list files", {"X-Outspoken-Tools": wish}) for wish in wishes]
        assert [one if isinstance(one, str) else "not offered" in one.content for one in heard] == [
            True, False, REFUSED, REFUSED,
        ]  # fmt: skip


# ------------------------------------------------------------------ what a key is told of its limits


@given(st.lists(st.integers(0, 90_000), max_size=8), st.integers(1, 5), st.integers(0, 70_000))
def test_what_is_said_to_be_left_is_let_through_and_no_more(gaps: list[int], limit: int, later: int) -> None:
    meters, now = KeyMeters(), 0
    for gap in gaps:
        now += gap
        meters.early("ci", limit, now)
    now += later
    (requests,) = meters.left("ci", limit, now, 0)
    assert requests.limit == limit
    for _ in range(requests.left):
        assert meters.early("ci", limit, now) == 0
    assert meters.early("ci", limit, now) > 0


@given(st.lists(st.integers(0, 30_000), max_size=8), st.integers(1, 5))
def test_when_it_is_said_to_be_full_again_all_of_a_limit_is_there(gaps: list[int], limit: int) -> None:
    meters, now = KeyMeters(), 0
    for gap in gaps:
        now += gap
        meters.early("ci", limit, now)
    (requests,) = meters.left("ci", limit, now, 0)
    assert 0 <= requests.full_in_ms <= MINUTE_MS
    (then,) = meters.left("ci", limit, now + requests.full_in_ms, 0)
    assert (then.left, then.full_in_ms) == (limit, 0)


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0, "0ms"), (350, "350ms"), (1_000, "1s"), (59_001, "1m0s"), (360_000, "6m0s"), (10_812_000, "3h0m12s")],
)
def test_durations_are_written_as_openai_does(ms: int, words: str) -> None:
    assert limit_headers([Allowance("requests", 1, 0, ms)])["x-ratelimit-reset-requests"] == words


async def test_answers_streams_and_refusals_say_what_is_left(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        key = await add(up.url, "ci", minute_requests=3, day_tokens=1_000_000)
        told: Any = [{"role": "user", "content": "hello"}]
        async with sdk(up.url, key) as client:
            whole = await client.chat.completions.with_raw_response.create(model="outspoken", messages=told)
            streamed = await client.chat.completions.with_raw_response.create(
                model="outspoken", messages=told, stream=True
            )
            async for _ in streamed.parse():
                pass
            third = await client.responses.with_raw_response.create(model="outspoken", input="hello")
            left = [int(one.headers["x-ratelimit-remaining-requests"]) for one in (whole, streamed, third)]
            assert left == [2, 1, 0]
            tokens = [int(one.headers["x-ratelimit-remaining-tokens"]) for one in (whole, streamed, third)]
            assert tokens[0] == 1_000_000
            assert tokens == sorted(tokens, reverse=True)
            assert tokens[2] < 1_000_000
            assert whole.headers["x-ratelimit-limit-requests"] == "3"
            assert re.fullmatch(r"(\d+h)?(\d+m)?\d+(ms|s)", whole.headers["x-ratelimit-reset-tokens"])
            with pytest.raises(openai.RateLimitError) as refused:
                await client.chat.completions.create(model="outspoken", messages=told)
        headers = refused.value.response.headers
        assert headers["x-ratelimit-remaining-requests"] == "0"
        assert 0 < int(headers["Retry-After"]) <= 60
        assert refused.value.response.json()["error"]["code"] == "rate_limit_exceeded"
        async with sdk(up.url, CONFIGURED_KEY) as client:
            free = await client.chat.completions.with_raw_response.create(model="outspoken", messages=told)
            assert not [name for name in free.headers if name.startswith("x-ratelimit")]


async def test_a_budget_that_is_used_up_is_not_asked_again_by_an_sdk_with_its_defaults(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        key = await add(up.url, "ci", day_tokens=1)
        await ask(up.url, key, "hello")
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key=key) as client:
            with pytest.raises(openai.RateLimitError) as told:
                await client.chat.completions.create(model="outspoken", messages=[{"role": "user", "content": "hello"}])
        assert told.value.response.headers["x-should-retry"] == "false"
        assert told.value.request.headers["x-stainless-retry-count"] == "0"


# ------------------------------------------------------------------ an end


async def test_what_a_revoked_key_had_begun_ends_in_order_and_nothing_more_is_begun(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY, patient=True) as up:
        key = await add(up.url, "laptop", owner="ada")
        async with sdk(up.url, key) as client:
            stream = await client.chat.completions.create(
                model="outspoken", messages=[{"role": "user", "content": "count to 60 slowly"}], stream=True
            )
            heard = ""
            async for chunk in stream:
                piece = chunk.choices[0].delta.content if chunk.choices else None
                if piece and not heard:
                    await operate(up.url, {"verb": "revoke", "name": "laptop"})
                    with pytest.raises(openai.AuthenticationError):
                        await ask(up.url, key, "hello")
                heard += piece or ""
            assert heard.rstrip().endswith("60.")
            with pytest.raises(openai.AuthenticationError):
                await client.responses.retrieve("resp_s_0_1")


async def test_a_page_whose_key_expires_is_let_go(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        began = time.time()
        key = await add(up.url, "desktop")
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as http,
            http.get(f"{up.url}/api/about") as about,
        ):
            assert about.status == 200
        soon = max(1.5, 4 * (time.time() - began))  # no sooner than the page can be opened on this machine
        key = await add(up.url, "laptop", expires_at=round((time.time() + soon) * 1000))
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as http:
            async with http.get(f"{up.url}/api/sessions/page-0001/events") as events:
                assert events.status == 200
                await events.content.read()
            async with http.get(f"{up.url}/api/about") as about:
                assert about.status == 401


# ------------------------------------------------------------------ a server that others can reach


@asynccontextmanager
async def called(env: dict[str, str]) -> AsyncGenerator[tuple[str, aiohttp.ClientSession]]:
    async with aiohttp.ClientSession() as http:
        yield f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}", http


async def status(env: dict[str, str], path: str, key: str = "") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with called(env) as (url, http), http.get(url + path, headers=headers) as answer:
        return answer.status


def test_a_gateway_that_others_can_reach_needs_no_configured_key_and_serves_nobody_without_one(tmp_path: Path) -> None:
    env = environment(tmp_path / "home", free_port(), OUTSPOKEN_SERVER__HOST="0.0.0.0")
    checked = run(["config", "check"], env)
    assert checked.returncode == 0
    assert "whoever has a key of outspoken keys, and nobody else" in checked.stdout
    with daemon(env, tmp_path / "log"):
        assert "keys.none" in (tmp_path / "log").read_text()
        for path in ("/v1/models", "/api/about", "/status", "/api/keys", "/metrics"):
            assert asyncio.run(status(env, path)) == 401, path
        made = run(["keys", "add", "laptop", "--owner", "ada", "--json"], env)
        assert made.returncode == 0, made.stderr
        key = json.loads(made.stdout)["key"]
        assert asyncio.run(status(env, "/v1/models", key)) == 200
        for path in ("/api/keys", "/status"):
            assert asyncio.run(status(env, path, key)) == 401, "no operators' door opens to it"
        assert "hello" in run(["ask", "hello"], {**env, "OUTSPOKEN_KEY": key}).stdout
        without = run(["ask", "hello"], env)
        assert without.returncode == 1
        assert "Put it into OUTSPOKEN_KEY" in without.stderr
    with daemon(env, tmp_path / "again"):
        assert "keys.none" not in (tmp_path / "again").read_text()


# ------------------------------------------------------------------ nobody's files


def test_the_workspace_of_nobody_is_removed_also_after_a_kill(tmp_path: Path) -> None:
    env = environment(tmp_path / "home", free_port(), OUTSPOKEN_SERVER__API_KEY=CONFIGURED_KEY)
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}"
    rooms = tmp_path / "home"

    def left() -> list[Path]:
        return [*rooms.glob("**/.nameless/*/a.txt")]

    async def asked(key: str) -> None:
        words = " and then ".join(f"write {letter}.txt: mine" for letter in "abcdefg")
        with suppress(openai.APIError):
            await said(url, key, words)

    async def killed_in_the_middle(key: str, process: Any) -> None:
        asking = asyncio.create_task(asked(key))
        while not left() and not asking.done():
            await asyncio.sleep(0.005)
        process.kill()
        await asyncio.wait({asking})

    key = json.loads(run(["keys", "add", "ci", "--json"], env).stdout)["key"]
    for _ in range(5):  # a kill may come a moment after the end
        with daemon(env, tmp_path / "log") as process:
            asyncio.run(killed_in_the_middle(key, process))
        if left():
            break
    assert left(), "killed in the middle of its work"
    with daemon(env, tmp_path / "again"):
        until = time.monotonic() + 60
        while left() and time.monotonic() < until:
            time.sleep(0.1)
        assert not left()


# ------------------------------------------------------------------ what operators see


def test_the_list_says_what_each_key_used_today_of_its_budget_and_when_last(tmp_path: Path) -> None:
    env = environment(tmp_path / "home", free_port(), OUTSPOKEN_SERVER__API_KEY=CONFIGURED_KEY)
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}"
    with daemon(env, tmp_path / "log"):
        made = run(["keys", "add", "ci", "--day-tokens", "500000", "--expires-days", "30", "--json"], env)
        assert "not counted" not in run(["keys", "add", "other", "--day-tokens", "5"], env).stdout
        assert made.returncode == 0, made.stderr
        assert run(["keys", "add", "gone", "--expires-days", "0.0000001"], env).returncode == 0
        asyncio.run(ask(url, json.loads(made.stdout)["key"], "hello"))
        while_up = run(["keys", "list"], env).stdout
    for listed in (while_up, run(["keys", "list"], env).stdout):
        ci, gone = (next(line for line in listed.splitlines() if line.startswith(name)) for name in ("ci", "gone"))
        assert re.search(r"today [1-9][\d,]* of 500,000 tokens  used 20\d\d-.*, expires 20", ci)
        assert "expired 20" in gone
    assert "of 500,000 tokens" in run(["keys", "show", "ci"], env).stdout


def test_whoever_looks_is_told_which_key_and_agent_a_turn_had(tmp_path: Path) -> None:
    """`status` while it runs, the console beside it; `triage`, from the database and from the log, when it has failed."""
    agents = json.dumps({"coder": {"prompt": "You write code."}})
    env = environment(
        tmp_path / "home", free_port(), OUTSPOKEN_SERVER__API_KEY=CONFIGURED_KEY, OUTSPOKEN_AGENTS__EACH=agents
    )
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}"

    async def watched(key: str) -> str:
        async with sdk(url, key) as client:
            stream = await client.chat.completions.create(
                model="coder", messages=[{"role": "user", "content": "count to 40 slowly"}], stream=True
            )
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    return (await asyncio.to_thread(run, ["status"], env)).stdout
        return ""

    with daemon(env, tmp_path / "log"):
        key = json.loads(run(["keys", "add", "ci", "--json"], env).stdout)["key"]
        assert "Running turns with key ci, agent coder: 1" in asyncio.run(watched(key))
        asyncio.run(said(url, key, "rehearse unauthorised", model="coder"))
        triaged = run(["triage"], env).stdout
    assert re.search(r"turns: t_\w+ \(key ci, agent coder\)", " ".join(triaged.split()))
    from_log = run(["triage", str(tmp_path / "log")], env).stdout
    assert re.search(r"turns: t_\w+ \(key ci, agent coder\)", " ".join(from_log.split()))
