"""Servers of tools that are reached by HTTP: real ones on loopback, ended, begun anew, refusing, slow; and logins at them."""

from __future__ import annotations

import asyncio
import stat
import time
from pathlib import Path

import aiohttp
import httpx2
import pytest

from adapters.contract.settings import Url
from agent_core.jsonvalue import Json
from agent_core.tools.base import ToolStatus
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.logins import LoginFile, login_words
from agent_core.tools.mcp.oauth import EARLY_SECONDS, LoginNeeded, StoredLogin, proof_method
from agent_core.tools.mcp.terms import ServerTerms
from gateway.config.tools.mcp import McpEntry
from gateway.operate.mcplogin import log_in
from gateway.operate.trying import NotTried
from tests.mcp.httprig import HttpTools, Logins, http_tools
from tests.mcp.rig import brought


def terms_of(tools: HttpTools) -> ServerTerms:
    return ServerTerms("tickets", "tickets__", url=tools.url, start_seconds=8, silence_seconds=1.5, limit_seconds=4)


async def test_a_server_that_is_begun_anew_forgets_the_session_and_its_tools_go_on(tmp_path: Path):
    async with http_tools() as tools, brought(tmp_path, terms_of(tools)) as rig:
        assert (await rig.call("tickets__look")).text == "three tickets"
        await tools.end()
        await tools.begin()
        assert (await rig.call("tickets__look")).status is ToolStatus.OK
        done = await rig.call("tickets__close")
        assert (done.status, tools.effects.count("close")) == (ToolStatus.OK, 1)


NO_SESSION = (
    '{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}, "id": null}'
)
NOT_BEGUN = (
    '{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: Server not initialized"}, "id": null}'
)
NO_ARGUMENT = '{"jsonrpc": "2.0", "error": {"code": -32602, "message": "session_id: field required"}, "id": null}'


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "Not Found"), (400, NO_SESSION), (400, NOT_BEGUN), (400, "Bad Request: No valid session ID provided")],
)
async def test_a_call_in_a_session_that_its_server_has_forgotten_is_made_in_another_one_whatever_it_does(
    status: int, said: str, tmp_path: Path
):
    """Servers forget theirs with each restart, and after a while; behind a proxy nothing else tells of it."""
    async with http_tools(sessions=True) as tools, brought(tmp_path, terms_of(tools)) as rig:
        assert (await rig.call("tickets__look")).text == "three tickets"
        tools.forget(status, said)
        done = await rig.call("tickets__close")
        assert (done.status, done.text) == (ToolStatus.OK, "closed")
        assert tools.effects.count("close") == 1
        assert rig.servers.servers["tickets"].begun == 2


async def test_a_refusal_of_arguments_is_no_forgotten_session(tmp_path: Path):
    async with http_tools(sessions=True) as tools, brought(tmp_path, terms_of(tools)) as rig:
        assert (await rig.call("tickets__look")).text == "three tickets"
        tools.forget(400, NO_ARGUMENT)
        done = await rig.call("tickets__close")
        assert done.status is ToolStatus.FAILED
        assert "session_id: field required" in done.text
        assert rig.servers.servers["tickets"].begun == 1


async def test_a_call_to_a_server_that_is_not_there_is_not_said_to_have_been_sent(tmp_path: Path):
    async with http_tools() as tools, brought(tmp_path, terms_of(tools)) as rig:
        assert (await rig.call("tickets__look")).text == "three tickets"
        await tools.end()
        done = await rig.call("tickets__close")
        assert (done.status, "nothing was done" in done.text) == (ToolStatus.FAILED, True), done.text
        assert "may have been done" not in done.text


async def test_a_gateway_that_stops_in_the_moment_in_which_a_connection_breaks_comes_to_its_end(tmp_path: Path):
    """What closes such a connection may swallow that it is cancelled."""
    async with http_tools() as tools, asyncio.timeout(30):
        async with brought(tmp_path, terms_of(tools)) as rig:
            assert (await rig.call("tickets__look")).text == "three tickets"
            link = rig.servers.servers["tickets"]._link
            assert link is not None
            await tools.end()
            calling = asyncio.ensure_future(rig.call("tickets__close"))
            await link.over.wait()
        calling.cancel()


async def test_an_effect_whose_server_ends_under_it_is_told_as_unknown_and_done_once(tmp_path: Path):
    async with http_tools() as tools, brought(tmp_path, terms_of(tools)) as rig:
        calling = asyncio.ensure_future(rig.call("tickets__close", {"seconds": 3}))
        async with asyncio.timeout(10):
            while not tools.effects:
                await asyncio.sleep(0.02)
        await tools.end()
        outcome = await calling
        assert outcome.status in (ToolStatus.UNKNOWN, ToolStatus.TIMED_OUT), outcome
        assert "may have been done" in outcome.text
        await tools.begin()
        assert tools.effects == ["close"]


