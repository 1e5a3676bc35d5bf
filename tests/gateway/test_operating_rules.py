"""Rules of whoever runs the gateway, and of its doors, each by itself: what a metric adds up to, when the console is behind a proxy, what setup takes out
of a file of secrets, what a restore leaves alone, how much a request may bring. Without a gateway."""

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
from aiohttp.web import Response
from hypothesis import given
from hypothesis import strategies as st

from adapters.checks.findings import Severity
from adapters.contract.chat import ChatAddress
from adapters.contract.platforms import Key, SetupResult
from adapters.http.common import Problem
from adapters.http.enclosing import MOST_FILES, content_of
from adapters.http.sessions import managed
from agent_core.jsonvalue import Json
from agent_core.ports import SystemIds
from gateway.commands.posts import post_inbound
from gateway.config.keys import describe
from gateway.config.reading import load
from gateway.console.opening import console
from gateway.http.sending import Sending, SendRequest
from gateway.observe.counted import HistogramSeries
from gateway.operate import database, servers
from gateway.operate.doctor.machine import judged_disk
from gateway.operate.setup import wizard
from gateway.operate.setup.prompts import Prompts
from gateway.operate.setup.services import Given
from gateway.operate.trying import NotTried
from gateway.queues import inbox
from gateway.schedule.reminding import NewReminder, meaning
from gateway.schedule.times import Cron
from gateway.webhooks.prompting import room_in
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


@pytest.mark.parametrize(
    ("free", "level"),
    [
        (0, Severity.PROBLEM),
        (100 * 1024**2 - 1, Severity.PROBLEM),
        (100 * 1024**2, Severity.WARNING),
        (1024**3, Severity.OK),
    ],
)
def test_a_disk_that_is_full_is_a_problem_and_one_that_will_be_soon_a_warning(free: int, level: Severity) -> None:
    assert judged_disk(free, Path("/state")).level is level


@pytest.mark.parametrize(("many", "taken"), [(MOST_FILES, True), (MOST_FILES + 1, False)])
def test_a_message_has_as_many_files_as_it_says_and_not_one_more(many: int, *, taken: bool) -> None:
    files: list[Json] = [{"name": "a.txt", "data": "data:text/plain;base64,YQ=="}] * many
    found = content_of("look", files)
    assert isinstance(found, list) is taken
    assert isinstance(found, Problem) is not taken


@given(st.lists(st.integers(0, 180_000), max_size=30).map(sorted), st.integers(1, 4), st.integers(0, 250_000))
def test_a_webhook_is_called_as_often_in_a_minute_as_it_may_and_waits_no_longer_than_it_must(
    times: list[int], most: int, now: int
) -> None:
    taken = [at for at in times if at <= now]
    wait = room_in(taken, most, now)
    assert (wait == 0) is (sum(now - 60_000 < at for at in taken) < most)
    assert room_in(taken, most, now + wait * 1_000) == 0
    assert wait <= 60


@pytest.mark.parametrize(("said", "hour"), [("12:30 pm", 12), ("12:30 am", 0), ("11:30 pm", 23), ("1:30 am", 1)])
def test_noon_and_midnight_are_at_twelve(said: str, hour: int) -> None:
    found = meaning(f"every day at {said} tea", 0, "UTC")
    assert found == NewReminder(Cron(f"30 {hour} * * *", "UTC"), "tea")


@pytest.mark.parametrize(("there", "more"), [(2, False), (3, True)])
async def test_a_page_of_conversations_says_whether_there_are_more(
    there: int, monkeypatch: pytest.MonkeyPatch, *, more: bool
) -> None:
    async def page(_realm: object, _after: object, count: int, **_: object) -> list[dict[str, str]]:
        return [{"id": str(number)} for number in range(min(there, count))]

    def shown(one: dict[str, str]) -> dict[str, str]:
        return one

    monkeypatch.setattr(managed, "conversation_object", shown)
    routes: Any = SimpleNamespace(access=SimpleNamespace(page=page))
    request = asked(cast("Any", SimpleNamespace(realm=None)), query="limit=2")
    found = await managed.ManagedSessions._list(routes, request)
    assert isinstance(found, Response)
    told = orjson.loads(cast("Any", found.body))
    assert ([one["id"] for one in told["data"]], told["has_more"]) == (["0", "1"], more)


@pytest.mark.parametrize(("text", "status"), [("hello", 200), ("something else", 409)])
async def test_a_key_that_was_used_for_another_message_tells_nothing_of_that_one(text: str, status: int) -> None:
    to = ChatAddress("telegram", "1", "2")

    async def known(account: str, platform_key: str) -> Any:
        first = SendRequest(to.text(), "hello", (), "k")
        assert (account, platform_key) == ("telegram/1", "send:k")
        return SimpleNamespace(id=7, body=inbox.encode(post_inbound(to, platform_key, first.digest())))

    async def told(_: int) -> dict[str, Json]:
        return {"state": "sent"}

    sending: Any = SimpleNamespace(_store=SimpleNamespace(inbox=SimpleNamespace(by_key=known)), _told=told)
    found = await Sending._accept(sending, SendRequest(to.text(), text, (), "k"), to)
    assert found.status == status
