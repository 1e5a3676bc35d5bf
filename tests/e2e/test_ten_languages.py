"""Who writes in one of the ten languages meets no English sentence of ours, whatever the provider does: on the web page, and in a chat of Telegram.

The whole table of words is in `tests.agent_core.test_ten_languages`; here is whether each surface chooses the language, and says nothing beside it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import aiohttp

from tests.catalogues import OTHERS
from tests.chats.harness import answers, environment
from tests.chats.telegram_harness import telegram_harness
from tests.e2e.test_upstream_faults import RECOVERED, TOLD, scenarios
from tests.e2e.upstream import upstream
from tests.english import english_in
from tests.serving import served

RECOVERIES = (
    "stall in tool call",
    "stall before text",
    "429",
    "length in text",
    "empty",
    "promise",
    "overflow once",
    "unknown tool",
)
FAULTS = (*TOLD, *RECOVERIES)
NOT_OURS = (
    "half ", "more ", "All is ", "well.", "The work is done.", "Writing.", "Well, ", "All is as it was. ", "And so it goes on and on. ", "I will look.",
    "Now dispatching task 5:",
)  # fmt: skip
"""What the models of these tables say."""
AT_ONCE = 12


def words_of(value: Any) -> Iterator[str]:
    """Every text in what a page is sent, except what the person wrote and what names something."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from words_of(one)
    elif isinstance(value, dict):
        for name, one in cast("dict[str, Any]", value).items():
            if name not in ("key", "kind", "tool", "state", "turn", "person", "exit", "arguments", "result", "html"):
                yield from words_of(one)


async def on_the_page(http: aiohttp.ClientSession, url: str, language: str, fault: str, number: int) -> list[str]:
    """What a browser of this language is shown of a fault, with the story of it."""
    headers = {"Accept-Language": f"{language}, en;q=0.5", "X-Outspoken-Browser": f"browser-{language}-0001"}
    session = f"{url}/api/sessions/c-{language}-{number:08}"
    said = {"id": f"message-{number:04}", "text": f"scenario: {fault}"}
    async with http.post(f"{session}/messages", json=said, headers=headers) as response:
        assert response.status == 202, await response.text()
    shown, turn = list[str](), ""
    async with asyncio.timeout(90), http.get(f"{session}/events", headers=headers) as events:
        async for line in events.content:
            sights: list[dict[str, Any]] = json.loads(line[6:]) if line.startswith(b"data: ") else []
            shown += [words for one in sights for words in words_of(one)]
            if any(one["state"] == "closed" and one["turn"] for one in sights):
                turn = next(one["turn"] for one in sights if one["turn"])
                break
    async with http.get(f"{url}/api/turns/{turn}/why", headers=headers) as response:
        return [*shown, *(await response.json())["lines"]]


def english(found: Mapping[str, Sequence[str]]) -> list[str]:
    """What of it is English, with where it was met."""
    return sorted({
        f"{where}: {english[:3]} in {words[:200]!r}"
        for where, shown in found.items() for words in shown if (english := english_in(words, *NOT_OURS))
    })  # fmt: skip


async def test_no_fault_is_told_in_english_on_the_page(tmp_path: Path):
    async with upstream(scenarios()) as model:
        env = {
            "OUTSPOKEN_MODEL__BASE_URL": model.url,
            "OUTSPOKEN_MODEL__NAME": "m",
            "OUTSPOKEN_MODEL__API_KEY": "sk-test",
        }
        async with served(tmp_path, env) as up, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            limit, found = asyncio.Semaphore(AT_ONCE), dict[str, list[str]]()

            async def one(number: int, fault: str) -> None:
                language = OTHERS[number % len(OTHERS)]
                async with limit:
                    found[f"{language}, {fault}"] = await on_the_page(http, up.url, language, fault, number)

            await asyncio.gather(*(one(number, fault) for number, fault in enumerate(FAULTS)))
    assert len(found) == len(FAULTS)
    assert all(found.values())
    assert set(RECOVERIES) <= set(RECOVERED)
    assert english(found) == []


async def test_no_fault_is_told_in_english_in_a_chat(tmp_path: Path):
    async with upstream(scenarios()) as model, telegram_harness(tmp_path) as harness:
        people = [harness.fake.people.user(f"P{tag}", language_code=tag) for tag in OTHERS]
        places = {tag: (harness.private(person), person) for tag, person in zip(OTHERS, people, strict=True)}
        async with served(harness.folder, environment(harness, OPENAI_BASE_URL=model.url)):
            await harness.ready()

            async def talk(tag: str, faults: Sequence[str]) -> None:
                place, person = places[tag]
                for words in (*(f"scenario: {fault}" for fault in faults), "/why", "/help", "/status", "/usage"):
                    before = len(answers(harness, place))
                    harness.say(place, person, words)
                    await harness.until(lambda before=before: len(answers(harness, place)) > before, 60)
                    await harness.until(lambda: not harness.typing(place), 60)

            await asyncio.gather(*(talk(tag, FAULTS[n :: len(OTHERS)][:3]) for n, tag in enumerate(OTHERS)))
            found = {
                tag: [words for one in answers(harness, places[tag][0]) for words in (one.text, *one.buttons)]
                for tag in OTHERS
            }
    assert all(len(shown) >= 6 for shown in found.values())
    assert english(found) == []
