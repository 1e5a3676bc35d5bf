"""Whose a request's id is: an `Idempotency-Key` or a tracing id gives nobody the answer of somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.daemon import Serving
from tests.serving import served
from tests.storage.harm import changed


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path) as serving:
        yield serving


async def ask(url: str, words: str, headers: dict[str, str], **more: Any) -> tuple[int, dict[str, Any]]:
    body = {"model": "outspoken", "messages": [{"role": "user", "content": words}], **more}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/chat/completions", json=body, headers=headers) as got,
    ):
        return got.status, await got.json()


WHO: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {}),
    ({"X-Outspoken-Session": "a"}, {}),
    ({"X-Outspoken-Session": "b"}, {}),
    ({}, {"outspoken": {"session": "c"}}),
    ({}, {"user": "ada"}),
    ({}, {"user": "bob"}),
    ({"X-Outspoken-Session": "a"}, {"user": "ada"}),
    ({"X-Outspoken-Session": "ada"}, {}),
]


@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Request-Id", "X-Client-Request-Id"])
async def test_a_key_is_its_conversations_and_persons_own(up: Serving, name: str):
    ids = set[str]()
    for headers, more in WHO:
        first = [await ask(up.url, "hello", {name: "K", **headers}, **more) for _ in range(2)]
        assert [status for status, _ in first] == [200, 200]
        assert first[0][1] == first[1][1], "a retry is the same message, and gets the same answer"
        assert first[0][1]["outspoken"]["session"] == (
            headers.get("X-Outspoken-Session") or more.get("outspoken", {}).get("session")
        )
        ids.add(first[0][1]["id"])
    assert len(ids) == len(WHO)


@pytest.mark.parametrize(("headers", "more"), WHO)
async def test_the_same_key_with_another_body_is_refused_in_words(
    up: Serving, headers: dict[str, str], more: dict[str, Any]
):
    assert (await ask(up.url, "hello", {"Idempotency-Key": "K", **headers}, **more))[0] == 200
    status, body = await ask(up.url, "something else", {"Idempotency-Key": "K", **headers}, **more)
    assert (status, body["error"]["code"]) == (422, "idempotency_key_reused")
    assert "was used before with other content" in body["error"]["message"]


@pytest.mark.parametrize("name", ["X-Request-Id", "X-Client-Request-Id"])
async def test_two_requests_of_one_trace_are_one_only_if_they_say_the_same(up: Serving, name: str):
    """A proxy gives one id to all that follows from one call: another content is another message."""
    answers = [await ask(up.url, words, {name: "K"}) for words in ("count to 2", "count to 3", "count to 2")]
    assert [status for status, _ in answers] == [200, 200, 200]
    said = [body["choices"][0]["message"]["content"] for _, body in answers]
    assert said == ["1, 2.", "1, 2, 3.", "1, 2."]
    assert answers[0][1]["id"] == answers[2][1]["id"] != answers[1][1]["id"]


@pytest.mark.parametrize("name", ["", "Idempotency-Key", "X-Request-Id", "X-Client-Request-Id"])
async def test_a_retry_joins_what_says_the_same_unless_it_has_an_id_of_its_own(up: Serving, name: str):
    words, own = "count to 9 slowly", {name: "mine"} if name else {}
    first = asyncio.create_task(ask(up.url, words, {"x-stainless-retry-count": "0"}))
    while not any(queue.running for queue in up.hub.queues):
        await asyncio.sleep(0.01)
    again = await ask(up.url, words, {"x-stainless-retry-count": "1", **own})
    assert (again[1]["id"] == (await first)[1]["id"]) is (not name)


async def test_no_key_can_be_made_up_that_names_somebody_elses_request(up: Serving, tmp_path: Path):
    import sqlite3

    _, mine = await ask(up.url, "hello", {"Idempotency-Key": "K", "X-Outspoken-Session": "a"})
    database = sqlite3.connect(tmp_path / "outspoken.db") if (tmp_path / "outspoken.db").exists() else None
    assert database is not None
    (stored,) = [row[0] for row in database.execute("select platform_key from inbox")]
    database.close()
    guesses = [
        stored,
        stored.removeprefix("keyed:"),
        stored.replace("keyed:", "key:"),
        f"K:{stored.rpartition(':')[2]}",
    ]
    for guess in guesses:
        for header in ("Idempotency-Key", "X-Request-Id"):
            status, got = await ask(up.url, "hello", {header: guess})
            assert status == 200
            assert got["id"] != mine["id"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("harm", "why"),
    [
        ("update journal set body = x'fffe00'", "cannot be read any more"),
        ("delete from journal", "cannot be read any more"),
        ("update turns set removed = 'no longer kept: they are old'", "no longer kept: they are old"),
    ],
)
async def test_a_request_whose_stored_answer_is_lost_ends_in_an_error_when_it_is_repeated(
    up: Serving, tmp_path: Path, harm: str, why: str, stream: bool
):
    headers = {"Idempotency-Key": "K"}
    body = {"model": "outspoken", "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    async with aiohttp.ClientSession() as http:
        for whole in (True, False):
            async with (
                asyncio.timeout(60),
                http.post(f"{up.url}/v1/chat/completions", json=body, headers=headers) as got,
            ):
                said, status = await got.text(), got.status
            if whole:
                assert status == 200
                changed(tmp_path / "outspoken.db", "delete from journal" if "removed" in harm else harm)
                changed(tmp_path / "outspoken.db", harm)
    assert (status, "answer_lost" in said, why in said, "another Idempotency-Key" in said) == (410, True, True, True), (
        status,
        said,
    )


async def test_who_asks_again_is_told_the_same_figures_of_the_turn_also_by_the_next_process(tmp_path: Path):
    told: list[dict[str, Any]] = []
    for _ in range(2):
        async with served(tmp_path) as up:
            told += [(await ask(up.url, "list files", {"Idempotency-Key": "K"}))[1]["outspoken"] for _ in range(2)]
    assert told[0]["seconds"] > 0
    assert told == [told[0]] * 4


async def test_a_key_that_is_too_long_is_refused_by_its_own_name(up: Serving):
    assert (await ask(up.url, "hello", {"Idempotency-Key": "K" * 255}))[0] == 200
    status, body = await ask(up.url, "hello", {"Idempotency-Key": "K" * 256, "X-Outspoken-Session": "a"})
    assert (status, body["error"]["param"], body["error"]["code"]) == (400, "Idempotency-Key", "invalid_header")
    assert body["error"]["message"] == "Idempotency-Key is longer than 255 characters."
    assert (await ask(up.url, "hello", {"X-Request-Id": "K" * 400}))[0] == 200, "of that the beginning is enough"