@pytest.mark.parametrize("sessions", [False, True])
async def test_a_call_whose_stream_ends_takes_no_other_call_with_it(sessions: bool, tmp_path: Path):
    """Each has a stream of its own, and the others may be other people's."""
    async with http_tools(sessions=sessions) as tools, brought(tmp_path, terms_of(tools)) as rig:
        slow = asyncio.ensure_future(rig.call("tickets__close", {"seconds": 1}))
        cut = asyncio.ensure_future(rig.call("tickets__cut"))
        async with asyncio.timeout(10):
            while {*tools.effects} != {"close", "cut"}:
                await asyncio.sleep(0.02)
        tools.cutting.set()
        outcome = await cut
        assert (outcome.status, "its stream of events ended" in outcome.text) == (ToolStatus.UNKNOWN, True), outcome
        assert (await slow).text == "closed"
        assert (await rig.call("tickets__look")).text == "three tickets"
        assert rig.servers.servers["tickets"].begun == 1


async def test_a_slow_answer_is_told_and_not_asked_for_again(tmp_path: Path):
    async with http_tools() as tools, brought(tmp_path, terms_of(tools)) as rig:
        outcome = await rig.call("tickets__close", {"seconds": 5})
        assert outcome.status is ToolStatus.TIMED_OUT
        assert "may have been done" in outcome.text
        assert tools.effects == ["close"]


@pytest.mark.parametrize(("status", "words"), [(401, "401"), (403, "403"), (500, "500"), (503, "503")])
async def test_a_server_that_refuses_is_told_with_what_it_says(status: int, words: str, tmp_path: Path):
    async with http_tools() as tools, brought(tmp_path, terms_of(tools)) as rig:
        assert (await rig.call("tickets__look")).status is ToolStatus.OK
        tools.status = status
        outcome = await rig.call("tickets__close")
        assert outcome.status is not ToolStatus.OK
        assert words in outcome.text, outcome.text
        assert "close" not in tools.effects


async def test_a_person_logs_in_once_and_the_gateway_renews_it(tmp_path: Path):
    logins = Logins()
    async with http_tools(logins) as tools:
        folder = tmp_path / "mcp"
        entry = McpEntry(name="tickets", url=tools.url, oauth=True)
        async with brought(tmp_path, entry.terms(folder)) as rig:
            assert "outspoken mcp login tickets" in rig.servers.servers["tickets"].why
        assert not logins.clients  # the gateway itself begins nothing
        said: list[str] = []
        words = await log_in(entry, folder, 0, _browsing(said), _nothing_typed, lambda: 0)
        assert "logged in" in words
        file = LoginFile.of(folder, "tickets")
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
        async with brought(tmp_path, entry.terms(folder)) as rig:
            assert (await rig.call("tickets__look")).text == "three tickets"
        assert logins.renewed == 0
        file.keep(expires_at=1.0)  # a gateway that begins much later
        logins.good.clear()
        async with brought(tmp_path, entry.terms(folder)) as rig:
            assert (await rig.call("tickets__look")).text == "three tickets"
        assert logins.renewed == 1
        file.keep(expires_at=1.0)
        logins.good.clear()
        logins.renewing.clear()
        async with brought(tmp_path, entry.terms(folder)) as rig:
            outcome = await rig.call("tickets__look")
            assert outcome.status is ToolStatus.FAILED
            assert "outspoken mcp login tickets" in outcome.text


async def test_a_login_is_renewed_before_it_ends_and_where_and_until_when_is_kept(tmp_path: Path):
    logins = Logins()
    async with http_tools(logins) as tools:
        entry = McpEntry(name="tickets", url=tools.url, oauth=True)
        await log_in(entry, tmp_path, 0, _browsing([]), _nothing_typed, lambda: 0)
        file = LoginFile.of(tmp_path, "tickets")
        file.keep(expires_at=time.time() + EARLY_SECONDS / 2)
        async with brought(tmp_path, entry.terms(tmp_path)) as rig:
            assert (await rig.call("tickets__look")).text == "three tickets"
        assert logins.renewed == 1
        until = file.read()["expires_at"]
        assert isinstance(until, float)
        assert abs(until - time.time() - logins.good_seconds) < 60
        link = McpLink()
        begun = Begun(entry.terms(tmp_path), file, link)
        await begun.begin()
        metadata = begun.context.oauth_metadata
        assert metadata is not None
        assert str(metadata.token_endpoint).startswith(f"http://127.0.0.1:{tools.port}/")
        with pytest.raises(LoginNeeded):
            await begun.ask("https://login.example")
        assert "outspoken mcp login tickets" in link.why, "whoever looks at the server is told"


