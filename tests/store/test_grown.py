"""What is asked of a store with a long history costs what it costs of one with a short: as many steps of SQLite, and not as many more as there is more.

`tests/gateway/test_large.py` looks at plans, which do not say how many rows of an index are gone through, nor what is added up in Python.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_core.store.evidence import EvidenceReads
from agent_core.store.reading import open_reads
from agent_core.store.reads import Reads
from gateway.config.limits import Audit
from gateway.observe import lawwatch
from gateway.observe.lawwatch import LawWatch
from tests.steps import counted, fill
from tests.store.support import FakeClock, opened, session_of

NOW = FakeClock().now
FEW, MANY = 40, 2_000
FREE = 300
"""So many steps more are the depth of an index, and chance."""
Asks = Callable[[Reads], Awaitable[object]]
HOUR = 3_600_000


def hooks(count: int, session: str) -> list[dict[str, object]]:
    """A receiver that has nearly always taken what it was told."""
    return [
        {"message": f"h{n}", "receiver": "deploy", "event": "turn.ended", "session": session, "turn": f"t{n}", "body": b"{}", "at": n,
         "state": "given_up" if n == 2 else "waiting" if n == 3 else "sent", "attempt": 1, "retry_at": 0, "cause": "why", "done_at": n}
        for n in range(count)
    ]  # fmt: skip


def parts(count: int, session: str) -> list[dict[str, object]]:
    """Chats that have refused what was said in them, long ago."""
    return [
        {"session": session, "epoch": 1, "surface": f"telegram/1/{n % 7}/", "origin": f"t{n}", "bubble": "b", "part": 0, "place": n, "want": b"{}",
         "want_hash": "", "key": f"k{n}", "state": "failed", "rev": 1, "final": 1, "gone": 0, "attempt": 1, "labelled": 0, "plain": 0, "cause": "", "trouble": "",
         "at": NOW - 10 * HOUR + n, "failures": 1}
        for n in range(count)
    ]  # fmt: skip


def turns(count: int, session: str) -> list[dict[str, object]]:
    """A conversation that has gone on for years."""
    return [
        {"turn": f"t{n:05}", "session": session, "number": n + 1, "state": "closed", "exit": "answered", "opened_at": n, "closed_at": n + 1, "deadline": n,
         "first_message": n + 1, "last_message": n + 1}
        for n in range(count)
    ]  # fmt: skip


def notes(count: int, session: str) -> list[dict[str, object]]:
    """What is remembered of many."""
    return [
        {"scope": f"{session}/{n}", "kind": "memory", "name": "n", "value": b"v", "at": n, "turn": "", "author": "", "writer": "", "others": 0} for n in range(count)
    ]  # fmt: skip


def said(count: int, session: str) -> list[dict[str, object]]:
    """Messages that were answered."""
    return [
        {"account": "api", "platform_key": f"m{n}", "session": session, "arrival": n, "lane": "normal", "body": b"{}", "state": "done", "received_at": n,
         "person": "", "turn": f"t{n}"}
        for n in range(1, count)
    ]  # fmt: skip


def times(count: int, session: str) -> list[dict[str, object]]:
    """Reminders that are to come, much later."""
    return [
        {"schedule": f"r_{n:05}", "kind": "reminder", "session_key": session, "surface": "telegram/1/1/", "number": n, "rule": "", "body": b"{}",
         "next_at": NOW + n * HOUR, "done_to": 0, "state": "active", "rev": 1, "at": n}
        for n in range(1, count)
    ]  # fmt: skip


CASES: dict[str, tuple[str, Callable[[int, str], list[dict[str, object]]], Asks]] = {
    "how many webhooks wait": ("hooks", hooks, lambda reads: reads.hooks.counts()),
    "which were given up": ("hooks", hooks, lambda reads: reads.hooks.given_up("deploy", 5)),
    "the latest failed parts": ("deliveries", parts, lambda reads: reads.deliveries.failed(20)),
    "parts that failed lately": ("deliveries", parts, lambda reads: reads.deliveries.failed_parts(NOW)),
    "whether anybody keeps a kind": ("memory", notes, lambda reads: reads.memory.of_kind("instructions", 1)),
    "what one person has": ("memory", notes, lambda reads: reads.memory.remembered(["nobody"])),
    "what one keeps of a kind": ("memory", notes, lambda reads: reads.memory.entries("nobody", "memory")),
    "messages that wait": ("inbox", said, lambda reads: EvidenceReads(reads.asks).waiting()),
    "turns whose parts wait": ("deliveries", parts, lambda reads: EvidenceReads(reads.asks).undelivered()),
    "what is overdue": ("schedules", times, lambda reads: EvidenceReads(reads.asks).overdue(NOW)),
    "what is to come": ("schedules", times, lambda reads: reads.schedules.next_occurrence()),
    "what is due": ("schedules", times, lambda reads: reads.schedules.due(NOW)),
    "what a person can continue": ("turns", turns, lambda reads: reads.sessions.conversations(["chat"], 10)),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_past_costs_nothing(tmp_path: Path, case: str) -> None:
    table, rows, ask = CASES[case]
    took: list[tuple[int, str]] = []
    for count in (FEW, MANY):
        path = tmp_path / f"{count}.db"
        async with opened(str(path)) as store:
            session, _ = await session_of(store, "chat")
        fill(path, table, rows(count, session))
        async with open_reads(path) as reads, counted(path) as found:
            await ask(reads)
        took.append((found.steps, found.dearest))
    (few, _), (many, dearest) = took
    assert many <= 1.2 * few + FREE, f"{few} steps, and {many} for {MANY // FEW} times as much: {dearest}"


async def test_a_look_of_the_auditor_goes_through_the_latest_calls_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read every model call and every pot each five minutes: of 200 000 calls the loop was held for four seconds."""
    monkeypatch.setattr(lawwatch, "NEWEST", FEW)
    took: list[int] = []
    for count in (2 * FEW, MANY):
        path = tmp_path / f"{count}.db"
        async with opened(str(path)) as store:
            session, _ = await session_of(store, "chat")
        begun = [NOW - (count - n) * HOUR for n in range(count)]
        fill(path, "reservations", [
            {"call": f"t_{n:05}:1:1", "session": session, "node": 1, "state": "settled", "pots": f'[["day:all",{at}]]', "held_tokens": 9, "held_nanos": 0,
             "used_tokens": 5, "used_nanos": 0, "estimated": 0, "at": at + 1}
            for n, at in enumerate(begun)
        ])  # fmt: skip
        fill(path, "turns", [
            one | {"turn": f"t_{n:05}", "opened_at": at, "closed_at": at + 1} for n, (one, at) in enumerate(zip(turns(count, session), begun, strict=True))
        ])  # fmt: skip
        fill(path, "budgets", [
            {"scope": "day:all", "window": at, "until": at + HOUR, "spent_tokens": 5, "spent_nanos": 0, "held_tokens": 0, "held_nanos": 0,
             "estimated_tokens": 0, "estimated_nanos": 0, "calls": 1, "warned": 0, "at": at}
            for at in begun
        ])  # fmt: skip
        fill(path, "hooks", [one | {"state": "sent"} for one in hooks(count, session)])
        watch = LawWatch(path, Audit(per_second=1_000, hours=0), FakeClock())
        async with counted(path) as found:
            await watch.look()
        assert not watch.known, watch.words()
        took.append(found.steps)
        fill(path, "reservations", [{
            "call": "t_99999:1:1", "session": session, "node": 1, "state": "settled", "pots": f'[["day:all",{begun[-1]}]]', "held_tokens": 9,
            "held_nanos": 0, "used_tokens": 7, "used_nanos": 0, "estimated": 0, "at": NOW,
        }])  # fmt: skip
        await watch.look()
        assert "its calls used 12" in watch.words()  # it still counts what it looks at
        async with open_reads(path) as reads:
            whole = await EvidenceReads(reads.asks).ledger(0)
        assert (len(whole.pots), len(whole.spent), whole.since) == (count, count, 0)
    few, many = took
    assert many <= 1.2 * few + FREE, f"{few} steps, and {many}: {found.dearest}"
