"""A reply that may only promise something, through the whole gateway: the model is asked, nobody sees the question, nothing is shown twice."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from tests.e2e.test_upstream_faults import ask
from tests.e2e.upstream import HEAD, Act, Reply, end, text, upstream
from tests.serving import served

DONE: Reply = (HEAD, text("DO"), text("NE"), end())
DOUBTFUL: Reply = (HEAD, text("The rest of it…"), end())
PROMISE: Reply = (HEAD, text("The three files are in place. I'll have the summary ready."), end())
ENV = {"OUTSPOKEN_MODEL__NAME": "m", "OUTSPOKEN_MODEL__API_KEY": "sk-x"}


@pytest.mark.parametrize(
    ("word", "calls"),
    [((HEAD, text("FINISHED"), end()), 1), ((HEAD, text("ANNOUNCES"), end()), 2), ((HEAD, Act.HANG), 1)],
    ids=["finished", "announces", "no word"],
)
async def test_a_doubtful_reply_is_asked_about_unseen_and_shown_once(tmp_path: Path, word: Reply, calls: int) -> None:
    async with upstream({"doubt": (DOUBTFUL, DONE), "unnamed": (word,)}) as model:
        env = {**ENV, "OUTSPOKEN_MODEL__BASE_URL": model.url}
        async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
            assert await ask(http, up.url, "doubt") == ("The rest of it…", "stop", "answered")
        assert model.asked == {"unnamed": 1, "doubt": calls}
        assert model.violations == []


async def test_what_was_shown_stays_the_answer_if_nothing_was_left_to_do(tmp_path: Path) -> None:
    async with upstream({"promise": (PROMISE, DONE)}) as model:
        env = {**ENV, "OUTSPOKEN_MODEL__BASE_URL": model.url}
        async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
            said, finish, code = await ask(http, up.url, "promise")
        assert (said, finish, code) == (
            "The three files are in place. I'll have the summary ready.",
            "stop",
            "answered",
        )
        assert model.asked == {"promise": 2}
