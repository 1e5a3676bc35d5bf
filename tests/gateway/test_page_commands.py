"""`/commands` on the web page: they go the way of a chat's, through the real gateway, over HTTP."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.contract.base import FromApi, SessionKey
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from gateway.commands.conversation import in_other_words
from gateway.commands.registry import COMMANDS
from gateway.daemon import Serving
from gateway.queues.pageanswers import OWN, typed
from tests.laws.look import breaches
from tests.serving import served

BROWSER = {"X-Outspoken-Browser": "browser-number-one"}


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path) as serving:
        yield serving
    assert await breaches(tmp_path / "outspoken.db") == []


class Tab:
    """An open page: what it sent, and what it sees."""

    def __init__(self, http: aiohttp.ClientSession, url: str, session: str = "c-conversation") -> None:
        self._http, self._url, self._path, self._sent = http, url, f"{url}/api/sessions/{session}", 0

    def beside(self, session: str) -> Tab:
        """A tab with another conversation."""
        return Tab(self._http, self._url, session)

    async def says(self, text: str, key: str = "") -> dict[str, Any]:
        self._sent += 1
        body = {"id": key or f"message-{self._sent:04}", "text": text}
        async with self._http.post(f"{self._path}/messages", json=body, headers=BROWSER) as response:
            assert response.status == 202, await response.text()
            return await response.json()

    async def brings(self, text: str, name: str, data: bytes) -> None:
        self._sent += 1
        file = {"name": name, "data": f"data:text/plain;base64,{b64encode(data).decode()}"}
        body = {"id": f"message-{self._sent:04}", "text": text, "files": [file]}
        async with self._http.post(f"{self._path}/messages", json=body, headers=BROWSER) as response:
            assert response.status == 202, await response.text()

    async def changes(self, change: dict[str, Any]) -> dict[str, Any]:
        """What its conversation is like in the list from now on."""
        path = self._path.replace("/sessions/", "/conversations/")
        async with self._http.post(path, json=change, headers=BROWSER) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def sees(self, words: str, seconds: float = 30) -> dict[str, dict[str, Any]]:
        """All messages, as soon as one of them has these words somewhere."""
        seen: dict[str, dict[str, Any]] = {}
        async with asyncio.timeout(seconds):
            async with self._http.get(f"{self._path}/events", headers=BROWSER) as response:
                async for line in response.content:
                    if line.startswith(b"data: "):
                        seen |= {one["key"]: one for one in json.loads(line[6:])}
                        if words in json.dumps(list(seen.values()), ensure_ascii=False):
                            return seen
        raise AssertionError(seen)


@pytest.fixture
async def tab(up: Serving) -> AsyncGenerator[Tab]:
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:
        yield Tab(http, up.url)


def test_the_gateways_own_commands_are_known_as_such():
    assert {f"/{one.name}" for one in COMMANDS if one.own} == OWN


async def test_a_command_is_answered_by_the_gateway_and_still_there_for_whoever_comes_later(tab: Tab):
    said = await tab.says("/memory")
    assert said["command"] == "memory"
    seen = await tab.sees("Nothing is remembered here")
    (told,) = seen.values()
    assert (told["person"], told["turn"], told["state"]) == ("/memory", "", "closed")
    assert [one["kind"] for one in told["bubbles"]] == ["note"]
    again = await tab.sees("Nothing is remembered here")  # as after a reload, of the store
    assert again == seen


async def test_the_same_id_is_the_same_command(tab: Tab):
    await tab.says("hello")
    await tab.sees('"closed"')
    first = await tab.says("/undo", key="the-one-undo")
    await tab.sees("Forgotten")
    second = await tab.says("/undo", key="the-one-undo")
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    seen = await tab.sees("Forgotten")
    assert [one["person"] for one in seen.values() if one["undone"]] == ["hello"]
    assert sum("Forgotten" in json.dumps(one) for one in seen.values()) == 1


async def test_a_reminder_comes_by_itself_without_any_model(tab: Tab):
    await tab.says("/remind in 1 second tea")
    seen = await tab.sees("⏰ Reminder: tea")
    reminder = next(one for one in seen.values() if "⏰ Reminder" in json.dumps(one, ensure_ascii=False))
    assert (reminder["person"], reminder["turn"]) == ("", "")


async def test_retry_answers_once_more_and_what_was_there_is_another_version(tab: Tab):
    await tab.says("hello")
    await tab.sees('"closed"')
    await tab.says("/retry")
    await tab.sees('"versions": ["t_')
    (again,) = await settled(tab, 1)
    assert (again["person"], again["undone"], again["versions"][1]) == ("hello", False, again["turn"])


async def settled(tab: Tab, number: int) -> list[dict[str, Any]]:
    """All messages in their order, when there are so many and all are over."""
    async with asyncio.timeout(30):
        while True:
            seen = sorted((await tab.sees('"key"')).values(), key=lambda one: one["order"])
            seen = [one for one in seen if not one["hidden"]]
            if len(seen) == number and all(one["state"] == "closed" for one in seen):
                return seen
            await asyncio.sleep(0.05)


async def test_a_message_in_other_words_takes_its_place_and_what_followed_can_still_be_read(tab: Tab):
    for number, words in enumerate(("first", "second", "third"), 1):
        await tab.says(words)
        await settled(tab, number)
    second = (await settled(tab, 3))[1]
    assert (await tab.says(f"/redo {second['turn']} the second, in other words"))["command"] == "redo"
    seen = await settled(tab, 2)
    assert [one["person"] for one in seen] == ["first", "the second, in other words"]
    assert "second, in other words" in seen[1]["bubbles"][-1]["text"]
    assert seen[1]["versions"] == [second["turn"], seen[1]["turn"]]


async def test_an_answer_is_given_once_more_from_anywhere_and_once_however_often_it_is_sent(tab: Tab):
    for number, words in enumerate(("first", "second"), 1):
        await tab.says(words)
        await settled(tab, number)
    first = (await settled(tab, 2))[0]
    for _ in range(3):
        await tab.says(f"/redo {first['turn']}", key="the-one-redo")
    await tab.sees('"versions": ["t_')
    (again,) = await settled(tab, 1)
    assert (again["person"], again["versions"]) == ("first", [first["turn"], again["turn"]])


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/redo t_1 hello  in other\nwords", "hello  in other\nwords"), ("/redo t_1", ""), ("/redo", ""),
        ("/remind in 5 minutes tea", "/remind in 5 minutes tea"), ("/happen x", ""),
    ],
)  # fmt: skip
def test_other_words_for_a_message_are_shown_as_they_were_said_where_they_are_refused(command: str, shown: str):
    """How the page asks for it is none of a person's words."""
    assert typed(command) == shown


