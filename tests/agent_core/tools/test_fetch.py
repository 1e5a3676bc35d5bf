"""fetch_url: public addresses only, whatever spelling, name or redirect leads to another."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext, ToolOutcome, ToolStatus
from agent_core.tools.builtin import fetch as fetching
from agent_core.tools.builtin.fetch import FetchUrl, NotAllowed, _Page
from agent_core.tools.web.addresses import refusal
from agent_core.tools.web.pages import readable
from agent_core.workers.pool import Workers

CONTEXT = ToolContext("t", "c", "k", Path("unused"), "m", SystemClock(), lambda _: None)


@asynccontextmanager
async def site() -> AsyncGenerator[int]:
    """A web site on loopback; its port."""

    async def handle(request: web.Request) -> web.Response:
        match request.path:
            case "/page":
                html = "<html><head><title>x</title><script>bad()</script></head><body><h1>Hi</h1><p>A <a href='/b'>link</a></p>"
                return web.Response(text=html, content_type="text/html")
            case "/redirect":
                return web.Response(status=302, headers={"Location": str(request.query["to"])})
            case "/big":
                return web.Response(body=b"x" * 1_500_000, content_type="text/plain")
            case "/binary":
                return web.Response(body=b"a\0b", content_type="application/octet-stream")
            case _:
                return web.Response(status=404, text="nothing")

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def fetch(url: str, *, open_to_loopback: bool = False) -> ToolOutcome:
    async with Workers() as workers:
        tool = FetchUrl(workers, refuse=lambda _: None) if open_to_loopback else FetchUrl(workers)
        return await tool.run({"url": url}, CONTEXT)


async def test_a_page_comes_as_text_with_its_links():
    async with site() as port:
        outcome = await fetch(f"http://127.0.0.1:{port}/page", open_to_loopback=True)
        assert outcome.status is ToolStatus.OK
        assert "Hi" in outcome.text
        assert f"link (http://127.0.0.1:{port}/b)" in outcome.text
        assert "bad()" not in outcome.text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://user:word@example.org/", "a user name or a password"),
        ("https://user@example.org/", "a user name or a password"),
        ("https://:word@example.org/", "a user name or a password"),
        ("ftp://example.org/", "Only http and https"),
        ("https:///x", "names no host"),
        ("https://2130706433/", "a number and no name"),
        ("https://127.0.0.1/", "Only public addresses"),
    ],
)
async def test_an_address_that_is_not_read_is_told_why_before_anybody_is_asked(url: str, words: str) -> None:
    outcome = await FetchUrl(Workers()).run({"url": url}, CONTEXT)
    assert outcome.status is ToolStatus.FAILED
    assert words in outcome.text


@pytest.mark.parametrize(
    ("address", "port", "called"),
    [
        ("8.8.8.8", 443, True),
        ("8.8.8.8", 25, False),
        ("8.8.8.8", 22, False),
        ("10.0.0.1", 443, False),
        ("no address", 443, False),
    ],
)
def test_each_address_is_judged_with_its_port_when_it_is_dialled_wherever_it_came_from(
    address: str, port: int, called: bool
) -> None:
    tool = FetchUrl(Workers())
    info = (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
    if called:
        tool._socket(info).close()
        return
    with pytest.raises(NotAllowed):
        tool._socket(info)


async def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would judge addresses in our place, and is called at an inner one."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with site() as port, Workers() as workers:
        page = await FetchUrl(workers, refuse=lambda _: None)._fetch(
            f"http://127.0.0.1:{port}/page", CONTEXT, bytearray()
        )
    assert page.status == 200


async def test_limits_and_failures_are_told():
    async with site() as port:
        base = f"http://127.0.0.1:{port}"
        assert "cut at 400000 characters" in (await fetch(f"{base}/big", open_to_loopback=True)).text
        assert "no text" in (await fetch(f"{base}/binary", open_to_loopback=True)).text
        assert (await fetch(f"{base}/missing", open_to_loopback=True)).status is ToolStatus.FAILED
        loop = f"{base}/redirect?to={base}/redirect?to=x"
        assert (await fetch(loop, open_to_loopback=True)).status is ToolStatus.FAILED


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/page",
        "http://localhost:{port}/page",
        "http://2130706433:{port}/page",
        "http://0x7f.1:{port}/page",
        "http://0177.0.0.1:{port}/page",
        "http://[::1]:{port}/page",
        "http://[::ffff:127.0.0.1]:{port}/page",
        "http://0.0.0.0:{port}/page",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://user:word@example.org/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
async def test_nothing_inside_is_read_in_any_spelling(url: str):
    async with site() as port:
        outcome = await fetch(url.format(port=port))
        assert outcome.status is ToolStatus.FAILED
        assert "Hi" not in outcome.text


UNREADABLE = {
    "http://[::1": "cannot be read",
    "http://example.org:999999/": "cannot be read",
    "http://example.org:x/": "cannot be read",
    "http://a..b/": "cannot be",
    "http://0/": "is a number",
    "http://127.1/": "is a number",
    "http://2130706433/": "is a number",
    "http://0x7f.1/": "is a number",
    "http://1.2.3.4.5/": "is a number",
    "http://nobody.invalid/": "nobody.invalid cannot be found",
}


@pytest.mark.parametrize("url", UNREADABLE)
@pytest.mark.parametrize("led", [False, True])
async def test_an_address_that_cannot_be_read_is_told_in_words(url: str, led: bool):
    async with site() as port:
        asked = f"http://127.0.0.1:{port}/redirect?to={url}" if led else url
        outcome = await fetch(asked, open_to_loopback=True)
    assert outcome.status is ToolStatus.FAILED
    assert UNREADABLE[url] in outcome.text
    assert "Error" not in outcome.text


@pytest.mark.parametrize("answer", [b"", b"no http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1"])
async def test_a_server_that_answers_badly_is_told_in_words(answer: bytes):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outcomes = [await fetch(f"http://127.0.0.1:{port}/", open_to_loopback=True)]
    server.close()
    await server.wait_closed()
    outcomes.append(await fetch(f"http://127.0.0.1:{port}/", open_to_loopback=True))
    for outcome in outcomes:
        assert outcome.status is ToolStatus.FAILED
        assert outcome.text.startswith(("The page could not be read: ", "No connection to 127.0.0.1 "))
        assert "Error" not in outcome.text


async def test_a_redirect_does_not_lead_inside():
    async with site() as port:
        inside = f"http://localhost:{port}/page"
        allowed_first = iter([None])
        # Literal addresses are judged before and while dialling; only the very first judgement is waved through here.
        async with Workers() as workers:
            tool = FetchUrl(workers, refuse=lambda address: next(allowed_first, refusal(address)))
            outcome = await tool.run({"url": f"http://127.0.0.1:{port}/redirect?to={inside}"}, CONTEXT)
        assert outcome.status is ToolStatus.FAILED
        assert "this machine" in outcome.text


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.1.1", "100.64.0.1", "192.0.0.192", "224.0.0.1", "255.255.255.255",
     "0.0.0.0", "::", "::1", "fe80::1", "fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
     "2001:0:0:0:0:0:80ff:fffe"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str):
    assert refusal(ip_address(address)) is not None


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses_are_called(address: str):
    assert refusal(ip_address(address)) is None


@given(st.integers(0, 2**32 - 1))
def test_an_address_that_is_refused_is_refused_under_its_ipv6_names_too(number: int):
    plain = IPv4Address(number)
    mapped = IPv6Address((0xFFFF << 32) | number)
    nat64 = IPv6Address((0x64FF9B << 96) | number)
    assert (refusal(mapped) is None) == (refusal(plain) is None)
    assert (refusal(nat64) is None) == (refusal(plain) is None)


@given(st.text(max_size=300))
def test_no_page_breaks_the_reader(html: str):
    readable(html, "http://example.org/")


@pytest.mark.parametrize(
    ("status", "read"), [(200, True), (203, True), (399, True), (400, False), (404, False), (503, False)]
)
async def test_a_page_that_was_not_there_is_told_with_what_it_says_and_was_not_read(
    status: int, read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def text(*_: object, **__: object) -> ToolOutcome:
        return ToolOutcome(ToolStatus.OK, "some words", facts={"chars": 10})

    monkeypatch.setattr(fetching, "outside", text)
    page = _Page("https://example.org/", status, "text/html", "", "", b"")
    outcome = await FetchUrl(Workers())._read(page, CONTEXT)
    assert outcome.status is (ToolStatus.OK if read else ToolStatus.FAILED)
    assert outcome.text == f"HTTP {status}, text/html, https://example.org/\n\nsome words"
    assert outcome.facts == {"status": status, "chars": 10}
