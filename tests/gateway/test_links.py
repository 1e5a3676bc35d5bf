"""Conversations of the page that are shown by a link: as they were when it was made, to whom the operator lets read them, until it is withdrawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.http.sessions import links
from tests.chats.model import scripted_model
from tests.gateway.test_page_commands import BROWSER, Tab, settled
from tests.laws.look import breaches
from tests.serving import served

OTHER = {"X-Outspoken-Browser": "browser-number-two"}
MINE = "/api/conversations/c-conversation/link"


async def made(http: aiohttp.ClientSession, url: str, path: str = MINE, status: int = 200) -> str:
    async with http.post(f"{url}{path}", headers=BROWSER) as response:
        assert response.status == status, await response.text()
        return (await response.json()).get("link", "")


async def read(
    http: aiohttp.ClientSession, url: str, link: str, status: int = 200, behind: int = 0, key: str = ""
) -> Any:
    """What somebody else sees who has the link."""
    headers = OTHER | ({"Authorization": f"Bearer {key}"} if key else {})
    async with http.post(f"{url}/api/shared", json={"link": link, "behind": behind}, headers=headers) as response:
        assert response.status == status, await response.text()
        return await response.json()


async def said(tab: Tab, *words: str, before: int = 0) -> None:
    for number, one in enumerate(words, before + 1):
        await tab.says(one)
        await settled(tab, number)


def persons(shown: Any) -> list[str]:
    return [one["person"] for one in shown["messages"]]


async def test_a_link_shows_what_was_said_until_it_was_made_and_nothing_that_comes_later(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:
        tab = Tab(http, up.url)
        await tab.says("first")
        first = (await settled(tab, 1))[0]
        await said(tab, "second", before=1)
        assert not (await tab.changes({}))["shared"]
        link = await made(http, up.url)
        assert (await tab.changes({"title": "A name of later"}))["shared"]
        await said(tab, "third", before=2)
        shown = await read(http, up.url, link)
        assert (shown["title"], shown["more"], persons(shown)) == ("first", False, ["first", "second"])
        assert persons(await read(http, up.url, link, behind=shown["messages"][0]["number"])) == ["second"]
        assert "You wrote “second”" in json.dumps(shown["messages"][1]["bubbles"][-1]["nodes"], ensure_ascii=False)
        await tab.says(f"/redo {first['turn']} other words")
        await settled(tab, 1)
        assert persons(await read(http, up.url, link)) == ["first", "second"]  # another version is of later, too
        async with http.get(f"{up.url}/shared") as response:
            assert response.headers["X-Robots-Tag"] == "noindex, nofollow"
            assert 'name="robots" content="noindex' in await response.text()
    assert await breaches(tmp_path / "outspoken.db") == []


async def test_a_link_opens_nothing_from_the_moment_in_which_it_is_withdrawn_replaced_or_its_conversation_is_gone(
    tmp_path: Path,
):
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:
        await said(Tab(http, up.url), "hello")
        link = await made(http, up.url)
        await read(http, up.url, link)
        other = await made(http, up.url)
        await read(http, up.url, link, 404)
        await read(http, up.url, other)
        for wrong in (other[:-1], f"{other}x", other.partition(".")[0], "", f"s_00000.{other.partition('.')[2]}"):
            told = await read(http, up.url, wrong, 404)
            assert told["error"]["message"].startswith("This link opens nothing")
        async with http.delete(f"{up.url}{MINE}", headers=OTHER) as response:
            assert response.status == 404  # whoever may read it may not withdraw it
        for done in (True, False):
            async with http.delete(f"{up.url}{MINE}", headers=BROWSER) as response:
                assert await response.json() == {"done": done}
            await read(http, up.url, other, 404)
        last = await made(http, up.url)
        async with http.delete(f"{up.url}{MINE.removesuffix('/link')}", headers=BROWSER) as response:
            assert response.status == 200
        await read(http, up.url, last, 404)
    assert await breaches(tmp_path / "outspoken.db") == []


async def test_what_is_taken_back_or_branched_off_is_not_shown(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:
        tab = Tab(http, up.url)
        await said(tab, "hello", "my secret")
        link = await made(http, up.url)
        turn = (await settled(tab, 2))[0]["turn"]
        async with http.post(
            f"{up.url}/api/conversations/c-conversation/branches",
            json={"turn": turn, "name": "c-of-another"},
            headers=BROWSER,
        ) as response:
            assert response.status == 200
        async with http.get(f"{up.url}/api/conversations", headers=BROWSER) as response:
            listed = {one["id"]: one["shared"] for one in (await response.json())["conversations"]}
        assert listed == {"c-conversation": True, "c-of-another": False}
        await tab.says("/undo")
        await tab.sees('"undone": true')
        assert persons(await read(http, up.url, link)) == ["hello"]


async def test_a_long_conversation_is_shown_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(links, "TURNS_AT_ONCE", 2)
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:
        await said(Tab(http, up.url), "one", "two", "three")
        link, behind, met = await made(http, up.url), 0, list[str]()
        for more in (True, False):
            shown = await read(http, up.url, link, behind=behind)
            assert shown["more"] == more
            met, behind = [*met, *persons(shown)], shown["messages"][-1]["number"]
        assert met == ["one", "two", "three"]


async def test_neither_a_temporary_conversation_nor_one_without_an_answer_nor_somebody_elses_can_be_shown(
    tmp_path: Path,
):
    async with served(tmp_path) as up, aiohttp.ClientSession() as http:
        await Tab(http, up.url, "c-of-commands").says("/memory")
        await made(http, up.url, "/api/conversations/c-of-commands/link", 409)
        await said(Tab(http, up.url, "c-t-0123456789"), "hello")
        await made(http, up.url, "/api/conversations/c-t-0123456789/link", 404)
        await said(Tab(http, up.url), "hello")
        async with http.post(f"{up.url}{MINE}", headers=OTHER) as response:
            assert response.status == 404


async def test_what_a_model_thought_and_what_tools_were_given_and_gave_is_not_shown(tmp_path: Path):
    async with scripted_model() as model:
        env = {"OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1", "OPENAI_BASE_URL": model.url}
        async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
            tab = Tab(http, up.url)
            call = json.dumps({"path": "private.txt", "content": "the pin is 1234"})
            await said(tab, f"usetool write_file {call}")
            shown = await read(http, up.url, await made(http, up.url))
            bubbles = json.dumps(shown["messages"][0]["bubbles"])
            assert "write_file" in bubbles
            assert "1234" not in bubbles
            (call_shown,) = [one for one in shown["messages"][0]["bubbles"] if one["kind"] == "activity"]
            assert (call_shown["text"], call_shown["nodes"]) == ("write_file", [])


@pytest.mark.parametrize(
    ("opens", "stranger", "person"), [("off", 404, 404), ("people", 401, 200), ("anyone", 200, 200)]
)
async def test_the_operator_says_for_whom_links_open(tmp_path: Path, opens: str, stranger: int, person: int):
    key = "sesame-sesame"
    closed = {"OUTSPOKEN_SERVER__API_KEY": key}
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as mine,
        aiohttp.ClientSession() as theirs,
    ):
        async with served(tmp_path, closed) as up:
            await said(Tab(mine, up.url), "hello")
            link = await made(mine, up.url)
        async with served(tmp_path, closed | {"OUTSPOKEN_SERVER__SHARE_LINKS": opens}) as up:
            await read(theirs, up.url, link, 401 if opens == "off" else stranger)
            await read(theirs, up.url, link, person, key=key)
            await read(theirs, up.url, f"{link}x", 404 if opens == "anyone" else 401)
            async with theirs.get(f"{up.url}/api/conversations", headers=OTHER) as response:
                assert response.status == 401  # whatever links do, the rest stays closed
            await made(mine, up.url, status=403 if opens == "off" else 200)
            async with mine.delete(f"{up.url}{MINE}", headers=BROWSER) as response:
                assert response.status == 200  # one that was made before can be withdrawn
