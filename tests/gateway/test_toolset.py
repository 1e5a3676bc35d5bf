"""Which tools a gateway offers: its own and those that its operators wrote, by what the configuration says."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.reading import CannotServe
from gateway.toolset import NamedTools, unknown_names
from tests.agent_core.tools.test_search import engine
from tests.gateway.rig import call_chunk, chunk
from tests.listening import listening
from tests.serving import served

TOOL = '''
from agent_core.toolbox import Call, keyed

@keyed()
def greet(name: str, call: Call) -> str:
    """Greet somebody."""
    (call.workspace / "greeted").write_text(name)
    return f"Hello {name}, by {len(call.key) > 5}"
'''


@asynccontextmanager
async def model_that_calls(tool: str, arguments: str) -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """A model that calls a tool and then says what came of it; its address, and what it was asked."""
    asked: list[dict[str, Any]] = []

    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        asked.append(body)
        last = body["messages"][-1]
        said = last["role"] == "tool"
        piece = chunk({"content": f"It said: {last['content']}"}, "stop") if said else call_chunk(tool, arguments)
        return web.Response(body=piece + b"data: [DONE]\n\n", content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    async with listening(app) as url:
        yield f"{url}/v1", asked


async def answer(url: str, words: str, model: str = "m") -> str:
    async with aiohttp.ClientSession() as http:
        body = {"model": model, "messages": [{"role": "user", "content": words}]}
        async with http.post(f"{url}/v1/chat/completions", json=body) as response:
            return str((await response.json())["choices"][0]["message"]["content"])


def environment(url: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "OUTSPOKEN_MODEL__NAME": "m", "OUTSPOKEN_TOOLS__PATH": str(folder), **more,
    }  # fmt: skip


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "greeting.py").write_text(TOOL)
    return folder


async def test_a_tool_of_the_operators_is_offered_called_and_its_result_answered(tools: Path, tmp_path: Path):
    async with (
        model_that_calls("greet", '{"name": "Ada"}') as (url, asked),
        served(tmp_path / "home", environment(url, tools), patient=True) as up,
    ):
        assert "It said: Hello Ada, by True" in await answer(up.url, "greet Ada")
    offered = {one["function"]["name"]: one["function"] for one in asked[0]["tools"]}
    assert offered["greet"]["description"] == "Greet somebody."
    assert offered["greet"]["parameters"]["required"] == ["name"]
    assert "read_file" in offered


async def test_the_configuration_chooses_among_all_of_them(tools: Path, tmp_path: Path):
    env = {"OUTSPOKEN_TOOLS__ENABLED": json.dumps(["greet", "read_file"])}
    async with (
        model_that_calls("greet", '{"name": "Ada"}') as (url, asked),
        served(tmp_path / "home", environment(url, tools, **env), patient=True) as up,
    ):
        await answer(up.url, "greet Ada")
    assert {one["function"]["name"] for one in asked[0]["tools"]} == {"greet", "read_file"}


async def test_a_name_that_no_tool_has_is_refused_at_the_start(tools: Path, tmp_path: Path):
    env = environment("http://127.0.0.1:9/v1", tools, OUTSPOKEN_TOOLS__APPROVAL='["great"]')
    with pytest.raises(CannotServe, match="a tool that does not exist: great"):
        async with served(tmp_path / "home", env):
            pass


async def test_a_file_that_cannot_be_used_stops_nobody(tools: Path, tmp_path: Path):
    (tools / "broken.py").write_text("import nowhere\n")
    async with model_that_calls("greet", '{"name": "Ada"}') as (url, _):
        env = environment(url, tools, OUTSPOKEN_TOOLS__APPROVAL='["of_the_broken_one"]')
        async with served(tmp_path / "home", env, patient=True) as up:
            assert "Hello Ada" in await answer(up.url, "greet Ada")


async def test_an_engine_that_is_configured_is_asked_and_its_addresses_reach_the_model(tmp_path: Path):
    async with engine() as fake, model_that_calls("search_web", '{"query": "tea"}') as (url, asked):
        env = environment(url, tmp_path, OUTSPOKEN_SEARCH__ENGINE="searxng", SEARXNG_URL=fake.url)
        async with served(tmp_path / "home", env, patient=True) as up:
            assert "https://two.example/a?b=c" in await answer(up.url, "what is tea?")
    assert fake.asked == [{"q": "tea", "format": "json"}]
    assert "search_web" in {one["function"]["name"] for one in asked[0]["tools"]}


NAMES = st.lists(st.sampled_from("abcde"), max_size=3)


@given(NAMES, NAMES, NAMES, NAMES, NAMES)
def test_what_is_named_and_not_there_is_said(
    enabled: list[str], disabled: list[str], approval: list[str], agents: list[str], known: list[str]
):
    words = unknown_names(NamedTools(enabled, disabled, approval, agents), known)
    missing = {*enabled, *disabled, *approval, *agents} - {*known}
    assert bool(words) == bool(missing)
    assert all(f" {name}" in words for name in missing)
