"""Files of a turn that another gateway goes on with: found in a directory that both have; where each has its own, it is said that they are not there."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import aiohttp
import pytest

from adapters.terminal.operator import status_lines
from gateway.several.files import share_spool
from tests.chats.harness import answer
from tests.databases import new_database
from tests.several.support import PATIENT_SECONDS, cluster
from tests.several.test_doors import Page, named, told_by


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "each its own"])
async def test_a_turn_that_is_taken_over_finds_its_files_or_says_that_it_does_not(
    shared: bool, postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:

        def directory(name: str) -> dict[str, str]:
            own = {} if shared else {"OUTSPOKEN_TOOLS__WORKSPACE": str(tmp_path / name / "files")}
            # What holds on is taken over, and not given up before on a busy machine.
            return {"OUTSPOKEN_MODEL__STALL_SECONDS": "60", "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "60", **own}

        first = await all_.begin("first", **directory("first"))
        harness = all_.harness
        await harness.ready()
        people = [harness.person("Ada"), harness.person("Bo")]
        places = [harness.private(one) for one in people]
        harness.attach(places[0], people[0], "notes.txt", b"seven", "text/plain", "hold on")
        await harness.model.holding.wait()
        harness.say(places[1], people[1], "hold on")  # without any file
        async with asyncio.timeout(PATIENT_SECONDS):
            while len(harness.model.requests) < 2:
                await asyncio.sleep(0.05)
        second = await all_.begin("second", **directory("second"))
        await asyncio.sleep(0.5)

        first.signal(signal.SIGKILL)
        async with asyncio.timeout(PATIENT_SECONDS):
            while len(harness.model.requests) < 4:
                await asyncio.sleep(0.05)
        harness.model.release()
        for place in places:
            await answer(harness, place, "end")
        reading = json.dumps({"path": "notes.txt"})
        harness.say(places[0], people[0], f"usetool read_file {reading}")
        if shared:
            await answer(harness, places[0], "seven")
        else:
            await answer(
                harness, places[0], "There is no file notes.txt. Files that this conversation had on another machine"
            )
        said = [
            [one.text for one in harness.seen(place) if "another machine, and files" in one.text] for place in places
        ]
        assert [len(one) for one in said] == [0 if shared else 1, 0], "told once, to whom it concerns"

        await all_.begin("third", **directory("third"))
        async with asyncio.timeout(PATIENT_SECONDS):
            while len(told := (await told_by(second))["nodes"]) < 2 or not all(one.get("directory") for one in told):
                await asyncio.sleep(0.1)
        lines = [one for one in status_lines(await told_by(second)) if "directories for files" in one]
        assert len(lines) == (0 if shared else 1)
        all_.sound()


async def test_a_file_that_the_agent_sent_is_had_at_each(postgres_server: str, tmp_path: Path) -> None:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        nodes = [await all_.begin(name) for name in ("first", "second")]
        await all_.even(2)
        (name,) = await named(all_, 2, 1, "web/page")
        page = Page(nodes[0], name)
        watching = asyncio.create_task(page.watch())
        await page.say("write note.txt: seven")
        await page.until('"closed"')
        await page.say("send note.txt")
        await page.until('"kind": "file"')
        watching.cancel()
        (file,) = {one["file"] for said in page.told for one in said["bubbles"] if one["kind"] == "file"}
        async with aiohttp.ClientSession() as http:
            for node in nodes:
                async with http.get(f"{node.url}/api/sessions/{name}/files/{file}") as response:
                    assert (response.status, await response.text()) == (200, "seven")
        all_.sound()


def test_what_an_earlier_version_kept_for_itself_is_put_where_all_look(tmp_path: Path) -> None:
    own, shared = tmp_path / "state" / "outbox", tmp_path / "shared" / ".outbox"
    share_spool(own, shared)
    assert shared.stat().st_mode & 0o777 == 0o700
    for name in ("a", "b"):
        (own / name).mkdir(parents=True)
        (own / name / "note.txt").write_text(f"of {name}")
    (shared / "b").mkdir()
    share_spool(own, shared)
    share_spool(own, shared)
    assert (shared / "a" / "note.txt").read_text() == "of a"
    assert [one.name for one in own.iterdir()] == ["b"], "what is there already is not replaced"
    (own / "c").mkdir()
    share_spool(own, own / "b" / "note.txt")  # nothing can be made there: it is logged, and the gateway serves


async def warnings(url: str) -> list[str]:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/readyz") as response:
        assert response.status == 200, "messages are taken all the same"
        return (await response.json()).get("warnings", [])


async def test_a_folder_whose_disk_is_taken_away_is_noticed_and_nothing_is_written_in_its_place(
    postgres_server: str, tmp_path: Path
) -> None:
    """What stands there is the bare directory on which the disk was mounted: what is written to it is hidden when that is back."""
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        one = await all_.begin("first")
        harness, root = all_.harness, tmp_path / "workspaces"
        await harness.ready()
        people = [harness.person("Ada"), harness.person("Bo")]
        places = [harness.private(person) for person in people]
        harness.say(places[0], people[0], "write a.txt: one")
        await answer(harness, places[0], "Done: ")
        assert await warnings(one.url) == []
        root.rename(tmp_path / "unmounted")
        root.mkdir()
        async with asyncio.timeout(PATIENT_SECONDS):
            while not any("is its disk or share mounted" in words for words in await warnings(one.url)):
                await asyncio.sleep(0.1)
        for place, person in zip(places, people, strict=True):
            harness.say(place, person, "write b.txt: two")
            await answer(harness, place, "Files cannot be used just now")
        harness.attach(places[1], people[1], "notes.txt", b"seven", "text/plain", "say answered")
        await answer(harness, places[1], "answered")
        assert [*root.rglob("*.txt")] == []
        root.rename(tmp_path / "bare")
        (tmp_path / "unmounted").rename(root)
        async with asyncio.timeout(PATIENT_SECONDS):
            while await warnings(one.url):
                await asyncio.sleep(0.1)
        harness.say(places[0], people[0], "usetool read_file " + json.dumps({"path": "a.txt"}))
        await answer(harness, places[0], "one")
        said = [json.loads(line)["event"] for line in one.log.read_text().splitlines() if line.startswith("{")]
        assert (said.count("workspace.away"), said.count("workspace.back")) == (1, 1)
        all_.sound()
