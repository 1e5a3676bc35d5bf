"""What an operator's command says when the gateway is slow, not ready, or reads another file than the one that lies here."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.checks.findings import Severity
from adapters.terminal import operator
from adapters.terminal.approvals import approvals_lines
from adapters.terminal.ask import GatewayLost, GatewayRefused
from adapters.terminal.operator import Remote, status_lines, webhook_lines
from agent_core.jsonvalue import Json
from gateway.cli.guarded import guarded
from gateway.config.paths import resolve
from gateway.config.reading import ConfigError, load
from gateway.operate.context import caller_key, passed_over
from gateway.operate.doctor.looks import judged_status
from tests.forked import start
from tests.gateway.test_process import daemon, environment, outspoken
from tests.gateway.test_terminal_waits import until
from tests.ports import free_port


@contextmanager
def locked(database: Path) -> Generator[None]:
    """Another program writes to it, and takes its time."""
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("begin immediate")
    try:
        yield
    finally:
        other.rollback()
        other.close()


async def test_while_the_database_is_locked_whoever_asks_is_told_what_is_waited_for(tmp_path: Path) -> None:
    env, err = environment(tmp_path, free_port()), tmp_path / "err"
    with daemon(env, tmp_path / "log"):
        assert outspoken(env, "ask", "hello").returncode == 0
        [database] = tmp_path.rglob("outspoken.db")
        with locked(database):
            asking = await asyncio.to_thread(start, ["ask", "hello again"], env, out=tmp_path / "out", err=err)
            await until(lambda: err.exists() and "[outspoken] The gateway" in err.read_text())
        assert await asyncio.to_thread(asking.wait) == 0, err.read_text()
    assert "You wrote “hello again”" in (tmp_path / "out").read_text()


async def test_what_an_operator_asks_of_a_slow_gateway_says_what_is_waited_for_and_why_nothing_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operator, "SLOW_SECONDS", 0.01)
    monkeypatch.setattr(operator, "LONGEST_SECONDS", 0.3)
    said: list[str] = []

    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    async def other(_: web.Request) -> web.Response:
        return web.Response(text="not JSON")

    app = web.Application()
    app.router.add_get("/status", slow)
    app.router.add_get("/metrics", other)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    url = f"http://127.0.0.1:{port}"
    try:
        with pytest.raises(GatewayLost, match=r"does not answer: there was no answer in time\.$"):
            await Remote(url, None, tell=said.append).status()
        assert said == [f"Waiting for the gateway at {url} to answer, 0.3 s at most …"]
        with pytest.raises(GatewayLost, match="is no gateway"):
            await Remote(url, None).call("GET", "/metrics")
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("http", "status"), [(503, 75), (507, 75), (404, 1)])
def test_what_may_work_later_has_the_exit_status_of_that(http: int, status: int) -> None:
    async def refused() -> int:
        raise GatewayRefused("no", http)

    with pytest.raises(SystemExit) as ended:
        guarded(refused)
    assert ended.value.code == status


def test_a_gateway_that_is_not_ready_is_a_problem_for_doctor() -> None:
    found = judged_status({"problems": ["The database takes no writes."], "storage": "It is locked.", "adapters": []})
    assert [(one.check, one.level) for one in found] == [("gateway.ready", Severity.PROBLEM)]
    assert "It is locked." in found[0].what


def test_whatever_a_gateway_says_is_not_well_doctor_says_too_and_once() -> None:
    folder, law = "The folder for files (/mnt/files) is not the one with which this gateway began.", "A law is broken."
    body: dict[str, Json] = {
        "problems": ["The database takes no writes."],
        "unwell": ["The database takes no writes.", "slack is not connected; it is tried again.", folder, law],
        "adapters": [{"name": "slack/T1", "state": "down", "words": "no connection"}],
        "alerts": [{"kind": "law", "words": law}],
        "audit": {"count": 1},
    }
    found = judged_status(body)
    assert [one.check for one in found] == ["gateway.ready", "slack.running", "gateway.audit", "gateway.well"]
    assert (found[-1].what, found[-1].level) == (folder, Severity.WARNING)


def test_what_never_came_is_not_last_seen_never() -> None:
    body: dict[str, Json] = {"adapters": [{"name": "telegram/1", "state": "up", "inbound_age_seconds": 5}]}
    assert "telegram/1: up (last in 5 s ago, nothing out yet)" in status_lines(body)


def test_a_configuration_file_that_lies_here_and_is_not_read_is_told(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    paths = resolve({}, tmp_path / "home")
    assert passed_over(paths, here) == []
    (here / "outspoken.toml").write_text("")
    [words] = passed_over(paths, here)
    assert str(here / "outspoken.toml") in words
    assert str(paths.config_file) in words
    assert passed_over(resolve({"OUTSPOKEN_HOME": str(here)}, tmp_path / "home"), here) == []


def test_the_list_of_what_waits_shows_with_what_it_would_run() -> None:
    lines = approvals_lines([{"id": "c_1", "question": "May post run with:\nto: ada\ntext: hello", "asker": "bo"}])
    assert lines[0] == "c_1  May post run with: to: ada · text: hello"


@pytest.mark.parametrize(
    ("given", "key"), [("osk-mine-12345\r\n", "osk-mine-12345"), ("", "osk-configured"), (" ", "osk-configured")]
)
def test_the_key_of_a_command_is_the_one_that_is_given_for_it_however_it_was_copied(
    monkeypatch: pytest.MonkeyPatch, given: str, key: str
) -> None:
    config = load(None, {"OUTSPOKEN_SERVER__API_KEY": "osk-configured"}).config
    monkeypatch.setenv("OUTSPOKEN_KEY", given)
    assert caller_key(config) == key


def test_a_key_that_no_request_can_carry_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSPOKEN_KEY", "two words")
    with pytest.raises(ConfigError, match=r"OUTSPOKEN_KEY \(environment\): it must be one word") as refused:
        caller_key(load(None, {}).config)
    assert "two words" not in str(refused.value)


ASKS: list[tuple[Callable[[Remote], Awaitable[object]], tuple[str, str, Json]]] = [
    (lambda to: to.decide_call("appr_1", approve=True, lasts="always"),
     ("POST", "/api/approvals", {"id": "appr_1", "approve": True, "lasts": "always"})),
    (lambda to: to.decide("revoke", "telegram/1/7"), ("POST", "/api/access", {"verb": "revoke", "who": "telegram/1/7"})),
    (lambda to: to.key("add", "laptop", {"owner": "ada"}),
     ("POST", "/api/keys", {"verb": "add", "name": "laptop", "owner": "ada"})),
    (lambda to: to.webhook("test", "pager", "w_1"), ("POST", "/api/webhooks", {"verb": "test", "receiver": "pager", "id": "w_1"})),
    (lambda to: to.send("telegram/1", "hi", [("a.txt", b"x")], "k1"),
     ("POST", "/api/send", {"to": "telegram/1", "text": "hi", "files": [{"name": "a.txt", "data": "eA=="}], "key": "k1"})),
    (lambda to: to.send("telegram/1", "hi", (), "k1", agents=True),
     ("POST", "/api/send", {"to": "telegram/1", "text": "hi", "files": [], "key": "k1", "agents": True})),
    (lambda to: to.delivery("7/..", 2.5), ("GET", "/api/send/7%2F..?wait=2.5", None)),
    (lambda to: to.approvals(), ("GET", "/api/approvals", None)),
    (lambda to: to.keys(), ("GET", "/api/keys", None)),
    (lambda to: to.people(), ("GET", "/api/access", None)),
    (lambda to: to.webhooks(), ("GET", "/api/webhooks", None)),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "asked"), ASKS)
async def test_what_an_operators_command_wants_reaches_the_gateway_whole_and_under_its_key(
    ask: Callable[[Remote], Awaitable[object]], asked: tuple[str, str, Json]
) -> None:
    heard: list[tuple[str, str, Json]] = []

    async def noted(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer osk-mine"
        body = await request.read()
        heard.append((request.method, request.raw_path, orjson.loads(body) if body else None))
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", noted)
    async with TestServer(app) as server:
        await ask(Remote(str(server.make_url("/")).rstrip("/"), "osk-mine"))
    assert heard == [asked]


@pytest.mark.parametrize("slow", [False, True])
async def test_what_is_waited_for_is_said_while_it_is_waited_for_and_not_afterwards(
    monkeypatch: pytest.MonkeyPatch, *, slow: bool
) -> None:
    monkeypatch.setattr(operator, "SLOW_SECONDS", 0.0)
    said: list[str] = []
    with operator.told_if_slow(said.append, "waiting"):
        while slow and not said:
            await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert said == ["waiting"] * slow


def test_of_a_receiver_of_webhooks_it_is_shown_whether_it_is_on_and_what_it_was_not_told() -> None:
    lost: Json = [{"id": "w_1", "event": "turn.ended", "at": "12:00", "why": "HTTP 500"}]
    well: dict[str, Json] = {"receiver": "pager", "waiting": 0, "sent": 5, "given_up": 0, "url": "https://e.org"}
    ill: dict[str, Json] = {
        **well, "receiver": "board", "off": "it took nothing", "failing_since": "11:00", "given_up": 1, "last_given_up": lost,
    }  # fmt: skip
    assert webhook_lines([well, ill]) == [
        "pager: on; 0 waiting, 5 sent since the start, 0 given up (https://e.org)",
        "board: off, because it took nothing, has taken nothing since 11:00; 0 waiting, 5 sent since the start, 1 given up (https://e.org)",
        "  given up: w_1 turn.ended of 12:00: HTTP 500",
    ]
