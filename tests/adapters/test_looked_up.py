"""What may be there already is found by what is ours alone: whoever else says the same there is not taken for us."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.chat import GROWS, ChatAddress, Content, ContentKind
from adapters.contract.files import FileHosts, FileSource
from adapters.discord.port import DiscordPort
from adapters.slack.port import EVENT, SlackPort
from adapters.text.styled import Styled
from tests.agent_core.turns import gives

SINCE = 1_700_000_000_000
WORDS = Content(ContentKind.TEXT, Styled("hello"))
FILE = Content(ContentKind.FILE, Styled(""), file_text="words", file_name="a.png")
NAMED = Content(ContentKind.FILE, Styled(""), file_text="words", file_name="отчёт 1.png")
FILES = FileSource(FileHosts(()))
ME, OTHER = 1, 2


def by(author: int, said: str = "hello", number: int = 7, *, file: str = "", size: int = 5) -> Any:
    """A message on Discord."""
    files = [SimpleNamespace(filename=file, size=size)] if file else []
    return SimpleNamespace(id=number, content=said, author=SimpleNamespace(id=author), attachments=files)


async def on_discord(content: Content, said: Sequence[Any], me: int | None = ME) -> str | None:
    async def history(*, after: datetime, oldest_first: bool, limit: int) -> AsyncGenerator[Any]:
        assert (after, oldest_first, limit > 1) == (datetime.fromtimestamp(SINCE / 1000, UTC), True, True)
        for one in said:
            yield one

    client: Any = SimpleNamespace(
        http=SimpleNamespace(token="known"),
        user=None if me is None else SimpleNamespace(id=me),
        get_partial_messageable=gives(SimpleNamespace(history=history)),
    )
    port = DiscordPort(FILES)
    port.client = client
    return await port.find(ChatAddress("discord", "1", "9"), content, "key", SINCE)


@pytest.mark.parametrize(
    ("content", "said", "found"),
    [
        (WORDS, [by(OTHER)], None),
        (WORDS, [by(OTHER), by(ME, number=8)], "8"),
        (WORDS, [by(ME, "hello you")], None),
        (WORDS, [by(ME, "hello\n", number=8), by(ME, number=9)], "9"),
        (FILE, [by(ME, "")], None),
        (FILE, [by(OTHER, "", file="a.png"), by(ME, "", 8, file="a.png")], "8"),
        (FILE, [by(ME, "", 8, file="b.png")], None),
        (FILE, [by(ME, "", 8, file="a.png", size=6)], None),
        (NAMED, [by(ME, "", 8, file="1.png"), by(ME, "", 9, file="1.png", size=6)], "8"),
        (replace(FILE, file_name="_a.png"), [by(ME, "", 8, file="a.png")], "8"),
    ],
)
async def test_on_discord_by_author_and_words_or_file_and_the_last_that_is_so(
    content: Content, said: Sequence[Any], found: str | None
) -> None:
    assert await on_discord(content, said) == found


async def test_on_discord_who_does_not_know_who_it_is_finds_nothing() -> None:
    assert await on_discord(WORDS, [by(ME), by(OTHER)], me=None) is None


def bears(key: str, kind: str = EVENT, ts: str = "7.000000") -> dict[str, Any]:
    """A message on Slack with a key."""
    return {"ts": ts, "text": "hello", "bot_id": "B1", "metadata": {"event_type": kind, "event_payload": {"key": key}}}


PLAIN: dict[str, Any] = {"ts": "6.000000", "text": "hello", "bot_id": "B2"}
STREAM = PLAIN | {"text": "hel", "streaming_state": "in_progress"}


async def on_slack(said: Sequence[dict[str, Any]], thread: str = "", content: Content = WORDS) -> str | None:
    async def asked(**given: Any) -> Any:
        assert (given["oldest"], given["include_all_metadata"], given.get("ts", "")) == (
            f"{SINCE / 1000:.6f}", True, thread,
        )  # fmt: skip
        return SimpleNamespace(get=None, data={"messages": [*said]})

    client: Any = SimpleNamespace(conversations_history=asked, conversations_replies=asked)
    port = SlackPort(client, FILES)
    port.me = "UBOT"
    return await port.find(ChatAddress("slack", "T", "C1", thread), content, "key", SINCE)


@pytest.mark.parametrize(
    ("said", "thread", "found"),
    [
        ([PLAIN, bears("another")], "", None),
        ([PLAIN, bears("key", "somebody_elses")], "", None),
        ([PLAIN, bears("key")], "", "7.000000"),
        ([STREAM], "", None),
        ([STREAM], "5.000000", f"{GROWS}6.000000"),
        ([STREAM, bears("key")], "5.000000", "7.000000"),
        ([{**STREAM, "bot_id": ""}], "5.000000", None),
        ([{**STREAM, "text": "hi"}], "5.000000", None),
        ([{**STREAM, "streaming_state": "completed"}], "5.000000", None),
        ([{**bears("another"), "streaming_state": "in_progress"}], "5.000000", None),
    ],
)
async def test_on_slack_by_key_and_a_stream_that_bears_none_yet_by_its_beginning(
    said: Sequence[dict[str, Any]], thread: str, found: str | None
) -> None:
    assert await on_slack(said, thread) == found


def shares(number: str, name: str = "a.png", user: str = "UBOT", ts: str = "7.000000") -> dict[str, Any]:
    """A message on Slack with a file, which bears no key."""
    return {"ts": ts, "text": "", "user": user, "files": [{"id": number, "name": name}]}


@pytest.mark.parametrize("thread", ["", "5.000000"])
@pytest.mark.parametrize(
    ("said", "found"),
    [
        ([shares("F1")], "file:F1"),
        ([shares("F1", "b.png")], None),
        ([shares("F1", user="U1")], None),
        ([shares("F1"), shares("F2", ts="8.000000")], "file:F2"),
        ([shares("F2", ts="8.000000"), shares("F1")], "file:F2"),
        ([PLAIN, bears("another")], None),
    ],
)
async def test_on_slack_a_file_is_found_by_its_name(
    said: Sequence[dict[str, Any]], thread: str, found: str | None
) -> None:
    """It bears no key: sent again because its answer was lost, people would have it twice."""
    assert await on_slack(said, thread, FILE) == found
