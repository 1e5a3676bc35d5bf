"""What is really kept, counted; room held for those who write at the same moment; and each limit over the API."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, Full, QuotaKind, QuotaLimits, blocks, for_model, for_person
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.remembered import MEMORY
from agent_core.tools.base import NoRoom, ToolContext, ToolOutcome, ToolStatus
from agent_core.tools.builtin.notes import ENTRY_BYTES, LISTS
from agent_core.tools.builtin.writers import FILE_TOOLS
from agent_core.tools.files.trees import remove_tree
from agent_core.tools.registry import Runnable, ToolRegistry
from gateway.later.zones import SETTING
from gateway.limits.alerts import AlertLimits as AlertLimits
from gateway.limits.diskuse import CountStopped, Owners, Stop, count_all, count_folder
from gateway.limits.incoming import carried_bytes, holder_of
from gateway.limits.quotas import Quotas, ScopedSpace, scopes_of
from gateway.limits.whose import ROOMS, folder_name
from gateway.observe.alerting import Sights, conditions
from gateway.sessions.consents import CONSENT
from tests.chats.model import scripted_model
from tests.deepfolders import DEEP, dig
from tests.serving import served

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body")
REGISTRY = ToolRegistry(FILE_TOOLS)
KIB = 1024


async def nothing_remembered(_of: Collection[str]) -> list[tuple[str, str, int, int]]:
    return []


def quotas(folder: Path, whole: int = 0, **each: int) -> Quotas:
    limits = QuotaLimits({QuotaKind(kind): amount for kind, amount in each.items()}, whole)
    return Quotas(limits, folder, folder / "workspaces", folder / "outbox", nothing_remembered, SystemClock())


class Writer:
    """Calls of the file tools in one conversation."""

    def __init__(self, kept: Quotas, name: str = "one", scope: str = "telegram/1/ada//") -> None:
        self.workspace = kept._workspaces / name
        self.space = ScopedSpace(kept, holder_of(scope), self.workspace)
        self.number = 0

    async def call(self, tool: str, *, again: bool = False, **arguments: Json) -> ToolOutcome:
        self.number += 1
        spec = next(spec for spec in REGISTRY.specs() if spec.name == tool)
        checked, key = Runnable(spec, arguments), f"t:{self.number}"
        context = ToolContext(
            "t", key, key, self.workspace, "m", SystemClock(), lambda _: None, space=self.space, again=again
        )
        return await REGISTRY.run(checked, replace(context, intention=await REGISTRY.prepare(checked, context)))

    async def write(self, path: str, kib: int) -> ToolStatus:
        return (await self.call("write_file", path=path, content="x" * (kib * KIB))).status


# ---------------------------------------------------------------------- holding


async def test_of_those_who_write_at_once_only_so_many_come_through_as_have_room(tmp_path: Path) -> None:
    kept = quotas(tmp_path, workspace=100 * KIB)
    writers = [Writer(kept, f"w{n}", f"telegram/1/ada/topic{n}/") for n in range(5)]
    done = await asyncio.gather(*(writers[n % 5].write(f"f{n}.txt", 16) for n in range(20)))
    assert done.count(ToolStatus.OK) == 6
    assert done.count(ToolStatus.FAILED) == 14
    assert sum(file.stat().st_size for file in (tmp_path / "workspaces").glob("*/*.txt")) == 6 * 16 * KIB
    assert kept.ledger.used("telegram/1/ada") == {QuotaKind.WORKSPACE: 96 * KIB, QuotaKind.FILES: 6, QuotaKind.SPOOL: 0}
    assert await Writer(kept, "other", "telegram/1/bob//").write("f.txt", 16) is ToolStatus.OK


async def test_editing_everywhere_has_no_more_room_than_writing(tmp_path: Path) -> None:
    kept = quotas(tmp_path, workspace=1024 * KIB)
    ada = Writer(kept)
    assert await ada.write("f.txt", 60) is ToolStatus.OK
    grown = await ada.call("edit_file", path="f.txt", old="x", new="x" * 60, everywhere=True)
    assert grown.status is ToolStatus.FAILED
    assert "The workspace is full: 60 KB of 1 MB are used" in grown.text
    assert (ada.workspace / "f.txt").stat().st_size == 60 * KIB
    shrunk = await ada.call("edit_file", path="f.txt", old="xxxx", new="x", everywhere=True)
    assert shrunk.status is ToolStatus.OK
    assert kept.ledger.used("telegram/1/ada")[QuotaKind.WORKSPACE] == blocks(15 * KIB)


async def test_who_is_over_a_new_limit_can_shorten_and_delete(tmp_path: Path) -> None:
    ada = Writer(quotas(tmp_path))
    assert await ada.write("a.txt", 100) is ToolStatus.OK
    kept = quotas(tmp_path, workspace=50 * KIB)
    ada = Writer(kept)
    assert await ada.write("b.txt", 1) is ToolStatus.FAILED
    assert await ada.write("a.txt", 90) is ToolStatus.OK
    assert (await ada.call("delete_file", path="a.txt")).status is ToolStatus.OK
    assert await ada.write("b.txt", 40) is ToolStatus.OK


async def test_a_call_that_was_done_before_a_kill_needs_no_room_again(tmp_path: Path) -> None:
    kept = quotas(tmp_path, workspace=52 * KIB)
    ada = Writer(kept)
    arguments: dict[str, Json] = {"path": "a.txt", "content": "x" * (50 * KIB)}
    checked = Runnable(REGISTRY.specs()[0], arguments)
    context = ToolContext("t", "c", "t:c", ada.workspace, "m", SystemClock(), lambda _: None, space=ada.space)
    begun = replace(context, intention=await REGISTRY.prepare(checked, context))
    assert (await REGISTRY.run(checked, begun)).status is ToolStatus.OK
    anew = Writer(quotas(tmp_path, workspace=52 * KIB))
    assert (await REGISTRY.run(checked, replace(begun, again=True, space=anew.space))).status is ToolStatus.OK


async def test_what_a_write_that_failed_or_was_cancelled_held_is_free_again(tmp_path: Path) -> None:
    kept = quotas(tmp_path, workspace=100 * KIB)
    space = ScopedSpace(kept, "ada", tmp_path / "workspaces" / "a")
    with pytest.raises(ZeroDivisionError):
        async with space.hold({QuotaKind.WORKSPACE: 100 * KIB}):
            raise ZeroDivisionError
    async with space.hold({QuotaKind.WORKSPACE: 100 * KIB}):
        with pytest.raises(NoRoom):
            async with space.hold({QuotaKind.WORKSPACE: 1}):
                raise AssertionError

    async def endless() -> None:
        async with space.hold({QuotaKind.WORKSPACE: 60 * KIB}):
            (tmp_path / "workspaces" / "a").mkdir(parents=True)
            (tmp_path / "workspaces" / "a" / "half.txt").write_bytes(b"x" * (30 * KIB))
            await asyncio.sleep(60)

    kept.changed("ada")
    task = asyncio.create_task(endless())
    async with asyncio.timeout(60):
        while not (tmp_path / "workspaces" / "a" / "half.txt").exists():
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})
    with pytest.raises(NoRoom):
        async with space.hold({QuotaKind.WORKSPACE: 80 * KIB}):
            raise AssertionError
    assert kept.ledger.used("ada")[QuotaKind.WORKSPACE] == blocks(30 * KIB)


async def test_nobody_is_refused_for_what_is_gone_from_the_disk(tmp_path: Path) -> None:
    kept = quotas(tmp_path, workspace=100 * KIB)
    ada = Writer(kept)
    assert await ada.write("a.txt", 90) is ToolStatus.OK
    (ada.workspace / "a.txt").unlink()
    assert await ada.write("b.txt", 90) is ToolStatus.OK


async def test_a_count_of_everything_finds_what_each_has_and_what_belongs_to_nobody(tmp_path: Path) -> None:
    first = quotas(tmp_path)
    await Writer(first, "one", "telegram/1/ada/t1/").write("a.txt", 40)
    await Writer(first, "two", "telegram/1/ada/t2/").write("deep/down/b.txt", 20)
    (tmp_path / "outspoken.db").write_bytes(b"x" * 1000)
    anew = quotas(tmp_path, whole=200 * KIB)
    await anew.count_everything()
    used = anew.ledger.used("telegram/1/ada")
    assert (used[QuotaKind.WORKSPACE], used[QuotaKind.FILES]) == (68 * KIB, 4)
    assert anew.ledger.whole() == (68 + 4 + 4) * KIB  # with the database, and the file that says whose each folder is
    assert not anew.nearly_full()
    (tmp_path / "outspoken.db").write_bytes(b"x" * (110 * KIB))
    await anew.count_everything()
    assert anew.nearly_full()
    found = conditions(Sights((), {}, "", None, (), quota=anew.words()), AlertLimits(), None, 0)
    assert [one.key for one in found] == ["quota"]
    assert "184 KB of 200 KB are kept in the state directory (92 %)" in found[0].words


async def test_settings_and_approvals_are_nothing_that_is_remembered(tmp_path: Path) -> None:
    """They lie in the same place, and neither /memory shows them nor /forget removes them."""

    async def kept(_of: Collection[str]) -> list[tuple[str, str, int, int]]:
        return [("telegram/1/ada", kind, 1_000, 2) for kind in (SETTING, CONSENT)] + [
            ("telegram/1/ada", MEMORY, 100, 1), ("telegram/1/ada/one", LISTS, 10, 1)
        ]  # fmt: skip

    limits = QuotaLimits({QuotaKind.MEMORY: 10_000})
    found = Quotas(limits, tmp_path, tmp_path / "workspaces", tmp_path / "outbox", kept, SystemClock())
    await found.count_everything()
    assert found.ledger.used("telegram/1/ada")[QuotaKind.MEMORY] == 110 + 2 * ENTRY_BYTES


def test_what_is_counted_is_named_once() -> None:
    full = Full(QuotaKind.FILES, 10_000, 10_000, 1)
    assert "10,000 of 10,000 files are there" in for_model(full)
    assert "(10,000 of 10,000 files are used)" in for_person(full)


async def test_what_belongs_to_nobody_is_counted_by_its_door_until_its_turn_is_over(tmp_path: Path) -> None:
    kept = quotas(tmp_path, workspace=100 * KIB)
    nobody = Writer(kept, f"{ROOMS}/once-1", "session/api/key/once-1//")
    assert await nobody.write("a.txt", 60) is ToolStatus.OK
    other = Writer(kept, f"{ROOMS}/once-2", "session/api/key/once-2//")
    assert await other.write("a.txt", 60) is ToolStatus.FAILED
    await kept.count_everything()
    assert kept.ledger.used("api")[QuotaKind.WORKSPACE] == 60 * KIB
    assert not (tmp_path / "holders.jsonl").exists()
    shutil.rmtree(nobody.workspace)
    third = Writer(kept, f"{ROOMS}/once-3", "session/api/key/once-3//")
    async with asyncio.timeout(30):  # who was refused just now is not counted at once again
        while await third.write("a.txt", 60) is not ToolStatus.OK:
            await asyncio.sleep(0.5)
    for _ in range(2):
        await kept.count_everything()
    assert kept.ledger.used("api")[QuotaKind.WORKSPACE] == 60 * KIB


# ---------------------------------------------------------------------- counting


def test_folders_that_are_gone_for_long_are_forgotten_and_new_ones_are_not(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    owners.load()
    owners.claim(tmp_path / "gone", "ada")
    owners.tidy()
    owners.claim(tmp_path / "coming", "bob")
    owners.tidy()
    assert [owners.holder(tmp_path / name) for name in ("gone", "coming")] == ["", "bob"]
    (tmp_path / "coming").mkdir()
    owners.tidy()
    again = Owners(tmp_path)
    again.load()
    assert [again.holder(tmp_path / name) for name in ("gone", "coming")] == ["", "bob"]


@pytest.mark.parametrize("written", ["now", "with whole paths", "with whole paths, and moved at once"])
def test_whose_a_folder_is_stays_known_when_the_state_moves(tmp_path: Path, written: str) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere" / "room"
    for folder in (state / "workspaces" / "one", elsewhere):
        folder.mkdir(parents=True)
    if written == "now":
        owners = Owners(state)
        owners.load()
        owners.claim(state / "workspaces" / "one", "ada")
        owners.claim(elsewhere, "bob")
    else:
        lines = ([str(state / "workspaces" / "one"), "ada"], [str(elsewhere), "bob"])
        (state / "holders.jsonl").write_text("".join(f"\n{json.dumps(line)}" for line in lines))
        if not written.endswith("at once"):
            Owners(state).load()
    moved = state.rename(tmp_path / "moved")
    for _ in range(2):
        again = Owners(moved)
        again.load()
        assert again.holder(moved / "workspaces" / "one") == "ada"
        assert again.folders("ada") == [moved / "workspaces" / "one"]
        assert again.holder(elsewhere) == "bob"
    assert str(state) not in (moved / "holders.jsonl").read_text()


def test_neither_holes_nor_links_nor_empty_files_are_for_nothing(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    with (there / "sparse").open("wb") as file:
        file.truncate(1024 * KIB)
    assert count_folder(there).size == 1024 * KIB
    os.link(there / "sparse", there / "same")
    (there / "link").symlink_to("/")
    (there / "round").symlink_to(there)
    for number in range(10):
        (there / f"empty{number}").touch()
    use = count_folder(there)
    assert use.files == 13
    assert 1024 * KIB <= use.size <= 1024 * KIB + 2 * BLOCK
    assert count_folder(tmp_path / "nowhere").files == 0


@pytest.mark.parametrize(("depth", "name"), [(DEEP, "d"), (40, "n" * 250)])
def test_what_lies_where_no_path_reaches_counts(tmp_path: Path, depth: int, name: str) -> None:
    dig(tmp_path, depth, name)
    assert count_folder(tmp_path).files == depth + 1
    remove_tree(tmp_path / name)


def test_a_count_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    stop = Stop()
    stop.stop()
    with pytest.raises(CountStopped):
        count_all(tmp_path, (), stop)


NAMES = st.text(max_size=20)


@given(st.lists(st.tuples(st.integers(0, 4), NAMES.filter(bool)), max_size=12), st.integers(0, 40))
def test_whose_a_folder_is_outlives_the_process_however_the_file_was_cut(
    tmp_path_factory: pytest.TempPathFactory, claims: list[tuple[int, str]], cut: int
) -> None:
    state = tmp_path_factory.mktemp("state")
    folders = [state / f"f{number}" for number in range(5)]
    for folder in folders:
        folder.mkdir()
    owners = Owners(state)
    owners.load()
    for number, holder in claims:
        owners.claim(folders[number], holder.encode("utf-8", "replace").decode())
    again = Owners(state)
    again.load()
    for folder in folders:
        assert again.holder(folder) == owners.holder(folder)
    if claims and cut:
        file = state / "holders.jsonl"
        data = file.read_bytes()
        file.write_bytes(data[:-cut] if cut < len(data) else b"")
        torn = Owners(state)
        torn.load()
        for folder in folders:
            assert torn.holder(folder) in {"", *(holder.encode("utf-8", "replace").decode() for _, holder in claims)}
            torn.claim(folder, "ada")
        anew = Owners(state)
        anew.load()
        assert {anew.holder(folder) for folder in folders} == {"ada"}


@pytest.mark.parametrize(
    ("scope", "holder"),
    [
        ("telegram/1/ada//", "telegram/1/ada"),
        ("telegram/1/group/topic/", "telegram/1/group"),
        ("discord/1/group/thread/bob", "discord/1/group/bob"),
        ("api", "api"),
        ("api/ada", "api/ada"),
        ("api/a/b/c/d", "api/a/b/c/d"),
        ("web", "web"),
        ("web/browser", "web/browser"),
        ("session/api/key/one//", "api"),
        ("session/api/key/a%2Fb//", "api"),
        ("session/web/page/one//", "web"),
    ],
)
def test_a_holder_is_a_chat_without_its_threads_or_a_user(scope: str, holder: str) -> None:
    assert holder_of(scope) == holder
    for stands in (scope, f"{scope}/workspace"):  # a to-do list's
        assert any(stands.startswith(one) if one.endswith("/") else stands == one for one in scopes_of(holder))


def asked(*parts: Mapping[str, Json], history: Json = None) -> FromApi:
    return FromApi(
        account="api", platform_key="k", session=SessionKey("api", "key", "s"), input=(InputMessage([dict(p) for p in parts]),),
        surface="api", memory_scope="api", own_history=({"role": "user", "content": history},),
    )  # fmt: skip


def test_what_a_request_carries_is_what_lies_in_it() -> None:
    picture: dict[str, Json] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    elsewhere: dict[str, Json] = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    sound: dict[str, Json] = {"type": "input_audio", "input_audio": {"data": "BBBB"}}
    file: dict[str, Json] = {"type": "file", "file": {"file_data": "CC"}}
    assert carried_bytes(asked(elsewhere, {"type": "text", "text": "x" * 99})) == 0
    assert carried_bytes(asked(picture, sound, file)) == 3 + 3 + 2  # what is no base64 counts as it stands
    assert carried_bytes(asked(history=[picture])) == 3
    assert carried_bytes(asked(picture, picture, history=[picture])) == 3
    assert carried_bytes(asked({"type": "image_url", "image_url": "?"}, history="data:")) == 0


# ---------------------------------------------------------------------- over the API


@asynccontextmanager
async def api(folder: Path, **limits: str) -> AsyncGenerator[tuple[openai.AsyncOpenAI, str]]:
    """(the real client, the gateway's address), with the scripted model behind it."""
    async with scripted_model() as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1"}
        env |= {f"OUTSPOKEN_QUOTA__{name}": value for name, value in limits.items()}
        async with (
            served(folder, env) as up,
            openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client,
        ):
            yield client, up.url


async def said(client: openai.AsyncOpenAI, content: Any, session: str = "", user: str = "ada") -> str:
    headers = {"X-Outspoken-Session": session} if session else {}
    answer = await client.chat.completions.create(
        model="m1", messages=[{"role": "user", "content": content}], user=user, extra_headers=headers
    )
    return answer.choices[0].message.content or ""


async def quota_status(url: str) -> dict[str, Any]:
    async with asyncio.timeout(60), aiohttp.ClientSession() as http:
        while True:
            async with http.get(f"{url}/status") as response:
                found = (await response.json())["quota"]
            if found["counted"]:
                return found
            await asyncio.sleep(0.05)


def bytes_of(number: int, size: int) -> list[dict[str, Any]]:
    data = base64.b64encode(bytes([number]) * size).decode()
    return [
        {"type": "text", "text": f"say seen{number}"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]


async def test_a_user_of_the_api_has_a_limit_over_all_of_their_conversations(tmp_path: Path) -> None:
    async with api(tmp_path, WORKSPACE_MIB="1") as (client, url):
        assert "Wrote a.txt" in await said(client, "fill a.txt 560", "one")
        full = await said(client, "fill b.txt 560", "two")
        assert "There is no more room for your files (560 KB of 1 MB are used)" in full
        assert "Done: The workspace is full" in full
        assert "Wrote c.txt" in await said(client, "fill c.txt 560", "three", user="bob")
        assert (await quota_status(url))["refused"]["workspace"] == 1


async def test_a_user_of_the_api_who_begins_too_many_conversations_can_go_on_in_one(tmp_path: Path) -> None:
    async with api(tmp_path, SESSIONS="2") as (client, url):
        for name in ("one", "two", "one", "two"):
            assert "fine" in await said(client, "say fine", name)
        with pytest.raises(openai.RateLimitError, match="as many conversations today as you may") as refused:
            await said(client, "say fine", "three")
        assert 0 < int(refused.value.response.headers["Retry-After"]) <= 24 * 3600
        assert "fine" in await said(client, "say fine", "two")
        assert "fine" in await said(client, "say fine", "four", user="bob")
        assert "fine" in await said(client, "say fine")
        assert (await quota_status(url))["refused"]["sessions"] == 1
    async with api(tmp_path, SESSIONS="2") as (client, _):
        with pytest.raises(openai.RateLimitError):
            await said(client, "say fine", "five")
        assert "fine" in await said(client, "say fine", "one")


async def test_pictures_beyond_the_day_are_refused_and_text_is_answered(tmp_path: Path) -> None:
    async with api(tmp_path, INCOMING_MIB="1") as (client, url):
        assert "seen" in await said(client, bytes_of(0, 800_000))
        answers = await asyncio.gather(
            *(said(client, bytes_of(n, 200_000)) for n in range(1, 5)), return_exceptions=True
        )
        assert sum(isinstance(one, str) for one in answers) <= 1
        assert all("Text is welcome" in str(one) for one in answers if isinstance(one, openai.RateLimitError))
        assert "fine" in await said(client, "say fine")
        assert "seen" in await said(client, bytes_of(9, 200_000), user="bob")
        assert (await quota_status(url))["refused"]["incoming"] >= 3


async def with_history(client: openai.AsyncOpenAI, history: list[Any], content: Any) -> str:
    """A client that brings its whole conversation each time."""
    history.append({"role": "user", "content": content})
    answer = await client.chat.completions.create(model="m1", messages=history, user="ada")
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
    return answer.choices[0].message.content or ""


async def test_a_picture_that_a_client_brings_again_with_its_history_counts_once(tmp_path: Path) -> None:
    async with api(tmp_path, INCOMING_MIB="1") as (client, _):
        history: list[Any] = []
        assert "seen1" in await with_history(client, history, bytes_of(1, 500_000))
        for number in range(8):
            assert f"fine{number}" in await with_history(client, history, f"say fine{number}")
        assert "seen2" in await with_history(client, history, bytes_of(2, 500_000))
    async with api(tmp_path, INCOMING_MIB="1") as (client, _):
        assert "again" in await with_history(client, history, "say again")
        hidden = [{"role": "user", "content": bytes_of(3, 300_000)}, *history]
        with pytest.raises(openai.RateLimitError, match="as many files and pictures today"):
            await with_history(client, hidden, "say what was in it")
        assert "on" in await with_history(client, history, "say on")


async def test_when_the_whole_is_full_what_is_kept_already_may_be_brought_again(tmp_path: Path) -> None:
    async with api(tmp_path, WHOLE_MIB="3") as (client, url):
        history: list[Any] = []
        await quota_status(url)
        assert "seen1" in await with_history(client, history, bytes_of(1, 1_000_000))
        for name in ("a.txt", "b.txt", "c.txt"):
            assert f"Wrote {name}" in await said(client, f"fill {name} 500")
        assert "fine" in await with_history(client, history, "say fine")
        with pytest.raises(openai.RateLimitError, match="no more room for files, for anybody"):
            await with_history(client, [*history], bytes_of(2, 1_600_000))


async def test_when_the_whole_is_full_the_api_answers_text_and_refuses_pictures(tmp_path: Path) -> None:
    async with api(tmp_path, WHOLE_MIB="1") as (client, url):
        await quota_status(url)
        with pytest.raises(openai.RateLimitError, match="no more room for files, for anybody"):
            await said(client, bytes_of(1, 1_000_000))
        assert "fine" in await said(client, "say fine")
        assert (await quota_status(url))["refused"]["whole"] == 1


def test_files_of_a_chat_that_gets_another_id_are_found_under_that_unless_there_are_some(tmp_path: Path) -> None:
    kept = quotas(tmp_path)
    old, new = "telegram/1/5//", "telegram/1/-9//"
    kept.move(old, new)
    assert not (tmp_path / "workspaces").exists(), "there were none"
    was, here = (tmp_path / "workspaces" / folder_name(key) for key in (old, new))
    was.mkdir(parents=True)
    (was / "a.txt").write_text("hi")
    for _ in range(2):
        kept.move(old, new)
        assert (here / "a.txt").read_text() == "hi"
        assert kept._owners.folders(holder_of(new)) == [here]
    was.mkdir()
    kept.move(old, new)
    assert was.exists()
    assert (here / "a.txt").read_text() == "hi"
