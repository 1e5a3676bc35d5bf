"""The metrics: the list against what a gateway serves, the page and the files of deploy/ against the list."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import aiohttp
import promql_parser as promql
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from adapters.contract.chat import AdapterSight, Cause
from agent_core.failures.exits import ExitCode
from agent_core.limits.budgets import NANOS
from agent_core.signals import LawBroken, ModelCalled, SendFailed, Signal, Signals, Spent, ToolRan
from gateway.config.model import rehearsal_endpoint
from gateway.limits.patience import CutOff
from gateway.observe.looplag import LoopWatch
from gateway.observe.metrics import FROM_OUTSIDE, MOST_VALUES, OTHER, Metrics
from gateway.observe.metricscatalogue import (
    BY_NAME,
    CATALOGUE,
    LABELS,
    OURS,
    SERIES,
    GatewayParts,
    KnownAtStart,
    MetricKind,
)
from tests.chats.harness import answer, quiet, running
from tests.chats.telegram_harness import telegram_harness

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alert-rules.yaml"
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
OF_PROMETHEUS = {"instance", "job", "namespace", "le"}
"""Labels that Prometheus itself adds."""
UP = "up"
"""And a series."""


# ---------------------------------------------------------------------- the list


def test_the_list_is_whole() -> None:
    assert len(BY_NAME) == len(CATALOGUE)
    assert {label for metric in CATALOGUE for label in metric.labels} == set(LABELS), (
        "each label is explained once, and none for nothing"
    )
    for metric in OURS:
        assert re.fullmatch(r"(outspoken|gen_ai)_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") is (metric.kind is MetricKind.COUNTER), metric.name
        assert bool(metric.buckets) is (metric.kind is MetricKind.HISTOGRAM), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name
        assert metric.says.endswith("."), metric.name
        assert "|" not in metric.says


def test_no_label_can_hold_a_chat_a_person_or_a_conversation() -> None:
    assert not {"chat", "person", "session", "conversation", "turn", "origin", "account", "user"} & set(LABELS)


ADDED = """    _counter("outspoken_naps_total", "Naps that were taken.", on(sig.LawBroken, lambda _: [(1, "long")]), "cause",
             begin=lambda _: each(("short",)), unwatched=True),
    _gauge("outspoken_beds", "Beds that are free.", lambda p: [(len(p.supervisors),)], unwatched=True),
"""
ASKED = """
import json
from types import SimpleNamespace
from agent_core.signals import LawBroken
from gateway.observe import metrics, metricscatalogue as m
from tests.printed.metrics import markdown
metrics.OURS = tuple(one for one in m.OURS if one.read is None or one.name == "outspoken_beds")
counted = metrics.Metrics("EUR")
counted.begin(m.KnownAtStart((), ()))
counted.read_from(SimpleNamespace(supervisors=(1, 2)))
counted.on(LawBroken())
print(json.dumps([markdown(), counted.text()[0].decode()]))
"""


def test_a_new_metric_is_one_declaration_in_one_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "gateway", tmp_path / "gateway")
    file = tmp_path / "gateway" / "observe" / "metricscatalogue.py"
    start = "OURS: tuple[Metric, ...] = (\n"
    text = file.read_text("utf-8")
    assert start in text
    file.write_text(text.replace(start, start + ADDED), "utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    printed = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60
    )
    page, served = json.loads(printed.stdout)
    assert "| `outspoken_naps_total` | counter | `cause` | Naps that were taken. |" in page
    assert "| `outspoken_beds` | gauge |  | Beds that are free. |" in page
    assert 'outspoken_naps_total{cause="long"} 1.0' in served
    assert 'outspoken_naps_total{cause="short"} 0.0' in served
    assert "outspoken_beds 2.0" in served


# ---------------------------------------------------------------------- counting


def example(kind: type[Signal]) -> Signal:
    """A signal with something in every field."""
    values: dict[str, Any] = {"str": "word", "int": 7, "float": 0.5, "bool": True, "tuple[TroubleRow, ...]": ()}
    return kind(**{field.name: values[str(field.type)] for field in fields(kind)})


@pytest.mark.parametrize("kind", get_args(Signal), ids=lambda kind: kind.__name__)
def test_every_signal_is_counted(kind: type[Signal]) -> None:
    metrics = Metrics("EUR")
    before = metrics.text()
    metrics.on(example(kind))
    assert metrics.text() != before


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """By name and the labels' values, in the order of the list."""
    found = text_string_to_metric_families(metrics.text()[0].decode())
    return {
        (s.name, tuple(s.labels[label] for label in SERIES[s.name].labels if label in s.labels)): s.value
        for family in found
        for s in family.samples
        if s.name in SERIES
    }


