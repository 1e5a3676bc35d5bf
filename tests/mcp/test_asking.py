"""Servers that ask their person, and have something to read: of 2026 and of before, answered, refused, and where nobody can be asked."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from agent_core.tools.asking import AnswerAction, ToolAnswer
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.tools.mcp.terms import ServerTerms
from tests.mcp.rig import brought, faulty

DESK = Path(__file__).with_name("deskserver.py")
ACCEPT, DECLINE = AnswerAction.ACCEPT, AnswerAction.DECLINE


def desk(folder: Path) -> ServerTerms:
    return ServerTerms("desk", "desk__", (sys.executable, str(DESK), str(folder / "booked")))


async def test_a_form_is_asked_and_what_is_said_reaches_the_tool_once(tmp_path: Path):
    async with brought(tmp_path, desk(tmp_path)) as rig:
        rig.answers = [ToolAnswer(ACCEPT, {"seats": 4, "where": "garden", "quiet": True})]
        outcome = await rig.call("desk__book", {"name": "Ada"})
        assert (outcome.status, outcome.text) == (ToolStatus.OK, "booked 4 seats garden for Ada, quiet")
        asked = rig.asked[0]
        assert [one.name for one in asked.fields] == ["seats", "where", "quiet"]
        assert asked.asks == "desk (book)"
        rig.answers = [ToolAnswer(DECLINE, why="the person would not answer")]
        outcome = await rig.call("desk__book", {"name": "Bob"})
        assert "would not answer" in outcome.text
        outcome = await rig.call("desk__book", {"name": "Eve"})
        assert "nobody can be asked here" in outcome.text
    assert (tmp_path / "booked").read_text() == "Ada 4\n"


async def test_a_server_of_before_2026_asks_in_the_middle_of_its_call(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("asks_the_person", record)) as rig:
        rig.answers = [ToolAnswer(ACCEPT, {"seats": 2})]
        outcome = await rig.call("faulty__act")
        assert (outcome.status, outcome.text) == (ToolStatus.OK, "done")
        nobody = await rig.call("faulty__act")
        assert "nobody can be asked here" in nobody.text
    said = [json.loads(line) for line in record.read_text().splitlines() if line.startswith("{")]
    assert said == [{"action": "accept", "content": {"seats": 2}}, {"action": "cancel"}]


async def test_a_person_who_takes_their_time_does_not_use_up_the_calls(tmp_path: Path):
    async with brought(tmp_path, faulty("asks_the_person", tmp_path / "record", limit_seconds=2.5)) as rig:

        async def slowly(_: object) -> ToolAnswer:
            await asyncio.sleep(3)
            return ToolAnswer(ACCEPT, {"seats": 1})

        rig.ask = slowly  # type: ignore[method-assign]
        outcome = await rig.call("faulty__act")
    assert outcome.status is ToolStatus.OK


async def test_secrets_and_odd_addresses_are_never_asked_for(tmp_path: Path):
    for fault, words in (
        ("asks_for_a_secret", "looks like a secret"),
        ("asks_to_open_a_file", "none that can be shown"),
    ):
        record = tmp_path / fault
        async with brought(tmp_path / f"of_{fault}", faulty(fault, record)) as rig:
            rig.answers = [ToolAnswer(ACCEPT, {"api_key": "x"})]
            outcome = await rig.call("faulty__act")
            assert not rig.asked
        assert words in outcome.text
        assert '{"action": "decline"}' in record.read_text()


async def test_an_address_is_for_the_person_to_open_and_nothing_comes_back_but_that_they_did(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("asks_to_open", record)) as rig:
        rig.answers = [ToolAnswer(ACCEPT, {"x": "y"})]
        assert (await rig.call("faulty__act")).status is ToolStatus.OK
        assert rig.asked[0].address == "https://login.example.org/x"
    assert '{"action": "accept"}' in record.read_text()


async def test_what_a_server_has_to_read_is_listed_and_read(tmp_path: Path):
    async with brought(tmp_path, desk(tmp_path)) as rig:
        specs = {spec.name: spec for spec in rig.registry.brought}
        assert specs["desk__read_resource"].effect is specs["desk__list_resources"].effect is EffectClass.PURE
        listed = (await rig.call("desk__list_resources")).text
        assert "menu://today" in listed
        assert "dish://{name}" in listed
        linked = (await rig.call("desk__menu")).text
        assert "to be read by the read_resource of this server: menu://today" in linked
        assert "soup, bread" in (await rig.call("desk__read_resource", {"uri": "menu://today"})).text
        assert "rice with herbs" in (await rig.call("desk__read_resource", {"uri": "dish://rice"})).text
        wrong = await rig.call("desk__read_resource", {"uri": "menu://nowhere"})
        assert wrong.status is ToolStatus.FAILED
    async with brought(tmp_path, desk(tmp_path)) as rig:
        assert "soup" in (await rig.call("desk__read_resource", {"uri": "menu://today"})).text, (
            "also from the kept list"
        )


async def test_a_server_of_2026_tells_those_who_subscribe_of_new_tools(tmp_path: Path):
    async with brought(tmp_path, desk(tmp_path)) as rig:
        await rig.call("desk__grow")
        async with asyncio.timeout(30):
            while "desk__more" not in rig.registry.names:
                await asyncio.sleep(0.05)
