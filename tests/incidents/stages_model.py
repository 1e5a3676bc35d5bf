"""Incidents of models and providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.incidents.model import Refusal, asks_for
from tests.incidents.rig import Operator, Scene, telegram


async def _hit(scene: Scene, words: str = "say hello", people: int = 3) -> None:
    """Several people meet the same trouble; the last of them asks for help."""
    places = [(scene.chat.private(one), one) for one in (scene.chat.person(f"P{n}") for n in range(people))]
    for place, person in places:
        scene.say(place, person, words)
    await asyncio.gather(*(scene.noticed(place) for place, _ in places))


@asynccontextmanager
async def one_model_stalls(folder: Path) -> AsyncGenerator[Operator]:
    """The first model of two says nothing; the second one answers."""
    async with telegram(folder, OUTSPOKEN_MODEL__FALLBACKS="m2") as scene:
        await scene.traffic()
        scene.model.stalls = "m1"
        places = [(scene.chat.private(one), one) for one in (scene.chat.person(f"P{n}") for n in range(3))]
        for place, person in places:
            scene.say(place, person, "say slowly but surely")
        await asyncio.gather(*(scene.noticed(place, "slowly but surely") for place, _ in places))
        yield scene.operator


@asynccontextmanager
async def rate_limit(folder: Path) -> AsyncGenerator[Operator]:
    """The provider answers 429 to everybody."""
    async with telegram(folder) as scene:
        await scene.traffic()
        scene.model.refuse = lambda _: (429, "Rate limit reached for requests")
        await _hit(scene)
        yield scene.operator


@asynccontextmanager
async def wrong_model(folder: Path) -> AsyncGenerator[Operator]:
    """The model's name is spelt wrongly."""

    def known(body: dict[str, Any]) -> Refusal | None:
        return None if body["model"] in ("m1", "m2") else (404, f"The model {body['model']} does not exist")

    async with telegram(folder, OUTSPOKEN_MODEL__NAME="m3") as scene:
        scene.model.refuse = known
        await _hit(scene)
        yield scene.operator


@asynccontextmanager
async def refused_key(folder: Path) -> AsyncGenerator[Operator]:
    """The provider takes the key no more."""
    async with telegram(folder) as scene:
        await scene.traffic()
        scene.model.refuse = lambda _: (401, "Incorrect API key provided")
        await _hit(scene)
        yield scene.operator


@asynccontextmanager
async def poisoned(folder: Path) -> AsyncGenerator[Operator]:
    """Everything is refused in one conversation, whatever is left out of its history."""
    async with telegram(folder) as scene:
        await scene.traffic()
        ada = await scene.newcomer()
        scene.model.refuse = lambda body: (
            (400, "messages.1: content is not allowed to be empty") if asks_for(body, "say hello") else None
        )
        for number in range(3):
            scene.say(*ada, f"say hello {number}")
            await scene.chat.until(lambda n=number: sum("⚠️" in one.text for one in scene.chat.seen(ada[0])) > n, 30)
        await scene.newcomer("Nia")
        yield scene.operator


@asynccontextmanager
async def overflow(folder: Path) -> AsyncGenerator[Operator]:
    """The conversation is larger than the model's context."""
    words = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    async with telegram(folder) as scene:
        await scene.traffic()
        ada = await scene.newcomer()
        scene.model.refuse = lambda body: (400, words) if asks_for(body, "everything") else None
        scene.say(*ada, "say everything")
        await scene.noticed(ada[0])
        yield scene.operator


@asynccontextmanager
async def looping(folder: Path) -> AsyncGenerator[Operator]:
    """A model makes the same call again and again."""
    async with telegram(folder, OUTSPOKEN_MODEL__MAX_STEPS="40") as scene:
        await scene.traffic()
        ada = await scene.newcomer()
        scene.say(*ada, "loop")
        await scene.noticed(ada[0])
        yield scene.operator


@asynccontextmanager
async def promising(folder: Path) -> AsyncGenerator[Operator]:
    """A model announces what it does, and does nothing."""
    async with telegram(folder) as scene:
        await scene.traffic()
        ada = await scene.newcomer()
        scene.say(*ada, "promise")
        await scene.noticed(ada[0])
        yield scene.operator


@asynccontextmanager
async def budget(folder: Path) -> AsyncGenerator[Operator]:
    """Everybody's budget of the day is used up: a reply takes 15 tokens."""
    async with telegram(folder, OUTSPOKEN_BUDGETS__DAY_TOKENS="40") as scene:
        for name in ("Kim", "Lee", "Max"):
            await scene.newcomer(name)
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.say(place, ada, "say hello")
        await scene.noticed(place)
        yield scene.operator


STAGES = {
    "One model of two stalls": one_model_stalls,
    "The provider's rate limit": rate_limit,
    "A wrong model name": wrong_model,
    "A refused provider key": refused_key,
    "A poisoned conversation": poisoned,
    "A conversation larger than the model": overflow,
    "A looping conversation": looping,
    "Promised, and not done": promising,
    "A budget used up": budget,
}
