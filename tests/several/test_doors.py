"""The API and the web page at a gateway that does not run the conversation: served, and heeded by the one that does."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.terminal.operator import status_lines
from agent_core.store.slices.rows import slice_of
from tests.chats.harness import answer
from tests.databases import new_database
from tests.several.support import OPERATOR, PATIENT_SECONDS, Cluster, Node, cluster


@pytest.fixture
async def two(postgres_server: str, tmp_path: Path) -> AsyncGenerator[tuple[Cluster, Node, Node]]:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        first, second = await all_.begin("first"), await all_.begin("second")
        await all_.even(2)
        yield all_, first, second


async def named(all_: Cluster, owner: int, count: int, of: str = "api/key") -> list[str]:
    """Names of conversations that this node runs."""
    held = {name for (name,) in await all_.ask(f"SELECT slice FROM slices WHERE owner = {owner}")}
    names = (f"talk-{number:04}" for number in range(10_000))
    return [name for name in names if slice_of(f"{of}/{name}//") in held][:count]


async def asked(node: Node, name: str, words: str, *, stream: bool = False, key: str = "") -> Any:
    headers = {"X-Outspoken-Session": name, "Idempotency-Key": key}
    headers = {name: value for name, value in headers.items() if value}
    body = {"model": "m1", "messages": [{"role": "user", "content": words}], "stream": stream}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{node.url}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        read = await response.text()
        assert response.status == 200, read
        return read if stream else json.loads(read)


def said(stream: str) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


async def test_a_request_is_answered_wherever_it_comes(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    for owner in (1, 2):
        for number, name in enumerate(await named(all_, owner, 3)):
            for node in (first, second):
                found = await asked(node, name, f"say hello #{number}")
                assert f"hello #{number}" in found["choices"][0]["message"]["content"]
                assert f"hello #{number}" in said(await asked(node, name, f"say hello #{number}", stream=True))
    assert (await all_.ask("SELECT count(*) FROM turns WHERE state = 'open'"))[0][0] == 0
    assert (await all_.ask("SELECT count(*) FROM turns"))[0][0] == 24
    all_.sound()


@pytest.mark.parametrize("name", ["", "talk"])
async def test_one_request_at_both_in_one_moment_is_run_once(two: tuple[Cluster, Node, Node], name: str) -> None:
    all_, first, second = two
    for number in range(6):
        words = f"slow one two #{number}"
        both = await asyncio.gather(*(asked(node, name, words, key=f"key-{number}") for node in (first, second)))
        assert len({one["outspoken"]["turn"] for one in both}) == 1
        assert all(f"#{number}" in one["choices"][0]["message"]["content"] for one in both)
    assert len(all_.harness.model.requests) == 6
    all_.sound()


async def test_what_is_watched_elsewhere_is_followed_through_a_takeover(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    (name,) = await named(all_, 1, 1)
    asking = asyncio.create_task(asked(second, name, "slow one two three four five six seven eight", stream=True))
    while not all_.harness.model.requests:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    first.signal(signal.SIGKILL)
    stream = await asking
    assert said(stream).count("eight") == 1
    assert "[DONE]" in stream
    all_.sound()


class Page:
    """A page that is open at one gateway: what it was told, in order."""

    def __init__(self, node: Node, name: str) -> None:
        self.path = f"{node.url}/api/sessions/{name}"
        self.told: list[dict[str, Any]] = []
        self.first = ""
        self.number = 0

    async def watch(self) -> None:
        with suppress(aiohttp.ClientError):  # its gateway was killed
            async with aiohttp.ClientSession(read_bufsize=2**20) as http, http.get(f"{self.path}/events") as response:
                async for line in response.content:
                    if line.startswith(b"event: "):
                        self.first = self.first or line.decode().split()[1]
                    if line.startswith(b"data: "):
                        self.told += json.loads(line[6:])

    @property
    def seen(self) -> dict[str, dict[str, Any]]:
        return {one["key"]: one for one in self.told}

    async def until(self, words: str, seconds: float = PATIENT_SECONDS) -> None:
        async with asyncio.timeout(seconds):
            while words not in json.dumps(list(self.seen.values()), ensure_ascii=False):
                await asyncio.sleep(0.05)

    async def say(self, text: str) -> None:
        self.number += 1
        await self._post("messages", {"id": f"message-{self.number:04}", "text": text})

    async def stop(self) -> dict[str, Any]:
        return await self._post("stop", {})

    async def decide(self, turn: str, call: str) -> dict[str, Any]:
        return await self._post("approvals", {"turn": turn, "call": call, "approve": True})

    async def _post(self, where: str, body: dict[str, Any]) -> dict[str, Any]:
        async with aiohttp.ClientSession() as http, http.post(f"{self.path}/{where}", json=body) as response:
            assert response.status < 300, await response.text()
            return await response.json()


async def test_a_page_is_served_where_its_conversation_is_not_run_and_follows_it(
    two: tuple[Cluster, Node, Node],
) -> None:
    all_, first, second = two
    (name,) = await named(all_, 1, 1, "web/page")
    here, there = Page(first, name), Page(second, name)
    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(page.watch()) for page in (here, there)]
        await there.say("say something #1")
        await asyncio.gather(here.until("something #1"), there.until("something #1"))
        await there.say("hold something")
        async with asyncio.timeout(PATIENT_SECONDS):
            while len(all_.harness.model.requests) < 2:
                await asyncio.sleep(0.05)
        stopped = await there.stop()
        assert stopped["stopped"] is True, stopped
        await there.say("/memory")
        await asyncio.gather(here.until("Nothing is remembered"), there.until("Nothing is remembered"))
        await there.say("slow one two three four five six seven eight")
        async with asyncio.timeout(PATIENT_SECONDS):
            while len(all_.harness.model.requests) < 3:
                await asyncio.sleep(0.05)
        first.signal(signal.SIGKILL)
        await all_.even(1)
        await there.say("say goodbye #2")
        async with asyncio.timeout(100):
            while [one["state"] for one in there.seen.values()] != ["closed"] * 5:
                await asyncio.sleep(0.05)
        told = ["\n".join(bubble["text"] for bubble in one["bubbles"]) for one in there.seen.values()]
        assert "eight" in told[3]
        assert "goodbye #2" in told[4]
        assert there.first == "snapshot"
        for task in watching:
            task.cancel()
    all_.sound()


async def changed(node: Node, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    async with aiohttp.ClientSession() as http, http.request(method, f"{node.url}{path}", json=body) as response:
        assert response.status < 300, (method, path, await response.text())
        return await response.json()


async def test_a_conversation_is_changed_begun_anew_and_deleted_at_any_of_them(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    for owner in (1, 2):
        (name,) = await named(all_, owner, 1)
        path = f"/v1/conversations/{name}"
        for number, node in enumerate((first, second)):
            await asked(node, name, "say hello")
            await changed(node, "POST", path, {"metadata": {"about": f"#{number}"}})
            for other in (first, second):
                assert (await changed(other, "GET", path))["metadata"] == {"about": f"#{number}"}
            await changed(node, "POST", f"/v1/outspoken/sessions/{name}/reset", {})
            assert (await changed(node, "GET", f"{path}/items"))["data"] == []
            await asked(second if node is first else first, name, "recall")
            assert "hello" not in json.dumps(all_.harness.model.requests[-1])
            await changed(node, "DELETE", path)
            async with aiohttp.ClientSession() as http:
                for other in (first, second):
                    async with http.get(f"{other.url}{path}") as response:
                        assert response.status == 404
            await asked(node, name, "say hello again")
        for node, name in zip((first, second), await named(all_, owner, 2, "web/page"), strict=True):
            page = Page(node, name)
            await page.say("say something")
            async with asyncio.timeout(PATIENT_SECONDS):
                while await all_.ask("SELECT count(*) FROM turns WHERE state = 'open'") != [(0,)]:
                    await asyncio.sleep(0.05)
            await changed(node, "DELETE", f"/api/conversations/{name}")
    all_.sound()


async def operated(node: Node, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """What whoever runs the gateway is told of what waits for a word; or of what they decide."""
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        call = (
            http.get(f"{node.url}/api/approvals") if body is None else http.post(f"{node.url}/api/approvals", json=body)
        )
        async with call as response:
            return response.status, await response.json()


async def test_what_waits_for_a_word_is_listed_and_decided_at_any_of_them(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    harness = all_.harness
    for node in (first, second):
        node.signal(signal.SIGTERM)
    for node in (first, second):
        await node.ended()
    asks = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file", "OUTSPOKEN_TOOLS__APPROVERS": "asker"}
    nodes = [await all_.begin("third", **asks), await all_.begin("fourth", **asks)]
    await all_.even(2)
    await harness.ready()
    ada = harness.person("Ada")
    chat = harness.private(ada)
    harness.say(chat, ada, "write a.txt: x")
    asked = await answer(harness, chat, "May I write")
    for node in nodes:
        status, told = await operated(node)
        assert status == 200
        (one,) = told["approvals"]
        assert (one["tool"], one["asker"][:3], bool(one["only"])) == ("write_file", "Ada", True), node.name
        status, told = await operated(node, {"id": one["id"], "approve": True})
        assert status == 403, (node.name, told)
    harness.press(chat, ada, asked.id, "✅ Approve")
    await answer(harness, chat, "Done: Wrote a.txt")
    assert [(await operated(node))[1]["approvals"] for node in nodes] == [[], []]
    all_.sound()


LONG = f"slow {' '.join(f'word{number}' for number in range(600))}"
"""Its turn runs for three quarters of a minute."""


async def told_by(node: Node, path: str = "/status") -> Any:
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(f"{node.url}{path}") as response:
        assert response.status == 200
        return await (response.json() if path == "/status" else response.text())


async def test_status_at_any_of_them_names_all(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    (name,) = await named(all_, 1, 1)
    asking = asyncio.create_task(asked(second, name, LONG))
    for node in (first, second):
        async with asyncio.timeout(PATIENT_SECONDS):
            while True:
                told = await told_by(node)
                states = [adapter["state"] for one in told["nodes"] for adapter in one.get("adapters", ())]
                if states == ["up"] and told["nodes"][0]["running_turns"] == 1:
                    break
                await asyncio.sleep(0.1)
        assert [(one["node"], one["chats"]) for one in told["nodes"]] == [(1, 28), (2, 36)], (
            "the first has the connection"
        )
        assert [one["here"] for one in told["nodes"]] == [node is first, node is second]
        assert [one["running_turns"] for one in told["nodes"]] == [1, 0], "the turn of the first, at both"
        assert [one["address"] for one in told["nodes"]] == [first.url, second.url]
        assert all(one["ready"] and one["silent_seconds"] < 10 for one in told["nodes"])
        assert max(name for one in told["nodes"] for name in one["has"]) == "house"
        lines = status_lines(told)
        for chats in (28, 36):
            assert sum(line.startswith("Gateway ") and f"{chats}/64 of the chats" in line for line in lines) == 1
        metrics = await told_by(node, "/metrics")
        assert "outspoken_gateways 2.0" in metrics
        assert f"outspoken_chat_slices {28 if node is first else 36}.0" in metrics
    asking.cancel()
    all_.sound()


async def test_the_console_at_any_of_them_shows_what_all_do(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    (name,) = await named(all_, 1, 1)
    asking = asyncio.create_task(asked(first, name, LONG))
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    seen: dict[str, Any] = {}
    running: list[dict[str, Any]] = []
    async with (
        asyncio.timeout(100),
        aiohttp.ClientSession(headers=headers, read_bufsize=2**20) as http,
        http.get(f"{second.url}/console/api/live") as response,
    ):
        assert response.status == 200, await response.text()
        async for line in response.content:
            if line.startswith(b"data: "):
                seen |= json.loads(line[6:])
            running = seen.get("turns", {}).get("running", [])
            machines = [one.get("machine") for one in seen.get("nodes", [])]
            if any(one["doing"].endswith(", at gateway 1") for one in running) and len(machines) == 2 and all(machines):
                break
    assert len(running) == 1
    assert [(one["node"], one["here"], one["running_turns"]) for one in seen["nodes"]] == [(1, False, 1), (2, True, 0)]
    asking.cancel()
    all_.sound()


async def test_the_console_says_where_to_act_on_what_another_gateway_runs(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    harness = all_.harness
    await harness.ready()
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    held = {name for (name,) in await all_.ask("SELECT slice FROM slices WHERE owner = 1")}
    while True:
        ada = harness.person("Ada")
        place = harness.private(ada)
        harness.say(place, ada, "say answer")
        await answer(harness, place, "answer")
        async with asyncio.timeout(PATIENT_SECONDS):
            while not (rows := await all_.ask("SELECT surface, origin, bubble, part FROM deliveries ORDER BY surface")):
                await asyncio.sleep(0.1)
        if found := [row for row in rows if slice_of(row[0]) in held]:
            break
    surface, origin, bubble, part = found[0]
    named_part = {"surface": surface, "origin": origin, "bubble": bubble, "part": part}
    body = {"name": named_part, "act": "drop", "to": ""}
    async with aiohttp.ClientSession(headers=headers) as http:
        for node in (first, second):
            async with http.post(f"{node.url}/console/api/outbox/preview", json=body) as response:
                words = await response.text()
            said = f"Gateway 1 runs this chat, and alone knows what is under way there. Act in its console, at {first.url}/console."
            assert (said in words) is (node is second), words
    all_.sound()
