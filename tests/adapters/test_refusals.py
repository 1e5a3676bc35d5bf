"""What the API refuses can be explained by its id, and nobody can fill the disk with it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC
from pathlib import Path

import aiohttp

from adapters.contract.base import RefusedRequest
from agent_core.ports import SystemIds
from agent_core.signals import RequestRefused, Signal
from agent_core.store.reading import open_reads
from gateway.explain.story import Explainer, ToldStory
from gateway.queues.refusals import MOST_A_MINUTE, Refusals
from tests.chats.model import scripted_model
from tests.serving import served
from tests.store.support import FakeClock, opened

SECRET = "the meeting is at noon in Lisbon"


async def explained(database: Path, request: str) -> ToldStory:
    async with open_reads(database) as reads:
        return await Explainer(reads, lambda: 2_000_000_000_000).of(request)


def rows(database: Path) -> list[tuple[str, str, bytes]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
        return conn.execute("SELECT lane, reason, body FROM inbox ORDER BY id").fetchall()


async def test_a_request_that_makes_no_sense_is_told_its_id_and_explained_by_it(tmp_path: Path):
    sent = {
        "t-json": (b'{"' + SECRET.encode(), 400, "its body is no JSON (HTTP 400)"),
        "t-role": (
            b'{"messages":[{"role":"' + SECRET.encode() + b'","content":"x"}]}',
            400,
            "something in it is not as it must be at messages[0].role (HTTP 400)",
        ),
        "t-model": (
            b'{"model":"' + SECRET.encode() + b'","messages":[{"role":"user","content":"x"}]}',
            404,
            "it named a model that is not configured at model (HTTP 404)",
        ),
        "t-large": (b" " * 3_000, 413, "it was larger than max_body_bytes (HTTP 413)"),
    }
    async with served(tmp_path, {"OUTSPOKEN_SERVER__MAX_BODY_BYTES": "2000"}) as up, aiohttp.ClientSession() as http:
        for name, (body, status, _) in sent.items():
            async with http.post(f"{up.url}/v1/chat/completions", data=body, headers={"X-Request-Id": name}) as got:
                assert (got.status, got.headers["x-request-id"]) == (status, name)
        async with http.post(f"{up.url}/v1/chat/completions", data=b"{}") as got:
            ours = got.headers["x-request-id"]
    database = tmp_path / "outspoken.db"
    for name, (_, _, words) in sent.items():
        found = await explained(database, name)
        text = found.text(UTC)
        assert (found.ending, found.found) == ("refused", True)
        assert f"A request came from api (number {found.id}, id {name})." in text
        assert f"It was refused: {words}." in text
    assert (await explained(database, ours)).ending == "refused"
    assert not [row for row in rows(database) if b"Lisbon" in row[2] or "Lisbon" in row[1]]


async def test_a_refused_request_may_come_again_under_its_key_and_is_taken(tmp_path: Path):
    async with scripted_model() as model, aiohttp.ClientSession() as http:
        env = {
            "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1",
            "OUTSPOKEN_SESSION__QUEUE_LIMIT": "1", "OUTSPOKEN_MODEL__STALL_SECONDS": "60",
        }  # fmt: skip
        async with served(tmp_path, env) as up, asyncio.TaskGroup() as group:

            async def ask(words: str, key: str) -> int:
                body = {"messages": [{"role": "user", "content": words}], "outspoken": {"session": "s"}}
                headers = {"Idempotency-Key": key}
                async with http.post(f"{up.url}/v1/chat/completions", json=body, headers=headers) as got:
                    await got.read()
                    return got.status

            first = group.create_task(ask("hold on", "k-1"))
            await asyncio.wait_for(model.holding.wait(), 60)
            second = group.create_task(ask("say two", "k-2"))
            while not up.hub.slots.messages:
                await asyncio.sleep(0.01)
            assert await ask("say three", "k-3") == 429
            database = tmp_path / "outspoken.db"
            refused = await explained(database, "k-3")
            assert refused.ending == "refused"
            assert "too many messages were waiting in this conversation (HTTP 429)" in refused.text(UTC)
            model.release()
            assert (await first, await second, await ask("say three", "k-3")) == (200, 200, 200)
            taken = await explained(database, "k-3")
    assert (taken.ending, taken.exit) == ("ended", "answered")
    assert list(taken.also) == [f"message {refused.id} with this id was refused"]


async def test_strangers_are_counted_and_leave_no_row(tmp_path: Path):
    env = {
        "OUTSPOKEN_SERVER__API_KEY": "a-key-of-some-length",
        "OUTSPOKEN_SERVER__OPERATOR_KEY": "operators-have-another",
    }
    async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
        for _ in range(3):
            async with http.post(f"{up.url}/v1/chat/completions", data=b"{}", headers={"X-Request-Id": "x"}) as got:
                assert got.status == 401
        headers = {"Authorization": "Bearer operators-have-another"}
        async with http.get(f"{up.url}/metrics", headers=headers) as got:
            metrics = await got.text()
    assert 'outspoken_requests_refused_total{http_status="401"} 3.0' in metrics
    assert rows(tmp_path / "outspoken.db") == []


async def test_only_so_many_are_stored_in_a_minute_and_all_are_counted(tmp_path: Path):
    database = tmp_path / "outspoken.db"
    clock = FakeClock(1_700_000_000_000)
    told: list[Signal] = []
    async with opened(str(database), clock) as store:
        refusals = Refusals(store, clock, SystemIds(clock), told.append)
        for number in range(MOST_A_MINUTE + 20):
            await refusals(RefusedRequest(429, "queue_full (HTTP 429)", f"r{number}"))
            await refusals(RefusedRequest(401, stranger=True))
        assert len(rows(database)) == MOST_A_MINUTE
        clock.now += 60_000
        await refusals(RefusedRequest(429, "queue_full (HTTP 429)", "later"))
    stored = rows(database)
    assert Counter(row[0] for row in stored) == {"refused": MOST_A_MINUTE + 1}
    assert sum(isinstance(one, RequestRefused) for one in told) == 2 * (MOST_A_MINUTE + 20) + 1
    assert (await explained(database, "later")).ending == "refused"