def test_two_gateways_in_one_process_count_apart() -> None:
    one, other = Metrics("EUR"), Metrics("EUR")
    one.on(LawBroken())
    assert (samples(one)["outspoken_laws_broken_total", ()], samples(other)["outspoken_laws_broken_total", ()]) == (
        1,
        0,
    )


@given(st.lists(st.integers(0, 3 * MOST_VALUES), max_size=5 * MOST_VALUES))
def test_what_comes_from_outside_makes_a_bounded_number_of_series_and_no_count_is_lost(models: list[int]) -> None:
    metrics = Metrics("EUR")
    for number in models:
        metrics.on(
            ModelCalled(
                turn="t", session="s", name="1", endpoint="e", model=f"m{number}", began_at=0, ended_at=10, content_at=5,
                error="stalled",
            )
        )  # fmt: skip
    stalls = {
        labels[1]: value for (name, labels), value in samples(metrics).items() if name == "outspoken_model_stalls_total"
    }
    assert sum(stalls.values()) == len(models)
    assert len(stalls) <= MOST_VALUES + 1
    assert (OTHER in stalls) is (len(set(models)) > MOST_VALUES)


def test_however_many_models_there_are_the_first_are_told_apart_and_the_others_counted_together() -> None:
    metrics = Metrics("EUR")
    for number in [*range(MOST_VALUES + 50), 0, MOST_VALUES]:
        metrics.on(Spent(model=f"m{number}", tokens=2, nanos=3 * NANOS, estimated=False))
    spent = {
        labels[0]: value for (name, labels), value in samples(metrics).items() if name == "outspoken_spent_tokens_total"
    }
    assert len(spent) == MOST_VALUES + 1
    assert (spent["m0"], spent["m1"], spent[OTHER]) == (4, 2, 2 * 51)
    money = {
        labels[0]: value for (name, labels), value in samples(metrics).items() if name == "outspoken_spent_money_total"
    }
    assert (money["m0"], money["m1"], money[OTHER]) == (6, 3, 3 * 51)


@pytest.mark.parametrize("final", [True, False])
def test_a_call_that_failed_counts_as_one_that_is_made_again_or_as_one_that_is_not(*, final: bool) -> None:
    metrics = Metrics("EUR")
    metrics.on(SendFailed(platform="slack", fate="refused", cause="blocked", final=final))
    found = samples(metrics)
    retried, failed = (
        ("outspoken_delivery_retries_total", ("slack", "refused", "blocked")),
        ("outspoken_delivery_failed_total", ("slack", "blocked")),
    )
    assert (retried in found, failed in found) == (not final, final)


def test_of_an_adapter_is_told_what_it_has_and_of_one_that_is_away_nothing_of_its_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("up", "silent_seconds", "inbound_age_seconds", "outbound_age_seconds")
    told = tuple(BY_NAME[f"outspoken_adapter_{name}"] for name in names)
    monkeypatch.setattr("gateway.observe.metrics.OURS", told)

    def adapter(name: str, state: str, heard: float | None, sent: float | None) -> SimpleNamespace:
        sight = AdapterSight(f"{name}/1", state, "", heard, sent)
        return SimpleNamespace(adapter=SimpleNamespace(name=f"{name}/1", silent_seconds=7.0), sight=lambda: sight)

    metrics = Metrics("EUR")
    supervisors = (adapter("slack", "up", 3.0, None), adapter("discord", "down", None, 5.0))
    metrics.read_from(cast("GatewayParts", SimpleNamespace(supervisors=supervisors)))
    assert {key: value for key, value in samples(metrics).items() if not key[0].startswith("process_")} == {
        ("outspoken_adapter_up", ("slack",)): 1, ("outspoken_adapter_up", ("discord",)): 0,
        ("outspoken_adapter_silent_seconds", ("slack",)): 7,
        ("outspoken_adapter_inbound_age_seconds", ("slack",)): 3, ("outspoken_adapter_outbound_age_seconds", ("discord",)): 5,
    }  # fmt: skip


def test_an_odd_accept_header_is_answered_all_the_same() -> None:
    metrics = Metrics("EUR")
    for accept in (
        "",
        "*/*",
        "text/plain;version=x",
        "application/openmetrics-text; version=x",
        "application/openmetrics-text; version=1.0.0",
    ):
        body, content_type = metrics.text(accept)
        assert b"outspoken_laws_broken_total" in body
        assert ("openmetrics" in content_type) is ("openmetrics" in accept)


def test_a_listener_that_fails_harms_no_other() -> None:
    heard: list[Signal] = []

    def broken(_: Signal) -> None:
        raise RuntimeError

    told = Signals()
    told.listen(broken)
    told.listen(heard.append)
    told.tell(LawBroken())
    assert heard == [LawBroken()]


