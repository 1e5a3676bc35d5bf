"""What is typed is what the gateway is asked, and what it says is the exit status: the commands that talk to one, held against one that notes it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from adapters.terminal.ask import GatewayRefused
from agent_core.jsonvalue import Json
from gateway.cli import command
from gateway.cli.command import cli
from gateway.config.paths import find_paths
from gateway.config.reading import CannotServe, ConfigError, load
from gateway.observe.lifesign import RunningGateway
from gateway.operate import context
from gateway.operate.context import Here

WAITS: list[Mapping[str, Json]] = [
    {"id": "appr_1ab", "offers": ["once"], "question": "run?"},
    {"id": "appr_2ab", "offers": ["once", "always"], "question": "run?"},
]
KEY: Mapping[str, Json] = {"name": "laptop", "begins": "sk-outspoken-x"}


class Gateway:
    """Notes what it is asked."""

    def __init__(self, state: str = "sent", *, well: bool = True) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.states = ["wanted", state]
        self.well = well

    async def approvals(self) -> Sequence[Mapping[str, Json]]:
        return WAITS

    async def decide_call(self, name: str, *, approve: bool, lasts: str) -> Mapping[str, Json]:
        self.asked.append((name, approve, lasts))
        return {"status": "approved" if approve else "denied", "lasts": lasts}

    async def webhook(self, verb: str, name: str, one: str) -> Mapping[str, Json]:
        self.asked.append((verb, name, one))
        return {}

    async def key(self, verb: str, name: str, more: Mapping[str, Json]) -> tuple[Mapping[str, Json], str]:
        self.asked.append((verb, name, more))
        return {"name": name}, ""

    async def people(self) -> Sequence[Mapping[str, Json]]:
        return []

    async def decide(self, verb: str, who: str) -> Sequence[Mapping[str, Json]]:
        self.asked.append((verb, who))
        return []

    async def send(self, to: str, text: str, files: Sequence[tuple[str, bytes]], key: str) -> Mapping[str, Json]:
        self.asked.append((to, text, files, key))
        return {"id": 7, "state": self.states.pop(0)}

    async def delivery(self, number: str, wait_seconds: float) -> Mapping[str, Json]:
        self.asked.append(("delivery", number, wait_seconds > 0))
        return {"id": number, "state": self.states[0], "cause": "blocked"}

    async def status(self) -> Mapping[str, Json]:
        return {"ready": True, "well": self.well}


def typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: Sequence[str], gateway: Gateway) -> Any:
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    config = load(None, {}).config

    async def here(_: object) -> Any:
        def there(**_: object) -> Gateway:
            return gateway

        found = SimpleNamespace(url="http://here", pid=0)
        return SimpleNamespace(config=config, paths=paths, found=found, remote=there, remote_if_any=there)

    monkeypatch.setattr(context, "here", here)
    return CliRunner().invoke(cli, [*words])


ASKED: list[tuple[str, tuple[Any, ...]]] = [
        ("approvals approve appr_1ab", ("appr_1ab", True, "once")),
        ("approvals approve 2ab --for always", ("appr_2ab", True, "always")),
        ("approvals deny 1ab", ("appr_1ab", False, "once")),
        ("webhooks test deploy", ("test", "deploy", "")),
        ("webhooks resend deploy", ("resend", "deploy", "")),
        ("webhooks resend deploy w_1", ("resend", "deploy", "w_1")),
        ("webhooks on deploy", ("on", "deploy", "")),
        ("access approve ABCD2345", ("approve", "ABCD2345")),
        ("people revoke -1007", ("revoke", "-1007")),
        ("access forget api/ada --yes", ("forget", "api/ada")),
        ("keys revoke laptop", ("revoke", "laptop", {})),
        ("keys rotate laptop --keep-minutes 5", ("rotate", "laptop", {"keep_seconds": 300})),
        ("keys add laptop --owner ada --day-money 1.5", ("add", "laptop", {"terms": {"owner": "ada", "day_nanos": 1_500_000_000}})),
        ("keys change laptop --thinking hide", ("change", "laptop", {"terms": {"thinking": False}})),
        ("keys change laptop --thinking show", ("change", "laptop", {"terms": {"thinking": True}})),
        ("keys change laptop --thinking default", ("change", "laptop", {"terms": {"thinking": None}})),
        ("keys change laptop --no-tools --per-minute 3", ("change", "laptop", {"terms": {"minute_requests": 3, "tools": []}})),
        ("keys change laptop --all-tools --models a,,b", ("change", "laptop", {"terms": {"models": ["a", "b"], "tools": None}})),
        ("keys change laptop --errors default --tools-from both", ("change", "laptop", {"terms": {"errors": None, "tools_from": "both"}})),
        ("keys change laptop --no-names-users --expires-days 0", ("change", "laptop", {"terms": {"names_users": False, "expires_at": 0}})),
        ("send --to telegram/7 --key k hello there", ("telegram/7", "hello there", [], "k")),
]  # fmt: skip


@pytest.mark.parametrize(("words", "asked"), ASKED)
def test_the_gateway_is_asked_for_what_was_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, asked: tuple[Any, ...]
) -> None:
    gateway = Gateway()
    done = typed(monkeypatch, tmp_path, words.split(), gateway)
    assert (gateway.asked, done.exit_code) == ([asked], 0), done.output


@pytest.mark.parametrize("words", ["approvals deny ab", "approvals approve 1ab --for always", "approvals approve 3"])
def test_nothing_is_decided_that_is_not_one_or_may_not_be_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    gateway = Gateway()
    done = typed(monkeypatch, tmp_path, words.split(), gateway)
    assert (gateway.asked, done.exit_code) == ([], 1)


def test_a_key_expires_after_as_many_days_as_were_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gateway = Gateway()
    monkeypatch.setattr("gateway.cli.keys.time.time", lambda: 1000.0)
    typed(monkeypatch, tmp_path, ["keys", "change", "laptop", "--expires-days", "1.5"], gateway)
    assert gateway.asked[0][2] == {"terms": {"expires_at": (1000 + 36 * 3600) * 1000}}


@pytest.mark.parametrize(("state", "status"), [("sent", 0), ("failed", 1)])
def test_send_waits_until_it_is_settled_and_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, status: int
) -> None:
    gateway = Gateway(state)
    done = typed(monkeypatch, tmp_path, ["send", "--to", "telegram/7", "--wait", "hello"], gateway)
    assert (gateway.asked[1:], done.exit_code) == ([("delivery", "7", True)], status)


@pytest.mark.parametrize("own", [True, False])
def test_what_is_left_of_a_question_goes_on_where_somebody_can_come_back_for_it(
    monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    asked: list[tuple[object, ...]] = []

    @asynccontextmanager
    async def gateway(_: object) -> AsyncGenerator[tuple[str, str | None, bool]]:
        yield "http://here", "k", own

    async def ask(
        url: str, key: str, words: str, *, session: str, as_json: bool, cancel_on_leave: bool, **_: Any
    ) -> int:
        asked.append((url, key, words, session, as_json, cancel_on_leave))
        return 11

    monkeypatch.setattr(command, "_gateway", gateway)
    monkeypatch.setattr("adapters.terminal.ask.ask", ask)
    done = CliRunner().invoke(cli, ["ask", "--session", "s", "what", "now"])
    assert (asked, done.exit_code) == ([("http://here", "k", "what now", "s", False, own)], 11)


@pytest.mark.parametrize("well", [True, False])
def test_status_needs_somebody_or_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, well: bool) -> None:
    done = typed(monkeypatch, tmp_path, ["status", "--json"], Gateway(well=well))
    assert done.exit_code == (0 if well else 1)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError([]), 78),
        (CannotServe("no"), 78),
        (GatewayRefused("no", 503), 75),
        (GatewayRefused("full", 507), 75),
        (GatewayRefused("no", 404), 1),
        (ExceptionGroup("", [CannotServe("no")]), 78),
    ],
)
def test_each_kind_of_trouble_has_its_exit_status_and_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, status: int
) -> None:
    gateway = Gateway()

    async def fails() -> Any:
        raise error

    gateway.status = fails
    done = typed(monkeypatch, tmp_path, ["status"], gateway)
    assert (done.exit_code, isinstance(done.exception, SystemExit)) == (status, True)


def test_a_gateway_that_runs_and_does_not_answer_has_the_database(tmp_path: Path) -> None:
    config, paths = load(None, {}).config, find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    found = Here(config, paths, RunningGateway())
    assert found.remote_if_any() is None
    assert replace(found, found=RunningGateway("http://127.0.0.1:1")).remote_if_any() is not None
    with pytest.raises(Exception, match="It hangs"):
        replace(found, found=RunningGateway(trouble="It hangs.", pid=4)).remote_if_any()


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:8787"), ("::", "http://[::1]:8787"), ("10.0.0.7", "http://10.0.0.7:8787")],
)
def test_a_gateway_that_listens_everywhere_is_called_at_loopback(host: str, url: str) -> None:
    config = load(None, {"OUTSPOKEN_SERVER__HOST": host}).config
    assert context.configured_url(config) == url
    free = load(None, {"OUTSPOKEN_SERVER__HOST": host, "OUTSPOKEN_SERVER__PORT": "0"}).config
    assert context.configured_url(free) == "", "nobody knows the port"
