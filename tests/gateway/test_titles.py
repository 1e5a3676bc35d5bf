"""What conversations of the page are called: by the model that answered, where nobody named them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.ports import SystemClock
from agent_core.signals import TurnClosed, nobody
from agent_core.store.store import Store
from gateway.conversations.titles import RAMBLES_CHARS, TITLE_CHARS, TRIED, Titles, title_of
from gateway.sessions.hub import Hub
from tests.chats.model import ScriptedModel, scripted_model
from tests.gateway.test_page_commands import BROWSER, Tab
from tests.laws.look import breaches
from tests.serving import served

MODEL = {"OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1"}
ON = {**MODEL, "OUTSPOKEN_MODEL__TITLES": "true"}


@asynccontextmanager
async def opened(
    folder: Path, wanted: Mapping[str, str] = ON, /, **more: str
) -> AsyncGenerator[tuple[ScriptedModel, Tab, Callable[[], Any]]]:
    async with (
        scripted_model() as model,
        served(folder, {**wanted, "OPENAI_BASE_URL": model.url, **more}) as up,
        aiohttp.ClientSession(headers=BROWSER) as http,
    ):

        async def listed() -> list[dict[str, Any]]:
            async with http.get(f"{up.url}/api/conversations") as response:
                return (await response.json())["conversations"]

        yield model, Tab(http, up.url), listed
    assert await breaches(folder / "outspoken.db") == []


async def called(listed: Callable[[], Any], title: str) -> dict[str, Any]:
    """The conversation, as soon as it is called so."""
    async with asyncio.timeout(20):
        while True:
            for one in await listed():
                if one["title"] == title:
                    return one
            await asyncio.sleep(0.05)


def asked_for(model: ScriptedModel) -> list[str]:
    return [str(one[-1]["content"]) for one in model.requests if str(one[-1]["content"]).startswith("<conversation>")]


async def test_a_conversation_is_called_as_the_model_says_after_its_first_answer(tmp_path: Path):
    async with opened(tmp_path) as (model, tab, listed):
        model.titles = ['"Apples in autumn."', "Never"]
        await tab.says("say apples fall")
        one = await called(listed, "Apples in autumn")
        assert (one["named"], one["turns"]) == (False, 1)
        await tab.says("say more of it")
        await tab.sees("more of it")
        assert "apples fall" in asked_for(model)[0]
        assert len(asked_for(model)) == 1
        assert [one["title"] for one in await listed()] == ["Apples in autumn"]


async def test_a_name_that_a_person_gave_stays_and_one_that_is_taken_away_leaves_the_models(tmp_path: Path):
    async with opened(tmp_path) as (model, tab, listed):
        model.titles = ["Apples"]
        await tab.says("say apples")
        await called(listed, "Apples")
        mine = await tab.changes({"title": "Mine"})
        assert (mine["named"], mine["title"]) == (True, "Mine")
        assert (await tab.changes({"title": ""}))["title"] == "Apples"
        other = tab.beside("c-another-one")
        model.titles = ["down", "Pears"]
        await other.says("say pears")
        await other.sees('"closed"')
        await other.changes({"title": "Named by hand"})
        await other.says("say more pears")
        await other.sees("more pears")
        assert sorted(one["title"] for one in await listed()) == ["Apples", "Named by hand"]
        assert len(asked_for(model)) <= 2


@pytest.mark.parametrize("trouble", ["down", "stall", "no title at all " * 30])
async def test_what_goes_wrong_is_silent_and_the_next_answer_tries_again(
    tmp_path: Path, trouble: str, capsys: pytest.CaptureFixture[str]
):
    async with opened(tmp_path) as (model, tab, listed):
        model.titles = [trouble, "Pears"]
        await tab.says("say pears")
        seen = await tab.sees('"closed"')
        assert [one["title"] for one in await listed()] == ["say pears"]
        await tab.says("say and plums")  # a title that is not there yet holds nobody up
        await tab.sees("and plums", 2)
        await called(listed, "Pears")
        assert "notice" not in str(seen)
    assert "title.none" in capsys.readouterr().out


async def test_what_is_pinned_is_first_and_what_is_archived_comes_back_when_something_happens_in_it(tmp_path: Path):
    async with opened(tmp_path, MODEL) as (_, tab, listed):
        later = tab.beside("c-another-one")
        for one, words in ((tab, "pears"), (later, "plums")):
            await one.says(f"say {words}")
            await one.sees('"closed"')
        assert [one["title"] for one in await listed()] == ["say plums", "say pears"]
        assert (await tab.changes({"pinned": True, "archived": True}))["archived"] is True
        assert [(one["title"], one["archived"]) for one in await listed()] == [
            ("say pears", True),
            ("say plums", False),
        ]
        await tab.says("say more pears")
        await tab.sees("more pears")
        async with asyncio.timeout(20):
            while (await listed())[0]["archived"]:
                await asyncio.sleep(0.05)
        assert (await tab.changes({"pinned": False}))["archived"] is False


async def test_it_is_asked_for_after_the_first_answers_and_not_for_ever(tmp_path: Path):
    async with opened(tmp_path) as (model, tab, _):
        model.titles = ["no title at all " * 30] * 9
        for number in range(TRIED + 2):
            await tab.says(f"say pears {number}")
            await tab.sees(f"pears {number}")
            async with asyncio.timeout(20):
                while len(asked_for(model)) < min(number + 1, TRIED):
                    await asyncio.sleep(0.02)
        assert len(asked_for(model)) == TRIED


async def test_one_that_fails_ends_no_other(capsys: pytest.CaptureFixture[str]):
    class Broken:
        async def one(self, _: str) -> None:
            raise ZeroDivisionError

    store = cast("Store", SimpleNamespace(sessions=Broken()))
    ended = TurnClosed(turn="t", session="s", surface="web", exit="answered", clean=True, began_at=1, ended_at=2)
    await Titles(cast("Hub", None), store, SystemClock(), nobody).look(ended)
    assert "title.failed" in capsys.readouterr().out


async def test_a_title_is_paid_for_and_not_asked_for_where_there_is_no_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    little = {"OUTSPOKEN_BUDGETS__ASSUMED_OUTPUT_TOKENS": "50"}
    async with opened(tmp_path / "room", **little, OUTSPOKEN_BUDGETS__DAY_TOKENS="1000000") as (model, tab, listed):
        model.titles = ["Pears"]
        await tab.says("say pears")
        await called(listed, "Pears")
    first, title = paid(tmp_path / "room" / "outspoken.db")
    assert (title[0].rpartition(":")[2], title[1] > 50, title[2] > 0) == ("title", True, True)
    for_one_call = str(first[1] + 10)
    async with opened(tmp_path / "none", **little, OUTSPOKEN_BUDGETS__DAY_TOKENS=for_one_call) as (model, tab, listed):
        model.uses = first[1] + 50
        await tab.says("say pears")
        await tab.sees('"closed"')
        told = ""
        async with asyncio.timeout(20):
            while "why=budget" not in told:
                told += capsys.readouterr().out
                await asyncio.sleep(0.05)
        assert [one["title"] for one in await listed()] == ["say pears"]
        assert asked_for(model) == []


def paid(database: Path) -> list[tuple[str, int, int]]:
    """Of each call what was held and what it used, in tokens."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT call, held_tokens, used_tokens FROM reservations ORDER BY at").fetchall()


async def test_nobody_is_asked_for_a_title_unless_the_operator_wants_it(tmp_path: Path):
    async with opened(tmp_path, MODEL) as (model, tab, listed):
        await tab.says("say pears")
        await tab.sees('"closed"')
        await tab.says("say plums")
        await tab.sees("plums")
        assert asked_for(model) == []
        assert [one["title"] for one in await listed()] == ["say pears"]


@given(st.text(max_size=400))
def test_a_title_is_one_short_line_that_can_be_printed_or_none(said: str):
    title = title_of(said)
    assert len(title) <= TITLE_CHARS
    assert title == title.strip()
    assert title.isprintable()
    assert not title or len(said.strip()) <= RAMBLES_CHARS


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Apples in autumn", "Apples in autumn"),
        ("**Title:** Apples", "Apples"),
        ('\n"Äpfel im Herbst."\n', "Äpfel im Herbst"),
        ("# 秋天的苹果。", "秋天的苹果"),
        ("Titel: „Äpfel“", "Äpfel"),
        ("3:1 for the home team", "3:1 for the home team"),
        ("...", ""),
        ("", ""),
    ],
)
def test_what_models_put_around_a_title_is_left_out(said: str, title: str):
    assert title_of(said) == title
