"""What whoever runs a gateway is told and may rely on, apart from processes: keys that are noted, servers that are judged, archives that hold no secret."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typing_extensions import override

from adapters.checks.findings import Finding, Severity, problem
from agent_core.failures.exits import ExitCode
from agent_core.ports import SystemIds
from agent_core.signals import TurnClosed
from agent_core.store.database.look import DatabaseSeen
from agent_core.store.database.ownership import FileLock
from agent_core.store.store import StorageUnavailable
from gateway.config.keyfiles import key_in, made_key, sealing_key
from gateway.config.operatorkey import with_operator_key
from gateway.config.paths import find_paths, prepare, written
from gateway.config.reading import load, redacted, redactor_of
from gateway.conversations import titles
from gateway.daemon import _prepared, _titles, state_folders
from gateway.limits.rates import KeyMeters
from gateway.observe.lifesign import RunningGateway
from gateway.operate import auditing, context, database, trying
from gateway.operate.auditing import telling
from gateway.operate.bundle import shown_config
from gateway.operate.context import Here
from gateway.operate.servers import judged
from gateway.people import keys
from gateway.people.keyring import Keyring
from gateway.people.keys import KeyRefused, Nameable
from gateway.sharing.nodes import nodes_json
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

NONE: Any = None
THERE = Nameable(("gpt",), ("read_file",))


class Table:
    """Keys as they are stored, with what is noted of their use."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}
        self.noted: list[dict[str, int]] = []
        self.away = False

    async def all(self) -> list[Any]:
        return [*self.rows.values()]

    async def add(self, row: Any, _: object) -> bool:
        if row.name in self.rows:
            return False
        self.rows[row.name] = row
        return True

    async def change(self, name: str, made: Any, _: object) -> None:
        self.rows[name] = made(self.rows[name])

    async def used(self, used: dict[str, int]) -> None:
        if self.away:
            raise StorageUnavailable("away")
        self.noted.append(dict(used))


def ring_of(table: Table, clock: FakeClock) -> tuple[Keyring, list[str]]:
    portion = Portion(whole=False)
    ring = Keyring(
        cast("Any", SimpleNamespace(apikeys=table)), clock, SystemIds(clock), meters=KeyMeters(), portion=portion
    )
    told: list[str] = []

    def tell(word: str, /, *, soon: bool = True) -> None:
        told.append(word)
        assert soon

    portion.tell = tell
    return ring, told


async def test_when_a_key_was_used_is_noted_once_and_again_if_it_could_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    table, clock = Table(), FakeClock()
    ring, _ = ring_of(table, clock)
    _, key = await ring.add("laptop", {}, THERE)
    assert ring.who(key, {}) is not None
    table.away = True
    async with ring.running(shared=False):
        pass
    assert table.noted == []
    table.away = False
    async with ring.running(shared=False):
        pass
    async with ring.running(shared=False):
        pass
    assert table.noted == [{"laptop": clock.now}], "at the end, and once"


async def test_what_becomes_of_a_key_is_heard_and_its_terms_are_known_while_its_messages_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, clock = Table(), FakeClock()
    ring, told = ring_of(table, clock)
    monkeypatch.setattr(keys, "MOST_KEYS", 1)
    _, key = await ring.add("laptop", {"day_tokens": 9}, THERE)
    with pytest.raises(KeyRefused, match="which is the most"):
        await ring.add("phone", {}, THERE)
    await ring.change("laptop", {"minute_requests": 2}, THERE)
    _, other = await ring.rotate("laptop", 60)
    assert all(ring.who(one, {}) is not None for one in (key, other))
    clock.now += 60_000
    assert [ring.who(one, {}) is not None for one in (key, other)] == [False, True]
    caller = ring.who(other, {})
    assert caller is not None
    assert (ring.holds(caller), ring.opens_anything()) == (True, True)
    await ring.revoke("laptop")
    assert ring.who(other, {}) is None
    assert (ring.holds(caller), ring.opens_anything()) == (False, False)
    assert (ring.terms("laptop").day_tokens, ring.terms("laptop").minute_requests) == (9, 2)
    assert len(told) == 4
    await ring.add("phone", {}, THERE)  # a key that was revoked takes no place
    with pytest.raises(KeyRefused):
        await ring.rotate("laptop", 0)
    assert len(told) == 5


