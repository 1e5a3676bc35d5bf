"""What ``doctor`` and ``setup`` decide without touching anything: laws, and the edges of what others may answer."""

from __future__ import annotations

import asyncio
import email.utils
import errno
import os
import re
import socket
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from adapters.checks.findings import Finding, Seen, Severity, ok, problem, warning, worst
from adapters.checks.probe import NoReply, ProbeTrouble, ServerReply, no_reply, odd, skew_of, unreachable
from adapters.discord import check as discord_check
from adapters.discord.library import discord
from adapters.discord.platform import Discord
from adapters.slack import check as slack_check
from adapters.slack import manifest
from adapters.slack.platform import Slack
from adapters.telegram import check as telegram_check
from adapters.telegram.platform import Telegram
from adapters.telegram.webhook import RECENT_SECONDS
from agent_core.causes import BreakCause
from agent_core.jsonvalue import Json
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.turn.events import CallBroke
from gateway.config.keys import describe
from gateway.config.reading import ConfigError, load, survey
from gateway.config.sections import Config, schema
from gateway.config.sources import ConfigProblem, read_dotenv
from gateway.operate.doctor import looks as doctor_looks
from gateway.operate.doctor import machine as doctor_machine
from gateway.operate.doctor import model as doctor_model
from gateway.operate.doctor.looks import (
    SKEW_SECONDS,
    Check,
    as_json,
    examine,
    exit_status,
    judged_clock,
    judged_status,
    known_bad,
    lines,
)
from gateway.operate.doctor.machine import listener_of, listening_inodes
from gateway.operate.setup import wizard
from tests.agent_core.turns import gives
from tests.gateway.first_run import ROOT
from tests.ports import free_port

LEVELS = list(Severity)
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def reply(status: int = 200, body: Json = None, **headers: str) -> ServerReply:
    return ServerReply(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


# --- checks side by side ---


async def test_a_check_that_hangs_or_fails_hides_no_other() -> None:
    async def hangs() -> Seen:
        await asyncio.sleep(60)
        raise AssertionError

    async def fails() -> Seen:
        raise ZeroDivisionError

    async def fine() -> Seen:
        return Seen((ok("c", "Fine."),), 0.0)

    found = await examine([Check("a", 0.05, hangs), Check("b", 5, fails), Check("c", 5, fine, "Somebody")])
    assert [(one.check, one.level) for one in found] == [
        ("a", Severity.PROBLEM), ("b", Severity.PROBLEM), ("c", Severity.OK), ("clock", Severity.OK),
    ]  # fmt: skip
    assert exit_status(found) == 1


async def test_what_has_ended_is_said_while_others_go_on_and_no_look_outlasts_the_whole() -> None:
    async def hangs() -> Seen:
        await asyncio.sleep(60)
        raise AssertionError

    async def fine() -> Seen:
        return Seen((ok("b", "Fine."),))

    said: list[str] = []
    found = await examine([Check("a", 50, hangs), Check("b", 5, fine)], 0.05, said.append)
    assert [(one.check, one.level) for one in found] == [("a", Severity.WARNING), ("b", Severity.OK)]
    assert "--seconds 50" in found[0].fix
    head, first, second = said
    assert "a, b" in head
    assert first.startswith("ok      b (")
    assert "still looking at a" in first
    assert second.startswith("warning a (")
    assert "still" not in second


@given(st.lists(st.sampled_from(LEVELS)))
def test_the_exit_status_follows_the_gravest(levels: Sequence[Severity]) -> None:
    found = [Finding("a", level, "x.", "y.") for level in levels]
    assert worst(found) == max(levels, key=LEVELS.index, default=Severity.OK)
    wanted = 78 if Severity.CONFIGURATION in levels else 1 if Severity.PROBLEM in levels else 0
    assert exit_status(found) == as_json(found, exit_status(found))["status"] == wanted
    assert lines(found)[-1].startswith("All is well") == (set(levels) <= {Severity.OK, Severity.NOTE})


def test_what_has_to_be_done_is_never_left_out() -> None:
    with pytest.raises(AssertionError):
        Finding("a", Severity.WARNING, "something is wrong")


# --- the clock ---


@given(st.floats(1e9, 4e9), st.floats(0, 20), st.floats(-1e6, 1e6))
def test_a_skew_is_never_larger_than_it_is_and_less_by_no_more_than_the_call_and_a_second(
    now: float, lasted: float, off: float
) -> None:
    answered = now + lasted / 2 + off
    skew = skew_of(email.utils.formatdate(answered, usegmt=True), now, now + lasted)
    assert skew is not None
    assert abs(skew) <= abs(off) + 1e-3
    assert abs(off) - abs(skew) <= lasted / 2 + 1.5
    assert skew * off >= 0


@pytest.mark.parametrize("date", ["", "yesterday", "Sat, 99 Nov 2026 15:00:00 GMT"])
def test_a_date_that_is_none_tells_no_time(date: str) -> None:
    assert skew_of(date, 0.0, 1.0) is None


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.floats(-1e5, 1e5)))
def test_the_clock_is_right_if_and_only_if_everybody_says_so(skews: dict[str, float]) -> None:
    found = judged_clock(skews)
    assert len(found) == bool(skews)
    if found:
        right = all(abs(skew) <= SKEW_SECONDS for skew in skews.values())
        assert (found[0].level is Severity.OK) == right


