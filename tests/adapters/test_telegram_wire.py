"""The way to Telegram: what is sent is what was given, whatever characters it has; and what comes back is Telegram's, or told from it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import Bot, InputFile
from telegram.request import RequestData
from telegram.request._requestparameter import RequestParameter
from yarl import URL

from adapters.contract.chat import CallFailed, Cause, ChatAddress, Content, ContentKind, Fate
from adapters.contract.files import LARGE, FileHosts, FileSource
from adapters.refusing import NOT_SECURE
from adapters.telegram.port import TelegramPort
from adapters.telegram.wire import Wire, encoded, form_of, plain_name, trusted
from adapters.text.styled import Styled
from agent_core.model.transport import named_in
from tests.fakes.telegram.params import disposition

WORDS = st.text(st.characters(exclude_categories=("Cs",)))
TOKEN = "123456789:a-token"
CHAT = ChatAddress("telegram", "123456789", "77")
SAID = Content(ContentKind.TEXT, Styled("hello"))


@given(st.dictionaries(WORDS.filter(bool), WORDS, max_size=5))
def test_a_form_is_read_as_it_was_given(words: dict[str, str]) -> None:
    assert dict(parse_qsl(encoded(words).decode("ascii"), keep_blank_values=True, strict_parsing=bool(words))) == words


def test_signs_that_mean_something_in_a_form_are_themselves() -> None:
    text = "a+b & c=d; 100 % %41 ü 😀 #x\r\n\x00 \x7f"
    assert dict(parse_qsl(encoded({"text": text}).decode("ascii"))) == {"text": text}


def named(file_name: str) -> str:
    """The name under which Telegram's server would keep a file that is sent by this one."""
    given = RequestData([RequestParameter.from_input("document", InputFile(b"x", filename=file_name))])
    form: Any = form_of(given)()
    ((part, _, _),) = form._parts
    return disposition(part.headers["Content-Disposition"])["filename"]


@given(WORDS.filter(bool))
def test_a_file_has_its_name_there(name: str) -> None:
    assert named(name) == plain_name(name)
    assert len(plain_name(name)) == len(name)


@pytest.mark.parametrize(
    "name", ["Übersicht März 2026.pdf", "日本語.csv", "100 %.txt", "a+b=c, d&e.txt", "it's (1).md"]
)
def test_a_name_that_can_be_itself_is_itself(name: str) -> None:
    assert named(name) == plain_name(name) == name


