"""Files that people attach: fetched from the platform's own hosts only, and the token goes nowhere else."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from adapters.contract.chat import AttachmentKind, CallFailed, Fate
from adapters.contract.files import FileHosts, FileSource
from adapters.slack.inbound import read_message

TOKEN = {"Authorization": "Bearer xoxb-canary"}
SLACK = FileHosts(("slack.com", "slack-files.com"))
LIMIT = 1_000

OWN = (
    "https://files.slack.com/files-pri/T1-F1/cat.png",
    "https://slack.com/files-pri/T1-F1/cat.png",
    "https://SLACK-FILES.com/T1-F1",
    "https://acme.enterprise.slack.com/files/x",
    "https://files.slack.com:443/x",
)
FOREIGN = (
    "http://files.slack.com/x", "https://files.slack.com:8443/x", "ftp://files.slack.com/x", "file:///etc/passwd", "//files.slack.com/x",
    "/files-pri/x", "", " ", "files.slack.com/x", "https://", "https:///x", "javascript:alert(1)", "data:text/plain,x",
    "https://evil.example/x", "https://slack.com.evil.example/x", "https://evilslack.com/x", "https://slack.com@evil.example/x",
    "https://evil.example\\@slack.com/x", "https://user@slack.com/x", "https://user:pw@files.slack.com/x", "https://slack.com./x", "https://127.0.0.1/x", "https://localhost/x", "http://127.0.0.1:80/x", "https://127.1/x", "https://2130706433/x",
    "https://0x7f000001/x", "https://0177.0.0.1/x", "https://0/x", "https://[::1]/x", "https://[::ffff:127.0.0.1]/x", "https://[::]/x",
    "https://[64:ff9b::7f00:1]/x", "https://169.254.169.254/latest/meta-data", "https://metadata.google.internal/x", "https://10.0.0.1/x",
    "https://192.168.0.1/x", "https://172.16.0.1/x", "https://slack.com%2eevil.example/x", "https://slack.com%00.evil.example/x", "https://evil.example#slack.com", "https://evil.example/?slack.com", "https://evil.example/slack.com",
    "https://evil.example;slack.com/x", "https://slack.com,evil.example/x", "https://a.slack.com.:443/x", "gopher://slack.com/x",
    "https://slack.comx/x", "https://xslack-files.com/x", "https://-slack.com/x", "https://slack.con/x", "wss://slack.com/x",
)  # fmt: skip


def allowed(hosts: FileHosts, address: str) -> bool:
    """As a fetch judges it: what cannot be read is not allowed."""
    try:
        return hosts.allows(URL(address))
    except ValueError:
        return False


@pytest.mark.parametrize("address", OWN)
def test_the_platforms_own_hosts_are_allowed(address: str) -> None:
    assert allowed(SLACK, address)


@pytest.mark.parametrize("address", FOREIGN)
def test_no_other_way_to_write_an_address_is(address: str) -> None:
    assert not allowed(SLACK, address)


@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_is_allowed_is_really_asked_there(before: str, after: str) -> None:
    """The law: the host that would be dialled is one of the list, however the address is written."""
    for address in (f"https://{before}slack.com{after}", f"{before}https://slack.com{after}"):
        if allowed(SLACK, address):
            url = URL(address)
            assert url.scheme == "https"
            assert url.raw_host is not None
            assert url.raw_host == "slack.com" or url.raw_host.endswith(".slack.com")


def test_a_server_that_stands_in_for_the_platform_is_allowed_with_its_port_and_scheme_only() -> None:
    hosts = FileHosts((), "http://127.0.0.1:9000/api")
    assert allowed(hosts, "http://127.0.0.1:9000/files/1")
    for address in ("http://127.0.0.1:9001/files/1", "https://127.0.0.1:9000/x", "http://127.0.0.2:9000/x"):
        assert not allowed(hosts, address)


class Stranger:
    """A server that notes what it is sent."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.to: str = ""
        app = web.Application()
        app.router.add_get("/file", self._file)
        app.router.add_get("/away", self._away)
        app.router.add_get("/odd", self._odd)
        self.status, self.kind, self.size = 200, "application/pdf", 5
        self.server = TestServer(app)

    async def _file(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Authorization"))
        return web.Response(body=b"bytes", content_type="application/octet-stream")

    async def _odd(self, _: web.Request) -> web.Response:
        return web.Response(status=self.status, body=b"x" * self.size, content_type=self.kind)

    async def _away(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Authorization"))
        return web.Response(status=302, headers={"Location": self.to})

    def at(self, path: str) -> str:
        return str(self.server.make_url(path))


@pytest.fixture
async def stranger() -> AsyncGenerator[Stranger]:
    made = Stranger()
    await made.server.start_server()
    yield made
    await made.server.close()


@pytest.fixture
async def platform() -> AsyncGenerator[Stranger]:
    made = Stranger()
    await made.server.start_server()
    yield made
    await made.server.close()


async def test_the_token_is_not_sent_to_a_host_that_a_message_names(stranger: Stranger) -> None:
    with pytest.raises(CallFailed) as told:
        await FileSource(SLACK, TOKEN).fetched(stranger.at("/file"), LIMIT)
    assert told.value.fate is Fate.REFUSED
    assert stranger.asked == []


async def test_a_redirect_is_judged_like_any_address(platform: Stranger, stranger: Stranger) -> None:
    source = FileSource(FileHosts((), platform.at("/")), TOKEN)
    platform.to = stranger.at("/file")
    with pytest.raises(CallFailed):
        await source.fetched(platform.at("/away"), LIMIT)
    assert stranger.asked == []

    platform.to = "/file"
    assert await source.fetched(platform.at("/away"), LIMIT) == b"bytes"


@pytest.mark.parametrize(
    ("status", "kind", "size", "fate"),
    [
        (200, "application/pdf", LIMIT, None),
        (200, "application/pdf", LIMIT + 1, Fate.REFUSED),
        (200, "text/html", 5, Fate.REFUSED),
        (206, "application/pdf", 5, Fate.REFUSED),
        (404, "application/pdf", 5, Fate.REFUSED),
        (429, "application/pdf", 5, Fate.NOT_SENT),
        (503, "text/html", 5, Fate.NOT_SENT),
    ],
)
async def test_only_what_the_platform_gives_as_the_file_is_the_file_and_no_more_of_it_is_read_than_may_be(
    platform: Stranger, status: int, kind: str, size: int, fate: Fate | None
) -> None:
    """A page in its place is how somebody says no who wants a token; of who wants none it may be the file."""
    platform.status, platform.kind, platform.size = status, kind, size
    hosts = FileHosts((), platform.at("/"))
    if fate is None:
        assert len(await FileSource(hosts, TOKEN).fetched(platform.at("/odd"), LIMIT)) == size
        return
    with pytest.raises(CallFailed) as told:
        await FileSource(hosts, TOKEN).fetched(platform.at("/odd"), LIMIT)
    assert told.value.fate is fate
    if kind == "text/html" and status == 200:
        assert await FileSource(hosts).fetched(platform.at("/odd"), LIMIT) == b"x" * size


async def test_a_redirect_that_never_ends_is_given_up(platform: Stranger) -> None:
    platform.to = "/away"
    with pytest.raises(CallFailed):
        await FileSource(FileHosts((), platform.at("/")), TOKEN).fetched(platform.at("/away"), LIMIT)
    assert len(platform.asked) < 10


@pytest.mark.parametrize("address", ["http://[::1", "https://[", "https://slack.com:99999/x", "\0", "https://\udcff/x"])
async def test_an_address_that_cannot_be_read_is_refused_in_words(address: str) -> None:
    with pytest.raises(CallFailed) as told:
        await FileSource(SLACK, TOKEN).fetched(address, LIMIT)
    assert told.value.fate is Fate.REFUSED


def test_a_source_does_not_show_its_token() -> None:
    assert "canary" not in repr(FileSource(SLACK, TOKEN))


def test_an_external_file_on_slack_is_not_one_that_can_be_fetched() -> None:
    file = {
        "id": "F1",
        "name": "x",
        "mimetype": "text/plain",
        "mode": "external",
        "url_private": "http://127.0.0.1:1/x",
    }
    event = {"type": "message", "channel": "D1", "user": "U1", "ts": "1.0", "text": "look", "files": [file]}
    read = read_message(event, "UBOT", "1-2", "Ada")
    assert read is not None
    assert [(one.kind, one.ref) for one in read.origin.attachments] == [(AttachmentKind.OTHER, "")]
