"""Sentences of the documentation that nothing else holds: the program as it is started by a person, and looked at from outside."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.agent_core.tools.test_search import engine
from tests.docs.test_tutorial import Played, reader

pytestmark = pytest.mark.timeout(200)


def asked(played: Played, question: str) -> list[tuple[object, ...]]:
    """Of the program's own database."""
    with closing(sqlite3.connect(f"file:{played.folder}/bot/outspoken.db?mode=ro", uri=True)) as database:
        return database.execute(question).fetchall()


async def test_what_is_remembered_of_a_failure_holds_no_word_of_a_persons_text(tmp_path: Path) -> None:
    async with reader(tmp_path) as played:
        played.env |= {"OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "0.05", "OUTSPOKEN_MODEL__RETRY_MAX_SECONDS": "0.2"}
        status, out = await played.run('outspoken ask "rehearse empty reply forever"')
        assert status == 10, out
        rows = asked(played, "SELECT * FROM troubles")
        assert len(rows) >= 3
        assert "reply forever" not in repr(rows)


async def test_codes_of_people_stand_in_no_log(tmp_path: Path) -> None:
    async with reader(tmp_path) as played:
        played.env |= {
            "TELEGRAM_BOT_TOKEN": played.fake.token,
            "OUTSPOKEN_PEOPLE__LINK": "true",
            "OUTSPOKEN_LOG__LEVEL": "debug",
        }
        await played.start()
        played.fake.people.say(played.private, played.ada, "hello")
        await played.hear(played.private, "… outspoken access approve CODE)")
        pairing = played.code
        assert (await played.run(f"outspoken access approve {pairing}"))[0] == 0
        played.fake.people.say(played.private, played.ada, "/link")
        await played.hear(played.private, "… /link …")
        found = re.search(r"/link ([A-Z0-9-]{6,})", played.texts(played.private)[-1])
        assert found
        await played.stop()
        log = (played.folder / "log").read_text("utf-8")
        assert pairing not in log
        assert found[1] not in log
        assert found[1].replace("-", "") not in log


async def test_a_gateway_that_is_killed_says_nothing_of_its_adapters_and_the_next_one_does(tmp_path: Path) -> None:
    states = "SELECT state FROM adapter_states ORDER BY at"
    async with reader(tmp_path) as played:
        played.env["TELEGRAM_BOT_TOKEN"] = played.fake.token
        await played.start()
        await played.until(lambda: asked(played, states) != [], lambda: "it never came up")
        assert played.gateway is not None
        played.gateway.kill()
        await played.gateway.wait()
        before = asked(played, states)
        assert ("stopped",) not in before
        await played.start()
        await played.until(lambda: len(asked(played, states)) > len(before), lambda: f"{asked(played, states)}")
        await played.stop()
        assert asked(played, states)[-1] == ("stopped",)


async def test_doctor_makes_one_search_and_says_whether_the_engine_answers(tmp_path: Path) -> None:
    async with reader(tmp_path) as played:
        async with engine() as search:
            played.env |= {"OUTSPOKEN_SEARCH__ENGINE": "searxng", "SEARXNG_URL": search.url}
            _, out = await played.run("outspoken doctor")
            assert re.search(r"ok +search: .* answers\.", out), out
            assert len(search.asked) == 1
        status, out = await played.run("outspoken doctor")
        assert status == 1
        assert re.search(r"PROBLEM search: ", out), out