def test_a_key_is_shown_in_the_currency_and_not_itself() -> None:
    key = keys.new_key(bytes(range(37)))
    row = keys.made("laptop", key, keys.terms_from({"day_nanos": 1_500_000_000}, THERE), "operator", 1)
    table = keys.table_of(keys.known_key(row))
    assert table["day_money"] == 1.5
    assert key not in str(table)


# ---------------------------------------------------------------------- keys that nobody chose


def test_a_key_that_nobody_chose_is_for_this_user_alone_and_stays_the_same(tmp_path: Path) -> None:
    assert key_in(tmp_path / "x.key") == ""
    made = made_key(tmp_path / "x.key")
    assert (key_in(tmp_path / "x.key"), stat.S_IMODE((tmp_path / "x.key").stat().st_mode)) == (made, 0o600)
    assert len({sealing_key(tmp_path), sealing_key(tmp_path)}) == 1
    prepare(find_paths({"OUTSPOKEN_HOME": str(tmp_path / "home")}))
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("host", "api_key", "needed"),
    [("127.0.0.1", "", False), ("127.0.0.1", "k" * 20, True), ("0.0.0.0", "", True), ("0.0.0.0", "k" * 20, True)],
)
def test_operators_need_a_key_wherever_one_is_needed_to_call(
    tmp_path: Path, host: str, api_key: str, *, needed: bool
) -> None:
    config = load(None, {"OUTSPOKEN_SERVER__HOST": host, "OUTSPOKEN_SERVER__API_KEY": api_key}).config
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    assert with_operator_key(config, paths).server.operator_key is None
    made = with_operator_key(config, paths, make=True).server.operator_key
    assert (made is not None) is needed
    assert with_operator_key(config, paths).server.operator_key == made
    chosen = load(None, {"OUTSPOKEN_SERVER__OPERATOR_KEY": "o" * 20, "OUTSPOKEN_SERVER__HOST": host}).config
    assert with_operator_key(chosen, paths, make=True) is chosen


# ---------------------------------------------------------------------- what is shown


def test_an_archive_that_is_handed_on_says_of_secrets_and_people_how_many() -> None:
    env = {
        "OPENAI_API_KEY": "sk-secret", "TELEGRAM_BOT_TOKEN": "4711:" + "a" * 35, "OUTSPOKEN_TELEGRAM__PROXY": "http://ada:pw@proxy:1",
        "OUTSPOKEN_TELEGRAM__ALLOW": "5,@wilhelmina", "OUTSPOKEN_TELEGRAM__ADMINS": "@wilhelmina", "OUTSPOKEN_MODEL__SYSTEM_PROMPT": "You are wilhelmina's.",
    }  # fmt: skip
    shown = shown_config(load(None, env).config)
    assert not [word for word in ("sk-secret", "aaaa", "pw", "wilhelmina") if word in str(shown)]
    assert (shown["telegram"]["allow"], shown["telegram"]["admins"]) == ("2 entries", "1 entries")


def test_what_tools_are_given_from_the_environment_is_hidden() -> None:
    config = load(None, {"OUTSPOKEN_TOOLS__ENVIRONMENT": "WEATHER_KEY,PLACE", "OPENAI_API_KEY": "sk-secret-one"}).config
    hide = redactor_of(config, {"WEATHER_KEY": "stormy-nights", "PLACE": "Lisbon-by-the-sea"})
    told = hide.redact("stormy-nights in Lisbon-by-the-sea, sk-secret-one")
    assert ("stormy" in told, "Lisbon" in told, "secret" in told) == (False, True, False)


def test_gateways_are_shown_with_how_long_they_run_and_whether_they_leave() -> None:
    def node(number: int, address: str) -> Any:
        return SimpleNamespace(
            node=number,
            address=address,
            version="1",
            started_at=1_000,
            running=0,
            silent_seconds=0.0,
            told="{}" if address else '{"ready":true}',
        )

    serves, leaves = cast(
        "list[Any]", nodes_json([node(1, "here"), node(2, "")], {"chats/0": 1, "house": 2}, 1, 91_000)
    )
    assert (serves["uptime_seconds"], serves["leaves"], serves["chats"], serves["has"]) == (90, False, 1, [])
    assert (leaves["leaves"], leaves["chats"], leaves["has"]) == (True, 0, ["house"])