def test_ahead_and_behind_are_told_apart() -> None:
    assert "60 min behind" in judged_clock({"a": 3600.0})[0].what
    assert "3.0 h ahead" in judged_clock({"a": -10800.0})[0].what


# --- no answer ---


@pytest.mark.parametrize("trouble", list(ProbeTrouble))
def test_every_way_of_getting_no_answer_has_a_remedy(trouble: ProbeTrouble) -> None:
    found = unreachable(
        "x.reach", "X", NoReply(trouble, "h", "words"), proxy_key="[x] proxy", address_key="[x] api_base"
    )
    assert found.level is Severity.PROBLEM
    assert found.fix


def test_a_certificate_out_of_its_time_points_at_the_clock() -> None:
    why = NoReply(ProbeTrouble.TLS, "h", "its certificate is not trusted (certificate is not yet valid)")
    assert "clock" in unreachable("x.reach", "X", why, proxy_key="p", address_key="a").fix


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (TimeoutError(), ProbeTrouble.TIME),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), ProbeTrouble.CONNECTION),
        (aiohttp.ServerDisconnectedError(), ProbeTrouble.CONNECTION),
        (aiohttp.InvalidURL("x"), ProbeTrouble.ADDRESS),
    ],
)
def test_exceptions_become_words(error: Exception, trouble: ProbeTrouble) -> None:
    assert no_reply(error, "host").trouble is trouble


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["ok", "id", "flags", "result", "url", "error", "username", "data", "adapters", "name", "state"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(
    st.integers(100, 599),
    JSON,
    st.dictionaries(st.sampled_from(["x-oauth-scopes", "retry-after"]), st.text(max_size=5)),
)
def test_whatever_is_answered_there_is_a_finding_and_no_exception(
    status: int, body: Json, headers: dict[str, str]
) -> None:
    one = ServerReply(status, headers, body)
    settings = Telegram(token=SecretStr("1:a"))
    assert discord_check.judged_application(one)
    assert telegram_check.judged_me(one, wants_all=True, own_server=False)
    assert slack_check.judged_auth(one, "page")
    assert slack_check.judged_connection(one, "page").check
    slack_check.judged_hello(one.body, "page")
    discord_check.judged_guilds(one, "1")
    discord_check.judged_starts(one)
    telegram_check.judged_webhook(one, settings, NOW)
    telegram_check.judged_poll(one)
    doctor_model.names_of(one)
    judged_status(one.table)
    assert odd("x", "X", one).level is not Severity.OK


# --- the platforms ---


def test_the_invitation_is_the_librarys_own() -> None:
    names = (
        "view_channel", "send_messages", "send_messages_in_threads", "create_public_threads", "read_message_history",
        "add_reactions", "attach_files", "embed_links",
    )  # fmt: skip
    permissions = discord.Permissions(**dict.fromkeys(names, True))
    assert permissions.value == discord_check.PERMISSIONS
    theirs = discord.utils.oauth_url(77, permissions=permissions, scopes=("bot", "applications.commands"))
    assert sorted(re.split("[?&]", theirs)) == sorted(re.split("[?&]", discord_check.invite_url("77")))


@pytest.mark.parametrize(
    ("flags", "level"),
    [(1 << 18, Severity.OK), (1 << 19, Severity.OK), (1 << 15, Severity.PROBLEM), (0, Severity.PROBLEM)],
)
def test_both_flags_of_the_intent_count(flags: int, level: Severity) -> None:
    found = discord_check.judged_application(reply(body={"id": "1", "name": "x", "flags": flags}))
    assert worst(found) is level


@given(st.sets(st.sampled_from(sorted(manifest.SCOPES))))
def test_exactly_the_scopes_that_are_missing_are_named(granted: set[str]) -> None:
    found = slack_check.judged_scopes(reply(x_oauth_scopes=", ".join(sorted(granted))), "page")
    missing = set(manifest.SCOPES) - granted
    assert (found.level is Severity.OK) == (not missing)
    assert {scope for scope in manifest.SCOPES if f"{scope} (" in found.what} == missing


@pytest.mark.parametrize(
    "url",
    ["https://elsewhere.example/x", "https://chat.example.org.elsewhere.example/x", "https://chat.example.org:81/x"],
)
def test_a_webhook_of_somebody_else_is_found(url: str) -> None:
    ours = Telegram(token=SecretStr("1:a"), webhook_url="https://chat.example.org", webhook_secret=SecretStr("s"))
    other = reply(body={"result": {"url": url}})
    assert worst(telegram_check.judged_webhook(other, ours, NOW)) is Severity.PROBLEM
    mine = reply(body={"result": {"url": "https://chat.example.org/telegram/1"}})
    assert worst(telegram_check.judged_webhook(mine, ours, NOW)) is Severity.OK


@pytest.mark.parametrize(
    ("waiting", "ago", "warns"),
    [(1, 1, True), (1, RECENT_SECONDS, True), (1, RECENT_SECONDS + 1, False), (0, 1, False)],
)
@pytest.mark.parametrize("host", ["chat", "elsewhere"])
def test_an_error_of_a_webhook_is_told_while_it_is_one_and_hides_nothing_worse(
    host: str, waiting: int, ago: float, *, warns: bool
) -> None:
    """Telegram goes on telling of its last error for months after it is over."""
    ours = Telegram(token=SecretStr("1:a"), webhook_url="https://chat.example.org", webhook_secret=SecretStr("s"))
    told: dict[str, Json] = {
        "url": f"https://{host}.example.org/telegram/1", "pending_update_count": waiting, "last_error_message": "404",
        "last_error_date": int(NOW.timestamp() - ago),
    }  # fmt: skip
    found = worst(telegram_check.judged_webhook(reply(body={"result": told}), ours, NOW))
    assert found is (Severity.PROBLEM if host != "chat" else Severity.WARNING if warns else Severity.OK)


def test_the_manifest_in_the_repository_is_the_one_in_the_code() -> None:
    text = (ROOT / "deploy" / "slack-manifest.yaml").read_text("utf-8")
    assert text == manifest.as_yaml(), (
        "write it anew: python -c 'from adapters.slack.manifest import *; print(as_yaml(), end=\"\")'"
    )
    for scope, reason in {**manifest.SCOPES, **manifest.EVENTS}.items():
        assert f"- {scope}  # {reason}\n" in text
    assert len(manifest.new_app_url()) < 8000


# --- this machine ---


def test_who_listens_is_found_by_the_kernels_table() -> None:
    table = (
        "sl local rem st a b c d e inode\n"
        "0: 0100007F:1F90 0:0 0A 0 0 0 0 0 4711 1\n1: 0100007F:1F90 0:0 01 0 0 0 0 0 4712 1"
    )
    assert listening_inodes(table, 8080) == {"4711"}
    assert listening_inodes(table, 80) == set()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
def test_this_process_is_found_as_a_listener() -> None:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        found = listener_of(made.getsockname()[1])
        assert found is not None
        assert found[0] == os.getpid()
    assert listener_of(free_port()) is None


def test_whoever_listens_is_found_though_files_of_theirs_go_meanwhile(tmp_path: Path) -> None:
    files = tmp_path / "12" / "fd"
    files.mkdir(parents=True)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(
        "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 99 1\n"
    )
    (tmp_path / "12" / "comm").write_text("nginx\n")
    (files / "5").symlink_to("socket:[99]")
    for number in (4, 6, *range(10, 30)):  # before and behind it, in whatever order the folder is read
        (files / str(number)).write_bytes(b"")  # no link any more
    assert listener_of(0x1F90, tmp_path) == (12, "nginx")


@pytest.mark.parametrize(
    ("failure", "url", "who", "holder", "level"),
    [
        (0, "", None, 0, Severity.OK),
        (errno.EADDRINUSE, "http://h", (7, "python"), 7, Severity.OK),
        (errno.EADDRINUSE, "http://h", None, None, Severity.OK),
        (errno.EADDRINUSE, "http://h", (7, "python"), 8, Severity.PROBLEM),
        (errno.EADDRINUSE, "http://h", None, 0, Severity.PROBLEM),
        (errno.EADDRINUSE, "", (7, "nginx"), 0, Severity.PROBLEM),
        (errno.EACCES, "", None, 0, Severity.PROBLEM),
        (errno.EADDRNOTAVAIL, "", None, 0, Severity.PROBLEM),
        (-1, "", None, 0, Severity.PROBLEM),
    ],
)
def test_a_port(failure: int, url: str, who: tuple[int, str] | None, holder: int | None, level: Severity) -> None:
    assert doctor_machine.judged_port("h", 80, failure, url, who, holder).level is level


@given(st.integers(0, 2**50))
def test_less_room_is_never_better(free: int) -> None:
    here, more = (doctor_machine.judged_disk(size, Path("/x")).level for size in (free, free * 2))
    assert LEVELS.index(more) <= LEVELS.index(here)


ABOUT = {
    **dict.fromkeys((BreakCause.UNAUTHORISED, BreakCause.FORBIDDEN, BreakCause.PAYMENT_REQUIRED), "model.key"),
    BreakCause.NOT_FOUND: "model.name",
    BreakCause.RATE_LIMITED: "model.rate",
    **dict.fromkeys(doctor_model.REACH_FIXES, "model.reach"),
}
"""What an operator looks at; with every other cause, at the server itself."""


@pytest.mark.parametrize("cause", list(BreakCause))
def test_every_break_of_the_small_call_has_a_remedy(cause: BreakCause) -> None:
    found = doctor_model.judged_break(CallBroke(at=0, cause=cause), "host", "model", ("modell",))
    assert found.level is (Severity.WARNING if cause is BreakCause.RATE_LIMITED else Severity.PROBLEM)
    assert found.fix
    assert found.check == ABOUT.get(cause, "model.answers")


def test_what_a_running_gateway_says_becomes_findings() -> None:
    def of(state: str, words: str = "") -> Finding:
        return judged_status({"adapters": [{"name": "telegram/1", "state": state, "words": words}]})[0]

    assert of("up").level is Severity.OK
    assert of("starting").level is Severity.NOTE
    assert of("down", "x").level is of("needs a person", "x").level is Severity.PROBLEM
    assert of("up", "Somebody else asks (409)").check == "telegram.pollers"
    assert worst(judged_status({"unsent_parts": 3, "oldest_unsent_seconds": 900.0})) is Severity.WARNING


# --- the .env file ---

NAMES = st.sampled_from(["A", "B_C", "OPENAI_API_KEY", "X1"])
VALUES = st.text(st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" #'\"\\$`="), max_size=20).filter(
    str.isprintable
)
LINES = st.one_of(
    st.just(""),
    st.builds("# {}".format, VALUES),
    st.builds("{}={}".format, NAMES, st.from_regex(r"[a-z0-9]{0,8}", fullmatch=True)),
    st.builds("export {} = '{}'  # why".format, NAMES, st.from_regex(r"[a-z #]{0,8}", fullmatch=True)),
)


