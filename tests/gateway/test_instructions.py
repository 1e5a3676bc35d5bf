"""What a person wants of every answer: told in their conversations, to nobody else's, and gone with them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.contract.base import FromApi, FromChat, SessionKey, TaskTerms
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from gateway.people.instructions import BEGIN, MOST_CHARS, may_have
from tests.chats.model import ScriptedModel, scripted_model
from tests.chats.test_operator import outspoken
from tests.gateway.test_page_commands import BROWSER, Tab
from tests.laws.look import breaches
from tests.serving import served

MINE = "Answer in verse.\nNever say “maybe”."
OTHER = {"X-Outspoken-Browser": "browser-number-two"}


async def told(model: ScriptedModel, http: aiohttp.ClientSession, url: str, word: str) -> str:
    """What the model is told first where this is said, in a conversation of its own."""
    path = f"{url}/api/sessions/c-conversation-{word}"
    async with http.post(f"{path}/messages", json={"id": f"message-{word}", "text": f"say {word}"}) as response:
        assert response.status == 202
    async with asyncio.timeout(30), http.get(f"{path}/events") as response:
        async for line in response.content:
            if f'"text":"{word}"'.encode() in line:
                return str(model.requests[-1][0]["content"])
    raise AssertionError(word)


async def wished(http: aiohttp.ClientSession, url: str, text: str | None = None, status: int = 200) -> Any:
    path = f"{url}/api/instructions"
    asked = http.get(path) if text is None else http.post(path, json={"text": text})
    async with asked as response:
        assert response.status == status, await response.text()
        return await response.json()


async def test_a_persons_instructions_are_told_in_all_their_conversations_and_in_nobody_elses(tmp_path: Path):
    async with scripted_model() as model, aiohttp.ClientSession(headers=BROWSER) as mine:
        env = {"OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1", "OPENAI_BASE_URL": model.url}
        async with served(tmp_path, env) as up, aiohttp.ClientSession(headers=OTHER) as theirs:
            assert await wished(mine, up.url) == {"text": ""}
            assert BEGIN not in await told(model, mine, up.url, "one")
            assert await wished(mine, up.url, f"  {MINE}\n") == {"text": MINE}
            assert (await told(model, mine, up.url, "two")).endswith(f"{BEGIN}\n\n{MINE}")
            assert await wished(theirs, up.url) == {"text": ""}
            assert BEGIN not in await told(model, theirs, up.url, "three")
        async with served(tmp_path, env) as up:
            assert MINE in await told(model, mine, up.url, "four")
            assert await wished(mine, up.url, "") == {"text": ""}
            assert BEGIN not in await told(model, mine, up.url, "five")
    assert await breaches(tmp_path / "outspoken.db") == []


async def test_they_are_shown_changed_and_taken_back_by_a_command(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession(headers=BROWSER) as http:
        tab = Tab(http, up.url)
        await tab.says("/instructions")
        await tab.sees("There are no instructions of yours")
        await tab.says(f"/instructions {MINE}")
        await tab.sees("in all your conversations")
        assert await wished(http, up.url) == {"text": MINE}
        await tab.says("/instructions off")
        await tab.sees("message-0003")
        assert await wished(http, up.url) == {"text": ""}


def test_they_are_told_where_one_person_is_answered_and_it_is_known_who():
    address = ChatAddress("telegram", "1", "2")
    asked = FromChat(
        account="telegram/1", platform_key="k", session=SessionKey("telegram", "1", "2"), input=(), surface="telegram",
        memory_scope="telegram/1/2//", chat=ChatOrigin(address, ChatKind.PRIVATE, ChatPerson("7", "Ada")),
    )  # fmt: skip
    assert may_have(asked)
    assert not any(
        may_have(replace(asked, chat=replace(asked.chat, kind=kind)))
        for kind in ChatKind
        if kind is not ChatKind.PRIVATE
    )
    page = FromApi(
        account="web/page", platform_key="k", session=SessionKey("web", "page", "c"), input=(), surface="web",
        memory_scope="web/ada", browser="b",
    )  # fmt: skip
    assert may_have(page)
    assert may_have(replace(page, memory_scope="web"))
    assert not may_have(replace(page, memory_scope="web", browser="")), "nobody knows whose it is"
    assert not may_have(replace(page, task=TaskTerms("web/page/c", "ada", 60, 9)))
    assert not may_have(replace(page, session=SessionKey("api", "key", "c")))


@pytest.mark.parametrize("text", ["x" * (MOST_CHARS + 1), None, 7])
async def test_what_cannot_be_kept_is_refused_in_words(tmp_path: Path, text: Any):
    async with served(tmp_path) as up, aiohttp.ClientSession(headers=BROWSER) as http:
        async with http.post(f"{up.url}/api/instructions", json={"text": text}) as response:
            assert response.status == 400
            assert "text" in (await response.json())["error"]["message"]
        async with http.get(f"{up.url}/api/instructions", headers={"X-Outspoken-Browser": "?"}) as response:
            assert response.status == 400


async def test_they_are_forgotten_with_their_person_and_nobody_elses(tmp_path: Path):
    async with served(tmp_path) as up:
        port, keys = int(up.url.rpartition(":")[2]), dict[str, str]()
        for name in ("ada", "bob"):
            status, words = await outspoken(tmp_path, "keys", "add", name, "--owner", name, port=port)
            assert status == 0, words
            keys[name] = next(word for word in words.split() if word.startswith("sk-") and len(word) > 40)
        heads = {name: BROWSER | {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
        async with (
            aiohttp.ClientSession(headers=heads["ada"]) as ada,
            aiohttp.ClientSession(headers=heads["bob"]) as bob,
        ):
            await wished(ada, up.url, "Ada wants verses.")
            await wished(bob, up.url, "Bob wants prose.")
            status, words = await outspoken(tmp_path, "people", "forget", "api/ada", "--yes", port=port)
            assert (status, "is not among those who spoke" in words) == (0, True), words
            async with asyncio.timeout(30):
                while await wished(ada, up.url) != {"text": ""}:
                    await asyncio.sleep(0.1)
            assert await wished(bob, up.url) == {"text": "Bob wants prose."}
    kept = b"".join(one.read_bytes() for one in tmp_path.rglob("outspoken.db*"))
    assert (b"Ada wants verses" in kept, b"Bob wants prose" in kept) == (False, True)
