"""What stands in a chat at the end is what was wanted, whatever stood there before and whatever was refused."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.delivery.troubles import STILL_THERE
from tests import elsewhere
from tests.chats.audited import lies
from tests.chats.harness import Harness, answer, answers, process, quiet, running
from tests.chats.model import wide_line
from tests.chats.refusing import GONE, garble, refuse_edits, refuse_files, shorten
from tests.fakes.common import Garble

CODE = [wide_line(n) for n in range(100)]
NO_STREAMS = {"OUTSPOKEN_SLACK__STREAMS": "false"}


def place_of(platform: Harness, person: Any, where: str) -> Any:
    return platform.private(person) if where == "private" else platform.group(person)


def one_place(platform: Harness, person: Any, where: str) -> Any:
    """Where all that is said is one conversation: in a channel of Slack, that is a thread."""
    return platform.private(person) if where == "private" else platform.topics(person)[1]


@pytest.mark.some
@pytest.mark.parametrize("where", ["private", "group"])
@pytest.mark.parametrize("streams", ["streams", "messages"])
async def test_code_that_was_previewed_and_becomes_a_file_is_there_as_a_file(
    platform: Harness, where: str, streams: str
) -> None:
    if streams == "streams" and platform.name != "slack":
        pytest.skip("only Slack has streams")
    ada = platform.person("Ada")
    place = place_of(platform, ada, where)
    async with running(platform, **(NO_STREAMS if streams == "messages" else {})):
        platform.say(place, ada, "slowcode 100", mention=where == "group")
        await platform.until(lambda: any("That was it" in one.text for one in answers(platform, place)), 60)
        await quiet(platform, place, 2)
        found = answers(platform, place)
        files = [one for one in found if one.file]
        assert [one.data.decode().splitlines() for one in files] == [CODE], found
        assert not any("print(" in one.text for one in found if not one.file), "no cut preview stays"
        assert len([one for one in found if not one.file]) == 1
        assert await lies(platform.folder) == []


async def test_an_edit_that_is_refused_sends_the_answer_anew(platform: Harness) -> None:
    """Each way in which it is refused, in a place of its own."""
    if platform.name == "toy":
        pytest.skip("no such words")
    async with running(platform, **NO_STREAMS):
        for number, words in enumerate(GONE[platform.name]):
            ada = platform.person(f"Ada{number}")
            place = place_of(platform, ada, "group")
            platform.model.released.clear()
            platform.say(place, ada, "hold the beginning", mention=True)
            begun = partial(_shows, platform, place, "the beginning")
            await platform.until(begun, 20)
            refuse_edits(platform, words)
            platform.model.release()
            await answer(platform, place, "the beginning end", 60)
            assert await lies(platform.folder) == []
            told = [one.text for one in answers(platform, place)]
            assert told == ["the beginning end"], f"whole, once, and without a notice: {words}"
            platform.say(place, ada, "say more", mention=True)
            await answer(platform, place, "more", 20)
            assert await lies(platform.folder) == []
            refuse_edits(platform, None)


def _shows(platform: Harness, place: Any, words: str) -> bool:
    return any(words in one.text for one in answers(platform, place))


async def test_a_file_that_is_refused_gives_its_code_back(platform: Harness) -> None:
    if platform.name == "toy":
        pytest.skip("it refuses nothing")
    refuse_files(platform)
    ada = platform.person("Ada")
    place = platform.private(ada)
    async with running(platform, **NO_STREAMS):
        platform.say(place, ada, "slowcode 100")
        await platform.until(lambda: any("That was it" in one.text for one in answers(platform, place)), 60)

        def lines() -> list[str]:
            return [line for one in answers(platform, place) for code in one.code for line in code.splitlines()]

        with suppress(AssertionError):
            await platform.until(lambda: lines() == CODE, 60)
        assert lines() == CODE, "each line once, as code"
        found = answers(platform, place)
        assert not any("attached" in one.text for one in found)
        assert not any("⚠️" in one.text for one in found)
        assert await lies(platform.folder) == []


async def test_what_is_too_long_is_split_until_it_fits(platform: Harness) -> None:
    if platform.name == "toy":
        pytest.skip("it refuses nothing")
    shorten(platform, 700)
    ada = platform.person("Ada")
    place = platform.private(ada)
    async with running(platform, **NO_STREAMS):
        platform.say(place, ada, "long 600")
        await platform.until(lambda: any("word599" in one.text for one in answers(platform, place)), 60)
        await quiet(platform, place, 1.5)
        words = " ".join(one.text for one in answers(platform, place)).replace(".", "").split()
        assert words == [f"word{n}" for n in range(600)]
        assert await lies(platform.folder) == []


@pytest.mark.parametrize("what", ["sends", "edits", "deletes", "cosmetics"])
async def test_answers_that_nobody_can_read_hold_no_chat_up(platform: Harness, what: str) -> None:
    if platform.name == "toy":
        pytest.skip("it has answers of its own")
    ada = platform.person("Ada")
    place = platform.private(ada) if what == "cosmetics" else platform.group(ada)
    mention = what != "cosmetics"
    async with running(platform, **NO_STREAMS) as up:
        garble(platform, what, Garble())
        platform.say(place, ada, "slow one two three four five six seven eight nine ten eleven twelve", mention=mention)
        await answer(platform, place, "eleven twelve", 60)
        platform.say(place, ada, "say the next", mention=mention)
        await answer(platform, place, "the next", 60)
        await platform.until(lambda: not up.hub.running(), 60)
        garble(platform, what, None)
        platform.say(place, ada, "say the last", mention=mention)
        await answer(platform, place, "the last", 60)
        assert await lies(platform.folder, 60) == []
        told = [one.text for one in answers(platform, place)]
        assert len([words for words in told if "the last" in words]) == 1
        unmarked = [words for words in told if "twelve" in words and "twice" not in words]
        assert len(unmarked) <= 1, told


async def test_nothing_old_is_carried_out_after_a_restart(platform: Harness) -> None:
    """What was said of tries while the model was away is over when it has answered, whatever happened to the processes."""
    ada = platform.person("Ada")
    place = platform.group(ada)
    retry = {"OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "4", "OUTSPOKEN_MODEL__RETRY_MAX_SECONDS": "5"}
    platform.model.failing = True
    async with process(platform, **retry) as one:
        platform.say(place, ada, "say at last", mention=True)
        await answer(platform, place, "attempt 2", 60)
        await asyncio.sleep(1)  # else it is not known on Telegram which message it was
        await one.kill()
    platform.model.failing = False
    async with process(platform, **retry) as one:
        await answer(platform, place, "at last", 60)
        await quiet(platform, place, 1.5)
        one.inner.send_signal(signal.SIGTERM)
        await asyncio.to_thread(one.inner.wait)
    assert await lies(platform.folder) == []
    seen = [m.text for m in answers(platform, place)]
    assert seen == ["at last"]
    async with process(platform):
        await quiet(platform, place, 3)
        assert [m.text for m in answers(platform, place)] == seen
    assert await lies(platform.folder) == []


async def test_a_turn_that_ends_within_a_stop_has_its_answer_in_the_chat_before_the_process_ends(
    platform: Harness,
) -> None:
    ada = platform.person("Ada")
    place = platform.group(ada)
    async with process(platform) as one:
        platform.say(place, ada, "hold so far", mention=True)
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        one.inner.send_signal(signal.SIGTERM)
        log = platform.folder / "log"
        await platform.until(lambda: "gateway.draining" in log.read_text(), 60)
        platform.say(place, ada, "say not any more", mention=True)
        await asyncio.sleep(1.5)
        platform.model.release()
        await asyncio.to_thread(one.inner.wait)
        assert one.inner.returncode == 0
    assert [m.text for m in answers(platform, place)] == ["so far end"]
    assert "delivery.retried" not in log.read_text()
    assert await lies(platform.folder) == []


def status_not_taken(folder: Path) -> bool:
    """It is stored that a status was sent and not taken."""
    query = "SELECT count(*) FROM deliveries WHERE bubble = 'status' AND failures > 0"
    return elsewhere.rows(folder, query)[0][0] > 0


@pytest.mark.parametrize("refusal", ["too fast", "503"])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_a_status_that_was_over_before_it_was_sent_is_over_in_the_database(
    platform: Harness, end: signal.Signals, refusal: str
) -> None:
    """It is not taken, stored as wanted, and not wanted any more when it is its turn; the process ends right after the answer."""
    ada = platform.person("Ada")
    place = platform.group(ada)
    retry = {"OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "4", "OUTSPOKEN_MODEL__RETRY_MAX_SECONDS": "5"}
    platform.model.failing = True
    if refusal == "too fast":
        platform.flood(10)
    else:
        platform.fail_sends(*["503"] * 3)
    async with process(platform, **retry) as one:
        platform.say(place, ada, "say at last", mention=True)
        await platform.until(lambda: status_not_taken(platform.folder), 30)
        platform.model.failing = False
        await answer(platform, place, "at last", 60)
        one.inner.send_signal(end)
        await asyncio.to_thread(one.inner.wait)
    if end is signal.SIGTERM and refusal == "too fast":  # else it may be there, and that is looked up at the next start
        assert await lies(platform.folder, 0) == []
    async with process(platform):
        await asyncio.sleep(3)
        await quiet(platform, place, 1.5)
        told = [m.text for m in answers(platform, place)]
        # An answer of which nobody knows whether it was taken may come a second time, with a label.
        assert all(text == "at last" or text.endswith("you may see this twice.)\n\nat last") for text in told), told
        assert told.count("at last") <= 1
        assert await lies(platform.folder) == []


@pytest.mark.parametrize("where", ["private", "group"])
async def test_a_text_file_that_is_refused_is_there_as_text(platform: Harness, where: str) -> None:
    if platform.name == "toy":
        pytest.skip("it refuses nothing")
    refuse_files(platform)
    ada = platform.person("Ada")
    place = one_place(platform, ada, where)
    async with running(platform, **NO_STREAMS):
        platform.say(place, ada, "write notes.md: first things first", mention=True)
        await answer(platform, place, "Done:", 30)
        platform.say(place, ada, "send notes.md", mention=True)
        await platform.until(lambda: any("first things first" in one.text for one in with_code(platform, place)), 60)
        await quiet(platform, place, 1.5)
        found = with_code(platform, place)
        assert len([one for one in found if "could not be sent as a file" in one.text]) == 1, found
        assert not any("⚠️" in one.text or one.file for one in found), found
        assert await lies(platform.folder) == []


@pytest.mark.parametrize("where", ["private", "group"])
async def test_of_another_file_that_is_refused_the_chat_is_told_how_else_to_get_it(
    platform: Harness, where: str
) -> None:
    if platform.name == "toy":
        pytest.skip("it refuses nothing")
    refuse_files(platform)
    ada = platform.person("Ada")
    place = one_place(platform, ada, where)
    async with running(platform, **NO_STREAMS):
        platform.say(place, ada, "write numbers.bin: beginning", mention=True)
        await answer(platform, place, "Done:", 30)
        (written,) = platform.folder.rglob("numbers.bin")
        written.write_bytes(b"\x00\x01\xff")
        platform.say(place, ada, "send numbers.bin", mention=True)
        told = await answer(platform, place, "numbers.bin could not be sent", 60)
        assert STILL_THERE in told.text
        await quiet(platform, place, 1.5)
        assert len([one for one in answers(platform, place) if "could not be sent" in one.text]) == 1
        assert await lies(platform.folder) == []


def with_code(platform: Harness, place: Any) -> list[Any]:
    return [replace(one, text="\n".join((one.text, *one.code))) for one in answers(platform, place)]
