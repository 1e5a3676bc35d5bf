"""What is configured is what acts, in its unit and in its own place: every key of these sections with another value."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_core.learning.incidents import IncidentRules
from agent_core.limits.budgets import Amount, Price
from agent_core.limits.quotas import QuotaKind, QuotaLimits
from agent_core.limits.retention import Keep
from agent_core.limits.spend import Budget
from agent_core.settings import GuardCounts, LadderCounts, TurnSettings
from agent_core.tools.base import WhenTainted
from agent_core.tools.builtin.writers import FILE_TOOLS
from agent_core.tools.registry import ToolRegistry
from agent_core.tools.search import Engine
from gateway.config.agents import AgentEntry, agents_of
from gateway.config.limits import Retention
from gateway.config.model import Model, endpoints_of
from gateway.config.paths import find_paths
from gateway.config.reading import ConfigError, load
from gateway.config.sections import Config, Guardrails, Recovery
from gateway.daemon import _admins, _hub_settings, _later
from gateway.later.tasks import TaskLimits
from gateway.limits.agents import PLAIN, Agent, AgentMemory
from gateway.limits.alerts import AlertLimits, AlertRules
from gateway.limits.patience import DoorLimits
from gateway.webhooks.events import HookEvent
from tests.store.support import FakeClock

MIB = 1024 * 1024
_OF_TURNS = [name for name in Model.model_fields if name in {one.name for one in fields(TurnSettings)}]
PRICED = {
    "OUTSPOKEN_BUDGETS__PRICES": json.dumps({"*": {"input": 1, "output": 2}}),
    "OUTSPOKEN_MODEL__NAME": "m",
    "OPENAI_API_KEY": "sk-x",
}
SECRET = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="


def configured(section: str, **keys: object) -> Config:
    env = {
        f"OUTSPOKEN_{section}__{key}".upper(): one if isinstance(one, str) else json.dumps(one)
        for key, one in keys.items()
    }
    return load(None, env).config


def test_what_operators_are_told_of_and_when() -> None:
    found = configured(
        "operators", alerts_per_hour=3, again_minutes=7, adapter_seconds=11, undelivered_seconds=13, wait_seconds=17, free_mib=19
    ).operators  # fmt: skip
    assert found.alert_rules() == AlertRules(per_hour=3, again_ms=7 * 60_000)
    assert found.limits() == AlertLimits(adapter_seconds=11, undelivered_seconds=13, free_mib=19, wait_seconds=17)
    incidents = configured("incidents", conversations=3, window_minutes=7, quiet_minutes=11).incidents
    assert incidents.rules() == IncidentRules(3, 7 * 60_000, 11 * 60_000)


def test_what_may_be_kept_and_for_how_long() -> None:
    quota = configured(
        "quota", workspace_mib=1, workspace_files=2, memory_kib=3, spool_mib=4, incoming_mib=5, sessions=6, whole_mib=7
    ).quota  # fmt: skip
    each = {
        QuotaKind.WORKSPACE: MIB, QuotaKind.FILES: 2, QuotaKind.MEMORY: 3 * 1024, QuotaKind.SPOOL: 4 * MIB,
        QuotaKind.INCOMING: 5 * MIB, QuotaKind.SESSIONS: 6,
    }  # fmt: skip
    assert quota.limits() == QuotaLimits(each, 7 * MIB)
    # Messages before journals before records
    days = {name: 20 + number for number, name in enumerate(sorted(asdict(Keep())))}
    assert configured("retention", **days).retention.keep() == Keep(**days)


def test_what_may_be_spent() -> None:
    keys: dict[str, object] = {}
    for number, budget in enumerate(Budget, 1):
        keys |= {f"{budget.value}_tokens": number, f"{budget.value}_money": number / 4}
    prices = {"own": {"input": 1, "output": 2, "cached": 0.5}, "gpt*": {"input": 1, "output": 2, "minute": 0.006}}
    rules = configured("budgets", prices=prices, time_zone="Asia/Tokyo", warn_share=0.5, **keys).budgets.rules()
    assert rules.limits == {one: Amount(n, n * 250_000_000) for n, one in enumerate(Budget, 1)}
    assert rules.price_of("own") == Price(1_000_000, 2_000_000, 500_000)
    assert rules.price_of("gpt-5") == Price(1_000_000, 2_000_000, 1_000_000, minute=6_000_000), "cached as input"
    assert (rules.zone, rules.zone_name, rules.warn_share) == (ZoneInfo("Asia/Tokyo"), "Asia/Tokyo", 0.5)


def test_how_turns_are_held_to_what_is_configured(tmp_path: Path) -> None:
    env = {
        "OUTSPOKEN_TOOLS__APPROVAL": "write_file", "OUTSPOKEN_TOOLS__TAINTED": "refuse", "OUTSPOKEN_TOOLS__APPROVAL_SECONDS": "123",
        "OUTSPOKEN_TOOLS__APPROVERS": "anyone", "OUTSPOKEN_TOOLS__MEMORY_WRITERS": "telegram/1/5", "OUTSPOKEN_MODEL__ATTEMPTS": "6",
        "OUTSPOKEN_SESSION__QUEUE_LIMIT": "7", "OUTSPOKEN_SESSION__OPEN_TURNS": "80", "OUTSPOKEN_SESSION__WAITING_LIMIT": "90",
        "OUTSPOKEN_SESSION__HISTORY_TURNS": "12", "OUTSPOKEN_SESSION__POLICY": "steer", "OUTSPOKEN_MODEL__SYSTEM_PROMPT": "Be brief.",
        "OUTSPOKEN_OPERATORS__CHAT": "telegram/5", "OUTSPOKEN_TOOLS__TAINTED_TOOLS": '{"edit_file": "allow"}', "OUTSPOKEN_MODEL__BASE_URL": "http://127.0.0.1:1/v1",
    }  # fmt: skip
    own = {name: 100 + place for place, name in enumerate(_OF_TURNS)}
    env |= {f"OUTSPOKEN_MODEL__{name}".upper(): str(value) for name, value in own.items()}
    counts = {name: 2 + place for place, name in enumerate(Recovery.model_fields)}
    guards = {name: 2 + place for place, name in enumerate(Guardrails.model_fields)}
    env |= {f"OUTSPOKEN_RECOVERY__{name}".upper(): str(value) for name, value in counts.items()}
    env |= {f"OUTSPOKEN_GUARDRAILS__{name}".upper(): str(value) for name, value in guards.items()}
    config, paths = load(None, env).config, find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    found = _hub_settings(config, paths, ToolRegistry(FILE_TOOLS), None)
    assert {name: getattr(found.turn, name) for name in own} == own
    assert (found.turn.approval_seconds, found.turn.ladder, found.turn.guards) == (
        123, LadderCounts(retry=5, **counts), GuardCounts(**guards),
    )  # fmt: skip
    policy = found.tools_policy
    by_tool = {"edit_file": WhenTainted.ALLOW}
    assert policy == type(policy)(frozenset({"write_file"}), WhenTainted.REFUSE, by_tool, ("anyone",))
    assert [one.name for one in found.turn.tools if one.needs_approval] == ["write_file"]
    assert {one.name: one.tainted for one in found.turn.tools} == {
        name: by_tool.get(name, WhenTainted.REFUSE)
        for name in ("write_file", "append_file", "edit_file", "delete_file")
    }
    assert (found.queue_limit, found.history_turns, found.policy.value) == (7, 12, "steer")
    assert (found.bounds.open, found.bounds.waiting, found.system_prompt) == (80, 90, "Be brief.")
    assert (found.memory_writers, found.operators_chat, found.rehearsal) == (frozenset({"telegram/1/5"}), True, False)
    assert (found.workspaces, found.spool) == (paths.workspaces, paths.spool)


@pytest.mark.parametrize("engine", list(Engine))
def test_who_wants_a_key_is_not_asked_without_one(engine: Engine) -> None:
    search = configured("search", engine=engine.value, api_key="k").search
    assert (search.engine, search.api_key is not None) == (engine, True)
    if engine is Engine.SEARXNG:  # everybody runs it themselves
        assert configured("search", engine=engine.value).search.api_key is None
        return
    with pytest.raises(ConfigError, match=f"{engine.called} wants a key"):
        configured("search", engine=engine.value)


def test_what_tasks_are_held_to() -> None:
    config = configured(
        "tasks", at_once=2, at_once_all=5, seconds=60, steps=7, tokens=900, money=1.5, status_seconds=30
    )
    _, tasks = _later(config, cast("Any", None), FakeClock())
    assert tasks.limits == TaskLimits(2, 5, 60, 7, 30, Amount(900, 1_500_000_000))


def test_what_connections_are_held_to() -> None:
    keys = {"header_seconds": 1, "body_seconds": 2, "stalled_seconds": 3, "idle_seconds": 4, "connections_per_peer": 5}
    server = configured("server", max_connections=1000, **keys).server
    assert server.door_limits(10_000) == DoorLimits(1000, 5, (), 1, 2, 3, 4)
    assert server.door_limits(300).connections == 150, "half as many as files may be open"


def test_who_agents_are() -> None:
    one = {
        "prompt": "You code.", "models": ["m"], "tools": ["read_file"], "memory": "own", "day_tokens": 9, "day_money": 0.5,
        "chats": ["telegram/7"], "skills": [], "people": ["admins", "slack/U7"],
    }  # fmt: skip
    config = load(
        None, {**PRICED, "OUTSPOKEN_AGENTS__EACH": json.dumps({"coder": one, "plain": {"people": ["admins"]}})}
    )
    agents = config.config.agents
    found = agents_of(agents, ["telegram/5"])
    assert found["coder"] == Agent(
        "coder", "You code.", ("m",), ("read_file",), AgentMemory.OWN, Amount(9, 500_000_000), ("telegram/7",), (), ("telegram/5", "slack/u7")
    )  # fmt: skip
    assert agents_of(agents)["plain"].people == ("",), "held to admins where there are none it answers nobody"


@pytest.mark.parametrize("name", ["coder", "a", "7", "release-notes_v1.2", "x" * 40])
def test_an_agents_name_can_be_typed_as_one_word_and_is_not_what_stands_for_none(name: str) -> None:
    assert AgentEntry(name=name, prompt="p").name == name
    for wrong in (f"{name} x", f"{name}/x", f"-{name}", f"{name:x<41}", "", PLAIN):
        with pytest.raises(ValidationError, match="name"):
            AgentEntry(name=wrong, prompt="p")


def test_whom_platforms_name_as_admins_is_known_by_platform() -> None:
    env = {"TELEGRAM_BOT_TOKEN": "4711:" + "a" * 35, "OUTSPOKEN_TELEGRAM__ADMINS": "5,@Ada"}
    assert [*_admins(load(None, env).config)] == ["telegram/5", "telegram/@Ada"]


@pytest.mark.parametrize("words", [True, False])
def test_what_receivers_are_told(*, words: bool) -> None:
    one = {
        "url": "https://example.org/h", "secrets": SECRET, "events": ["turn.ended"], "exits": ["failed"], "surfaces": ["api"],
        "chats": ["telegram/7"], "sessions": ["s_1"], "words": words, "timeout_seconds": 3, "at_once": 2,
    }  # fmt: skip
    found = configured("webhooks", receivers={"deploy": one}).webhooks.receivers[0].receiver()
    rule = found.rule
    assert (rule.receiver, rule.events, rule.exits, rule.surfaces) == (
        "deploy", frozenset({HookEvent("turn.ended")}), frozenset({"failed"}), frozenset({"api"}),
    )  # fmt: skip
    assert (rule.chats, rule.sessions, rule.words) == (frozenset({"telegram/7"}), frozenset({"s_1"}), words)
    assert (found.seconds, found.at_once, found.private, found.keys) == (3, 2, False, (b"A" * 32,))


@pytest.mark.parametrize(
    ("section", "key", "one", "why"),
    [
        ("webhooks", "receivers", {"name": "w", "url": "http://example.org/", "secrets": SECRET}, "not https"),
        ("webhooks", "receivers", {"name": "w", "url": "https://example.org/"}, "no secret"),
        ("hooks", "entries", {"name": "h", "prompt": "p", "session": "s"}, "no secret"),
        ("hooks", "entries", {"name": "h", "prompt": "p", "chat": "telegram/7"}, "no secret"),
        ("hooks", "entries", {"name": "h", "prompt": "p", "secrets": SECRET}, "either a chat or a session"),
    ],
)
def test_what_anybody_could_read_or_call_is_refused(section: str, key: str, one: object, why: str) -> None:
    with pytest.raises(Exception, match=why):
        configured(section, **{key: [one]})


@pytest.mark.parametrize(
    ("host", "api_key", "keyless"),
    [("127.0.0.1", "", True), ("localhost", "", True), ("0.0.0.0", "", False), ("10.0.0.7", "", False), ("127.0.0.1", "k" * 20, False)],
)  # fmt: skip
def test_nobody_is_served_without_a_key_where_other_machines_can_call(
    host: str, api_key: str, *, keyless: bool
) -> None:
    assert configured("server", host=host, api_key=api_key).server.keyless is keyless


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("workspace", ["", "/srv/work"])
def test_gateways_that_share_their_work_have_one_place_for_files_on_their_way(
    tmp_path: Path, workspace: str, *, several: bool
) -> None:
    env = {"OUTSPOKEN_TOOLS__WORKSPACE": workspace, "OUTSPOKEN_STORAGE__SEVERAL": str(several).lower()}
    env |= {"OUTSPOKEN_STORAGE__URL": "postgresql://u@h/d"}
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    shared = Path(workspace) if workspace else paths.workspaces
    assert load(None, env).config.spool(paths) == (shared / ".outbox" if several else tmp_path / "outbox")


def test_keys_that_stand_in_files_are_tried_in_the_order_in_which_these_are_named(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(f"sk-{name}\n")
    env = {"OUTSPOKEN_MODEL__API_KEY_FILE": str(tmp_path / "one"), "OUTSPOKEN_MODEL__NAME": "gpt"}
    env |= {"OUTSPOKEN_MODEL__API_KEY_FILES": f"{tmp_path / 'two'},{tmp_path / 'three'},{tmp_path / 'one'}"}
    (endpoint,) = endpoints_of(load(None, env).config.model.chain())
    assert [one.secret for one in endpoint.credentials] == ["sk-one", "sk-two", "sk-three"], "each once"
    assert len({one.id for one in endpoint.credentials}) == 3


def test_a_key_has_one_id_for_its_host_and_each_model_a_label_of_its_own() -> None:
    fallbacks = [{"name": "mini"}, {"name": "other", "base_url": "https://example.org/v1", "api_key_env": "OTHER"}]
    env = {"OPENAI_API_KEY": "sk-a", "OTHER": "sk-b", "OUTSPOKEN_MODEL__NAME": "gpt"}
    chain = load(None, {**env, "OUTSPOKEN_MODEL__FALLBACKS": json.dumps(fallbacks)}).config.model.chain()
    first, second, third = endpoints_of(chain)
    assert first.credentials == second.credentials
    assert [one.credentials[0].id for one in (first, third)] == ["api.openai.com/key1", "example.org/key1"]
    assert [one.label for one in (first, second, third)] == ["api.openai.com", "api.openai.com mini", "example.org"]


@given(
    bodies=st.sampled_from([7, 30, 365]),
    journals=st.sampled_from([0, 1, 7, 30, 400]),
    records=st.sampled_from([0, 1, 7, 30, 400]),
)
def test_what_refers_to_something_is_not_kept_for_longer_and_each_advice_is_taken(
    bodies: int, journals: int, records: int
) -> None:
    """0 is for ever."""
    days = {"bodies_days": bodies, "journals_days": journals, "records_days": records}
    fits = (not journals or journals >= bodies) and (not records or 0 < journals <= records)
    key = "journals_days" if 0 < journals < bodies else "records_days"
    try:
        Retention.model_validate(days)
    except ValidationError as problem:
        assert not fits
        words = str(problem.errors()[0].get("ctx"))
        advised = [int(each) for each in re.findall(r"[0-9]+", words)]
        assert advised
        for each in [*advised, *([advised[0] + 1] if "or more" in words else [])]:
            Retention.model_validate({**days, "records_days": 0} | {key: each})
    else:
        assert fits


def test_chats_to_send_to_are_found_by_their_names_however_these_are_spaced() -> None:
    found = configured("send", allow=[" team = telegram/-100 ", "me=discord/7"]).send
    assert found.chats == {"team": "telegram/-100", "me": "discord/7"}
