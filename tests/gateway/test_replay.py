"""`outspoken replay` as an operator uses it: beside a running gateway, on a file, with other settings, on a journal that was changed."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import stat
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.contract.chat import ChatAddress, Traits
from adapters.contract.contents import encode
from adapters.delivery.parts import picture
from adapters.telegram.port import pieces
from agent_core.journal.rows import encode as encode_event
from agent_core.settings import RULES, TurnSettings
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import CannotOpen
from agent_core.store.reading import open_reads
from agent_core.turn.events import TurnEnded
from agent_core.turn.view import view
from gateway.config.paths import Paths, find_paths
from gateway.config.reading import load
from gateway.config.sections import Config, Storage
from gateway.operate.replay import CannotReplay, ReplayRequest, changed, run
from tests.agent_core.journals import rows_of
from tests.agent_core.turns import SETTINGS, Rig
from tests.gateway.test_process import daemon, environment, facts, outspoken, post
from tests.ports import free_port
from tests.store.support import message, opened

# ---------------------------------------------------------------------- the program itself


def test_a_turn_is_replayed_beside_the_running_gateway(tmp_path: Path):
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log"):
        turn = str(facts(post(env, "list files", "key1"))["turn"])
        shown = outspoken(env, "replay", turn, "--set", "model.max_steps=1")
    assert shown.returncode == 0, shown.stderr
    assert "runs list_files" in shown.stdout
    assert "ends the turn: answered" in shown.stdout
    assert "workspace is empty" not in shown.stdout
    assert "The replay agrees with what was recorded." in shown.stdout
    assert "The decisions part at row" in shown.stdout


async def test_a_turn_is_exported_and_replayed_from_the_file_alone(tmp_path: Path, sqlite: str):
    turn = await stored_turn(sqlite, spoil=False)
    said: list[str] = []
    file = tmp_path / "slice.jsonl"
    assert await run(ReplayRequest(turn, export=file), lambda: places(tmp_path, sqlite), said.append)
    assert "Letters and digits were replaced" in said[-1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "notes" not in file.read_text()
    with pytest.raises(CannotReplay, match="must not exist yet"):
        await run(ReplayRequest(turn, export=file), lambda: places(tmp_path, sqlite), said.append)
    whole = tmp_path / "whole.jsonl"
    assert await run(ReplayRequest(turn, export=whole, show_text=True), lambda: places(tmp_path, sqlite), said.append)
    assert "as it was said" in said[-1]
    assert "in the notes" in whole.read_text()

    assert await run(ReplayRequest(file=file), unconfigured, said.append)
    assert "This slice is redacted." in said[-1]
    assert await run(
        ReplayRequest(file=whole, as_json=True, sets=("recovery.empty_nudge=0",)), unconfigured, said.append
    )
    body: dict[str, Any] = json.loads(said[-1])
    assert (body["agrees"], body["parting"], body["exit"]) == (True, None, "answered")
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if '"ReplyFinished"' not in line))
    assert not await run(ReplayRequest(file=file), unconfigured, said.append)
    assert "DIFFERS" in said[-1]


def unconfigured() -> tuple[Config, Paths]:
    raise AssertionError("a file needs no configuration")


def test_a_journal_that_was_changed_in_the_database_is_found_and_nothing_is_written(tmp_path: Path):
    env = environment(tmp_path, free_port())
    assert outspoken(env, "ask", "hello").returncode == 0
    (database,) = tmp_path.rglob("*.db")
    with closing(sqlite3.connect(database)) as conn, conn:
        (turn,) = conn.execute("SELECT turn FROM turns").fetchone()
        conn.execute("UPDATE turns SET exit = 'step_limit'")
    before = database.read_bytes()
    found = outspoken(env, "replay", turn)
    assert found.returncode == 1
    assert "step_limit, in the turn's own row" in found.stdout
    assert database.read_bytes() == before


async def test_what_is_not_there_is_said_in_words(tmp_path: Path, sqlite: str):
    def configured() -> tuple[Config, Paths]:
        return places(tmp_path, sqlite)

    said: list[str] = []
    with pytest.raises(CannotOpen, match="There is no database"):
        await run(ReplayRequest("t_none"), configured, said.append)
    await stored_turn(sqlite, spoil=False)
    with pytest.raises(CannotReplay, match="There is no turn"):
        await run(ReplayRequest("t_none"), configured, said.append)
    with pytest.raises(CannotReplay, match="Name a turn"):
        await run(ReplayRequest(), configured, said.append)
    with pytest.raises(CannotReplay, match="cannot be read"):
        await run(ReplayRequest(file=tmp_path / "none"), unconfigured, said.append)


async def test_a_file_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path):
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    packed = tmp_path / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        entry = tarfile.TarInfo("journal.jsonl")
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"\xff\xfe"))
    for each in (file, packed):
        with pytest.raises(CannotReplay) as refused:
            await run(ReplayRequest(file=each), unconfigured, list[str]().append)
        assert str(refused.value) == f"{each} cannot be read: it is no text, so it is no export of a journal"


@pytest.mark.parametrize("exported", [False, True])
async def test_a_journal_under_newer_rules_is_not_judged_by_older_ones(tmp_path: Path, sqlite: str, exported: bool):
    turn = await stored_turn(sqlite, spoil=False, settings=replace(SETTINGS, rules=RULES + 1))
    asked = ReplayRequest(turn)
    if exported:
        asked = ReplayRequest(file=tmp_path / "slice.jsonl")
        as_it_is = ReplayRequest(turn, export=asked.file, show_text=True)  # what is not understood is not redacted
        await run(as_it_is, lambda: places(tmp_path, sqlite), list[str]().append)
    with pytest.raises(CannotReplay, match=f"newer rules .{RULES + 1}. than this program has .{RULES}."):
        await run(asked, lambda: places(tmp_path, sqlite), list[str]().append)


# ---------------------------------------------------------------------- both databases, and what was delivered


def places(tmp_path: Path, where: str) -> tuple[Config, Paths]:
    paths = find_paths({**os.environ, "OUTSPOKEN_HOME": str(tmp_path)})
    return load(None, {}).config.model_copy(
        update={"storage": Storage.model_construct(url=where, url_file=None)}
    ), paths


async def stored_turn(where: str, *, spoil: bool, settings: TurnSettings = SETTINGS) -> str:
    """A turn in a chat, with its parts as the outbox stores them."""
    rig = Rig(settings)
    rig.calls_tool("read", text="Let me see what is in the notes.")
    rig.returns("nothing")
    rig.says("There is **nothing** in them.")
    rows = rows_of([*rig.fed, TurnEnded(at=rig.now, exit=rig.exit)])
    surface = ChatAddress("telegram", "bot", "4711").text()
    turn = rig.turn
    shown = picture(
        view(turn, rig.now),
        "t1",
        lambda text, growing: pieces(text, growing=growing),
        traits=Traits(drafts=False),
        reply_to="9",
    )
    parts = [
        DeliveryRow(
            surface=surface, origin="t1", bubble=one.bubble, part=one.part, place=place,
            want=encode(one.content).replace(b"nothing", b"much") if spoil else encode(one.content),
            want_hash="h", key=f"k{place}", final=True,
        )
        for place, one in enumerate(shown.wanted, 1)
    ]  # fmt: skip
    async with opened(where) as store:
        accepted = await store.inbox.accept(message())
        epoch = await store.sessions.claim(accepted.session)
        await store.turns.start(
            session=accepted.session, epoch=epoch, turn="t1", inbox_ids=(accepted.inbox_id,), row=rows[0],
            opened_at=1_000, deadline=9_000_000,
        )  # fmt: skip
        await store.turns.append(accepted.session, epoch, "t1", rows[1:-1])
        await store.turns.close(accepted.session, epoch, "t1", rows[-1:], "answered", rig.now, parts, (0, 0), ())
    return "t1"


@pytest.mark.parametrize("spoil", [False, True])
async def test_parts_that_were_stored_for_a_chat_are_compared(tmp_path: Path, where: str, spoil: bool):
    turn = await stored_turn(where, spoil=spoil)
    said: list[str] = []
    agrees = await run(ReplayRequest(turn), lambda: places(tmp_path, where), said.append)
    assert agrees is not spoil
    assert "parts as they were stored for the chat (telegram)" in said[0]
    assert ("what there is to see differs" in said[0]) is spoil


async def test_reading_takes_no_lock_and_cannot_write(where: str):
    await stored_turn(where, spoil=False)
    async with opened(where) as store, open_reads(where) as reads:
        assert await reads.turns.one("t1") == await store.turns.one("t1")
        assert len(await reads.turns.journal("t1")) > 3
        accepted = await store.inbox.accept(message("m2"))
        assert await reads.inbox.one(accepted.inbox_id) is not None


async def test_a_database_that_is_none_is_refused(tmp_path: Path):
    (tmp_path / "x.db").write_bytes(b"no database at all, but a file")
    with pytest.raises(CannotOpen):
        async with open_reads(tmp_path / "x.db"):
            pass
    sqlite3.connect(tmp_path / "empty.db").close()
    with pytest.raises(CannotOpen, match="older schema"):
        async with open_reads(tmp_path / "empty.db"):
            pass


# ---------------------------------------------------------------------- settings in the configuration's words


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        ("model.max_steps=3", replace(SETTINGS, max_steps=3)),
        ("max_steps = 3", replace(SETTINGS, max_steps=3)),
        ("model.attempts=2", replace(SETTINGS, ladder=replace(SETTINGS.ladder, retry=1))),
        ("recovery.empty_nudge=0", replace(SETTINGS, ladder=replace(SETTINGS.ladder, empty_nudge=0))),
        ("guardrails.no_progress_stop=9", replace(SETTINGS, guards=replace(SETTINGS.guards, no_progress_stop=9))),
        ("tools.approval_seconds=60", replace(SETTINGS, approval_seconds=60)),
        ("model.retry_max_seconds=2.5", replace(SETTINGS, retry_max_seconds=2.5)),
    ],
)
def test_a_key_of_the_configuration_is_a_setting_of_the_turn(one: str, expected: TurnSettings):
    assert changed(SETTINGS, (one,)) == expected


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ("nonsense=1", "with one of these keys: guardrails"),
        ("max_steps", "write key=value"),
        ("max_steps=many", "valid integer"),
        ("max_steps=0", "greater than or equal to 1"),
        ("guardrails.no_progress_stop=2", "not above no_progress_warn"),
        ("model.stall_seconds=5", "cannot show the difference"),
        ("model.remedy_seconds=5", "cannot show the difference"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_in_words(one: str, words: str):
    with pytest.raises(CannotReplay, match=words):
        changed(SETTINGS, (one,))


def test_every_encoding_is_the_journals_own():
    rig = Rig()
    assert rows_of(rig.fed)[0].body == encode_event(rig.fed[0]).body
