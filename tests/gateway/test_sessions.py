"""Conversations and approvals by API: through the real SDK, each key its own, changed as commands change them, gone when they are deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from openai.types.conversations import Conversation

from adapters.http.sessions.items import turn_in
from agent_core.store.store import Store
from gateway.daemon import Serving
from gateway.retention.forgetting import GONE
from tests.gateway.test_keys import add
from tests.serving import served

APPROVES = {"OUTSPOKEN_TOOLS__APPROVAL": '["write_file"]', "OUTSPOKEN_SERVER__ERRORS": "status"}
WAITS = {"X-Outspoken-Approvals": "wait"}


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path, APPROVES) as serving:
        yield serving


def sdk(up: Serving, key: str = "none") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key=key, max_retries=0)


@pytest.fixture
async def client(up: Serving) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with sdk(up) as made:
        yield made


async def ask(client: openai.AsyncOpenAI, words: str, conversation: str, **more: Any) -> Any:
    made: Any = client
    return await made.responses.create(model="outspoken", input=words, conversation=conversation, **more)


async def ours(client: openai.AsyncOpenAI, path: str, *, post: Any = None) -> Any:
    """What one of our own routes says, called by the SDK's own means."""
    made: Any = client
    if post is None:
        return await made.get(f"/outspoken/{path}", cast_to=object)
    return await made.post(f"/outspoken/{path}", body=post, cast_to=object)


def stored(up: Serving) -> Store:
    return up.hub.forgetting.store


def facts(conversation: Conversation) -> Any:
    return conversation.model_dump()["outspoken"]


# --- the published surface ---


async def test_a_conversation_is_made_described_and_read_by_the_sdk(client: openai.AsyncOpenAI):
    made = await client.conversations.create(metadata={"about": "tests"})
    assert made.id.startswith("conv_")
    assert (made.metadata, facts(made)["state"], facts(made)["turns"], facts(made)["title"]) == (
        {"about": "tests"}, "idle", 0, "",
    )  # fmt: skip
    await ask(client, "hello there", made.id)
    await ask(client, "count to 3", made.id)
    changed = await client.conversations.update(made.id, metadata={"about": "other tests"})
    now = await client.conversations.retrieve(made.id)
    assert now == changed
    assert (facts(now)["turns"], facts(now)["title"], now.metadata) == (2, "hello there", {"about": "other tests"})
    assert facts(now)["usage"]["total_tokens"] > 0
    found = [item async for item in await client.conversations.items.list(made.id, order="asc", limit=1)]
    roles = [getattr(item, "role", "") for item in found]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert [item async for item in await client.conversations.items.list(made.id, limit=3)] == found[::-1]
    item: Any = await client.conversations.items.retrieve(str(found[1].id), conversation_id=made.id)
    assert item == found[1]
    place = turn_in(item.id)
    assert place is not None
    assert place[1] == 1


