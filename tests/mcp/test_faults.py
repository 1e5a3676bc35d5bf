"""A server that misbehaves, in every way we thought of: each call ends in time, with a result or with the reason, and no effect happens twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from agent_core.tools.base import ToolStatus
from agent_core.tools.mcp import link
from agent_core.tools.mcp.server import ServerState
from tests.mcp.rig import brought, faulty

OK, FAILED, TIMED_OUT, UNKNOWN = ToolStatus.OK, ToolStatus.FAILED, ToolStatus.TIMED_OUT, ToolStatus.UNKNOWN
SECONDS = 90.0
"""Far more than the limits of a call and of a start together."""


@dataclass(frozen=True)
class Fault:
    """What is expected of a call of `act` (an effect) to a server with this fault."""

    name: str
    status: ToolStatus
    words: str
    """In the outcome."""
    effects: int = 1


CALLS = (
    Fault("none", OK, "done"),
    Fault("dies", UNKNOWN, "ended with status 9"),
    Fault("is_killed", UNKNOWN, "killed by SIGKILL"),
    Fault("hangs", TIMED_OUT, "gave no result within its time"),
    Fault("silent_call", TIMED_OUT, "gave no result within its time"),
    Fault("answers_twice", OK, "done"),
    Fault("answers_late", TIMED_OUT, "gave no result within its time"),
    Fault("answers_another", TIMED_OUT, "gave no result within its time"),
    Fault("answers_null", TIMED_OUT, "gave no result within its time"),
    Fault("no_result", UNKNOWN, "answered with something that is no result"),
    Fault("empty_result", UNKNOWN, "answered with something that is no result"),
    Fault("wrong_content", UNKNOWN, "answered with something that is no result"),
    Fault("unknown_content", UNKNOWN, "answered with something that is no result"),
    Fault("error", FAILED, "the cellar is flooded"),
    Fault("error_without_words", FAILED, "error -32603"),
    Fault("error_that_is_none", UNKNOWN, "answered with something that is no result"),
    Fault("tool_failed", FAILED, "no such thing"),
    Fault("floods", UNKNOWN, "floods"),
    Fault("floods_progress", UNKNOWN, "floods"),
    Fault("endless_line", UNKNOWN, "a message of more than 2000000 bytes"),
    Fault("huge_result", OK, "all of it is in the workspace as mcp/"),
    Fault("broken_picture", OK, "came without anything in it"),
    Fault("odd_text", OK, "a"),
    Fault("half_a_character", OK, "caf"),
    Fault("id_as_words", OK, "done"),
    Fault("id_of_the_next", OK, "done"),
    Fault("result_and_error", FAILED, "or not"),
    Fault("several_in_a_line", TIMED_OUT, "gave no result within its time"),
    Fault("nested_for_ever", UNKNOWN, "answered with something that is no result"),
    Fault("endless_number", UNKNOWN, "answered with something that is no result"),
    Fault("asks_for_ever", UNKNOWN, "floods"),
    Fault("floods_resources", UNKNOWN, "floods"),
    Fault("names_that_look_alike", OK, "done"),
    Fault("junk_between", OK, "done"),
    Fault(
        "half_a_line", TIMED_OUT, "without a sign of progress; 24 bytes came meanwhile, too slowly, and no whole answer"
    ),
    Fault("progress_and_half_a_line", TIMED_OUT, "24 bytes came meanwhile, too slowly, and no whole answer"),
    Fault("half_a_line_at_a_time", OK, "done"),
    Fault("half_a_message", UNKNOWN, "ended with status 0"),
    Fault("closes_output", UNKNOWN, "closed its output"),
    Fault("closes_input", OK, "done"),
    Fault("noisy", OK, "done"),
    Fault("asks_for_a_model", OK, "done", 2),
    Fault("asks_for_roots", OK, "done", 2),
    Fault("asks_nonsense", OK, "done", 2),
    Fault("cancels", OK, "done"),
    Fault("says_its_tools_change", OK, "done"),
    Fault("progress_for_ever", TIMED_OUT, "gave no result within its time"),
    Fault("progress_that_is_none", OK, "done"),
    Fault("slow_and_honest", OK, "done"),
    Fault("dies_afterwards", OK, "done"),
    Fault("junk_first", OK, "done"),
    Fault("child_stays", OK, "done"),
    Fault("does_not_end", OK, "done"),
    Fault("many_tools", OK, "done"),
    Fault("twice_the_same_name", OK, "done"),
    Fault("odd_names", OK, "done"),
    Fault("deep_schema", OK, "done"),
    Fault("endless_list", OK, "done"),
)
STARTS = {
    "ends_at_once": "ended with status 3",
    "only_junk": "did not say what it can do in time",
    "silent_from_the_start": "did not say what it can do in time",
    "refuses_to_begin": "not today",
    "another_protocol": "1999-01-01",
    "lists_nothing": "did not say what it can do in time",
    "cannot_list": "no list today",
    "answers_before_it_is_asked": "answered with something that is no result",
    "no_tools_but_words": "answered with something that is no result",
}


def effects(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


@pytest.fixture
def counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood is as many messages, however slowly a busy machine has them come."""
    if "flood" in str(request.node.callspec.params["fault"]):
        monkeypatch.setattr(link, "BURST", 500.0)
        monkeypatch.setattr(link, "A_SECOND", 0.0)