def test_what_is_read_is_read_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.observe.metrics.OURS", (BY_NAME["outspoken_event_loop_held_max_seconds"],))
    metrics, loop = Metrics("EUR"), LoopWatch(lambda _: None)
    metrics.read_from(cast("GatewayParts", SimpleNamespace(loop=loop)))
    loop.longest = 1.5
    assert samples(metrics)["outspoken_event_loop_held_max_seconds", ()] == 1.5


# ---------------------------------------------------------------------- a gateway


async def served_families(url: str, key: str = "") -> Mapping[str, Family]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics", headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/plain"
        return {family.name: family for family in text_string_to_metric_families(await response.text())}


async def test_a_gateway_serves_what_the_list_says_and_counts_what_happened(tmp_path: Path) -> None:
    key = "sesame-sesame-sesame"
    more = {
        "OUTSPOKEN_SERVER__OPERATOR_KEY": key, "OUTSPOKEN_BUDGETS__DAY_TOKENS": "1000000", "OUTSPOKEN_MODEL__ATTEMPTS": "2",
    }  # fmt: skip
    async with telegram_harness(tmp_path) as telegram:
        eve = telegram.person("Evangeline")
        chat = telegram.private(eve)
        async with running(telegram, **more) as up:
            telegram.fail_sends("503", "ok")
            telegram.say(chat, eve, "say hello")
            await answer(telegram, chat, "hello", 20)
            telegram.say(chat, eve, "write a.txt: b")
            await answer(telegram, chat, "Done", 20)
            telegram.say(chat, eve, "stall")
            await telegram.until(lambda: any("⚠️" in one.text for one in telegram.seen(chat)), 30)
            await quiet(telegram, chat)  # the gateway knows of the last answer, too
            async with aiohttp.ClientSession() as http, http.get(f"{up.url}/metrics") as refused:
                assert refused.status == 401
            families = await served_families(up.url, key)
        words = (eve.first_name, str(chat.chat.id), "hello")
    names = {metric.name for metric in CATALOGUE}
    shown = {f"{name}_total" if family.type == "counter" else name for name, family in families.items()}
    assert shown == names
    assert {f.name: f.type for f in families.values()} == {
        metric.name.removesuffix("_total"): metric.kind.value for metric in CATALOGUE
    }
    found = {(s.name, tuple(s.labels.items())): s.value for family in families.values() for s in family.samples}
    for name, labels in found:
        assert {label for label, _ in labels} - {"le"} == set(SERIES[name].labels), name
        assert not [value for _, value in labels if value in words]

    def value(name: str, **labels: str) -> float:
        return sum(v for (n, have), v in found.items() if n == name and labels.items() <= dict(have).items())

    assert value("outspoken_turns_total", exit="answered", surface="telegram") == 2
    assert value("outspoken_turns_total") == 3
    assert value("outspoken_messages_total", platform="telegram", lane="normal") == 3
    assert value("outspoken_turn_first_sign_seconds_count", platform="telegram") == 3
    assert value("outspoken_turn_first_content_seconds_count", surface="telegram") >= 2
    assert value("outspoken_tool_seconds_count", status="ok") == 1
    assert value("outspoken_model_stalls_total") >= 1
    assert value("outspoken_troubles_total") >= 1
    assert value("outspoken_remedies_total") >= 1
    assert value("gen_ai_client_operation_duration_seconds_count", gen_ai_operation_name="chat") >= 5
    assert value("outspoken_delivery_lag_seconds_count", platform="telegram") >= 3
    assert value("outspoken_delivery_retries_total", platform="telegram") >= 1
    assert value("outspoken_spent_tokens_total", estimated="true") > 0
    assert value("outspoken_adapter_up", platform="telegram") == 1
    assert value("outspoken_store_operations_total", outcome="stored") > 10
    assert value("outspoken_ready") == 1
    assert value("outspoken_oldest_undelivered_seconds") == 0
    assert value("outspoken_disk_free_bytes") > 0
    assert 0 <= value("outspoken_budget_used_ratio", budget="day", measure="tokens") < 1
    assert value("process_resident_memory_bytes") > 0


# ---------------------------------------------------------------------- deploy/


def expressions_of_rules() -> Iterator[tuple[str, str]]:
    data = cast("dict[str, list[dict[str, Any]]]", yaml.safe_load(RULES.read_text("utf-8")))
    for group in data["groups"]:
        assert set(group) == {"name", "rules"}
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
            assert rule["labels"]["severity"] in {"warning", "critical"}
            assert set(rule["annotations"]) == {"summary", "action"}
            assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
            yield rule["alert"], rule["expr"]