def test_other_words_keep_what_came_beside_them():
    picture: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    said = InputMessage([{"type": "text", "text": "old words"}, picture])
    inbound = FromApi(
        account="web", platform_key="k", session=SessionKey("web", "page", "c"), input=(said,), surface="web", memory_scope="web"
    )  # fmt: skip
    (other,) = in_other_words(inbound, "new words").input
    assert other.content == [{"type": "text", "text": "new words"}, picture]


async def test_the_turn_of_another_conversation_is_not_asked_again(up: Serving, tab: Tab):
    await tab.says("mine")
    turn = (await settled(tab, 1))[0]["turn"]
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:
        other = Tab(http, up.url, "c-another-one")
        await other.says("hello")
        await settled(other, 1)
        await other.says(f"/redo {turn} steal it")
        await other.sees("Send it again, please")
    assert not (await settled(tab, 1))[0]["undone"]


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "/", "what does /memory do?", "/press why:x", "/happen {}"])
async def test_what_is_no_command_is_for_the_model(tab: Tab, text: str):
    assert (await tab.says(text))["command"] == ""


@pytest.mark.parametrize("text", ["/help", "/status", "/why", "/usage", "/files", "/approvals", "/timezone", "/language", "/model", "/agent",
                                  "/queue", "/stop", "/link", "/resume", "/unlink", "/access list", "/forget x", "/steer", "/undo", "/start"])  # fmt: skip
async def test_every_command_says_something_here(tab: Tab, text: str):
    assert (await tab.says(text))["command"]
    seen = await tab.sees('"note"')
    assert "mistake of mine" not in json.dumps(list(seen.values()))


async def test_a_language_that_is_none_of_them_is_told_so(tab: Tab):
    await tab.says("/language Klingon")
    seen = await tab.sees("Choose one")
    assert "I do not speak “Klingon”." in json.dumps(list(seen.values()), ensure_ascii=False)


async def test_the_menu_has_them_with_words_in_the_browsers_language(up: Serving):
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{up.url}/api/about", headers={"Accept-Language": "de"}) as response,
    ):
        commands = {one["name"]: one["words"] for one in (await response.json())["commands"]}
    assert {"remind", "memory", "language", "why", "stop", "new"} <= set(commands)
    assert not {"press", "happen", "post", "link"} & set(commands)
    assert commands["new"] != next(one.words for one in COMMANDS if one.name == "new")