def answer(status: int, body: object, *heads: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = (f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", *heads)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def result(body: object) -> bytes:
    return answer(200, {"ok": True, "result": body})


def sent(number: int) -> bytes:
    return result({"message_id": number, "date": 1, "chat": {"id": 77, "type": "private"}})


@asynccontextmanager
async def telegram(answers: Callable[[str], Sequence[bytes]]) -> AsyncGenerator[tuple[TelegramPort, list[str]]]:
    """A port, and what its server is asked; of each path the server writes the first answer at once and the others a moment later."""
    asked: list[str] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
                await reader.readexactly(int(length[0].partition(":")[2]) if length else 0)
                asked.append(head.split(" ", 2)[1].partition(f"bot{TOKEN}/")[2])
                for piece in answers(asked[-1]):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.05)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        wires = [Wire(base, read_seconds=5, proxy="") for _ in range(2)]
        bot = Bot(TOKEN, f"{base}/bot", f"{base}/file/bot", request=wires[0], get_updates_request=wires[1])
        await wires[0].initialize()
        try:
            yield TelegramPort(bot, FileSource(FileHosts((), base)), drafts=True), asked
        finally:
            await wires[0].shutdown()


PAGE = b"<html><head><title>Nothing to see</title></head></html>"


@pytest.mark.parametrize("body", [PAGE, b"", b'{"error": "denied"}', b"[1]", b"\xff", b"[" * 100_000])
@pytest.mark.parametrize(
    ("status", "fate", "cause"),
    [
        (302, Fate.NOT_SENT, Cause.SHIELDED),
        (400, Fate.NOT_SENT, Cause.SHIELDED),
        (401, Fate.NOT_SENT, Cause.SHIELDED),
        (403, Fate.NOT_SENT, Cause.SHIELDED),
        (404, Fate.NOT_SENT, Cause.SHIELDED),
        (407, Fate.NOT_SENT, Cause.SHIELDED),
        (413, Fate.REFUSED, Cause.FILE),
        (429, Fate.TOO_FAST, Cause.NONE),
        (502, Fate.UNKNOWN, Cause.NONE),
    ],
)
async def test_what_has_no_form_of_telegrams_is_no_answer_of_telegrams(
    status: int, fate: Fate, cause: Cause, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with telegram(lambda _: [answer(status, body)]) as (port, _):
        with pytest.raises(CallFailed) as error:
            await port.create(CHAT, SAID, "k")
    assert (error.value.fate, error.value.cause) == (fate, cause)
    assert "<html>" not in error.value.words + caplog.text


async def test_a_page_with_a_success_is_told_from_an_answer_that_makes_no_sense() -> None:
    async with telegram(lambda _: [answer(200, b" \n" + PAGE)]) as (port, _):
        with pytest.raises(CallFailed) as error:
            await port.create(CHAT, SAID, "k")
    assert (error.value.fate, error.value.cause) == (Fate.UNKNOWN, Cause.SHIELDED)
    async with telegram(lambda _: [answer(200, b"nonsense")]) as (port, _):
        with pytest.raises(CallFailed) as error:
            await port.create(CHAT, SAID, "k")
    assert (error.value.fate, error.value.cause) == (Fate.UNKNOWN, Cause.UNREADABLE)


@pytest.mark.parametrize("pause", ["3", [3], {"a": 1}, -5, 1e300, 10**12, True, None])
async def test_a_429_is_a_pause_whatever_it_names(pause: object) -> None:
    refused = {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": pause}}
    async with telegram(lambda _: [answer(429, refused)]) as (port, _):
        with pytest.raises(CallFailed) as error:
            await port.create(CHAT, SAID, "k")
    assert error.value.fate is Fate.TOO_FAST
    assert error.value.retry_after == 30


@pytest.mark.parametrize(
    ("status", "more", "seconds"),
    [
        (429, {"description": "Too Many Requests: retry after 12"}, 12),
        (429, {"description": "Too Many Requests"}, 30),
        (429, {"description": "Too Many Requests: retry after 12", "parameters": {"retry_after": 7.5}}, 7.5),
        (429, {"parameters": [1]}, 30),
        (420, {"description": "Flood", "parameters": {"retry_after": 3}}, 3),
    ],
)
async def test_a_pause_is_as_long_as_telegram_says(status: int, more: dict[str, object], seconds: float) -> None:
    async with telegram(lambda _: [answer(status, {"ok": False, **more})]) as (port, _):
        with pytest.raises(CallFailed) as error:
            await port.create(CHAT, SAID, "k")
    assert (error.value.fate, error.value.retry_after) == (Fate.TOO_FAST, seconds)


async def test_what_comes_without_being_asked_for_answers_nothing() -> None:
    numbers = iter(range(1, 9))
    once = [sent(next(numbers)), sent(99)]
    async with telegram(lambda _: once if len(asked) == 1 else [sent(next(numbers))]) as (port, asked):
        assert await port.create(CHAT, SAID, "a") == "1"
        await asyncio.sleep(0.2)
        assert await port.create(CHAT, SAID, "b") == "2"
    assert len(asked) == 2


FOUND = {"file_id": "f", "file_unique_id": "u", "file_size": 5}


@pytest.mark.parametrize(
    ("path", "given", "fate"),
    [
        (None, b"", Fate.REFUSED),
        ("documents/gone.txt", answer(404, {"ok": False, "error_code": 404, "description": "Not Found"}), Fate.REFUSED),
        ("documents/busy.txt", answer(502, PAGE), Fate.NOT_SENT),
        ("documents/much.txt", answer(200, b"x" * 200_000), Fate.REFUSED),
        ("/nowhere/at/all.txt", b"", Fate.REFUSED),
    ],
)
async def test_a_file_that_is_not_to_be_had_is_told_as_one(path: str | None, given: bytes, fate: Fate) -> None:
    found = FOUND if path is None else {**FOUND, "file_path": path}
    async with telegram(lambda asked: [result(found) if asked == "getFile" else given]) as (port, _):
        with pytest.raises(CallFailed) as error:
            await port.fetch("f", 100_000)
    assert error.value.fate is fate
    assert "token" not in error.value.words


@pytest.mark.parametrize(("kind", "own", "had"), [("file", True, True), ("file", False, False), ("pipe", True, True)])
async def test_only_a_server_of_the_operators_names_files_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, own: bool, had: bool
) -> None:
    path = tmp_path / "there"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"words")
    async with telegram(lambda _: [result({**FOUND, "file_path": str(path)})]) as (port, _):
        if not own:
            monkeypatch.setattr("adapters.telegram.port.TELEGRAM", port._bot.base_file_url.partition("/file/")[0])
        if had:
            assert await port.fetch("f", 100) == (b"words" if kind == "file" else b""), "nobody waits for a pipe"
            return
        with pytest.raises(CallFailed) as error:
            await port.fetch("f", 100)
    assert (error.value.fate, error.value.cause) == (Fate.REFUSED, Cause.FILE)


@pytest.mark.parametrize("size", [0, 99, 100, 101, 5_000])
async def test_a_file_of_this_machine_is_had_whole_or_not_at_all(tmp_path: Path, size: int) -> None:
    path = tmp_path / "there"
    path.write_bytes(b"x" * size)
    async with telegram(lambda _: [result({**FOUND, "file_path": str(path)})]) as (port, _):
        if size <= 100:
            assert await port.fetch("f", 100) == b"x" * size
            return
        with pytest.raises(CallFailed, match=LARGE.format()) as error:
            await port.fetch("f", 100)
    assert error.value.cause is Cause.FILE


async def test_no_more_of_a_file_is_read_than_may_be_taken() -> None:
    def endless(asked: str) -> Sequence[bytes]:
        if asked == "getFile":
            return [result({**FOUND, "file_path": "documents/a ü?.txt"})]
        return [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 1000,
        ]

    async with telegram(endless) as (port, asked):
        with pytest.raises(CallFailed, match=LARGE.format()) as error:
            await port.fetch("f", 100_000)
    assert error.value.cause is Cause.FILE
    assert cast("Any", asked) == ["getFile", "documents/a%20%C3%BC%3F.txt"]


@pytest.mark.parametrize("proxy", ["http://user:p%C3%A4ss%E2%82%AC@h:1", "http://user:a%40b%3Ac@h"])
async def test_who_we_are_at_a_proxy_may_have_any_characters(proxy: str) -> None:
    address, named = named_in(proxy)
    assert named is not None
    assert (address.user, address.password) == (None, None)
    assert base64.b64decode(named.encode().removeprefix("Basic ")).decode() == unquote(
        URL(proxy).raw_authority.rsplit("@")[0]
    )


async def test_a_proxy_that_lets_nobody_through_says_so_and_nothing_was_sent() -> None:
    async def no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(407, PAGE))
        writer.close()

    async with await asyncio.start_server(no, "127.0.0.1", 0) as server:
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        wires = [Wire("https://api.example", read_seconds=5, proxy=proxy) for _ in range(2)]
        bot = Bot(TOKEN, "https://api.example/bot", request=wires[0], get_updates_request=wires[1])
        await wires[0].initialize()
        with pytest.raises(CallFailed, match="407") as error:
            await TelegramPort(bot, FileSource(FileHosts(())), drafts=True).create(CHAT, SAID, "k")
        await wires[0].shutdown()
    assert error.value.fate is Fate.NOT_SENT


async def test_authorities_that_cannot_be_read_are_told_by_each_call_until_they_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nothing.pem"))
    trusted.cache_clear()
    try:
        async with telegram(lambda _: [sent(7)]) as (port, asked):
            with pytest.raises(CallFailed, match=NOT_SECURE.format()) as error:
                await port.create(CHAT, SAID, "k")
            assert (error.value.fate, asked) == (Fate.NOT_SENT, [])
            monkeypatch.delenv("SSL_CERT_FILE")
            assert await port.create(CHAT, SAID, "k") == "7"
    finally:
        trusted.cache_clear()
