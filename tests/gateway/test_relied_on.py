"""What whoever runs a gateway relies on, rule by rule: what a restore sends and reads on from, what a look counts as ours, what a key is sent to, what is
told again. Without a gateway."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from adapters.checks.findings import Severity
from adapters.checks.probe import Answering
from adapters.contract.platforms import Key, SetupResult
from agent_core.store.deliveries.rows import AdapterStateRow, FailedPart
from agent_core.store.people.rows import PersonRow, PersonState
from gateway.config.paths import find_paths
from gateway.config.reading import ConfigError, load
from gateway.observe import looplag
from gateway.observe.health import LifePhase, Vitals
from gateway.observe.health import judge as judged_health
from gateway.observe.lifesign import LifeSign, RunningGateway, judge
from gateway.observe.logging import Outages
from gateway.observe.looplag import LoopWatch
from gateway.observe.metricscatalogue import BY_NAME
from gateway.operate import database, offline, replay
from gateway.operate.bundle import write
from gateway.operate.doctor import looks
from gateway.operate.doctor.looks import judged_status
from gateway.operate.setup import model as setup_model
from gateway.operate.setup import wizard
from gateway.operate.setup.prompts import Prompts
from gateway.operate.setup.services import Given, services
from gateway.operate.triage import reading as triage
from gateway.operate.triage.lines import LogReading, sift
from gateway.sharing.portion import PEOPLE
from tests.agent_core.turns import gives
from tests.gateway.test_bundle import archived
from tests.gateway.test_explain import answered
from tests.store.support import opened

NOW = 1_790_000_000_000
TABLES = """
CREATE TABLE cursors (account, channel, last_seen); CREATE TABLE sessions (session, key, epoch, created_at, last_at);
CREATE TABLE inbox (id INTEGER, account, platform_key, session, turn, arrival, lane, body, state, reason, received_at);
CREATE TABLE turns (turn, session, state, first_message, exit, closed_at); CREATE TABLE journal (id, seq, epoch, kind, body, at);
CREATE TABLE deliveries (part, state, final, cause, at); CREATE TABLE schedules (schedule, body, next_at);
"""


# ---------------------------------------------------------------------- a backup is put back


def test_no_part_is_sent_again_after_a_restore_nor_one_of_which_nobody_knows_whether_it_is_there() -> None:
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(TABLES)
        states = ("wanted", "sending", "unknown", "sent", "failed")
        conn.executemany("INSERT INTO deliveries VALUES (?, ?, 1, '', 5)", [(state, state) for state in states])
        database._set_aside(conn, counts := database._Counts(), NOW)
        left = {part for (part,) in conn.execute("SELECT part FROM deliveries WHERE state NOT IN ('sent', 'failed')")}
    assert left == set()
    assert counts.parts == 3


def test_chats_are_read_on_from_now_and_private_ones_from_where_the_backup_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved_on(account: str, last: str, at: int) -> str:
        return f"{account} {last} {at}"

    monkeypatch.setattr(database, "moved_on", moved_on)
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(TABLES)
        conn.executemany("INSERT INTO cursors VALUES ('slack/1', ?, ?)", [("C1", "5"), ("dm:U1", "6"), ("C2", "7")])
        database._settling(database._Counts(cursors=[("slack/1", "C2", "9")]), NOW, resume=True)(conn)
        found = dict(conn.execute("SELECT channel, last_seen FROM cursors").fetchall())
    assert found == {"C1": f"slack/1 5 {NOW}", "dm:U1": "6", "C2": "9"}


def test_no_number_of_a_message_is_given_twice_by_a_restore() -> None:
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(TABLES)
        conn.execute("INSERT INTO inbox (id) VALUES (41)")
        database._settling(database._Counts(), NOW, resume=True)(conn)
        numbers = conn.execute("SELECT id, arrival FROM inbox WHERE id > 41").fetchall()
    assert numbers == [(41 + database.NUMBER_GAP, 41 + database.NUMBER_GAP)]


# ---------------------------------------------------------------------- looks


@pytest.mark.parametrize("holder", [0, 7, None])
async def test_a_gateway_that_answers_is_ours_unless_nobody_has_our_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, holder: int | None
) -> None:
    asked: list[str] = []

    async def found(*_: object) -> RunningGateway:
        return RunningGateway("http://127.0.0.1:8787")

    async def examine(checks: Sequence[Any], *_: object) -> list[object]:
        asked.extend(one.name for one in checks)
        return []

    monkeypatch.setattr(looks, "find_gateway", found)
    monkeypatch.setattr(looks, "holder_of_database", gives(holder))
    monkeypatch.setattr(looks, "examine", examine)
    await looks.diagnose(None, {"OUTSPOKEN_HOME": str(tmp_path)})
    assert ("gateway" in asked) is (holder != 0)


def test_a_receiver_that_was_not_told_everything_is_named_though_it_works_by_now() -> None:
    (found,) = judged_status({"webhooks": [{"receiver": "deploy", "given_up": 3}]})
    assert (found.check, found.level) == ("webhooks.running", Severity.WARNING)
    assert "outspoken webhooks resend deploy" in found.fix


def test_a_folder_that_is_away_is_not_well_and_keeps_nobody_from_being_answered() -> None:
    words = "The folder of the workspaces is away."
    found = judged_health(Vitals(LifePhase.SERVING, store_works=True, owns=True, folder=words))
    assert (found.ready, found.not_well) == (True, (words,))


@pytest.mark.parametrize("holder", [None, 0, 9])
def test_who_leaves_signs_of_life_is_the_process_that_runs_whoever_the_database_names(holder: int | None) -> None:
    found = judge(Answering.NOBODY, "", LifeSign(7, 100.0), holder, 101.0)
    assert found.pid == 7
    assert "process 7" in found.trouble


@pytest.mark.parametrize("up", [True, False])
def test_how_long_a_connection_was_silent_is_said_while_there_is_one(up: bool) -> None:
    state = "up" if up else "down"
    one = SimpleNamespace(
        adapter=SimpleNamespace(name="slack/1", silent_seconds=4.0), sight=gives(SimpleNamespace(state=state))
    )
    metric = BY_NAME["outspoken_adapter_silent_seconds"]
    assert metric.read is not None
    assert [*metric.read(cast("Any", SimpleNamespace(supervisors=(one,))))] == ([(4.0, "slack")] if up else [])


# ---------------------------------------------------------------------- what is told


def test_what_failed_in_one_outage_is_said_again_in_the_next() -> None:
    outages = Outages(lambda: 0.0)
    for _ in range(2):
        for name in ("storage.unavailable", "slices.not_told", "toy.not_stored"):
            assert outages.worth_a_line("warning", {"event": name}), name
        assert outages.worth_a_line("warning", {"event": "storage.works_again"})


async def test_each_time_that_the_loop_is_held_it_is_said_by_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looplag, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(looplag, "HELD_SECONDS", 0.05)
    with capture_logs() as lines:

        def said(event: str) -> int:
            return sum(line["event"] == event for line in lines)

        def holds_until_it_is_said(times: int) -> None:
            until = time.monotonic() + 20
            while said("loop.held") < times and time.monotonic() < until:
                time.sleep(0.01)

        async with LoopWatch(lambda _: None).watching():
            await asyncio.sleep(0.1)  # it beats
            for times in (1, 2):
                went_on = said("loop.went_on")
                holds_until_it_is_said(said("loop.held") + 1)
                async with asyncio.timeout(30):
                    while said("loop.went_on") == went_on:
                        await asyncio.sleep(0.01)
                assert sum("holds_until_it_is_said" in str(line.get("frames")) for line in lines) >= times


@pytest.mark.parametrize(("cause", "hurt"), [("Forbidden: bot was blocked by the user", False), ("Bad Request", True)])
def test_whoever_has_blocked_the_bot_misses_nothing_that_they_wanted(cause: str, hurt: bool) -> None:
    seen = triage._of_part(FailedPart(NOW, "s_1", "telegram/1/7/", "t_1", cause))
    assert seen.hurt is hurt


def test_only_turns_since_the_time_that_is_asked_for_are_counted() -> None:
    def line(at: str) -> bytes:
        return b'{"timestamp":"%s","level":"info","event":"turn.ended","exit":"answered","troubles":[]}\n' % at.encode()

    times = [f"2026-11-20T10:00:0{second}.000Z" for second in range(5)]
    found = LogReading()
    sift(found, map(line, times), times[2])
    assert (found.turns, found.lines, found.newest) == (3, 5, times[-1])


async def test_of_a_turn_that_goes_on_no_parts_are_compared_with_a_journal_from_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = SimpleNamespace(exit=None, undone=None, removed="")

    async def one(_: str) -> object:
        return row

    async def some(_: str) -> list[str]:
        return ["row"]

    @asynccontextmanager
    async def open_reads(_: object) -> AsyncGenerator[object]:
        yield SimpleNamespace(turns=SimpleNamespace(one=one, journal=some), deliveries=SimpleNamespace(of=some))

    monkeypatch.setattr(replay, "open_reads", open_reads)
    config, paths = load(None, {}).config, find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    for row.exit, parts in ((None, []), ("answered", ["row"])):
        assert [*(await replay._from_database(config, paths, "t_1")).deliveries] == parts


@pytest.mark.parametrize(("minutes", "told"), [(-29, True), (29, True), (31, False)])
async def test_a_bundle_tells_how_the_platforms_were_doing_before_and_behind_its_turn(
    tmp_path: Path, sqlite: str, minutes: int, told: bool
) -> None:
    env = {"OUTSPOKEN_HOME": str(tmp_path), "OUTSPOKEN_STORAGE__URL": f"sqlite:///{sqlite}"}
    async with opened(sqlite) as store:
        await answered(store, ["7:41"], "t_1")
        row = await store.turns.one("t_1")
        assert row is not None
        at = (row.opened_at if minutes < 0 else row.closed_at or 0) + minutes * 60_000
        await store.deliveries.note_adapter(AdapterStateRow("slack/1", at, "down", "no connection"))
    await write("t_1", tmp_path / "b.tar.gz", load(None, env).config, find_paths(env), {})
    assert ("slack/1" in archived(tmp_path / "b.tar.gz", "adapters.json")) is told


@pytest.mark.parametrize("verb", ["approve", "revoke"])
async def test_who_is_let_in_or_shut_out_while_no_gateway_runs_here_is_told_to_those_that_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    env = {"OUTSPOKEN_HOME": str(tmp_path)}
    config, paths = load(None, env).config, find_paths(env)
    heard: list[str] = []

    async def told(_: object, word: str) -> None:
        heard.append(word)

    monkeypatch.setattr(offline, "_told", told)
    async with opened(str(paths.database)) as store:
        await store.people.put(PersonRow("telegram/1", "7", PersonState.REFUSED))
    (person,) = await offline.people_of(config, paths, verb, "telegram/1/7")
    assert (person["person"], heard) == ("7", [PEOPLE])


# ---------------------------------------------------------------------- what is configured


def test_a_webhook_of_an_end_that_there_is_not_is_refused() -> None:
    entry = '[{"name": "deploy", "url": "https://example.org", "secret_env": "WHSEC", "exits": ["%s"]}]'
    secret = {"WHSEC": "whsec_" + "QUFB" * 10}
    assert load(None, {**secret, "OUTSPOKEN_WEBHOOKS__RECEIVERS": entry % "failed"})
    with pytest.raises(ConfigError, match="exits name something that there is not"):
        load(None, {**secret, "OUTSPOKEN_WEBHOOKS__RECEIVERS": entry % "answred"})


@pytest.mark.parametrize(
    ("carried", "header", "value"),
    [
        ("", "Authorization", "Bearer t0ken"),
        ("authorization", "authorization", "Bearer t0ken"),
        ("X-Key", "X-Key", "t0ken"),
    ],
)
def test_a_token_is_a_bearer_where_it_authorises_and_stands_alone_elsewhere(
    tmp_path: Path, carried: str, header: str, value: str
) -> None:
    entry = f'[{{"name": "papers", "url": "https://example.org/mcp", "token_env": "PAPERS", "token_as": "{carried}"}}]'
    config = load(None, {"OUTSPOKEN_MCP__SERVERS": entry, "PAPERS": "t0ken"}).config
    assert config.mcp.servers[0].terms(tmp_path).headers == {header: value}


class Asks:
    """Gives an address, and asks nobody."""

    asks = False

    def __init__(self, url: str) -> None:
        self.url = url

    def value(self, section: str, key: str) -> str:
        return self.url if (section, key) == setup_model.URL else ""


@pytest.mark.parametrize(("url", "kept"), [("https://one.example/v1", True), ("https://two.example/v1", False)])
def test_a_key_and_a_name_are_tried_at_no_other_address_than_their_own(url: str, kept: bool) -> None:
    steps = setup_model._Steps(cast("Any", Asks(url)), "https://one.example/v1", "sk-of-one", "small")
    steps._ask_url()
    assert (steps.key, steps.name) == (("sk-of-one", "small") if kept else ("", ""))


def test_a_value_that_is_no_good_is_not_written_though_the_environment_has_it_as_well(tmp_path: Path) -> None:
    key: Key = ("model", "api_key")
    made = wizard.Wizard(Prompts(asks=False), tmp_path / "outspoken.toml", {"OPENAI_API_KEY": "two words"}, Given())
    made._write(services()["model"], SetupResult({key: "two words"}))
    assert made.status == wizard.PROBLEM
    assert not (tmp_path / ".env").exists()