async def test_a_task_that_was_begun_on_the_page_asks_there_and_is_listed_when_it_is_over(tmp_path: Path):
    env = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
    async with served(tmp_path, env) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
        tab = Tab(http, up.url)
        await tab.says("in the background: write notes.txt: milk")
        seen = await tab.sees("Task 1 (write notes.txt: milk): May I write")
        (asked,) = [one for one in seen.values() if one["key"].startswith("task:")]
        (question,) = asked["bubbles"]
        assert (question["kind"], asked["person"]) == ("approval", "")
        await tab.says("count to 3")
        await tab.sees("1, 2, 3.")  # the conversation goes on meanwhile
        where = f"{up.url}/api/sessions/{{}}/approvals"
        decision: Json = {"turn": asked["turn"], "call": question["call"], "approve": True}
        for path, headers, done in (
            (where.format("c-another-one"), BROWSER, False),
            (where.format("c-conversation"), {"X-Outspoken-Browser": "browser-number-two"}, False),
            (where.format("c-conversation"), BROWSER, True),
        ):
            async with http.post(path, json=decision, headers=headers) as response:
                told = await response.json()
                assert told["done"] == done
                assert "already" not in told["words"], "nobody has decided anything"
        await tab.sees("✅ Approved: write")
        await tab.sees("Task 1 (write notes.txt: milk) is done")
        await tab.says("/tasks")
        listed = json.dumps(list((await tab.sees("Over lately")).values()))
        assert "1. write notes.txt: milk: done, after" in listed
    assert [one.read_text() for one in tmp_path.rglob("notes.txt")] == ["milk\n"]


async def test_a_task_has_a_budget_of_its_own(tmp_path: Path):
    async with (
        served(tmp_path, {"OUTSPOKEN_TASKS__TOKENS": "1"}) as up,
        aiohttp.ClientSession(read_bufsize=2**20) as http,
    ):
        tab = Tab(http, up.url)
        await tab.says("in the background: list files")
        await tab.sees("has ended without its result")
        await tab.says("/tasks")
        await tab.sees("list files: ended without its result, after")
        await tab.says("list files and then count to 3")  # others have none
        await tab.sees("The workspace is empty")


async def test_files_says_that_some_lie_in_other_conversations_where_they_do(tab: Tab):
    await tab.says("write here.txt: words")
    await tab.sees('"closed"')
    await tab.says("/files")
    seen = await tab.sees("1 of 10,000 files")
    assert "other conversations" not in json.dumps(seen)
    elsewhere = tab.beside("c-another-conversation")
    await elsewhere.says("/files")
    seen = await elsewhere.sees("No files are kept here.")
    assert "Files of your other conversations count as well; /files there" in json.dumps(seen)


@pytest.mark.parametrize(
    ("language", "words"), [("en", "There is no such conversation."), ("de", "Diese Unterhaltung gibt es nicht.")]
)
async def test_what_the_page_cannot_do_is_said_in_its_readers_language(up: Serving, language: str, words: str):
    async with (
        aiohttp.ClientSession(up.url, headers={**BROWSER, "Accept-Language": language}) as http,
        http.post("/api/conversations/c-there-is-none/shown", json={"turn": "t_x"}) as response,
    ):
        assert response.status == 404
        assert (await response.json())["error"]["message"] == words


async def test_a_message_that_cannot_be_run_is_told_as_such_now_and_after_a_reload(
    tab: Tab, up: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tab.says("hello")
    await tab.sees('"closed"')

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    async def told(words: str) -> None:
        now = asyncio.create_task(tab.sees("a mistake of mine"))
        await asyncio.sleep(0.2)
        await tab.says(words)
        for seen in (await now, await tab.sees("a mistake of mine")):
            (one,) = (message for message in seen.values() if message["person"] == words)
            assert (one["state"], [bubble["kind"] for bubble in one["bubbles"]]) == ("closed", ["note"])

    with monkeypatch.context() as patch:
        patch.setattr(up.hub.opener.learning, "known", broken)
        await told("what is new?")
        seen = await tab.sees('"closed"')
        up.hub.queues.at(next(one.key for one in up.hub.queues)).recent_loaded = False
        assert await tab.sees("a mistake of mine") == seen, "from what is stored"
    await tab.says("hello again")
    seen = await tab.sees("hello again")
    assert [one["person"] for one in seen.values()][-1] == "hello again"


async def test_what_is_said_beside_a_file_is_answered_also_where_no_file_can_be_stored(
    tab: Tab, up: Serving, tmp_path: Path
) -> None:
    del up
    places = tmp_path / "workspaces"
    if places.is_dir():
        places.rename(tmp_path / "elsewhere")
    places.write_text("no folder")
    await tab.brings("list files", "note.txt", b"seven")
    seen = await tab.sees('"closed"')
    (one,) = seen.values()
    assert "I could not take note.txt: no file can be stored here just now." in json.dumps(one["bubbles"])
    assert one["exit"] == "answered"