def expressions_of_dashboard() -> Iterator[tuple[str, str]]:
    data = cast("dict[str, Any]", json.loads(DASHBOARD.read_text("utf-8")))
    ids = [panel["id"] for panel in data["panels"]]
    assert len(ids) == len(set(ids))
    for panel in data["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")


def used(expression: str) -> dict[str, set[str]]:
    """The series that an expression asks for, with the labels that it matches; and under "" the labels that it groups by."""
    series: dict[str, set[str]] = {"": set()}

    def visit(node: promql.Expr) -> bool:
        if isinstance(node, promql.VectorSelector):
            series.setdefault(node.name or "?", set()).update(matcher.name for matcher in node.matchers.matchers)
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            series[""].update(node.modifier.labels)
        return True

    promql.walk(promql.parse(expression), visit)
    return series


def complaints(expression: str) -> list[str]:
    """What an expression asks for that there is not."""
    found = used(expression)
    found.pop(UP, None)
    groups = found.pop("")
    unknown = [name for name in found if name not in SERIES]
    known = {name: set(SERIES[name].labels) | OF_PROMETHEUS for name in found if name in SERIES}
    wrong = [f"{name}{{{label}}}" for name, labels in known.items() for label in found[name] - labels]
    ungrouped = [
        f"by {label}"
        for label in groups
        if not any(label in labels for labels in known.values()) and label not in OF_PROMETHEUS
    ]
    return unknown + wrong + ungrouped


def labels_of(text: str) -> set[str]:
    """The labels that a legend or an annotation names."""
    return set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)", text)) - {"value"}


def test_every_query_of_deploy_asks_for_what_there_is() -> None:
    asked = [*expressions_of_rules(), *expressions_of_dashboard()]
    assert len(asked) > 40
    assert {where: found for where, expression in asked if (found := complaints(expression))} == {}
    texts = RULES.read_text("utf-8") + DASHBOARD.read_text("utf-8")
    assert labels_of(texts) <= set(LABELS) | OF_PROMETHEUS


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("rate(outspoken_turn_total[5m])", ["outspoken_turn_total"]),
        ("outspoken_turn_seconds", ["outspoken_turn_seconds"]),
        ('outspoken_turns_total{chat="1"}', ["outspoken_turns_total{chat}"]),
        ("sum by (model) (outspoken_turns_total)", ["by model"]),
        ("sum by (exit) (rate(outspoken_turns_total[5m]))", []),
    ],
)
def test_a_planted_mistake_in_a_query_is_found(expression: str, complaint: list[str]) -> None:
    assert complaints(expression) == complaint


def test_what_is_dangerous_has_a_rule_and_every_metric_of_ours_that_people_wait_for_a_panel() -> None:
    ruled = {SERIES[name].name for _, e in expressions_of_rules() for name in used(e) if name and name != UP}
    shown = {SERIES[name].name for _, e in expressions_of_dashboard() for name in used(e) if name}
    assert {
        "outspoken_ready",
        "outspoken_well",
        "outspoken_adapter_up",
        "outspoken_oldest_undelivered_seconds",
        "outspoken_disk_free_bytes",
    } <= ruled
    missing = {metric.name for metric in OURS} - ruled - shown
    assert missing == {metric.name for metric in OURS if metric.unwatched}


# ---------------------------------------------------------------------- the first series


def test_every_counter_of_an_alert_rule_begins_at_nothing_with_all_that_can_be_counted() -> None:
    metrics = Metrics("EUR")
    metrics.begin(KnownAtStart(("telegram", "slack"), [rehearsal_endpoint("http://here", "k")]))
    begun = {key: value for key, value in samples(metrics).items() if not key[0].startswith("process_")}
    assert set(begun.values()) == {0.0}
    asked = {name for _, e in expressions_of_rules() for name in used(e) if name in SERIES}
    counted = {name for name in asked if SERIES[name].kind is MetricKind.COUNTER and SERIES[name].on is not None}
    assert len(counted) > 6
    assert counted <= {name for name, _ in begun}
    for cut in CutOff:
        assert ("outspoken_connections_cut_total", (cut.value,)) in begun
    for code in ExitCode:
        assert ("outspoken_turns_total", (code.value, "slack")) in begun
    for cause in Cause:
        assert ("outspoken_delivery_failed_total", ("telegram", cause.value)) in begun


def test_labels_from_outside_are_labels() -> None:
    assert set(LABELS) >= FROM_OUTSIDE
    run = ToolRan(turn="t", session="s", call="c", tool="x", status="ok", began_at=5, ended_at=5)
    metrics = Metrics("EUR")
    metrics.on(run)
    assert samples(metrics)["outspoken_tool_seconds_count", ("x", "ok")] == 1