@pytest.mark.parametrize("state", ["ready", "failed", "waits"])
def test_a_server_of_tools_is_well_if_it_is_ready(state: str) -> None:
    server: Any = {
        "server": "files", "tools": [], "state": state, "by": "files-mcp", "words": "it ended", "about": "", "login": "", "left_out": ["x: no schema"],
    }  # fmt: skip
    levels = [one.level for one in judged([server])]
    assert levels == ([Severity.OK, Severity.WARNING] if state == "ready" else [Severity.PROBLEM])


async def test_a_list_of_tools_says_which_are_taken_out() -> None:
    found, _ = await trying.listed(load(None, {"OUTSPOKEN_TOOLS__DISABLED": "fetch_url"}).config)
    off = {one.name for one in found if not one.offered}
    assert off == {"fetch_url"}


async def test_who_waits_for_a_look_at_everything_is_told_now_and_then() -> None:
    clock, said = FakeClock(), list[str]()
    rest = telling(clock, said.append)
    for _ in range(11):
        clock.now += 1_000
        await rest(100)
    assert [words.partition(" turns")[0] for words in said] == ["Looked at 500", "Looked at 1,000"]


# ---------------------------------------------------------------------- where it is, and who has it


async def test_a_database_is_somebodys_while_they_have_it(tmp_path: Path) -> None:
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    config = load(None, {}).config
    lock = await FileLock.acquire(_touched(paths.database))
    try:
        assert context.holder_of_database(config, paths)
    finally:
        lock.release()
    assert context.holder_of_database(config, paths) == 0
    elsewhere = load(None, {"OUTSPOKEN_STORAGE__URL": "postgresql://u@h/d"}).config
    assert context.holder_of_database(elsewhere, paths) is None
    words = context.none_answers(Here(config, paths, RunningGateway()).found, config, "nothing was sent")
    assert words.startswith("No gateway runs at 127.0.0.1:8787, so nothing was sent.")


def _touched(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_room_is_looked_for_where_the_state_and_the_database_are(tmp_path: Path) -> None:
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    own = load(None, {"OUTSPOKEN_STORAGE__URL": "sqlite:////srv/data/outspoken.db"}).config
    assert state_folders(own, paths) == (tmp_path, Path("/srv/data"))
    assert state_folders(load(None, {"OUTSPOKEN_STORAGE__URL": "postgresql://u@h/d"}).config, paths) == (tmp_path,)


@pytest.mark.parametrize(
    "env", [{}, {"OUTSPOKEN_MODEL__TITLES": "true"}, {"OUTSPOKEN_MODEL__NAME": "gpt", "OPENAI_API_KEY": "sk-x"}]
)
async def test_nothing_is_named_where_that_is_off_or_nobody_could(env: dict[str, str]) -> None:
    def listen(*_: object) -> None:
        pytest.fail("it waits for answers")

    signals: Any = SimpleNamespace(listen=listen)
    await _titles(load(None, env).config.model, NONE, NONE, NONE, signals)


@pytest.mark.parametrize(("said", "late_ms"), [(None, 300_000), (2.5, 2_500)])
async def test_an_audit_counts_late_in_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: float | None, late_ms: int
) -> None:
    moments: list[Any] = []

    class Looks:
        def __init__(self, _evidence: object, moment: Any, _rest: object) -> None:
            moments.append(moment)

        async def run(self, _: object) -> str:
            return "audited"

    @asynccontextmanager
    async def reads(_: object) -> AsyncGenerator[Any]:
        yield SimpleNamespace(asks=None)

    async def nodes() -> list[Any]:
        return []

    async def latest() -> int:
        return 0

    monkeypatch.setattr(auditing, "open_reads", reads)
    monkeypatch.setattr(auditing, "EvidenceReads", gives(SimpleNamespace(nodes=nodes, latest=latest)))
    monkeypatch.setattr(auditing, "Auditor", Looks)
    monkeypatch.setattr(auditing, "holder_of_database", gives(4711))
    config, paths = load(None, {}).config, find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    assert str(await auditing.audited(config, paths, FakeClock(), said)) == "audited"
    (moment,) = moments
    assert (moment.now, moment.late, moment.runs) == (FakeClock().now, late_ms, True)


