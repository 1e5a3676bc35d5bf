"""Odd moments of platforms that were looked up in the world: the answer comes all the same, or its person is told, and no law is broken."""

from __future__ import annotations

import pytest

from tests import elsewhere
from tests.chats.harness import Harness, answer, answers, quiet, running, starting, status_until, texts
from tests.chats.refused_oddly import FORMS, PAGE, PASSING, portal, refuse_next
from tests.fakes.common import Answer
from tests.laws.look import breaches

NO_STREAMS = {"OUTSPOKEN_SLACK__STREAMS": "false"}


@pytest.fixture(autouse=True)
def _not_the_toy(platform: Harness) -> None:
    if platform.name == "toy":
        pytest.skip("it has no odd moments")


async def test_what_is_refused_as_it_is_comes_in_its_barest_form(platform: Harness) -> None:
    ada = platform.person("Ada")
    place = platform.group(ada)
    async with running(platform, **NO_STREAMS):
        for number, odd in enumerate(FORMS[platform.name]):
            refuse_next(platform, odd)
            platform.say(place, ada, f"say answer{number}", mention=True)
            await answer(platform, place, f"answer{number}", 20)
        await quiet(platform, place)
        assert not [words for words in texts(platform, place) if "⚠️" in words or "twice" in words]


async def test_what_something_else_says_in_the_platforms_place_is_no_refusal(platform: Harness) -> None:
    ada = platform.person("Ada")
    place = platform.private(ada)
    async with running(platform, **NO_STREAMS):
        for number, odd in enumerate(PASSING[platform.name]):
            refuse_next(platform, odd)
            platform.say(place, ada, f"say answer{number}")
            await answer(platform, place, f"answer{number}", 30)
        await quiet(platform, place)
        said = [one for one in answers(platform, place) if "answer" in one.text]
        assert len(said) == len(PASSING[platform.name]), texts(platform, place)
        assert not [words for words in texts(platform, place) if "⚠️" in words or "twice" in words]


async def test_a_part_that_could_not_be_sent_is_told_and_breaks_no_law(platform: Harness) -> None:
    ada = platform.person("Ada")
    place = platform.private(ada)
    async with running(platform, **NO_STREAMS):
        odd = FORMS[platform.name][-1]
        refuse_next(platform, odd, odd)  # as it is, and in its barest form
        platform.say(place, ada, "say hello")
        await answer(platform, place, "A part of the answer could not be sent", 20)
        await quiet(platform, place)
    assert await breaches(elsewhere.database_of(platform.folder)) == []


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_a_portal_that_answers_in_the_platforms_place_is_no_mistake_of_ours(platform: Harness, kind: str) -> None:
    ada = platform.person("Ada")
    place = platform.private(ada)
    portal(platform, Answer(200, PAGE if kind == "text/html" else b"[]", kind))
    async with starting(platform) as up:
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "down")
        assert "mistake" not in told["adapters"][0]["words"], told["adapters"]
        portal(platform, None)
        await platform.ready()
        platform.say(place, ada, "say hello")
        await answer(platform, place, "hello", 30)