@pytest.mark.parametrize("fault", CALLS, ids=lambda one: one.name)
@pytest.mark.usefixtures("counted")
async def test_a_call_to_a_server_that_misbehaves_ends_with_its_reason_and_is_sent_once(fault: Fault, tmp_path: Path):
    record = tmp_path / "record"
    patient = {"silence_seconds": 60.0, "limit_seconds": 60.0} if fault.words == "floods" else {}
    async with brought(tmp_path, faulty(fault.name, record, **patient)) as rig:
        began = time.monotonic()
        async with asyncio.timeout(SECONDS):
            outcome = await rig.call("faulty__act")
        assert (outcome.status, fault.words in outcome.text) == (fault.status, True), outcome
        if outcome.status in (UNKNOWN, TIMED_OUT):
            assert "may have been done" in outcome.text
        assert time.monotonic() - began < SECONDS
    done = [one for one in effects(record) if one == "act"]
    assert len(done) == 1, done
    assert not psutil.pid_exists(rig.servers.lifeline.pid or 2**22), "nothing is left of it"


@pytest.mark.parametrize("fault", STARTS)
async def test_a_server_that_cannot_be_begun_is_down_with_its_reason(fault: str, tmp_path: Path):
    async with brought(tmp_path, faulty(fault, tmp_path / "record", start_seconds=2)) as rig:
        server = rig.servers.servers["faulty"]
        assert server.state is ServerState.DOWN
        assert STARTS[fault] in server.why
        assert rig.registry.names == ()


@pytest.mark.parametrize("fault", ["dies", "hangs", "floods", "closes_output", "endless_line", "answers_late"])
@pytest.mark.usefixtures("counted")
async def test_after_whatever_happened_the_next_call_has_a_server_again(fault: str, tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty(fault, record)) as rig:
        first = await rig.call("faulty__act")
        assert first.status is not OK
        server = rig.servers.servers["faulty"]
        async with asyncio.timeout(SECONDS):
            while server.state is ServerState.READY and fault != "answers_late":
                await asyncio.sleep(0.05)
            second = await rig.call("faulty__look")
        assert second.status in (OK, FAILED, TIMED_OUT), second
        assert "look" in effects(record)


async def test_a_call_that_only_reads_is_made_again_once_where_its_server_died(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("dies", record)) as rig:
        outcome = await rig.call("faulty__look")
    assert effects(record) == ["look", "look"]
    assert outcome.status is FAILED
    assert "only reads" in outcome.text


async def test_a_server_that_lies_about_repeating_is_not_believed(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("dies", record)) as rig:
        outcome = await rig.call("faulty__put")
        again = await rig.call("faulty__put", again=True)
    assert effects(record) == ["put"]
    assert outcome.status is again.status is UNKNOWN


