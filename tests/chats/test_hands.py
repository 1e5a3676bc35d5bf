"""What people ask an agent with hands for, on every platform and on the page, with the rehearsal model and real commands."""

from __future__ import annotations

import asyncio
import base64
import io
import struct
import zipfile
from pathlib import Path

import pytest

from adapters.contract.base import Ended, FromApi, SessionKey
from adapters.http.enclosing import content_of
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.turn.view import BubbleKind
from gateway.daemon import Serving
from tests.chats.harness import Harness, Seen, answer, answers, quiet, running, texts
from tests.chats.test_later import REHEARSAL
from tests.serving import served
from tests.shell.sandboxes import needs_sandbox

PNG = b"\x89PNG\r\n\x1a\n"
HANDS = {**REHEARSAL, "OUTSPOKEN_SHELL__SANDBOX": "any", "OUTSPOKEN_SHELL__WAIT_SECONDS": "1"}
PATIENT = {**HANDS, "OUTSPOKEN_SHELL__WAIT_SECONDS": "60"}
"""What is drawn is waited for, however busy the machine is."""
SLOW_TEST = """\
import time, unittest

class Sums(unittest.TestCase):
    def test_slowly(self):
        time.sleep(4)
        self.assertEqual(1 + 1, 2)

    def test_wrongly(self):
        self.assertEqual(1 + 1, 3)
"""
TABLE = b"city,people\nRome,2750\nOslo,709\n<b>&,5\n"


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs_sandbox()


def archive() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("test_sums.py", SLOW_TEST)
    return made.getvalue()


async def sent(platform: Harness, place: object, name: str) -> Seen:
    """The bot's message with this file."""
    await platform.until(lambda: any(one.file == name for one in answers(platform, place)), 20)
    return next(one for one in answers(platform, place) if one.file == name)


async def test_the_tests_of_an_archive_are_run_and_their_end_is_told(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **HANDS):
        platform.attach(chat, ada, "sums.zip", archive(), "application/zip", "run the tests in this archive")
        await answer(platform, chat, "still runs", 20)
        await answer(platform, chat, "ended with exit status", 30)
        await answer(platform, chat, "Ran 2 tests", 30)
        platform.say(chat, ada, "count to 3")
        await answer(platform, chat, "1, 2, 3.")


async def test_a_chart_of_a_table_comes_as_a_picture(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **PATIENT):
        platform.attach(chat, ada, "cities.csv", TABLE, "text/csv", "make a chart of this CSV")
        await platform.until(lambda: any(one.data.startswith(PNG) for one in answers(platform, chat)), 20)
        picture = next(one for one in answers(platform, chat) if one.data.startswith(PNG))
        assert picture.file.endswith(".png")
        head = struct.unpack(">II", picture.data[16:24])
        assert head == (640, 24 * 3 + 8)  # three bars
        await answer(platform, chat, "3 bars")


async def test_a_person_sees_and_ends_what_goes_on_in_the_background(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **HANDS):
        platform.command(chat, ada, "stop", "commands")
        await answer(platform, chat, "No command goes on in the background here")
        platform.say(chat, ada, "run: sleep 300")
        await answer(platform, chat, "still runs", 20)
        platform.say(chat, ada, "count to 3")
        await answer(platform, chat, "1, 2, 3.")
        platform.command(chat, ada, "stop")
        told = await answer(platform, chat, "1 command goes on in the background")
        assert "sleep 300" in told.text
        platform.command(chat, ada, "stop", "commands")
        await answer(platform, chat, "1 command was ended", 20)
        await quiet(platform, chat, 2.5)
        assert not any("was stopped" in text for text in texts(platform, chat))  # whoever ended it is told once
        platform.command(chat, ada, "stop", "all")
        await answer(platform, chat, "Nothing is running here")


PAGE = SessionKey("web", "browser", "one")


async def asked(up: Serving, key: str, words: str, name: str, mime: str, data: bytes) -> Ended:
    """A message of the page with a file, and its answer."""
    file: Json = {"name": name, "data": f"data:{mime};base64,{base64.b64encode(data).decode()}"}
    content = content_of(words, [file])
    assert isinstance(content, list)
    said = FromApi(
        account="web", platform_key=key, session=PAGE, input=(InputMessage(content),), surface="web", memory_scope="web", browser="b", digest=key,
    )  # fmt: skip
    ticket = await up.hub.accept(said)
    async with up.hub.follow(ticket) as follower:
        while not isinstance(sight := await follower.next(30), Ended):
            pass
    return sight


async def told(up: Serving, words: str) -> str:
    """What the page is told that has these words."""
    async with asyncio.timeout(30), up.hub.follow_session(PAGE) as follower:
        while True:
            for one in await follower.next(10) or ():
                if words in one.view.text and not one.view.open:
                    return one.view.text


async def test_the_same_is_done_on_the_page(tmp_path: Path) -> None:
    async with served(tmp_path, HANDS) as up:
        ran = await asked(up, "1", "run the tests in this archive", "sums.zip", "application/zip", archive())
        assert "still runs" in ran.view.text
        assert "Ran 2 tests" in await told(up, "ended with exit status")
    async with served(tmp_path, PATIENT) as up:
        drawn = await asked(up, "2", "make a chart of this CSV", "cities.csv", "text/csv", TABLE)
        assert "3 bars" in drawn.view.text
        assert [one.text for one in drawn.view.bubbles if one.kind is BubbleKind.FILE] == ["chart.png"]
    # Where it was made, and the copy that was sent
    assert [one.read_bytes()[:4] for one in tmp_path.rglob("chart.png")] == [
        b"\x89PNG",
        b"\x89PNG",
    ]
