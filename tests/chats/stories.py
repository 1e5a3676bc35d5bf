"""Every message of a run has a story, and it agrees with what people saw: judged from the gateway's database, beside the fake's chats."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, create_engine
from typing_extensions import override

from agent_core.explain.why import MOST_LINES
from agent_core.ports import SystemClock
from agent_core.store.database.asks import StoreAsks
from agent_core.store.database.readers import SqliteReaders
from agent_core.store.reading import open_reads
from agent_core.store.reads import Reads, reads_of
from gateway.explain.ids import CannotExplain
from gateway.explain.story import Explainer, ToldStory
from tests import elsewhere
from tests.chats.harness import Seen

R = TypeVar("R")

NOTICE = "⚠️"
REFUSED_WORDS = "may not talk to everybody"


class Fate(StrEnum):
    """What has to come of a message."""

    RUN = "run"
    REFUSED = "refused"
    """Its person is a stranger."""
    UNHEARD = "unheard"
    """It was not meant for the bot, so that it is never stored."""


@dataclass(frozen=True)
class Said:
    """A message that somebody wrote."""

    key: str
    """Chat and message, as the platform numbers them."""
    at: int
    """ms"""
    words: str
    """What may be in no story."""
    fate: Fate = Fate.RUN
    number: str = ""
    """The answer ends with it."""


class Direct(StoreAsks):
    """The same questions on one connection of this thread: ten thousand stories ask a hundred thousand times."""

    def __init__(self, conn: Connection) -> None:
        super().__init__(SqliteReaders(create_engine("sqlite://")), "the run's database")
        self._conn = conn

    @override
    async def _once(self, ask: Callable[[Connection], R]) -> R:
        return ask(self._conn)


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[tuple[Reads, frozenset[str]]]:
    """What can be asked of a run's database, and the keys of all messages in it."""
    keys = frozenset(str(row[0]) for row in elsewhere.rows(home, "SELECT platform_key FROM inbox"))
    database = elsewhere.database_of(home)
    if elsewhere.settings():
        async with open_reads(database) as reads:
            yield reads, keys
        return
    engine = create_engine(f"sqlite:///file:{database}?mode=ro&uri=true", isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as conn:
            yield reads_of(Direct(conn)), keys
    finally:
        engine.dispose()


async def story_of(explainer: Explainer, platform: str, said: Said) -> ToldStory:
    """As somebody asks who has a message's id; where that says nothing of its time, by chat and time."""
    try:
        return await explainer.of(said.key)
    except CannotExplain:
        return await explainer.chat_at(f"{platform}/{said.key.partition(':')[0]}", said.at)


def complaint(said: Said, told: ToldStory, chat: Sequence[Seen], *, stored: bool) -> str:
    """Why a story is wrong; empty if it is right. Pure."""
    text = told.text(UTC)
    mine = [one for one in chat if one.mine]
    if len(text.splitlines()) > MOST_LINES:
        return "it is too long"
    if said.words in text:
        return "it holds the person's words"
    if told.found is not stored:
        return "it is told as if it were not stored" if stored else "it is told, and not stored"
    match said.fate:
        case Fate.UNHEARD:
            right = not told.found and told.ending == "never arrived" and "The adapter" in text
            return "" if right else f"it was never stored, and is told as {told.ending}"
        case Fate.REFUSED if not stored:
            # What strangers wrote while the bot was away is not read from a history.
            right = "in trouble around then" in text or "cannot have come" in text
            return "" if right else "it never came, and the adapter is not told to have been away"
        case Fate.REFUSED:
            if told.ending != "refused" or "may not talk to the bot" not in text:
                return f"it was refused, and is told as {told.ending}"
            told_ids = {one.id for one in mine if f"as message {one.id} " in text}
            seen_ids = {one.id for one in mine if REFUSED_WORDS in one.text}
            return "" if told_ids <= seen_ids else "what it says was delivered is not there"
        case Fate.RUN:
            return _run(said, told, text, mine)


def _run(said: Said, told: ToldStory, text: str, mine: Sequence[Seen]) -> str:
    answers = [one for one in mine if one.text.rstrip().endswith(f"#{said.number}")]
    if told.ending != "ended":
        return f"it is told as {told.ending}"
    if told.exit == "answered":
        if not answers:
            return "it is told as answered, and there is no answer"
        right = any(f"as message {one.id} " in text for one in answers)
        return "" if right and "The turn was answered." in text else "its answer's message is not named"
    if "The turn ended without an answer" not in text:
        return "it does not say that there is no answer"
    notices = [one for one in mine if NOTICE in one.text]
    right = any(f"as message {one.id} " in text for one in notices)
    return "" if right else "the notice that ended it is not named"


def unexplained_words(chat: Sequence[Seen], stories: Sequence[str]) -> list[str]:
    """The bot's messages about a refusal that no story names. Pure."""
    shown = [one for one in chat if one.mine and REFUSED_WORDS in one.text]
    return [one.id for one in shown[:1] if not any("as message" in text for text in stories)]


async def judged(folder: Path, platform: str, chats: Sequence[tuple[Sequence[Said], Sequence[Seen]]]) -> list[str]:
    """All that is wrong with the stories of a run."""
    wrong: list[str] = []
    async with opened(folder) as (reads, stored):
        explainer = Explainer(reads, SystemClock().now_ms)
        for said, seen in chats:
            stories: list[str] = []
            for one in said:
                try:
                    found = await story_of(explainer, platform, one)
                except CannotExplain as error:
                    wrong.append(f"{one.key}: {error}")
                    continue
                stories.append(found.text(UTC))
                why = complaint(one, found, seen, stored=one.key in stored)
                if why:
                    wrong.append(f"{one.key}: {why}\n{found.text(UTC)}")
            if said and said[0].fate is Fate.REFUSED:
                wrong += [f"{number}: no story names it" for number in unexplained_words(seen, stories)]
    return wrong