async def test_what_is_no_conversation_item_or_page_is_refused_with_a_code(client: openai.AsyncOpenAI):
    made = await client.conversations.create()
    answered = await ask(client, "hello", "other")
    assert answered.status == "completed"
    theirs = (await client.conversations.items.list("other")).data[0].id
    for call, status, code in (
        (client.conversations.retrieve("nothing"), 404, "conversation_not_found"),
        (client.conversations.items.retrieve("msg_t_1_1_a", conversation_id=made.id), 404, "item_not_found"),
        (client.conversations.items.retrieve(str(theirs), conversation_id=made.id), 404, "item_not_found"),
        (client.conversations.items.list(made.id, limit=0), 400, "invalid_value"),
        (client.conversations.items.list(made.id, after="nothing"), 404, "item_not_found"),
        (client.conversations.update(made.id, metadata={"a": "b" * 513}), 400, "invalid_value"),
        (client.conversations.create(items=[{"role": "user", "content": "x"}]), 400, "unsupported_parameter"),
        (client.get("/outspoken/sessions?after=nothing", cast_to=object), 404, "conversation_not_found"),
        (client.get("/outspoken/sessions?after=", cast_to=object), 400, "invalid_value"),
        (
            client.post("/outspoken/approvals/nothing", body={"approve": True}, cast_to=object),
            404,
            "approval_not_found",
        ),
        (client.delete("/outspoken/sessions", cast_to=object), 405, "method_not_allowed"),
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await call
        assert (refused.value.status_code, refused.value.code) == (status, code)
        assert refused.value.status_code != 405 or refused.value.response.headers["Allow"] == "GET, HEAD"


async def test_a_name_with_anything_printable_in_it_is_found(client: openai.AsyncOpenAI):
    for name in ("a/b", "é?x#y", "100%", "conv/../x", "s_nothing"):
        await ask(client, "hello", name)
        found = await client.conversations.retrieve(name)
        assert found.id == name
        assert facts(found)["turns"] == 1
        await client.conversations.delete(name)


# --- the list ---


async def test_all_conversations_are_met_once_in_the_order_in_which_they_were_made(client: openai.AsyncOpenAI):
    names = [(await client.conversations.create()).id for _ in range(5)]
    chain = await client.responses.create(model="outspoken", input="without a name")
    alone: list[Any] = [{"role": "user", "content": "x"}]
    await client.chat.completions.create(model="outspoken", messages=alone)
    for order in ("asc", "desc"):
        met: list[str] = []
        after = ""
        while True:
            page = await ours(client, f"sessions?limit=2&order={order}{after and f'&after={after}'}")
            met += [one["id"] for one in page["data"]]
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            if not page["has_more"]:
                break
            after = page["last_id"]
        assert set(met) == {*names, f"s_{chain.id.split('_')[2]}"}
        assert met[:2] == names[:2] if order == "asc" else met[-2:] == names[1::-1]
    last = (await ours(client, "sessions?order=desc&limit=1"))["data"][0]
    assert (last["outspoken"]["named"], last["outspoken"]["title"]) == (False, "without a name")
    again = await client.conversations.retrieve(last["id"])
    assert again.id == facts(again)["session"]


async def test_each_key_sees_its_own_and_nobody_elses(tmp_path: Path):
    async with served(tmp_path, APPROVES) as up:
        ada, bob = await add(up.url, "ada", owner="ada"), await add(up.url, "bob", owner="Ada")
        tablet = await add(up.url, "tablet", owner="ada")
        async with sdk(up, ada) as one, sdk(up, bob) as two, sdk(up, tablet) as same, sdk(up) as nobody:
            for client in (one, two, nobody):
                await ask(client, "hello", "mine")
            session = facts(await one.conversations.retrieve("mine"))["session"]
            ids = [facts(await client.conversations.retrieve("mine"))["session"] for client in (one, two, same, nobody)]
            assert (ids[0], len(set(ids))) == (ids[2], 3)
            for client in (one, two, same, nobody):
                assert len((await ours(client, "sessions"))["data"]) == 1
            assert (await one.conversations.retrieve(session)).id == "mine"
            for client in (two, nobody):
                with pytest.raises(openai.NotFoundError):
                    await client.conversations.retrieve(session)
            await two.conversations.delete("mine")
            assert facts(await one.conversations.retrieve("mine"))["turns"] == 1


# --- beginning anew, deleting, exporting ---


async def test_a_reset_stops_what_runs_and_nothing_from_before_is_told(client: openai.AsyncOpenAI, up: Serving):
    await ask(client, "hello", "mine")
    slow = await ask(client, "count to 90 slowly", "mine", background=True)
    anew = await ours(client, "sessions/mine/reset", post={})
    assert (anew["outspoken"]["turns"], anew["outspoken"]["state"], anew["outspoken"]["title"]) == (0, "idle", "")
    assert (await client.responses.retrieve(slow.id)).status == "cancelled"
    assert (await client.conversations.items.list("mine")).data == []
    after = await ask(client, "who am I", "mine")
    told = await up.hub.told_after(await kept(up, after.id)) or ()
    assert [message["content"] for message in told if message["role"] == "user"] == ["who am I"]
    exported = await ours(client, "sessions/mine/export")
    assert [turn["told"] for turn in exported["turns"]] == [False, False, True]


async def kept(up: Serving, response: str) -> Any:
    session, _, number = response.removeprefix("resp_").rpartition("_")
    return await up.hub.response(session, int(number))


async def test_what_is_deleted_is_nowhere_and_its_name_begins_anew(
    client: openai.AsyncOpenAI, up: Serving, tmp_path: Path
):
    answered = await ask(client, "write xylophone.txt: a secret", "mine", extra_headers=WAITS, background=True)
    approval = await waiting(client)
    await ours(client, f"approvals/{approval['id']}", post={"approve": True})
    await over(client, answered.id)
    await ask(client, "the word is xylophone", "mine")
    slow = await ask(client, "count to 90 slowly", "mine", background=True)
    assert list(tmp_path.rglob("xylophone.txt"))
    session = facts(await client.conversations.retrieve("mine"))["session"]
    gone = await client.conversations.delete("mine")
    assert (gone.id, gone.deleted, gone.object) == ("mine", True, "conversation.deleted")
    assert not list(tmp_path.rglob("xylophone.txt"))
    for path in (f"/conversations/{session}", "/conversations/mine", f"/responses/{slow.id}"):
        with pytest.raises(openai.NotFoundError):
            await client.get(path, cast_to=object)
    assert (await ours(client, "sessions"))["data"] == []
    row = await stored(up).sessions.one(session)
    assert row is not None
    assert "mine" not in row.key
    assert await stored(up).forgotten.jobs()
    after = await ask(client, "what was the word", "mine")
    told = await up.hub.told_after(await kept(up, after.id)) or ()
    assert len([message for message in told if message["role"] == "user"]) == 1
    assert facts(await client.conversations.retrieve("mine"))["turns"] == 1
    for file in tmp_path.rglob("*.db"):
        assert b"xylophone" not in file.read_bytes()


async def test_a_deletion_that_a_process_began_is_ended_by_the_next(tmp_path: Path):
    async with served(tmp_path) as up, sdk(up) as client:
        await ask(client, "the word is xylophone", "mine")
        session = facts(await client.conversations.retrieve("mine"))["session"]
        row = await stored(up).sessions.one(session)
        assert row is not None
        await up.hub.forgetting.begin_conversation(session, row.key, GONE.format(session))
    async with served(tmp_path) as up, sdk(up) as client:
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve("mine")
        await ask(client, "who am I", "mine")
        async with asyncio.timeout(30):
            while any(job.done_at is None for job in await stored(up).forgotten.jobs()):
                await asyncio.sleep(0.05)
        assert facts(await client.conversations.retrieve("mine"))["turns"] == 1
    for file in tmp_path.rglob("*.db"):
        assert b"xylophone" not in file.read_bytes()


async def test_an_export_is_whole_and_the_same_each_time(client: openai.AsyncOpenAI):
    await client.conversations.create()
    for number in range(23):
        await ask(client, f"hello number {number}", "mine")
    await ask(client, "write a.txt: one", "mine")  # nobody approves
    one, two = [await client.get("/outspoken/sessions/mine/export", cast_to=str) for _ in range(2)]
    assert one == two
    whole = json.loads(one)
    assert (whole["object"], whole["version"], whole["id"]) == ("outspoken.export", 1, "mine")
    assert [turn["number"] for turn in whole["turns"]] == list(range(1, 25))
    assert all(turn["exit"] == "answered" and turn["items"] and turn["messages"] for turn in whole["turns"])
    last = whole["turns"][-1]
    assert [item["type"] for item in last["items"]][:3] == ["message", "message", "mcp_call"]
    assert "tool" in [message["role"] for message in last["messages"]], "what a tool gave back is in it"
    listed = [item.id async for item in await client.conversations.items.list("mine", order="asc")]
    assert [item["id"] for turn in whole["turns"] for item in turn["items"]] == listed


# --- approvals ---


async def waiting(client: openai.AsyncOpenAI) -> Any:
    async with asyncio.timeout(30):
        while not (found := (await ours(client, "approvals"))["data"]):
            await asyncio.sleep(0.05)
    return found[0]


async def over(client: openai.AsyncOpenAI, response: str) -> Any:
    async with asyncio.timeout(30):
        while (now := await client.responses.retrieve(response)).status in ("queued", "in_progress"):
            await asyncio.sleep(0.05)
    return now


@pytest.mark.parametrize("approve", [True, False])
async def test_an_approval_is_decided_once_and_twice_is_answered_alike(
    client: openai.AsyncOpenAI, approve: bool, tmp_path: Path
):
    asked = await ask(client, "write a.txt: one", "mine", extra_headers=WAITS, background=True)
    one = await waiting(client)
    assert (one["tool"], one["conversation"], one["status"]) == ("write_file", "mine", "open")
    assert "a.txt" in one["question"]
    assert one["diff"].startswith("@@ -0,0 +1,1 @@\n+one")
    assert one["expires_at"] > one["created_at"]
    assert facts(await client.conversations.retrieve("mine"))["state"] == "waiting_for_approval"
    first = await ours(client, f"approvals/{one['id']}", post={"approve": approve})
    assert (first["status"], first["decided_by"]) == ("approved" if approve else "denied", "api:configuration")
    assert await ours(client, f"approvals/{one['id']}", post={"approve": approve}) == first
    await over(client, asked.id)
    assert await ours(client, f"approvals/{one['id']}", post={"approve": approve}) == first
    with pytest.raises(openai.ConflictError) as other:
        await ours(client, f"approvals/{one['id']}", post={"approve": not approve})
    assert (other.value.code, first["status"] in other.value.message) == ("already_decided", True)
    assert (await ours(client, "approvals"))["data"] == []
    assert bool(list(tmp_path.rglob("a.txt"))) is approve


async def test_what_is_over_cannot_be_decided_and_nobody_elses_is_there(tmp_path: Path):
    async with served(tmp_path, APPROVES) as up:
        ada, bob = await add(up.url, "laptop", owner="ada"), await add(up.url, "bob", owner="bob")
        async with sdk(up, ada) as one, sdk(up, bob) as two, sdk(up) as nobody:
            asked = await ask(one, "write a.txt: one", "mine", extra_headers=WAITS, background=True)
            approval = (await waiting(one))["id"]
            for other in (two, nobody):
                assert (await ours(other, "approvals"))["data"] == []
                with pytest.raises(openai.NotFoundError):
                    await ours(other, f"approvals/{approval}", post={"approve": True})
            await one.responses.cancel(asked.id)
            with pytest.raises(openai.APIStatusError) as gone:
                await ours(one, f"approvals/{approval}", post={"approve": True})
            assert (gone.value.status_code, gone.value.code) == (410, "approval_gone")


async def test_who_does_not_wait_is_not_asked(client: openai.AsyncOpenAI, tmp_path: Path):
    answered = await ask(client, "write a.txt: one", "mine")
    assert answered.status == "completed"
    assert not list(tmp_path.rglob("a.txt"))
    words: list[Any] = [{"role": "user", "content": "write b.txt: one"}]
    waits: Any = {"outspoken": {"approvals": "wait", "session": "mine"}}
    task = asyncio.create_task(client.chat.completions.create(model="outspoken", messages=words, extra_body=waits))
    approval = await waiting(client)
    await ours(client, f"approvals/{approval['id']}", post={"approve": True})
    assert "b.txt" in str((await task).choices[0].message.content)
    for body in ({"outspoken": {"approvals": "no"}}, {}):
        headers = {} if body else {"X-Outspoken-Approvals": "no"}
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(
                model="outspoken", messages=words, extra_body=body, extra_headers=headers
            )


async def test_what_nobody_could_find_does_not_wait(client: openai.AsyncOpenAI, tmp_path: Path):
    words: list[Any] = [{"role": "user", "content": "write a.txt: one"}]
    with pytest.raises(openai.BadRequestError, match="X-Outspoken-Session"):
        await client.chat.completions.create(model="outspoken", messages=words, extra_headers=WAITS)
    with pytest.raises(openai.BadRequestError, match="in none"):
        await client.responses.create(model="outspoken", input="write a.txt: one", store=False, extra_headers=WAITS)
    assert not list(tmp_path.rglob("a.txt"))
    errand = {**WAITS, "X-Outspoken-Task": "title"}  # a front end's headers come with everything
    await client.chat.completions.create(model="outspoken", messages=words, extra_headers=errand)
    asked = await client.responses.create(
        model="outspoken", input="write a.txt: one", background=True, extra_headers=WAITS
    )
    approval = await waiting(client)
    await ours(client, f"approvals/{approval['id']}", post={"approve": True})
    await over(client, asked.id)
    assert list(tmp_path.rglob("a.txt"))


async def test_a_page_of_another_origin_may_export_where_it_may_call(tmp_path: Path):
    env = {**APPROVES, "OUTSPOKEN_SERVER__CORS_ORIGINS": '["https://a.example"]'}
    async with served(tmp_path, env) as up, sdk(up) as client, aiohttp.ClientSession() as http:
        await ask(client, "hello", "mine")
        origin = {"Origin": "https://a.example"}
        async with http.get(f"{up.url}/v1/outspoken/sessions/mine/export", headers=origin) as response:
            assert response.headers["Access-Control-Allow-Origin"] == "https://a.example"