async def test_an_operator_who_says_so_is_believed(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("dies", record, keyed=("put",))) as rig:
        outcome = await rig.call("faulty__put")
    assert effects(record) == ["put", "put"]
    assert outcome.status is UNKNOWN


async def test_a_call_that_only_reads_is_cancelled_with_its_server_when_its_time_is_over(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("silent_call", record)) as rig:
        await rig.call("faulty__look")
        async with asyncio.timeout(SECONDS):
            while "cancelled" not in effects(record):
                await asyncio.sleep(0.05)


async def test_progress_is_seen_and_keeps_a_call_alive(tmp_path: Path):
    async with brought(tmp_path, faulty("slow_and_honest", tmp_path / "record")) as rig:
        outcome = await rig.call("faulty__act")
    assert outcome.status is OK
    assert "digging (3 of 8)" in rig.beats


async def test_a_pattern_that_takes_for_ever_is_never_matched(tmp_path: Path):
    async with brought(tmp_path, faulty("evil_pattern", tmp_path / "record")) as rig:
        began = time.monotonic()
        assert (await rig.call("faulty__look", {"a": "a" * 60 + "!"})).status is OK
        assert time.monotonic() - began < SECONDS


async def test_tools_that_are_not_as_the_protocol_says_take_no_others_away(tmp_path: Path):
    async with brought(tmp_path, faulty("some_are_not_as_agreed", tmp_path / "record")) as rig:
        assert {f"faulty__{name}" for name in ("act", "untyped", "bare", "hinted", "output")} <= set(rig.registry.names)
        assert rig.servers.servers["faulty"].listing.left_out == (
            "words: its arguments are no object",
            "always: its arguments are no object",
            "a tool without a usable name",
            "something that is no tool",
        )


@pytest.mark.parametrize("fault", ["remote_reference", "circular_schema"])
async def test_a_reference_leads_nowhere(fault: str, tmp_path: Path):
    async with brought(tmp_path, faulty(fault, tmp_path / "record")) as rig:
        assert (await rig.call("faulty__look", {"a": "x"})).status is OK


async def test_nothing_of_a_server_outlives_it(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("child_stays", record)):
        child = int(record.with_suffix(".child").read_text())
        assert psutil.pid_exists(child)
    async with asyncio.timeout(SECONDS):
        while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.05)


async def test_a_server_that_is_known_is_begun_by_its_first_call(tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty("none", record)):
        pass
    async with brought(tmp_path, faulty("none", record)) as rig:
        assert rig.servers.servers["faulty"].state is ServerState.RESTING
        assert "faulty__act" in rig.registry.names
        assert (await rig.call("faulty__act")).status is OK
        assert rig.servers.servers["faulty"].begun == 1


async def test_a_kept_list_that_is_damaged_or_of_another_program_counts_for_nothing(tmp_path: Path):
    async with brought(tmp_path, faulty("none", tmp_path / "record")):
        pass
    kept = tmp_path / "mcp" / "faulty.tools.json"
    kept.write_bytes(kept.read_bytes()[:50])
    async with brought(tmp_path, faulty("none", tmp_path / "record")) as rig:
        assert rig.servers.servers["faulty"].begun == 1
    async with brought(tmp_path, faulty("ends_at_once", tmp_path / "record")) as rig:
        assert rig.registry.names == ()


async def test_a_server_that_is_killed_while_it_rests_is_begun_anew(tmp_path: Path):
    async with brought(tmp_path, faulty("none", tmp_path / "record")) as rig:
        await rig.call("faulty__act")
        server = rig.servers.servers["faulty"]
        connected = await server.ready()
        assert connected.link.pid is not None
        os.kill(connected.link.pid, signal.SIGKILL)
        async with asyncio.timeout(SECONDS):
            while server.state is ServerState.READY:
                await asyncio.sleep(0.02)
        assert "SIGKILL" in server.why
        assert (await rig.call("faulty__act")).status is OK
