"""The auditor at work: beside a gateway, as a command, and in the daemon."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.contents import Content, ContentKind
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import new_part
from adapters.text.styled import Styled
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.store.database.ownership import PulseLock, Serves
from agent_core.store.evidence import EvidenceReads
from agent_core.store.reading import open_reads
from agent_core.store.store import open_store
from gateway.config.limits import Audit
from gateway.laws import words
from gateway.laws.auditor import PAGE, Auditor, Watermark
from gateway.laws.law import MENDS, UNCLAIMED_MS, Breach, Law, Viewpoint
from gateway.observe.lawwatch import LawWatch
from gateway.operate.auditing import telling
from gateway.queues.inbox import encode
from gateway.version import program_version
from tests.forked import run
from tests.laws.look import breaches
from tests.store.support import IDS, FakeClock, message, opened, started, turn_of

SAID = encode(
    FromApi(
        account="bot", platform_key="m1", session=SessionKey("api", "", "c"), input=(InputMessage("hi"),), surface="api",
        memory_scope="api/c",
    )
)  # fmt: skip
"""A message that can be read."""

LATER = 1_000_000


async def filled(where: str, count: int) -> None:
    """Turns that ended as they had to, stored by the store itself; their journals say nothing that could be read."""
    async with opened(where) as store:
        for number in range(count):
            accepted = await store.inbox.accept(message(f"m{number}", f"chat{number}"))
            epoch = accepted.epoch or await store.sessions.claim(accepted.session)
            await started(store, accepted, epoch)


async def test_a_turn_of_any_gateway_that_lives_is_claimed_and_one_of_a_dead_one_is_not(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=Serves.SHARED)
    second = open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=Serves.SHARED)
    async with AsyncExitStack() as stack:
        mine = await stack.enter_async_context(first)
        await stack.enter_async_context(second)
        await turn_of(mine)

        async def broken() -> set[Law]:
            async with open_reads(postgres) as reads:
                evidence = EvidenceReads(reads.asks)
                moment = Viewpoint(
                    FakeClock().now + 10 * UNCLAIMED_MS, tuple(await evidence.nodes()), 10**12, "1", runs=True
                )
                return {one.law for one in (await Auditor(evidence, moment, again_seconds=0).run(Watermark())).breaches}

        assert Law.UNCLAIMED not in await broken()

        async def never(_: PulseLock) -> None:
            raise OSError("no way to the server")

        monkeypatch.setattr(PulseLock, "connect", never)
        assert isinstance(mine.ownership, PulseLock)
        await mine.ownership.disconnect()
        async with asyncio.timeout(10):
            while Law.UNCLAIMED not in await broken():
                await asyncio.sleep(0.05)


async def test_only_what_is_broken_twice_is_told(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    await filled(where, 1)
    with closing(sqlite3.connect(where)) as db, db:
        db.execute("UPDATE inbox SET arrival = 9")
    async with open_reads(where) as reads:
        moment = Viewpoint(FakeClock().now, (), 10**12, runs=None)
        looks = 0

        class Mended(Auditor):
            async def _message(self, message):  # type: ignore[no-untyped-def, override]
                nonlocal looks
                looks += 1
                found = await super()._message(message)
                with closing(sqlite3.connect(where)) as db, db:
                    db.execute("UPDATE inbox SET arrival = id")
                return found

        found = await Mended(EvidenceReads(reads.asks), moment, again_seconds=0.0).run(Watermark())
    assert looks == 2
    assert Law.MISPLACED not in {one.law for one in found.breaches}


async def test_a_part_that_is_delivered_between_two_looks_is_not_told(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    async with opened(where) as store:
        accepted = await store.inbox.accept(message("m0", "chat0"))
        epoch = accepted.epoch or await store.sessions.claim(accepted.session)
        part = new_part(WantedPart("b", 0, Content(ContentKind.TEXT, Styled("x")), final=True), "t/1/2/", "inbox:1", 1)
        await store.deliveries.put(accepted.session, epoch, [replace(part.row, at=1)])

    async def laws(*, mended: bool) -> set[Law]:
        class Mended(Auditor):
            async def _page_of_parts(self, looks):  # type: ignore[no-untyped-def, override]
                found = await super()._page_of_parts(looks)
                if mended:
                    with closing(sqlite3.connect(where)) as db, db:
                        db.execute("UPDATE deliveries SET state = 'sent', platform_id = '7'")
                return found

        async with open_reads(where) as reads:
            moment = Viewpoint(FakeClock().now, (), 10**6, runs=None)
            found = await Mended(EvidenceReads(reads.asks), moment, again_seconds=0.0).run(Watermark())
            return {one.law for one in found.breaches}

    assert Law.UNDELIVERED in await laws(mended=False)
    assert Law.UNDELIVERED not in await laws(mended=True)


async def test_it_rests_between_its_pages_and_goes_on_where_it_was(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    await filled(where, PAGE + 5)
    rests: list[int] = []

    async def rest(count: int) -> None:
        rests.append(count)

    async with open_reads(where) as reads:
        moment = Viewpoint(FakeClock().now, (), 10**12)
        first = await Auditor(EvidenceReads(reads.asks), moment, rest, again_seconds=0.0).run(Watermark())
        assert max(rests) == PAGE
        assert first.messages == PAGE + 5
        again = await Auditor(EvidenceReads(reads.asks), moment, rest, again_seconds=0.0).run(first.mark)
        assert again.messages == 0


async def test_what_is_found_is_told_once_and_is_over_when_it_is_mended(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    async with opened(where) as store:
        await store.inbox.accept(message("m1", body=SAID))
    clock = FakeClock()
    clock.now += LATER
    watch = LawWatch(where, Audit(per_second=1_000, late_seconds=10), clock)
    await watch.look()
    assert watch.counts()[Law.STRANDED] == 1
    assert "no turn has taken it" in watch.words()
    assert watch.status()["count"] == 1
    with closing(sqlite3.connect(where)) as db, db:
        db.execute("UPDATE inbox SET state = 'dropped', reason = 'withdrawn by the person'")
    await watch.look()
    assert watch.words() == ""
    assert sum(watch.counts().values()) == 0


async def test_what_waits_for_longer_and_longer_is_logged_once(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    async with opened(where) as store:
        await store.inbox.accept(message("m1", body=SAID))
    clock = FakeClock()
    watch = LawWatch(where, Audit(per_second=1_000, late_seconds=10), clock)
    said = set[str]()
    with capture_logs() as logged:
        for _ in range(3):
            clock.now += LATER
            await watch.look()
            said.add(watch.words())
    assert len(said) == 3, "it says for how long"
    assert [one["event"] for one in logged].count("audit.broken") == 1


async def test_a_part_of_which_nobody_can_make_anything_is_named_alone(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    async with opened(where) as store:
        accepted = await store.inbox.accept(message("m0", "chat0"))
        epoch = accepted.epoch or await store.sessions.claim(accepted.session)
        text = Content(ContentKind.TEXT, Styled("x"))
        for number in range(3):
            part = new_part(WantedPart("b", 0, text, final=True), "t/1/2/", f"inbox:{number}", 1)
            await store.deliveries.put(accepted.session, epoch, [replace(part.row, at=1)])
    with closing(sqlite3.connect(where)) as db, db:
        numbers = [str(row[0]) for row in db.execute("SELECT id FROM deliveries ORDER BY id")]
        db.execute("UPDATE deliveries SET state = 'posted' WHERE id = ?", [numbers[1]])
    async with open_reads(where) as reads:
        reads_evidence = EvidenceReads(reads.asks)
        page = await reads_evidence.parts(0, PAGE)
        assert [str(one.id) for one in page.rows] == [numbers[0], numbers[2]]
        moment = Viewpoint(FakeClock().now, (), 10**12, runs=None)
        found = await Auditor(reads_evidence, moment, again_seconds=0.0).run(Watermark())
    named = [one.where for one in found.breaches if one.law is Law.UNREADABLE]
    assert [one for one in named if one != str(accepted.inbox_id)] == [f"delivery:{numbers[1]}"], "as explain takes it"


async def test_a_large_text_that_is_not_what_its_digest_says_is_found(tmp_path: Path) -> None:
    async with opened(str(tmp_path / "db")):
        pass
    with closing(sqlite3.connect(tmp_path / "db")) as db, db:
        db.execute(
            "INSERT INTO pieces (digest, form, stored, how, piece, size, at, refs) VALUES (?, 'bytes', ?, '', 1, 5, 1, 1)",
            (b"d" * 32, b"hello"),
        )
    found = [one for one in await breaches(tmp_path / "db") if "is not what it was" in one.what]
    assert [(one.law, one.where) for one in found] == [(Law.CHANGED, "piece 1")]


async def test_a_text_where_a_number_belongs_is_named_and_hides_no_other(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    await filled(where, 3)
    with closing(sqlite3.connect(where)) as db, db:
        turns = [str(row[0]) for row in db.execute("SELECT turn FROM turns ORDER BY opened_at, turn")]
        db.execute("UPDATE turns SET opened_at = 'soon' WHERE turn = ?", [turns[0]])
    async with open_reads(where) as reads:
        moment = Viewpoint(FakeClock().now, (), 10**12, runs=None)
        found = await Auditor(EvidenceReads(reads.asks), moment, again_seconds=0.0).run(Watermark())
    assert found.turns == 3
    assert Law.UNREADABLE in {one.law for one in found.breaches if one.where == turns[0]}


async def test_what_happened_wrongly_stays_known(tmp_path: Path) -> None:
    where, clock = str(tmp_path / "store.db"), FakeClock()
    async with opened(where) as store:
        accepted = await store.inbox.accept(message("m1", at=clock.now))
        await store.inbox.drop(accepted.inbox_id, "withdrawn by the person")
    with closing(sqlite3.connect(where)) as db, db:
        db.execute("UPDATE inbox SET reason = ''")
    watch = LawWatch(where, Audit(per_second=1_000), clock)
    for _ in range(3):
        await watch.look()
        assert watch.counts()[Law.UNTOLD] == 1
        assert watch.looked == 1, "each pass begins where the one before it ended"
    assert Law.UNTOLD not in MENDS


async def test_one_that_is_switched_off_does_not_look(tmp_path: Path) -> None:
    watch = LawWatch(tmp_path / "nothing.db", Audit(per_second=0), SystemClock())
    before = len(asyncio.all_tasks())
    async with watch.running():
        assert len(asyncio.all_tasks()) == before


async def test_it_cannot_write_and_holds_no_writer_up(where: str) -> None:
    async with opened(where) as store, open_reads(where) as reads:
        accepted = await store.inbox.accept(message("m1"))
        moment = Viewpoint(FakeClock().now, tuple(await EvidenceReads(reads.asks).nodes()), 10**12, program_version())

        async def rest(count: int) -> None:
            del count
            await store.inbox.accept(message("between", "chat2"))  # a writer gets through between its pages

        found = await Auditor(EvidenceReads(reads.asks), moment, rest, again_seconds=0.0).run(Watermark())
        assert found.messages >= 1
        with pytest.raises(Exception, match=r"(?i)read.?only|attempt to write"):
            await reads.asks.readers.run(
                lambda conn: conn.exec_driver_sql(f"DELETE FROM inbox WHERE id = {accepted.inbox_id}")
            )


def outspoken(home: Path, *given: str) -> subprocess.CompletedProcess[str]:
    return run(list(given), {**os.environ, "OUTSPOKEN_HOME": str(home)})


def test_its_exit_status_and_its_words_say_what_was_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert outspoken(home, "audit").returncode not in (0, 1)  # it could not look
    asyncio.run(filled(str(home / "outspoken.db"), 0))
    done = outspoken(home, "audit")
    assert (done.returncode, "No law is broken" in done.stdout) == (0, True), done
    with closing(sqlite3.connect(home / "outspoken.db")) as db, db:
        db.execute(
            "INSERT INTO sessions (session, key, epoch, created_at, last_at) VALUES ('s_1', 'telegram/1/2//', 1, 0, 0)"
        )
        db.execute(
            "INSERT INTO inbox (id, account, platform_key, session, arrival, lane, body, state, received_at) "
            "VALUES (1, 'bot', 'm1', 's_1', 1, 'normal', ?, 'new', 1000)",
            (SAID,),
        )
    done = outspoken(home, "audit", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert [one["law"] for one in told["breaches"]] == ["stranded"]
    assert told["breaches"][0]["chat"] == "telegram/1/2//"
    done = outspoken(home, "audit")
    assert "since 1970-01-01 00:00:01 UTC" in done.stdout
    assert "1 law is broken" in done.stdout


def test_many_breaches_are_counted_and_not_all_printed() -> None:
    from gateway.laws.auditor import Audited

    found = Audited([Breach(Law.LOST, "Gone.", str(n)) for n in range(words.SHOWN + 7)])
    assert "… and 7 more" in "\n".join(words.lines(found))
    assert len(words.report(found)["breaches"]) == words.SHOWN + 7  # type: ignore[arg-type]


async def test_a_long_look_says_every_few_seconds_how_far_it_is() -> None:
    clock, told = FakeClock(), list[str]()
    rest = telling(clock, told.append)
    for _ in range(100):
        await rest(PAGE)
        clock.now += 300
    assert told[0] == "Looked at 360 turns, messages and parts of answers so far …"
    assert len(told) == 5, "in thirty seconds"