def test_a_key_of_our_form_is_good_while_it_may_be_or_it_is_nobody_also_where_none_is_needed() -> None:
    key = keys.new_key(bytes(range(37)))
    row = keys.made("laptop", key, keys.terms_from({"expires_at": 1_000}, THERE), "operator", 1)
    known = keys.by_prefix([keys.known_key(row)])
    for shown, now, name in (
        (key, 999, "laptop"),
        (key, 1_000, None),
        (f"{key}x", 1, None),
        (f"{keys.MARK}x", 1, None),
    ):
        found = keys.who(shown, {}, None, known, now, keyless=True)
        assert (found.key if found is not None else None) == name, shown
    other = keys.who("sk-other", {}, None, known, 1, keyless=True)
    assert other is not None
    assert other.key == ""


def test_what_has_the_name_of_a_secret_is_shown_nowhere_wherever_it_stands() -> None:
    env = {
        "OUTSPOKEN_MODEL__EXTRA_BODY": '{"api_key": "swordfish", "top_p": 0.5, "inner": {"password": "sesame", "place": "here"}}',
        "OUTSPOKEN_MODEL__EXTRA_HEADERS": '{"Authorization": "Bearer open", "X-Title": "mine"}',
    }
    config = load(None, env).config
    shown = cast("Any", redacted(config)["model"])
    assert shown["extra_body"] == {"api_key": "***", "top_p": 0.5, "inner": {"password": "***", "place": "here"}}
    assert (shown["extra_headers"]["X-Title"], "open" in str(shown)) == ("mine", False)


@pytest.mark.parametrize("exit_", ExitCode)
@pytest.mark.parametrize("surface", ["web", "api", "telegram"])
async def test_only_conversations_of_the_page_are_named_and_by_what_was_answered(
    monkeypatch: pytest.MonkeyPatch, surface: str, exit_: ExitCode
) -> None:
    heard: list[Any] = []
    looked: list[Any] = []

    def listen(on: object, *_: object) -> None:
        heard.append(on)

    signals: Any = SimpleNamespace(listen=listen, tell=None)

    class Looking(titles.Titles):
        @override
        async def look(self, ended: TurnClosed) -> None:
            looked.append(ended)

    monkeypatch.setattr(titles, "Titles", Looking)
    env = {"OUTSPOKEN_MODEL__TITLES": "true", "OUTSPOKEN_MODEL__NAME": "gpt", "OPENAI_API_KEY": "sk-x"}
    naming = asyncio.create_task(_titles(load(None, env).config.model, NONE, NONE, NONE, signals))
    await asyncio.sleep(0)
    (on,) = heard
    closed = TurnClosed(
        turn="t_1", session="s_1", surface=surface, exit=exit_.value, clean=True, began_at=1, ended_at=2
    )
    last = replace(closed, surface="web", exit=ExitCode.ANSWERED.value, turn="t_2")
    on(closed)
    on(last)
    async with asyncio.timeout(5):
        while last not in looked:
            await asyncio.sleep(0.001)
    naming.cancel()
    named = surface == "web" and exit_ is ExitCode.ANSWERED
    assert looked == [*([closed] if named else []), last]


def test_before_a_gateway_begins_its_places_are_there(tmp_path: Path) -> None:
    config = load(None, {"OUTSPOKEN_SERVER__OPERATOR_KEY": "o" * 20}).config
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path / "home")})
    assert _prepared(config, paths) is config
    assert all(place.is_dir() for place, _ in written(paths))


async def test_a_database_that_cannot_be_looked_through_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(_: object) -> DatabaseSeen:
        return cast("Any", SimpleNamespace(revision="1", newest="1", file=None))

    async def check(_: object) -> None: ...

    def judged(*_: object, **__: object) -> list[Finding]:
        return [problem("database", "It is damaged.", "Restore it.")]

    def no_reads(_: object) -> Any:
        raise StorageUnavailable("the disk does not answer")

    for name, what in {"look": look, "check": check, "judged_soundness": judged, "open_reads": no_reads}.items():
        monkeypatch.setattr(database, name, what)
    found = await database.pages(load(None, {}).config, find_paths({"OUTSPOKEN_HOME": "/nowhere"}))
    assert [one.what for one in found.findings] == [
        "It is damaged.", "The database could not be looked through: the disk does not answer",
    ]  # fmt: skip
