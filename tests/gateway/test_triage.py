"""`outspoken triage` as an operator uses it: beside a running gateway, on logs of every kind, while they grow; and a quiet hour."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent_core.failures.notices import DAMAGED
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from gateway.operate.triage.issues import dropped_issue
from gateway.operate.triage.reading import CannotTriage, TriageRequest, from_database, run, since_ms
from gateway.operate.triage.report import as_json
from tests.chats.harness import answer, quiet, running
from tests.chats.telegram_harness import telegram_harness
from tests.forked import start
from tests.gateway.test_process import daemon, environment, facts, outspoken, post
from tests.gateway.test_triage_laws import NOW, ended, line, staged
from tests.ports import free_port
from tests.store.support import message, opened, row, turn_of
from tests.store.test_troubles import TROUBLE

ROOT = Path(__file__).parents[2]
TURNS = 2


# ---------------------------------------------------------------------- the program itself


def test_failures_are_told_alike_from_the_database_beside_the_gateway_and_from_its_log(tmp_path: Path):
    env = environment(tmp_path, free_port())
    log = tmp_path / "log"
    with daemon(env, log):
        assert outspoken(env, "triage").returncode == 0
        assert facts(post(env, "hello", "k0"))["exit"] == "answered"
        for number in range(2):
            assert facts(post(env, "rehearse unauthorised", f"k{number + 1}"))["exit"] == "not_authorised"
        shown = outspoken(env, "triage")
        told = json.loads(outspoken(env, "triage", "--json").stdout)
    assert shown.returncode == 1, shown.stderr
    assert "the provider refuses the key" in shown.stdout
    assert "Renew it" in shown.stdout
    (group,) = told["groups"]
    assert (group["count"], group["conversations_hurt"], group["surfaces"]) == (2, 2, {"api": 2})
    kept = [one for one in log.read_text().split("\n") if one.startswith("{")]
    piped = outspoken(env, "triage", "-", "--json", stdin="\n".join(kept))
    assert piped.returncode == 1
    groups = [one for one in json.loads(piped.stdout)["groups"] if one["key"] == group["key"]]
    same = ("key", "title", "count", "conversations", "conversations_hurt", "surfaces", "tried", "turns", "action")
    assert [[one[key] for key in same] for one in groups] == [[group[key] for key in same]]


def test_what_cannot_be_told_has_a_status_of_its_own(tmp_path: Path):
    env = environment(tmp_path, free_port())
    (tmp_path / "words.log").write_text("2026-11-20 [info] turn.ended\n")
    for arguments, status, words in (
        ((), 78, "no database"),  # as every command says it
        ((str(tmp_path / "none.log"),), 2, "none.log"),
        ((str(tmp_path / "words.log"),), 2, "-o cat"),
        (("-", "--since", "yesterday"), 2, "--since"),
    ):
        done = outspoken(env, "triage", *arguments, stdin="")
        assert (done.returncode, words in done.stderr) == (status, True), done.stderr
        assert "Traceback" not in done.stderr
        assert "Nothing went wrong" not in done.stdout


# ---------------------------------------------------------------------- the database


async def test_the_database_tells_of_turns_parts_and_messages(where: str):
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store, "telegram/bot/1/")
        helped = replace(TROUBLE, fingerprint="provider_down|host|m1|-|-")
        stall = replace(TROUBLE, number=1, fingerprint="broken_in_tool_call|host|m1|write|L", rung="", ended=True)
        part = DeliveryRow(
            surface="telegram/bot/1/", origin=turn, bubble="b", part=0, place=1, want=b"{}", want_hash="h", key="k",
            state=DeliveryState.FAILED, cause="chat 12 is gone", at=310,
        )  # fmt: skip
        await store.turns.close(
            session, epoch, turn, [row(1)], "broken_in_tool_call", 300, [part], troubles=[helped, stall]
        )
        session, epoch, second = await turn_of(store, "slack/w/1/")
        await store.turns.close(session, epoch, second, [row(1)], "internal_error", 400)
        session, epoch, third = await turn_of(store, "slack/w/2/")
        await store.turns.close(session, epoch, third, [row(1)], "stopped", 500)
        accepted = await store.inbox.accept(message("late", "slack/w/2/"))
        await store.inbox.drop(accepted.inbox_id, "queue_full")
        report = await from_database(where, 0, 1_000)
        assert (await from_database(where, 350, 1_000)).turns == 2
    found: dict[str, Any] = {one["key"]: one for one in json.loads(as_json(report, 20))["groups"]}
    assert report.turns == 3
    assert found["turn|provider_down|host|m1|"]["tried"] == [
        {"remedy": "next_route", "times": 1, "helped": 1, "known": 1}
    ]
    assert found["turn|provider_down|host|m1|"]["conversations_hurt"] == 0
    assert found["turn|broken_in_tool_call|host|m1|write"]["turns"] == [turn]
    assert found["turn|broken_in_tool_call|host|m1|write"]["surfaces"] == {"telegram": 1}
    assert found["turn|internal_error"]["turns"] == [second]
    assert found["delivery|telegram|chat # is gone"]["words"] == "chat 12 is gone"
    assert found["message|queue_full"]["count"] == 1
    assert not any("stopped" in key for key in found)


# ---------------------------------------------------------------------- logs


def nowhere() -> Path:
    raise AssertionError("the database is not asked where a log is given")


async def told(*sources: str, **more: Any) -> tuple[int, Any]:
    said: list[str] = []
    status = await run(TriageRequest(sources, as_json=True, limit=99, **more), nowhere, lambda: NOW, said.append)
    return status, json.loads(said[-1])


async def test_rotated_and_packed_files_tell_what_one_plain_file_tells(tmp_path: Path):
    lines = staged(200)
    whole = tmp_path / "whole.log"
    whole.write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / "a.log").write_bytes(b"\n".join(lines[700:]))
    (tmp_path / "a.log.1").write_bytes(b"\n".join(lines[300:700]) + b"\n")
    (tmp_path / "a.log.2.gz").write_bytes(gzip.compress(b"\n".join(lines[:300])))
    (tmp_path / "renamed").write_bytes(gzip.compress(whole.read_bytes()))
    status, one = await told(str(whole))
    assert status == 1
    for files in (["a.log", "a.log.1", "a.log.2.gz"], ["a.log.2.gz", "a.log", "a.log.1"], ["renamed"]):
        status, other = await told(*(str(tmp_path / name) for name in files))
        assert (status, other["groups"], other["turns"]) == (1, one["groups"], one["turns"])
    out, err = tmp_path / "out", tmp_path / "err"
    packed = start(["triage", "-", "--json", "--limit", "99"], os.environ, out=out, err=err, stdin=tmp_path / "renamed")
    assert (await asyncio.to_thread(packed.wait), json.loads(out.read_text())["groups"]) == (1, one["groups"])


async def test_a_file_that_is_cut_short_is_told_in_words(tmp_path: Path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"\n".join(staged(50)))[:-20])
    with pytest.raises(CannotTriage, match="cannot be read"):
        await told(str(tmp_path / "cut.gz"))


async def test_a_log_in_which_all_went_well_is_status_0(tmp_path: Path):
    (tmp_path / "log").write_bytes(b"\n".join(ended(n) for n in range(20)))
    assert (await told(str(tmp_path / "log")))[0] == 0


@asynccontextmanager
async def following(source: Path) -> AsyncGenerator[list[str]]:
    said: list[str] = []
    asked = TriageRequest((str(source),), as_json=True, follow=True)
    task = asyncio.create_task(run(asked, nowhere, lambda: NOW, said.append))
    try:
        yield said
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(said: list[str], groups: int, failures: int) -> None:
    async with asyncio.timeout(60):
        while True:
            latest: Any = json.loads(said[-1]) if said else {}
            if (latest.get("groups_found"), latest.get("failures")) == (groups, failures):
                return
            await asyncio.sleep(0.05)


async def test_new_lines_are_grouped_as_they_come_also_after_a_rotation(tmp_path: Path):
    log = tmp_path / "log"
    failed = ended(1, "provider_down")
    log.write_bytes(failed + b"\n")
    async with following(log) as said:
        await until(said, 1, 1)
        with log.open("ab") as file:
            file.write(failed + b"\n" + failed[:50])
            file.flush()
            await until(said, 1, 2)
            file.write(failed[50:] + b"\n")
        await until(said, 1, 3)
        log.rename(tmp_path / "log.1")
        log.write_bytes(ended(2, "not_authorised") + b"\n")
        await until(said, 2, 4)
        before = len(said)
        with log.open("ab") as file:
            file.write(ended(3) + b"\n")
        await asyncio.sleep(1.5)
        assert len(said) == before, "nothing is said again when nothing went wrong"


def test_a_pipe_that_is_closed_ends_the_following() -> None:
    command = [sys.executable, "-m", "gateway", "triage", "-", "--follow"]
    done = subprocess.run(
        command, input=ended(1, "provider_down"), capture_output=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 1, done.stderr
    assert b"the model is not available" in done.stdout


@pytest.mark.parametrize(
    ("words", "ago"),
    [
        ("90s", 90),
        ("30m", 1_800),
        ("2h", 7_200),
        ("7d", 604_800),
        ("2027-01-15T07:00", 3_600),
        ("2027-01-15T07:00Z", 3_600),
        ("2027-01-15T09:00+02:00", 3_600),
        ("2027-01-15T01:30-05:30", 3_600),
    ],
)
def test_since_is_a_span_or_a_time(words: str, ago: int) -> None:
    assert since_ms(words, NOW) == NOW - ago * 1_000


# ---------------------------------------------------------------------- what the gateway logs


async def test_one_id_leads_from_the_persons_message_to_the_receipt(tmp_path: Path):
    async with telegram_harness(tmp_path) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        with capture_logs() as logs:
            async with running(platform):
                sent = platform.say(chat, ada, "say hello yourself")
                await answer(platform, chat, "hello yourself", 30)
                await quiet(platform, chat)
    accepted = only(logs, "message.accepted")
    started, over = only(logs, "turn.started"), only(logs, "turn.ended")
    receipts = [one for one in logs if one["event"] == "delivery.sent"]
    assert str(sent) in accepted["platform_key"]
    assert started["inbox"] == [accepted["inbox"]]
    assert started["platform_keys"] == [accepted["platform_key"]]
    assert started["turn"] == over["turn"]
    assert started["session"] == over["session"] == accepted["session"]
    assert [one["origin"] for one in receipts] == [over["turn"]]
    assert receipts[0]["platform_id"]


async def test_each_part_that_is_refused_is_logged_once(tmp_path: Path):
    async with telegram_harness(tmp_path) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        with capture_logs() as logs:
            async with running(platform):
                platform.say(chat, ada, "hold one")
                await asyncio.wait_for(platform.model.holding.wait(), 60)
                platform.say(chat, ada, "say two")
                await asyncio.sleep(1)
                platform.block(chat)
                platform.model.release()
                await platform.until(lambda: sum(one["event"] == "turn.ended" for one in logs) == TURNS, 30)
                await asyncio.sleep(2)
    failed = [one for one in logs if one["event"] == "delivery.failed"]
    assert len({one["part"] for one in failed}) == len(failed) == TURNS
    assert {one["cause"] for one in failed} == {"blocked"}


def only(logs: list[Any], name: str) -> Any:
    found = [one for one in logs if one["event"] == name]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(("adapter", "most"), [("up", 3), ("down", 8)])
def test_an_hour_in_which_nobody_writes_logs_next_to_nothing(tmp_path: Path, adapter: str, most: int):
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.idle", str(tmp_path), adapter],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= most, done.stdout
    assert bool(lines) is (adapter == "down"), "what is down is said all the same"


def test_the_line_of_a_test_is_a_line_of_the_gateway() -> None:
    assert line("a.b").startswith(b'{"timestamp":"2027-01-15T08:00:00.000Z","level":"info","event":"a.b"')


def test_conversations_that_were_set_aside_for_damage_name_the_storage() -> None:
    found = dropped_issue(DAMAGED)
    assert "db check" in found.action
    assert "database is damaged" in found.title
    assert found.everyone