class Begun(StoredLogin):
    async def begin(self) -> None:
        await self._initialize()

    async def ask(self, address: str) -> None:
        await self._show(address)


async def test_a_login_server_is_itself_with_and_without_the_slash_at_its_end(tmp_path: Path):
    """Servers of tools made with earlier versions of the protocol's package put one behind every bare host."""
    async with http_tools(Logins()) as tools:
        entry = McpEntry(name="tickets", url=tools.url, oauth=True)
        tools.issuer = f"http://127.0.0.1:{tools.port}"
        assert "logged in" in await log_in(entry, tmp_path, 0, _browsing([]), _nothing_typed, lambda: 0)
        async with brought(tmp_path, entry.terms(tmp_path)) as rig:
            assert (await rig.call("tickets__look")).text == "three tickets"
        for other in (f"http://localhost:{tools.port}/", f"{tools.issuer}/tenant"):
            tools.issuer = other
            with pytest.raises(NotTried, match="issuer mismatch"):
                await log_in(entry, tmp_path, 0, _browsing([]), _nothing_typed, lambda: 0)


@pytest.mark.parametrize(
    ("taken", "without", "with_one"),
    [
        (["none", "client_secret_basic"], "none", "client_secret_basic"),
        (["client_secret_post", "client_secret_basic"], "client_secret_post", "client_secret_post"),
        (["client_secret_basic"], "client_secret_basic", "client_secret_basic"),
        (None, "client_secret_basic", "client_secret_basic"),
        (["private_key_jwt"], "none", "client_secret_post"),
    ],
)
def test_who_we_are_is_proved_in_a_way_that_is_taken(taken: list[str] | None, without: str, with_one: str):
    assert (proof_method(taken, secret=False), proof_method(taken, secret=True)) == (without, with_one)


async def test_a_login_server_that_takes_only_clients_with_a_secret_is_logged_in_at(tmp_path: Path):
    logins = Logins()
    async with http_tools(logins) as tools:
        tools.issuer = f"http://127.0.0.1:{tools.port}"  # it does not say what it takes
        entry = McpEntry(name="tickets", url=tools.url, oauth=True)
        assert "logged in" in await log_in(entry, tmp_path, 0, _browsing([]), _nothing_typed, lambda: 0)
        (client,) = logins.clients.values()
        assert client.token_endpoint_auth_method == "client_secret_basic"
        LoginFile.of(tmp_path, "tickets").keep(expires_at=1.0)
        logins.good.clear()
        async with brought(tmp_path, entry.terms(tmp_path)) as rig:
            assert (await rig.call("tickets__look")).text == "three tickets"
        assert logins.renewed == 1


async def test_a_pasted_address_logs_in_as_well_and_a_wrong_one_is_told(tmp_path: Path):
    async with http_tools(Logins()) as tools:
        entry = McpEntry(name="tickets", url=tools.url, oauth=True)
        typed: list[str] = []

        def shown(words: str) -> None:
            typed.extend(line for line in words.splitlines() if line.startswith("http"))

        def pasted() -> str:
            found = httpx2.get(typed[0], follow_redirects=False)
            return f"{found.headers['Location']}\n"

        assert "logged in" in await log_in(entry, tmp_path, 0, shown, pasted, lambda: 0)
        with pytest.raises(NotTried, match="did not work"):
            await log_in(entry, tmp_path, 0, lambda _: None, lambda: "http://127.0.0.1/callback?state=x\n", lambda: 0)
        assert LoginFile.of(tmp_path, "tickets").read()  # the one before stays


def test_how_a_login_stands_is_said_in_words():
    assert "outspoken mcp login x" in login_words({}, "x", 0)
    tokens: dict[str, Json] = {"access_token": "secret"}
    assert "ended" in login_words({"tokens": tokens, "expires_at": 10}, "x", 20)
    assert "renewed by itself" in login_words({"tokens": {**tokens, "refresh_token": "r"}, "expires_at": 10}, "x", 20)
    assert "then it needs" in login_words({"tokens": tokens, "expires_at": 100}, "x", 20)
    assert "secret" not in login_words({"tokens": tokens}, "x", 20)


def _nothing_typed() -> str:
    return ""


def _browsing(said: list[str]):
    def say(words: str) -> None:
        said.append(words)
        for line in words.splitlines():
            if line.startswith("http"):
                said.append(line)
                task = asyncio.ensure_future(_browse(line))
                task.add_done_callback(lambda _: None)

    return say


async def _browse(address: Url) -> None:
    async with aiohttp.ClientSession() as http, http.get(address) as page:
        assert "Go back to the terminal" in await page.text()