def values_of(text: str, folder: Path) -> dict[str, str]:
    path = folder / "env"
    path.write_bytes(text.encode())
    variables, problems = read_dotenv(path)
    assert problems == []
    return dict(variables.values)


@given(
    st.lists(LINES, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.dictionaries(NAMES, st.none() | VALUES),
    st.booleans(),
)
def test_reading_back_gives_the_old_values_with_the_changes(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], end: str, changes: dict[str, str | None], closed: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = end.join(old) + (end if closed else "")
    new = wizard.edited_env(text, changes)
    wanted = {name: value for name, value in {**values_of(text, folder), **changes}.items() if value is not None}
    assert values_of(new, folder) == wanted
    foreign = [line for line in text.splitlines() if line.startswith("#") or not line]
    assert [line for line in new.splitlines() if line in foreign or line.startswith("# ")][: len(foreign)] == foreign
    assert wizard.edited_env(new, changes) == new


@pytest.mark.parametrize("value", ["two\nlines", "a\u2028b", "nul\0"])
def test_a_value_that_no_line_can_hold_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        wizard.edited_env("", {"A": value})


def test_the_file_is_its_owners_alone_and_whole_or_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, link = tmp_path / "real.env", tmp_path / ".env"
    real.write_text("A=1\n")
    real.chmod(0o644)
    link.symlink_to(real)
    wizard.put_env(link, "A=2\n")
    assert (real.read_text(), link.is_symlink(), stat.S_IMODE(real.stat().st_mode)) == ("A=2\n", True, 0o600)

    def dies(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(KeyboardInterrupt):
        wizard.put_env(link, "A=3\n")
    assert real.read_text() == "A=2\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "real.env"]


def test_levels_are_told_in_words() -> None:
    told = lines([problem("a", "Wrong.", "Mend it.", "https://x"), warning("b", "Hm.", "Look."), ok("c", "Fine.")])
    assert told[0].startswith("ok")
    assert told[-1] == "1 problem and 1 warning."
    assert any("https://x" in line for line in told)


# --- a configuration that may be wrong ---

TOML_VALUES = st.sampled_from(["true", "7", '"x"', "[]", "{}", '"http://127.0.0.1:1"', "-1", '["a"]', "[{}]"])
TOML_KEYS = st.sampled_from(
    [(doc.section, doc.key) for doc in describe()] + [("model", "nam"), ("nonsense", "x"), ("server", "prot")]
)


@given(
    st.dictionaries(TOML_KEYS, TOML_VALUES, max_size=6),
    st.dictionaries(st.sampled_from(["OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN"]), VALUES),
)
def test_a_survey_tells_what_load_refuses_and_never_raises(
    tmp_path_factory: pytest.TempPathFactory, keys: dict[tuple[str, str], str], env: dict[str, str]
) -> None:
    file = tmp_path_factory.mktemp("survey") / "outspoken.toml"
    sections = {
        section: [f"{key} = {value}" for (s, key), value in keys.items() if s == section] for section, _ in keys
    }
    file.write_text("\n".join(line for name, lines in sections.items() for line in (f"[{name}]", *lines)))
    seen = survey(file, env)
    refused: tuple[ConfigProblem, ...] = ()
    try:
        assert load(file, env).config == seen.config
    except ConfigError as error:
        refused = error.problems
    assert bool(refused) == bool(seen.problems)
    assert set(refused) <= set(seen.problems)
    for section in seen.unsound:
        assert getattr(seen.config, section) == getattr(schema()(), section)


def test_doctor_says_which_endpoints_are_known_to_go_wrong() -> None:
    def endpoint(url: str) -> Endpoint:
        return Endpoint("label", url, (Credential("key", "sk"),), ("minimax/minimax-m2",))

    (found,) = known_bad([endpoint("https://openrouter.ai/api/v1")], date(2026, 12, 1))
    assert found.level is Severity.NOTE
    assert "minimax" in found.what
    assert known_bad([endpoint("https://api.example.com/v1")], date(2026, 12, 1)) == ()


@pytest.mark.parametrize("status", [302, 401, 403, 404, 407])
def test_the_page_of_a_firewall_says_nothing_about_the_token(status: int) -> None:
    page = ServerReply(status, {}, None)
    for found in (
        discord_check.judged_application(page),
        telegram_check.judged_me(page, wants_all=False, own_server=False),
        slack_check.judged_auth(page, "page"),
    ):
        assert "token" not in found[0].check
        assert "firewall" in found[0].what


def test_a_gateway_with_no_chat_is_told_that_it_has_none_where_none_is_wrongly_configured() -> None:
    def named(unsound: frozenset[str]) -> list[str]:
        return [one.name for one in doctor_looks._platforms(Config(), {}, unsound, runs=False)]

    assert named(frozenset()) == ["platforms"]
    assert named(frozenset({"telegram"})) == []


@pytest.mark.parametrize(
    ("token", "wrong"), [(None, False), ("N3.x.y", False), ("123456:secret", True), ("N3.x", True)]
)
def test_a_token_that_is_no_discord_bots_is_known_by_its_look(token: str | None, wrong: bool) -> None:
    amiss = Discord(token=SecretStr(token) if token else None).amiss
    assert (amiss is not None) is wrong


def test_who_gives_no_token_sets_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord_check, "asked_token", gives(None))
    assert discord_check.ask(cast("Any", SimpleNamespace(asks=False)), Discord()) is None


def test_where_slack_shows_the_second_token_is_said_before_it_is_asked_for() -> None:
    said = list[str]()

    def secret(_: str, key: str, *__: object, needed: bool) -> str:
        said.append(f"asks for {key}")
        return "xoxb-1" if key == "bot_token" else ""

    def tried(tries: Callable[[], object]) -> object:
        return tries()

    asker = SimpleNamespace(asks=True, say=said.append, secret=secret, value=gives(""), tried=tried)
    assert slack_check.ask(cast("Any", asker), Slack()) is None
    assert said[-3] == "asks for bot_token"
    assert "the scope connections:write" in said[-2]
    assert said[-1] == "asks for app_token"


async def test_a_server_with_the_older_address_of_the_application_alone_is_asked_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[str]()

    async def ask(_: str, url: str, __: object) -> ServerReply:
        asked.append(url)
        return reply(404 if len(asked) == 1 else 401)

    def probe(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(ask=ask, skew_seconds=None)

    monkeypatch.setattr(discord_check, "Probe", probe)
    await discord_check.check(Discord(token=SecretStr("N3.x.y"), api_base="http://127.0.0.1:9/api/v10"))
    assert [one.removeprefix("http://127.0.0.1:9/api/v10") for one in asked] == [
        "/applications/@me", "/oauth2/applications/@me",
    ]  # fmt: skip


async def test_a_tool_that_the_configuration_names_and_nobody_brings_is_told(tmp_path: Path) -> None:
    (tmp_path / "outspoken.toml").write_text('[tools]\napproval = ["great"]\n')
    seen = await doctor_looks.own_tools(survey(tmp_path / "outspoken.toml", {}).config)
    assert ["great" in one.what for one in seen.findings if one.level is not Severity.NOTE] == [True]
