"""Whose memory and workspace a message's tools use: the laws, and a gateway in which strangers try to hear of each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey, once
from agent_core.messages import InputMessage
from agent_core.remembered import UNKNOWN_SOURCE, MemorySource, Remembered
from agent_core.tools.base import MemoryStore
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.builtin.notes import FOR_EVERYBODY, OF_MEMORY
from agent_core.tools.builtin.sendfile import SEND_FILE
from agent_core.workers.pool import Workers
from gateway.limits.whose import conversation_of, memory_of, nameless, shown, withheld_from, workspace_of
from tests.gateway.rig import call_chunk, chunk, gateway
from tests.serving import served

ROOT = Path("/w")
names = st.text(min_size=1, max_size=12)


def of_the_api(user: str, session: str, number: int) -> FromApi:
    return FromApi(
        account="api", platform_key=f"k{number}", input=(), surface="api",
        session=SessionKey("api", "key", session) if session else once(f"x_{number}"),
        memory_scope=f"api/{user}" if user else "api",
        own_history=None if session else (),
    )  # fmt: skip


def of_the_page(browser: str, session: str, number: int) -> FromApi:
    return FromApi(
        account="web", platform_key=f"k{number}", input=(), surface="web", session=SessionKey("web", "page", session),
        memory_scope="web", browser=browser,
    )  # fmt: skip


callers = st.one_of(
    st.tuples(st.just("api"), st.just("") | names, st.just("") | names),
    st.tuples(st.just("web"), st.just("") | names, names),
)


@given(callers, callers)
def test_two_messages_share_a_memory_only_if_they_name_the_same_person_or_the_same_conversation(
    one: tuple[str, str, str], two: tuple[str, str, str]
):
    made = [
        (of_the_api if door == "api" else of_the_page)(person, session, number)
        for number, (door, person, session) in enumerate((one, two))
    ]
    same_door = one[0] == two[0]
    person = same_door and one[1] == two[1] != ""
    conversation = same_door and one[2] == two[2] != "" and not one[1] and not two[1]
    assert (memory_of(made[0]) == memory_of(made[1])) == (person or conversation)
    same_room = same_door and one[2] == two[2] and (bool(one[2]) or person)
    assert (workspace_of(made[0], ROOT) == workspace_of(made[1], ROOT)) == same_room
    for door, who, session in (one, two):
        message = (of_the_api if door == "api" else of_the_page)(who, session, 9)
        assert nameless(message) == (door == "api" and not who and not session)
        assert (withheld_from(message) >= OF_MEMORY) == nameless(message)


def test_what_a_message_was_stored_with_by_an_older_version_tells_that_it_is_nobodys():
    old = FromApi(
        account="api", platform_key="k", input=(), surface="api", session=SessionKey("api", "key", "once-x_1"),
        memory_scope="api", own_history=(),
    )  # fmt: skip
    assert nameless(old)
    assert workspace_of(old, ROOT).parent == ROOT / ".nameless"


def test_every_tool_that_keeps_something_beyond_its_turn_is_known_as_one(tmp_path: Path):
    class NoMemory:
        pass

    memory: Any = NoMemory()
    workers: Any = None
    tools = builtin_tools(memory, tmp_path, workers)
    assert {tool.spec.name for tool in tools if getattr(tool, "memory", None) is memory} == OF_MEMORY - {FOR_EVERYBODY}
    assert SEND_FILE in {tool.spec.name for tool in tools}


async def asked(url: str, words: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """(the answer, the outspoken object)"""
    headers = more.pop("headers", {})
    body = {"model": "outspoken", "messages": [{"role": "user", "content": words}], **more}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/chat/completions", json=body, headers=headers) as got,
    ):
        found = await got.json()
        assert got.status == 200, found
        return found["choices"][0]["message"]["content"], found["outspoken"]


PIN = "tango-4711"
STRANGERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nobody after nobody", {}, {}),
    ("one conversation after another", {"headers": {"X-Outspoken-Session": "a"}}, {"headers": {"X-Outspoken-Session": "b"}}),
    ("nobody after a conversation", {"headers": {"X-Outspoken-Session": "a"}}, {}),
    ("a conversation after nobody", {}, {"headers": {"X-Outspoken-Session": "a"}}),
    ("nobody after a person", {"user": "ada"}, {}),
    ("a person after nobody", {}, {"user": "ada"}),
    ("one person after another", {"user": "ada"}, {"user": "bob"}),
    ("a person who calls himself as a conversation is called", {"headers": {"X-Outspoken-Session": "a"}}, {"user": "key/a"}),
]  # fmt: skip


@pytest.mark.parametrize(("first", "then"), [row[1:] for row in STRANGERS], ids=[row[0] for row in STRANGERS])
async def test_strangers_hear_nothing_of_each_other(tmp_path: Path, first: dict[str, Any], then: dict[str, Any]):
    async with served(tmp_path) as up:
        await asked(up.url, f"remember my PIN {PIN}", **first)
        await asked(up.url, f"write pin.txt: {PIN}", **first)
        for words in ("what do you remember", "what do you remember about PIN", "list files", "read pin.txt"):
            answer, _ = await asked(up.url, words, **then)
            assert PIN not in answer, (words, answer)
            assert "pin.txt" not in answer or words == "read pin.txt", (words, answer)


async def test_who_has_a_name_finds_what_was_kept(tmp_path: Path):
    async with served(tmp_path) as up:
        for who in ({"user": "ada"}, {"headers": {"X-Outspoken-Session": "mine"}}):
            await asked(up.url, f"remember {PIN}", **who)
            assert PIN in (await asked(up.url, "what do you remember", **who))[0]
            await asked(up.url, f"write pin.txt: {PIN}", **who)
            assert "pin.txt" in (await asked(up.url, "list files", **who))[0]


async def test_nobody_is_offered_no_memory_has_files_for_one_turn_and_leaves_nothing(tmp_path: Path):
    """The model is a hostile one: it calls `recall` all the same."""
    seen: list[str] = []

    async def reply(messages: list[dict[str, Any]], response: Any, _: Any) -> None:
        results = [m["content"] for m in messages if m["role"] == "tool"]
        seen[:] = results
        if not results:
            await response.write(call_chunk("recall", "{}"))
        elif len(results) == 1:
            await response.write(
                call_chunk("write_file", json.dumps({"path": "a/pin.txt", "content": PIN}), call="call_b")
            )
        elif len(results) == 2:
            await response.write(call_chunk("read_file", json.dumps({"path": "a/pin.txt"}), call="call_c"))
        else:
            await response.write(chunk({"content": "That is all."}, "stop"))

    memory = Untouched()
    async with (
        Workers() as workers,
        gateway(tmp_path, reply, tools=builtin_tools(memory, tmp_path / "spool", workers)) as rig,
    ):
        for number in range(2):
            request = of_the_api("", "", number)
            ended = await rig.end(await rig.hub.accept(replace(request, input=(InputMessage("hello"),))))
            assert "That is all." in ended.view.text
            offered = {tool["function"]["name"] for tool in rig.model.requests[-1]["tools"]}
            assert not offered & OF_MEMORY
            assert "write_file" in offered
            assert "recall" in seen[0]
            assert PIN in seen[2]
            async with asyncio.timeout(60):
                while any((tmp_path / "workspaces" / ".nameless").iterdir()):
                    await asyncio.sleep(0.02)


class Untouched(MemoryStore):
    """A memory that nobody may use."""

    async def put(
        self, scope: str, kind: str, name: str, value: str, *, at_ms: int, source: MemorySource = UNKNOWN_SOURCE
    ) -> None:
        raise AssertionError(scope)

    async def remembered(self, scopes: Sequence[str], query: str = "") -> tuple[list[Remembered], int]:
        raise AssertionError(scopes)

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        raise AssertionError(scope)

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        raise AssertionError(scope)


async def test_what_a_killed_process_left_of_nobody_is_removed_at_the_next_start_unless_its_turn_goes_on(
    tmp_path: Path,
):
    going_on = asyncio.Event()

    async def reply(messages: list[dict[str, Any]], response: Any, _: Any) -> None:
        if not any(m["role"] == "tool" for m in messages):
            await response.write(call_chunk("write_file", json.dumps({"path": "pin.txt", "content": PIN})))
            return
        if not going_on.is_set():
            going_on.set()
            await asyncio.sleep(30)
        await response.write(chunk({"content": "I still have it."}, "stop"))

    rooms = tmp_path / "workspaces" / ".nameless"
    async with Workers() as workers:
        tools = builtin_tools(Untouched(), tmp_path / "spool", workers)
        async with gateway(tmp_path, reply, tools=tools) as rig:
            request = replace(of_the_api("", "", 1), input=(InputMessage("hello"),))
            ticket = await rig.hub.accept(request)
            await asyncio.wait_for(going_on.wait(), 60)
            await rig.hub.drain(0)
        (rooms / "x_7").mkdir()
        (rooms / "x_7" / "old.txt").write_text("of a turn that is no more")
        assert (rooms / "x_1" / "pin.txt").read_text() == PIN
        async with gateway(tmp_path, reply, tools=tools) as rig:
            assert "I still have it." in (await rig.end(ticket)).view.text
            async with asyncio.timeout(60):
                while any(rooms.iterdir()):
                    await asyncio.sleep(0.02)


def test_what_failed_for_nobody_is_not_known_to_the_next_who_begins_alike():
    def message(user: str, *history: tuple[str, str]) -> FromApi:
        said = tuple({"role": role, "content": content} for role, content in history)
        return replace(of_the_api(user, "", 1), own_history=said, input=(InputMessage("hi"),))

    for history in ((), (("user", "hi"), ("assistant", "Hello, Ada."))):
        assert conversation_of(message("", *history)) == ""
    assert conversation_of(message("ada")) != conversation_of(message("bob"))
    assert conversation_of(message("ada")) == conversation_of(message("ada", ("user", "hi"), ("assistant", "x")))


def test_operators_see_a_digest_of_a_page_s_browser_and_everybody_else_by_name() -> None:
    assert "aaaaaaaa" not in shown("web/aaaaaaaa")
    assert shown("web/aaaaaaaa") == shown("web/aaaaaaaa") != shown("web/aaaaaaab")
    for holder in ("web", "api", "api/ann", "telegram/1/2", "session/web/page/x"):
        assert shown(holder) == holder
