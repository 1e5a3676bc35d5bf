"""Rules of a line or two, each by itself: what a series of a metric adds up to, when the console is behind a proxy, what setup takes out of a file of
secrets, and that a message of a webhook that is not there is not said to be on its way."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.platforms import Key, SetupResult
from agent_core.ports import SystemIds
from gateway.config.keys import describe
from gateway.config.reading import load
from gateway.console.opening import console
from gateway.observe.counted import HistogramSeries
from gateway.operate import database, servers
from gateway.operate.setup import wizard
from gateway.operate.setup.prompts import Prompts
from gateway.operate.setup.services import Given
from gateway.operate.trying import NotTried
from gateway.webhooks.routes import HookRoutes
from tests.adapters.scripted import asked
from tests.agent_core.turns import gives
from tests.store.support import FakeClock


@given(st.lists(st.integers(-5, 50).map(float)))
def test_a_histogram_adds_everything_up_and_counts_each_up_to_its_bound(amounts: list[float]) -> None:
    bounds = (0.0, 10.0, 20.0)
    series = HistogramSeries(bounds)
    for amount in amounts:
        series.add(amount)
    edges = (float("-inf"), *bounds, float("inf"))
    assert series.total == sum(amounts)
    assert series.counts == [sum(low < one <= high for one in amounts) for low, high in pairwise(edges)]


@pytest.mark.parametrize("public", ["", "https://bot.example"])
def test_behind_a_public_address_nobody_is_taken_for_whoever_sits_at_this_machine(tmp_path: Path, public: str) -> None:
    env = {"OUTSPOKEN_HOME": str(tmp_path), "OUTSPOKEN_SERVER__PUBLIC_URL": public}
    config, anything = load(None, env).config, cast("Any", SimpleNamespace)
    hub, chats = anything(queues=None, portion=None), anything(outbox=None, sights=(), where=None)
    made = console(config, hub, anything(), FakeClock(), SystemIds(FakeClock()), chats, list)
    request = make_mocked_request("GET", "/console", headers={"Host": "127.0.0.1:8080"})
    request = request.clone(remote="127.0.0.1")
    assert made._access.at_this_machine(request) is not bool(public)


@pytest.mark.parametrize("key", [("telegram", "token"), ("model", "api_key"), ("slack", "app_token")])
def test_what_setup_writes_wins_against_every_other_name_of_it(tmp_path: Path, key: Key) -> None:
    prompts = Prompts(asks=False)
    made = wizard.Wizard(prompts, tmp_path / "outspoken.toml", {}, Given())
    changes = made._changes(SetupResult(values={key: "new"}))
    names = {name for name in names_of(key) if name not in changes}
    assert names == set(), "a file that was named before would be read in its place"
    assert [name for name, value in changes.items() if value is not None] == [made.doc(*key).env[-1]]


def names_of(key: Key) -> set[str]:
    """All variables from which a secret may come."""
    section, name = key
    return {env for doc in describe() if (doc.section, doc.key) in (key, (section, f"{name}_file")) for env in doc.env}


@pytest.mark.parametrize(("one", "count", "status"), [("m_1", 1, 200), ("m_1", 0, 404), ("", 0, 200)])
async def test_a_message_of_a_webhook_that_is_not_there_is_not_on_its_way_again(
    one: str, count: int, status: int
) -> None:
    async def resent(*_: object) -> int:
        return count

    sender = SimpleNamespace(knows=bool, resend=resent)
    routes = HookRoutes(cast("Any", sender), None, SystemIds(FakeClock()))
    body = orjson.dumps({"receiver": "team", "verb": "resend", "id": one})
    assert (await routes._act(asked(cast("Any", None), body))).status == status


@pytest.mark.parametrize("said", ["look_up", "cellar_look_up"])
async def test_a_tool_of_a_server_is_tried_by_the_name_that_the_server_gives_it_and_by_ours(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def check(name: str, _: str) -> object:
        checked.append(name)

    @asynccontextmanager
    async def begun(*_: object) -> AsyncGenerator[tuple[Any, Any]]:
        there = SimpleNamespace(listing=SimpleNamespace(tools=("look_up",)), why="")
        yield (
            SimpleNamespace(servers={"cellar": there}, names={"cellar": {"look_up": "cellar_look_up"}}),
            SimpleNamespace(check=check),
        )

    monkeypatch.setattr(servers, "begun", begun)
    config: Any = SimpleNamespace(mcp=SimpleNamespace(servers=[SimpleNamespace(name="cellar")]))
    with pytest.raises(NotTried, match="offers no tool"):
        await servers.tried(config, "cellar", said, "{}", print)
    assert checked == ["cellar_look_up"]


def test_after_a_restore_nothing_that_was_sent_is_changed_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_doubt", gives(0))
    conn = sqlite3.connect(":memory:")
    conn.executescript(
        "CREATE TABLE turns (turn, session, state, first_message); CREATE TABLE sessions (session, epoch);"
        "CREATE TABLE journal (id, seq); CREATE TABLE inbox (state, reason); CREATE TABLE deliveries (part, state, final, cause, at);"
        "INSERT INTO deliveries VALUES (1, 'sent', 0, '', 5), (2, 'sent', 1, '', 5), (3, 'wanted', 0, '', 5);"
    )
    with closing(conn):
        database._set_aside(conn, database._Counts(), 9)
        found = conn.execute("SELECT part, state, final, at FROM deliveries ORDER BY part").fetchall()
    assert found == [(1, "sent", 1, 5), (2, "sent", 1, 5), (3, "failed", 0, 9)]
