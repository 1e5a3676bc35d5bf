"""What a turn's first row leaves out of its settings is what an ordinary turn has, and comes back."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.failures.errors import UnreadableJournal
from agent_core.journal import ordinary as module
from agent_core.journal.export import Head, dump, load
from agent_core.journal.ordinary import NEWEST, ORDINARY, SAME_AS, filled, shortened
from agent_core.journal.rows import decode, encode, row_of
from agent_core.settings import RULES, GuardCounts, LadderCounts, Route, ToolFacts, TurnSettings
from agent_core.store.turns.rows import JournalRow, timed
from agent_core.tools.base import EffectClass, Reach
from tests.agent_core.turns import opened
from tests.serving import served

KEPT = {1: "3808b6", 2: "a9ff21"}
"""How the digest of each table begins. A table that was released never changes; what is ordinary now gets the next number."""

counts = st.integers(0, 9)
words = st.text(max_size=8)
tools = st.builds(
    ToolFacts, words, st.sampled_from(EffectClass), st.booleans(), st.booleans(), st.sampled_from(Reach), st.booleans()
)
ladders = st.builds(LadderCounts, **{field.name: counts for field in fields(LadderCounts)})
guards = st.builds(GuardCounts, **{field.name: counts for field in fields(GuardCounts)})
FIELDS: Mapping[str, st.SearchStrategy[Any]] = {
    "routes": st.lists(st.builds(Route, words, words, words, counts), min_size=1, max_size=3).map(tuple),
    "tools": st.lists(tools, max_size=3).map(tuple),
    "client_tools": st.lists(words, max_size=3).map(tuple),
    "ladder": ladders | st.just(LadderCounts()),
    "guards": guards | st.just(GuardCounts()),
    "can_approve": st.booleans(),
    "rules": st.integers(0, RULES),
    "client_output_limit": st.booleans(),
    **{
        name: st.floats(0, 500) | st.sampled_from([1.0, 30.0, 60.0, 120.0])
        for name in (
            "first_content_seconds", "stall_seconds", "remedy_seconds", "retry_min_seconds", "retry_max_seconds",
            "retry_after_max_seconds",
        )
    },
    **{
        name: st.integers(0, 2_000) | st.just(value)
        for name, value in (
            ("turn_seconds", 1800), ("max_steps", 50), ("approval_seconds", 600), ("most_calls", 0), ("most_tool_calls", 0),
            ("restarts_a_step", 8),
        )
    },
}  # fmt: skip
settings = st.builds(TurnSettings, **FIELDS)


def ordinary() -> TurnSettings:
    """The settings that the newest table tells."""
    routes = b'[{"model":"m","endpoint":"e"}]'
    body = b'{"at":1,"input":[],"seed":1,"settings":{"as":%d,"routes":%b}}' % (NEWEST, routes)
    found: Any = decode("TurnOpened", body)
    return found.settings


def test_every_field_of_the_settings_is_tried() -> None:
    assert set(FIELDS) == {field.name for field in fields(TurnSettings)}


@given(settings)
def test_whatever_the_settings_they_come_back(given_settings: TurnSettings) -> None:
    event = opened(given_settings)
    row = row_of(event, 0)
    assert decode(row.kind, row.body) == event
    assert decode(*_told(encode(event))) == event
    assert orjson.loads(filled(row.body)) == orjson.loads(encode(event).body)


def test_an_ordinary_turn_says_only_its_routes() -> None:
    assert set(shortened(ordinary())) == {SAME_AS, "routes"}
    assert set(shortened(replace(ordinary(), max_steps=7))) == {SAME_AS, "routes", "max_steps"}
    assert set(shortened(replace(ordinary(), ladder=LadderCounts(retry=9)))) == {SAME_AS, "routes", "ladder"}


async def test_a_turn_of_a_gateway_without_a_configuration_is_ordinary(tmp_path: Path) -> None:
    """If not, there is a new ordinary: write down a table with the next number."""
    as_for_models = {
        f"OUTSPOKEN_MODEL__{n}_SECONDS": s for n, s in (("FIRST_CONTENT", "120"), ("STALL", "120"), ("REMEDY", "60"))
    }
    async with served(tmp_path, as_for_models, patient=True) as up, aiohttp.ClientSession() as client:
        asked = {"model": "outspoken", "messages": [{"role": "user", "content": "hello"}]}
        async with client.post(f"{up.url}/v1/chat/completions", json=asked) as answer:
            assert answer.status == 200, await answer.text()
    (file,) = tmp_path.rglob("*.db")
    with closing(sqlite3.connect(file)) as conn:
        body, at = conn.execute("SELECT body, at FROM journal WHERE kind = 'TurnOpened'").fetchone()
    assert set(orjson.loads(timed(body, at))["settings"]) == {SAME_AS, "routes"}


def test_no_table_ever_changes() -> None:
    found = {
        number: hashlib.sha256(orjson.dumps(table, option=orjson.OPT_SORT_KEYS)).hexdigest()[:6]
        for number, table in ORDINARY.items()
    }
    assert found == KEPT


def test_a_field_that_the_table_does_not_name_is_always_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is newer than the table; what its default will be one day says nothing of this turn."""
    turn = ordinary()
    ladder: Any = ORDINARY[NEWEST]["ladder"]
    table = {
        **{name: value for name, value in ORDINARY[NEWEST].items() if name != "max_steps"},
        "ladder": {name: value for name, value in ladder.items() if name != "compact"},
    }
    monkeypatch.setattr(module, "ORDINARY", {NEWEST: table})
    module.is_ordinary.cache_clear()
    try:
        assert set(shortened(turn)) == {SAME_AS, "routes", "max_steps", "ladder"}
    finally:
        module.is_ordinary.cache_clear()


@pytest.mark.parametrize(
    "body",
    [
        encode(opened()).body,
        b'{"text":"\\"as\\":1"}',
        b'{"settings":{"routes":[]},"as":3}',
        b'{"settings":null,"as":1}',
    ],
)
def test_a_row_that_was_never_shortened_stays_as_it_is(body: bytes) -> None:
    assert filled(body) == body


def test_a_row_that_is_damaged_goes_out_as_it_is() -> None:
    row = JournalRow(0, "TurnOpened", b'{"settings":{"as":999}}', 1)
    assert '{"settings":{"as":999}}' in dump(Head("t_1", "1", ""), [row])


def test_a_table_of_a_newer_program_cannot_be_read() -> None:
    body = orjson.dumps({"at": 1, "input": [], "seed": 1, "settings": {SAME_AS: 999, "routes": []}})
    with pytest.raises(UnreadableJournal):
        decode("TurnOpened", body)


def test_an_export_has_the_settings_whole() -> None:
    row = row_of(opened(ordinary()), 0)
    assert SAME_AS in orjson.loads(row.body)["settings"]
    text = dump(Head("t_1", "1", ""), [row, JournalRow(1, "TextArrived", b'{"at":1,"text":"x"}', 1)])
    _, rows = load(text)
    assert orjson.loads(rows[0].body) == orjson.loads(encode(opened(ordinary())).body)


def _told(written: Any) -> tuple[str, bytes]:
    return written.kind, written.body
