"""Each limit of what may be kept, as people meet it in a chat: the words, what makes room again, and what operators see."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.terminal.ask import GatewayRefused
from adapters.terminal.operator import Remote, status_lines
from tests.chats.harness import Harness, answer, process, quiet, running, status, texts
from tests.chats.telegram_harness import telegram_harness
from tests.deepfolders import dig
from tests.fakes.telegram.objects import Media, MediaKind

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body")  # of aiohttp: what the model wrote is long here

FULL = "There is no more room for your files"


async def metrics(url: str) -> dict[str, float]:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as response:
        text = await response.text()
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("outspoken_quota")]
    return {name: float(value) for name, value in lines}


async def counted(url: str) -> dict[str, Any]:
    """What ``/status`` says of quotas, when everything was counted."""
    async with asyncio.timeout(60):
        while not (found := (await status(url))["quota"])["counted"]:
            await asyncio.sleep(0.05)
    return found


async def test_a_full_workspace_is_told_and_what_is_deleted_makes_room(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__WORKSPACE_MIB="1") as up:
        await counted(up.url)
        platform.say(chat, ada, "fill a.txt 552")
        await answer(platform, chat, "Done: Wrote a.txt")
        platform.say(chat, ada, "fill b.txt 552")
        await answer(platform, chat, "Done: The workspace is full: 552 KB of 1 MB are used")
        told = await answer(platform, chat, FULL)
        assert "files shows them" in told.text
        platform.command(chat, ada, "files")
        listed = await answer(platform, chat, "a.txt – 552 KB")
        assert "Kept for you: 552 KB of 1 MB, 1 of 10,000 files." in listed.text
        assert "b.txt" not in listed.text
        found = (await status(up.url))["quota"]
        assert found["refused"]["workspace"] == 1
        assert found["most"][0]["workspace"] == 552 * 1024
        lines = "\n".join(status_lines(await status(up.url)))
        assert "Most of it: " in lines
        assert "Refused for want of room since the start: workspace 1" in lines
        seen = await metrics(up.url)
        assert seen['outspoken_quota_refused_total{what="workspace"}'] == 1
        assert seen['outspoken_quota_refused_total{what="memory"}'] == 0
        assert seen['outspoken_quota_used_bytes{what="workspace"}'] == 552 * 1024
        platform.command(chat, ada, "files", "delete a.txt")
        await answer(platform, chat, "a.txt is deleted.")
        platform.say(chat, ada, "fill b.txt 551")
        await answer(platform, chat, "Done: Wrote b.txt")
        platform.say(chat, ada, "delete b.txt")
        await answer(platform, chat, "Done: Deleted b.txt")
        platform.say(chat, ada, "fill c.txt 580")
        await answer(platform, chat, "Done: Wrote c.txt")
        await quiet(platform, chat)
        assert sum(FULL in text for text in texts(platform, chat)) == 1


async def test_many_small_files_are_too_many(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__WORKSPACE_FILES="3"):
        platform.say(chat, ada, "write a/b/c/d.txt: deep")
        await answer(platform, chat, "Done: The workspace holds too many files")
        platform.say(chat, ada, "write a/b/c.txt: less deep")
        await answer(platform, chat, "Done: Wrote a/b/c.txt")
        platform.say(chat, ada, "write a/b/d.txt: one more")
        await answer(platform, chat, "(3 of 3 files are used)")


async def test_folders_count_and_so_they_can_be_seen_and_deleted(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__WORKSPACE_FILES="4"):
        for number in range(3):
            platform.say(chat, ada, f"fill d{number}/x/a.txt 1")
            if number == 0:
                await answer(platform, chat, "Done: Wrote d0/x/a.txt")
                platform.say(chat, ada, "delete d0/x/a.txt")
                await answer(platform, chat, "Done: Deleted d0/x/a.txt")
            elif number == 1:
                await answer(platform, chat, "Done: Wrote d1/x/a.txt")
                platform.command(chat, ada, "files", "delete d1/x/a.txt")
                gone = await answer(platform, chat, "d1/x/a.txt is deleted.")
                assert "0 of 4 files" in gone.text
        await answer(platform, chat, "Done: Wrote d2/x/a.txt")
        workspace = next((platform.folder / "workspaces").rglob("d2")).parent
        (workspace / "empty").mkdir()
        (workspace / "elsewhere").symlink_to(platform.folder)
        platform.command(chat, ada, "files")
        listed = await answer(platform, chat, "d2/x/a.txt – 1 KB")
        assert "empty/ – 0 bytes" in listed.text
        assert "elsewhere – " in listed.text
        platform.command(chat, ada, "files", "delete d2")
        await answer(platform, chat, "d2 is a folder that is not empty")
        platform.command(chat, ada, "files", "delete empty/")
        await answer(platform, chat, "empty/ is deleted.")
        platform.command(chat, ada, "files", "delete elsewhere")
        await answer(platform, chat, "elsewhere is deleted.")
        assert platform.folder.is_dir()
        assert sorted(path.name for path in workspace.rglob("*")) == ["a.txt", "d2", "x"]


async def test_folders_that_no_path_reaches_count_and_can_be_seen_and_deleted(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform) as up:
        platform.say(chat, ada, "write a.txt: here")
        await answer(platform, chat, "Done: Wrote a.txt")
        workspace = next((platform.folder / "workspaces").rglob("a.txt")).parent
        (workspace / "long").mkdir()
        dig(workspace)
        dig(workspace / "long", 40, "n" * 250)
        await counted(up.url)
        platform.command(chat, ada, "files")
        listed = await answer(platform, chat, "a.txt – ")
        assert listed.text.count(" – 3 bytes") == 2
        platform.command(chat, ada, "files", "delete all")
        gone = await answer(platform, chat, "All files here are deleted.")
        assert "0 of 10,000 files" in gone.text
        assert list(workspace.iterdir()) == []


async def test_a_full_memory_is_told(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__MEMORY_KIB="8"):
        for name in ("one", "two"):
            platform.say(chat, ada, f"keep {name} 3900")
            await answer(platform, chat, f"Done: Remembered as '{name}'.")
        platform.say(chat, ada, "keep three 3900")
        await answer(platform, chat, "Done: The memory is full")
        await answer(platform, chat, "What I remember for you has reached its limit (7.75 KB of 8 KB)")
        platform.say(chat, ada, "keep two 3000")
        await platform.until(lambda: sum("Remembered as 'two'" in one for one in texts(platform, chat)) == 2, 30)
        platform.command(chat, ada, "usage")
        await answer(platform, chat, "Remembered for you: 6.87 KB of 8 KB.")


async def test_files_beyond_the_day_are_refused_and_the_words_are_answered(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__INCOMING_MIB="1") as up:
        platform.attach(chat, ada, "one.txt", b"x" * 700_000, "text/plain", "say first")
        await answer(platform, chat, "first")
        platform.attach(chat, ada, "two.txt", b"y" * 700_000, "text/plain", "say second")
        told = await answer(platform, chat, "You have sent as many files and pictures today as you may")
        assert "Text is welcome" in told.text
        await answer(platform, chat, "second")
        platform.attach(chat, ada, "three.txt", b"z" * 100_000, "text/plain", "say third")
        await answer(platform, chat, "third")
        assert (await status(up.url))["quota"]["refused"]["incoming"] == 1
        kept = [path.name for path in (platform.folder / "workspaces").rglob("*.txt")]
        assert sorted(kept) == ["one.txt", "three.txt"]


async def test_a_file_that_an_edit_adds_counts_and_is_refused_beyond_the_day(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        people, world = platform.fake.people, platform.fake.world

        def edit(message: str, name: str, size: int) -> None:
            one = chat.chat.messages[int(message)]
            one.media = Media(
                MediaKind.DOCUMENT, world.store(name, "text/plain", b"x" * size, MediaKind.DOCUMENT, None)
            )
            people.edit(one, f"say {name}")

        async with running(platform, OUTSPOKEN_QUOTA__INCOMING_MIB="1") as up:
            platform.say(chat, ada, "hold on")
            await asyncio.wait_for(platform.model.holding.wait(), 60)
            first, second = (platform.say(chat, ada, f"say nothing{n}") for n in range(2))
            await platform.until(lambda: sum("Queued" in text for text in texts(platform, chat)) == 2)
            edit(first, "one.txt", 700_000)
            edit(first, "one.txt", 700_000)
            edit(second, "two.txt", 700_000)
            edit(second, "two.txt", 700_000)
            async with asyncio.timeout(60):
                while not (await status(up.url))["quota"]["refused"]["incoming"]:
                    await asyncio.sleep(0.05)
            platform.model.release()
            await answer(platform, chat, "You have sent as many files and pictures today as you may")
            await answer(platform, chat, "two.txt")
            await quiet(platform, chat)
            kept = [path.name for path in (platform.folder / "workspaces").rglob("*.txt")]
            assert kept == ["one.txt"]


async def test_files_on_their_way_to_a_person_are_limited(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__SPOOL_MIB="1"):
        platform.say(chat, ada, "fill a.txt 552")
        await answer(platform, chat, "Done: Wrote a.txt")
        platform.say(chat, ada, "send a.txt")
        await answer(platform, chat, "is on its way to the person")
        platform.say(chat, ada, "send a.txt")
        await answer(platform, chat, "Too many files are on their way to you already")


async def test_when_the_whole_is_full_text_is_answered_and_files_are_refused(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_QUOTA__WHOLE_MIB="1") as up:
        await counted(up.url)
        platform.say(chat, ada, "fill a.txt 552")
        await answer(platform, chat, "Done: Wrote a.txt")
        platform.say(chat, ada, "fill b.txt 552")
        await answer(platform, chat, "The gateway has no more room for files, for anybody.")
        platform.attach(chat, ada, "one.txt", b"x" * 2_500_000, "text/plain", "say words")
        await answer(platform, chat, "words")
        platform.say(chat, ada, "say still here")
        await answer(platform, chat, "still here")
        remote, to = Remote(up.url, None), f"{platform.name}/{platform.chat_of(chat)}"
        with pytest.raises(GatewayRefused, match=r"Nothing was sent\."):
            await remote.send(to, "words", [("a.bin", b"x" * 3_000_000)], "one")
        await remote.send(to, "words alone", [], "two")
        await answer(platform, chat, "words alone")
        await quiet(platform, chat)
        assert [path.name for path in (platform.folder / "workspaces").rglob("*.txt")] == ["a.txt"]
        assert (await status(up.url))["quota"]["refused"]["whole"] == 3


async def test_what_a_killed_process_wrote_still_counts(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        limits = {"OUTSPOKEN_QUOTA__WORKSPACE_MIB": "1", "OUTSPOKEN_QUOTA__INCOMING_MIB": "1"}
        async with process(platform, **limits) as first:
            platform.say(chat, ada, "fill a.txt 560")
            await answer(platform, chat, "Done: Wrote a.txt")
            platform.attach(chat, ada, "one.txt", b"x" * 400_000, "text/plain", "say first")
            await answer(platform, chat, "first")
            await first.kill()
        async with process(platform, **limits) as second:
            platform.say(chat, ada, "fill b.txt 200")
            await answer(platform, chat, "Done: The workspace is full", 30)
            platform.attach(chat, ada, "two.txt", b"x" * 700_000, "text/plain", "say second")
            await answer(platform, chat, "You have sent as many files and pictures today as you may (391 KB of 1 MB)")
            assert (await counted(second.url))["most"][0]["workspace"] == (560 + 392) * 1024
