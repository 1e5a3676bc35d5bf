"""What the agent sends reaches whoever asked on the page, or by a program that keeps its conversation here, and nobody else."""

from __future__ import annotations

from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from adapters.contract.base import FromApi, SessionKey
from agent_core.tools.builtin.sendfile import SEND_FILE
from gateway.daemon import Serving
from gateway.limits.whose import withheld_from
from tests.gateway.test_page_commands import BROWSER, Tab, up
from tests.gateway.test_sessions import sdk

__all__ = ["up"]

OTHER = {"X-Outspoken-Browser": "browser-number-two"}


def files_of(seen: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """(name, id) of each file on the page."""
    return [(b["text"], b["file"]) for one in seen.values() for b in one["bubbles"] if b["kind"] == "file"]


async def test_a_file_is_shown_on_the_page_and_stored_by_whoever_may_read_the_conversation(up: Serving, tmp_path: Path):
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:
        tab = Tab(http, up.url)
        await tab.says("write page.html: <script>alert(1)</script> and then send me page.html")
        ((name, file),) = files_of(await tab.sees('"closed"'))
        assert name == "page.html"
        assert file
        where = f"{up.url}/api/sessions/c-conversation/files/{file}"
        async with http.get(where, headers=BROWSER) as got:
            assert (got.status, await got.read()) == (200, b"<script>alert(1)</script>\n")
            assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
            assert got.headers["Content-Disposition"].startswith('attachment; filename="page.html"')
            assert got.headers["X-Content-Type-Options"] == "nosniff"
            assert "sandbox" in got.headers["Content-Security-Policy"]
            assert "no-store" in got.headers["Cache-Control"]
        async with http.get(where, headers={**BROWSER, "Range": "bytes=1-6"}) as got:
            assert (got.status, await got.read()) == (206, b"script")
        for headers, session, wanted in (
            (OTHER, "c-conversation", file), ({}, "c-conversation", file), (BROWSER, "c-other-talk", file),
            (BROWSER, "c-conversation", f"{file[:-1]}{'0' if file[-1] != '0' else '1'}"), (BROWSER, "c-conversation", "..%2F..%2Fdatabase"),
        ):  # fmt: skip
            async with http.get(f"{up.url}/api/sessions/{session}/files/{wanted}", headers=headers) as got:
                assert got.status == 404, (headers, session, wanted)
        (spooled,) = [one for one in (tmp_path).rglob("page.html") if one.parent.parent.name == "outbox"]
        spooled.unlink()
        async with http.get(where, headers=BROWSER) as got:
            assert got.status == 404
            assert "not kept any more" in await got.text()


async def test_a_picture_that_the_model_made_is_one_by_its_bytes_and_goes_with_its_conversation(
    up: Serving, tmp_path: Path
):
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:
        tab = Tab(http, up.url)
        await tab.says("draw")
        ((name, file),) = files_of(await tab.sees('"closed"'))
        async with http.get(f"{up.url}/api/sessions/c-conversation/files/{file}", headers=BROWSER) as got:
            assert (name, got.content_type, (await got.read())[:8]) == ("image.png", "image/png", b"\x89PNG\r\n\x1a\n")
        async with http.delete(f"{up.url}/api/conversations/c-conversation", headers=BROWSER) as gone:
            assert gone.status == 200, await gone.text()
    assert not [*tmp_path.rglob("image.png")]


async def test_a_conversation_that_is_deleted_takes_its_files_along(up: Serving, tmp_path: Path):
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:
        tab = Tab(http, up.url)
        await tab.says("write secret.txt: canary and then send me secret.txt")
        ((_, file),) = files_of(await tab.sees('"closed"'))
        async with http.delete(f"{up.url}/api/conversations/c-conversation", headers=BROWSER) as gone:
            assert gone.status == 200, await gone.text()
        async with http.get(f"{up.url}/api/sessions/c-conversation/files/{file}", headers=BROWSER) as got:
            assert got.status == 404
    assert not [*tmp_path.rglob("secret.txt")]


async def test_a_program_that_keeps_its_conversation_here_finds_what_was_sent(up: Serving):
    async with sdk(up) as client:
        made = await client.conversations.create()
        got: Any = await client.responses.create(
            model="outspoken", input="write a.csv: x,1 and then send me a.csv", conversation=made.id,
            extra_headers={"X-Outspoken-Tools": "gateway"},
        )  # fmt: skip
    ((told),) = got.outspoken["files"]
    assert told["name"] == "a.csv"
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{up.url}{told['url']}") as file:
            assert (file.status, file.content_type, await file.read()) == (200, "text/csv", b"x,1\n")
        async with http.get(f"{up.url}/v1/outspoken/sessions/{made.id}/export") as export:
            (turn,) = (await export.json())["turns"]
            assert turn["sent"] == [{"id": told["id"], "name": "a.csv"}]
        async with http.get(f"{up.url}/v1/outspoken/sessions/another/files/{told['id']}") as elsewhere:
            assert elsewhere.status == 404


async def test_a_chain_of_responses_finds_it_by_its_session(up: Serving):
    async with sdk(up) as client:
        got: Any = await client.responses.create(
            model="outspoken",
            input="write a.csv: x,1 and then send me a.csv",
            extra_headers={"X-Outspoken-Tools": "gateway"},
        )
    ((told),) = got.outspoken["files"]
    async with aiohttp.ClientSession() as http, http.get(f"{up.url}{told['url']}") as file:
        assert (file.status, await file.read()) == (200, b"x,1\n")


def test_who_could_not_have_a_file_is_not_offered_to_be_sent_one():
    def of(**more: Any) -> FromApi:
        key = more.pop("session", SessionKey("api", "key", "talk"))
        return FromApi(
            account="api", platform_key="k", input=(), surface="api", session=key, memory_scope="api", **more
        )

    page = of(session=SessionKey("web", "page", "c-talk", person="browser:1"))
    assert SEND_FILE not in withheld_from(page)
    assert SEND_FILE not in withheld_from(of(response={}))
    assert SEND_FILE in withheld_from(of())  # of chat completions nobody reads more than the text
    assert SEND_FILE in withheld_from(of(response={}, own_history=()))


async def test_what_a_person_brought_is_given_back_to_whoever_may_read_the_conversation(up: Serving):
    data = b64encode(b"<script>alert(1)</script>").decode()
    named = [{"name": name, "data": f"data:text/html;base64,{data}"} for name in ("page.html", "empty.txt")]
    named[1]["data"] = "data:;base64,"
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:
        where = f"{up.url}/api/sessions/c-conversation"
        body = {"id": "message-0001", "text": "read this", "files": named}
        async with http.post(f"{where}/messages", json=body, headers=BROWSER) as said:
            assert said.status == 202, await said.text()
        (seen,) = (await Tab(http, up.url).sees('"closed"')).values()
        assert seen["brought"] == ["page.html", "empty.txt"]
        key = quote(seen["key"], safe="")
        async with http.get(f"{where}/messages/{key}/files/0", headers=BROWSER) as got:
            assert (got.status, await got.read()) == (200, b"<script>alert(1)</script>")
            assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
            assert got.headers["Content-Disposition"].startswith('attachment; filename="page.html"')
            assert "sandbox" in got.headers["Content-Security-Policy"]
        async with http.get(f"{where}/messages/{key}/files/1", headers=BROWSER) as got:
            assert (got.status, await got.read()) == (200, b"")
        await Tab(http, up.url, "c-other-talk").says("hello")
        for headers, session, message, number in (
            (OTHER, "c-conversation", key, "0"), ({}, "c-conversation", key, "0"), (BROWSER, "c-other-talk", key, "0"),
            (BROWSER, "c-conversation", key, "2"), (BROWSER, "c-conversation", key, "-1"), (BROWSER, "c-conversation", key, "9" * 30),
            (BROWSER, "c-conversation", "message%00", "0"), (BROWSER, "c-conversation", "..%2F..", "0"), (BROWSER, "c-conversation", key, "٣"),
        ):  # fmt: skip
            async with http.get(
                f"{up.url}/api/sessions/{session}/messages/{message}/files/{number}", headers=headers
            ) as got:
                assert got.status == 404, (headers, session, message, number)
        async with http.delete(f"{up.url}/api/conversations/c-conversation", headers=BROWSER) as gone:
            assert gone.status == 200, await gone.text()
        async with http.get(f"{where}/messages/{key}/files/0", headers=BROWSER) as got:
            assert got.status == 404


async def test_what_a_person_brought_is_seen_in_a_conversation_that_was_branched_as_long_as_it_is_there(up: Serving):
    data = f"data:;base64,{b64encode(b'milk').decode()}"
    async with aiohttp.ClientSession(read_bufsize=2**20) as http:

        async def got(session: str, key: str, headers: dict[str, str] = BROWSER) -> tuple[int, bytes]:
            where = f"{up.url}/api/sessions/{session}/messages/{quote(key, safe='')}/files/0"
            async with http.get(where, headers=headers) as response:
                return response.status, await response.read()

        body = {"id": "message-0001", "text": "read this", "files": [{"name": "list.txt", "data": data}]}
        where = f"{up.url}/api/sessions/c-conversation/messages"
        async with http.post(where, json=body, headers=BROWSER) as said:
            assert said.status == 202, await said.text()
        (seen,) = (await Tab(http, up.url).sees('"closed"')).values()
        keys = [seen["key"]]
        names = ("c-conversation", "c-branched-01", "c-branched-02")
        for session, name in pairwise(names):
            branch = {"turn": seen["turn"], "name": name, "title": ""}
            async with http.post(
                f"{up.url}/api/conversations/{session}/branches", json=branch, headers=BROWSER
            ) as made:
                assert made.status < 300, await made.text()
            (seen,) = (await Tab(http, up.url, name).sees('"closed"')).values()
            keys.append(seen["key"])
            assert seen["brought"] == ["list.txt"]
            assert await got(name, keys[-1]) == (200, b"milk")
            assert (await got(name, keys[-1], OTHER))[0] == 404
            assert (await got("c-conversation", keys[-1]))[0] == 404
        async with http.delete(f"{up.url}/api/conversations/c-conversation", headers=BROWSER) as gone:
            assert gone.status == 200, await gone.text()
        for name, key in zip(names, keys, strict=True):
            assert (await got(name, key))[0] == 404
