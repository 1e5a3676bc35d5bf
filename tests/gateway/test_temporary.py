"""A temporary conversation: in no list, without a trace in anybody's memory, and gone when it is left."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from adapters.contract.sessions import BusyElsewhere, SessionSight, SessionState, StillRunning
from adapters.http.sessions import pagelist
from agent_core.ports import SystemClock
from agent_core.store.sessions.rows import SessionRow
from gateway.conversations import temporary
from gateway.conversations.access import GatewaySessions
from gateway.conversations.temporary import KEPT_MS, forget_temporary
from tests.chats.model import scripted_model
from tests.gateway.test_page_commands import BROWSER, Tab
from tests.laws.look import breaches
from tests.serving import served

NAME = "c-t-0123456789abcdef"


async def listed(http: aiohttp.ClientSession, url: str) -> list[str]:
    async with http.get(f"{url}/api/conversations") as response:
        return [one["id"] for one in (await response.json())["conversations"]]


async def test_it_is_in_no_list_remembers_for_itself_alone_and_goes_with_all_of_it(tmp_path: Path):
    env = {"OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1", "OUTSPOKEN_MODEL__TITLES": "true"}
    async with scripted_model() as model:
        env["OPENAI_BASE_URL"] = model.url
        async with served(tmp_path, env) as up, aiohttp.ClientSession(headers=BROWSER) as http:
            tab, other = Tab(http, up.url, NAME), Tab(http, up.url)
            await tab.says(f"usetool remember {json.dumps({'name': 'dog', 'text': 'Rex'})}")
            await tab.sees('"closed"')
            await tab.says("/memory")
            await tab.sees("Rex")
            await other.says("/memory")
            await other.sees("Nothing is remembered here")
            await other.says("say hello")
            await other.sees('"closed"')
            assert await listed(http, up.url) == ["c-conversation"]
            async with http.delete(f"{up.url}/api/conversations/{NAME}") as response:
                assert response.status == 200
            async with http.delete(f"{up.url}/api/conversations/{NAME}") as response:
                assert response.status == 404
            await tab.says("/memory", key="after-it-was-left")
            await tab.sees("Nothing is remembered here")
            assert not any("Rex" in str(one[0]["content"]) for one in model.requests)
    assert await breaches(tmp_path / "outspoken.db") == []


async def test_one_in_which_something_happens_stays_and_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    env = {"OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1", "OUTSPOKEN_MODEL__TITLES": "true"}
    async with scripted_model() as model:
        env["OPENAI_BASE_URL"] = model.url
        async with served(tmp_path, env) as up, aiohttp.ClientSession(headers=BROWSER) as http:
            runs, talks, idle = (Tab(http, up.url, f"c-t-{name}-0123456789") for name in ("runs", "talks", "idle"))
            for one in (talks, idle):
                await one.says("say hello")
                await one.sees('"closed"')
            await runs.says("hold on")
            await model.holding.wait()
            now = SystemClock().now_ms()
            with closing(sqlite3.connect(tmp_path / "outspoken.db")) as db, db:
                db.execute("UPDATE sessions SET created_at = ?", (now - 3 * KEPT_MS,))
                db.execute("UPDATE sessions SET last_at = ? WHERE key NOT LIKE '%talks%'", (now - 2 * KEPT_MS,))
            with monkeypatch.context() as elsewhere:
                elsewhere.setattr(up.hub.portion, "whole", False)
                assert await forget_temporary(up.hub, now) == 0, "another gateway's"
            assert await forget_temporary(up.hub, now) == 1
            with closing(sqlite3.connect(tmp_path / "outspoken.db")) as db:
                kept = [str(row[0]) for row in db.execute("SELECT key FROM sessions WHERE key LIKE '%c-t-%'")]
            assert sorted(key.split("c-t-")[1][:4] for key in kept) == ["runs", "talk"]
            assert not [one for one in model.requests if "<conversation>" in str(one)], "nobody names it"


async def test_one_that_nobody_left_in_order_goes_a_day_later(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession(headers=BROWSER) as http:
        tab, other = Tab(http, up.url, NAME), Tab(http, up.url)
        for one in (tab, other):
            await one.says("hello")
            await one.sees('"closed"')
        now = SystemClock().now_ms()
        assert await forget_temporary(up.hub, now) == 0
        assert await forget_temporary(up.hub, now + KEPT_MS + 120_000) == 1
        assert await listed(http, up.url) == ["c-conversation"]
        async with http.get(f"{up.url}/api/conversations/{NAME}/export") as response:
            assert response.status == 404
    assert await breaches(tmp_path / "outspoken.db") == []


async def test_one_that_somebody_comes_back_to_while_others_go_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with served(tmp_path) as up, aiohttp.ClientSession(headers=BROWSER) as http:
        for name in ("c-t-first-0123456789", "c-t-other-0123456789"):
            tab = Tab(http, up.url, name)
            await tab.says("hello")
            await tab.sees('"closed"')
        later, delete = SystemClock().now_ms() + KEPT_MS + 120_000, GatewaySessions.delete

        async def slowly(access: GatewaySessions, sight: SessionSight) -> None:
            await delete(access, sight)
            with closing(sqlite3.connect(tmp_path / "outspoken.db")) as db, db:
                db.execute("UPDATE sessions SET last_at = ?", (later - 1_000,))

        monkeypatch.setattr(GatewaySessions, "delete", slowly)
        assert await forget_temporary(up.hub, later) == 1


async def test_what_is_put_aside_or_temporary_takes_no_place_in_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pagelist, "MOST_LISTED", 2)
    async with served(tmp_path) as up, aiohttp.ClientSession(headers=BROWSER) as http:
        for name in (
            "c-first-one",
            "c-second-one",
            "c-aside-first",
            "c-aside-other",
            "c-back-again",
            "c-t-0123",
            "c-t-4567",
        ):
            await Tab(http, up.url, name).says("/memory")
        for name in ("c-aside-first", "c-aside-other", "c-back-again"):
            async with http.post(f"{up.url}/api/conversations/{name}", json={"archived": True}) as response:
                assert (await response.json())["archived"]
        back = Tab(http, up.url, "c-back-again")
        await back.says("hello", key="said-later")
        await back.sees('"closed"')
        async with http.delete(f"{up.url}/api/conversations/c-first-one") as response:
            assert response.status == 200
        assert sorted(await listed(http, up.url)) == ["c-aside-first", "c-aside-other", "c-back-again", "c-second-one"]


@pytest.mark.parametrize("trouble", [StillRunning, BusyElsewhere])
async def test_one_that_cannot_be_deleted_just_now_keeps_no_other(
    monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    rows = [SessionRow(f"s_{number}", f"web/page/c-t-{number}//", None, 1) for number in range(3)]
    gone: list[str] = []

    async def delete(sight: SimpleNamespace) -> None:
        if sight.session == "s_0":
            raise trouble
        gone.append(sight.session)

    async def named(*_: object, **__: object) -> list[SessionRow]:
        return rows

    async def one(session: str) -> SessionRow:
        return next(row for row in rows if row.session == session)

    async def of(found: list[SessionRow]) -> list[SimpleNamespace]:
        return [SimpleNamespace(session=row.session, state=SessionState.IDLE) for row in found]

    sessions = SimpleNamespace(named=named, one=one)
    access = SimpleNamespace(store=SimpleNamespace(sessions=sessions), sights=SimpleNamespace(of=of), delete=delete)

    def access_of(*_: object) -> object:
        return access

    def mine(_: str) -> bool:
        return True

    monkeypatch.setattr(temporary, "access_of", access_of)
    hub = SimpleNamespace(accepting=None, stopping=None, forgetting=None, portion=SimpleNamespace(mine=mine))
    assert await forget_temporary(cast("Any", hub), 2 * KEPT_MS) == 2
    assert gone == ["s_1", "s_2"]
