"""What was refused for good: who is told of it, how often, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from structlog.testing import capture_logs

from adapters.contract.chat import CallFailed, Cause, ChatAddress, Content, ContentKind, Fate
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import Part
from adapters.text.styled import Styled
from agent_core.store.errors import StorageUnavailable
from gateway.delivery.ledger import Ledger
from gateway.delivery.troubles import BLOCKED_CAUSES, MOST, SurfaceTroubles
from tests.gateway.test_sender import CHAT, ME, Paper
from tests.store.support import FakeClock


class Chat:
    """One chat, and what is told in it and in private."""

    def __init__(self) -> None:
        self.private: list[Cause] = []
        self.paper, clock = Paper([]), FakeClock()
        self.ledger = Ledger("telegram/1/2", self.paper, clock, lambda: None)
        self.troubles = SurfaceTroubles(clock, self._privately)

    async def _privately(self, address: ChatAddress, part: Part, error: CallFailed) -> None:
        assert (address, part.row.surface) == (CHAT, self.ledger.surface)
        self.private.append(error.cause)

    def part(self, name: str = "b", kind: ContentKind = ContentKind.TEXT, origin: str = "t1") -> Part:
        self.ledger.propose(origin, ME, [WantedPart(name, 0, Content(kind, Styled("words")), final=True)])
        self.ledger.release(origin)
        return self.ledger.parts[origin, name, 0]

    async def refuses(self, part: Part, cause: Cause) -> None:
        await self.troubles.given_up(CHAT, self.ledger, part, CallFailed(Fate.REFUSED, "not so", cause=cause))

    @property
    def notices(self) -> list[str]:
        """What is said in the chat itself about what could not be."""
        return [origin for origin, _, _ in self.ledger.parts if "!failed" in origin]


@pytest.mark.parametrize("cause", BLOCKED_CAUSES)
async def test_a_chat_that_takes_nothing_is_told_of_in_private_once_until_it_takes_something(cause: Cause) -> None:
    chat = Chat()
    for number in range(3):
        await chat.refuses(chat.part(origin=f"t{number}"), cause)
    assert (chat.private, chat.notices) == ([cause], [])
    assert list(chat.troubles.known) == [chat.ledger.surface]
    chat.troubles.over(chat.ledger.surface)
    assert not chat.troubles.known
    await chat.troubles.back(chat.ledger, ME)
    assert len(chat.notices) == 1, "the first that was refused is missed there"
    await chat.troubles.back(chat.ledger, ME)
    assert len(chat.notices) == 1, "and once"
    await chat.refuses(chat.part(origin="t4"), cause)
    assert chat.private == [cause, cause]


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause not in BLOCKED_CAUSES])
async def test_what_a_chat_does_not_take_is_said_there_and_in_private_where_not_even_that_is_taken(
    cause: Cause,
) -> None:
    chat = Chat()
    await chat.refuses(chat.part(), cause)
    assert (chat.private, len(chat.notices)) == ([], 1)
    (said,) = (part for part in chat.ledger.parts.values() if part.row.origin in chat.notices)
    assert chat.paper.rows[said.row.origin] == said.row, "it is stored"
    await chat.refuses(said, cause)
    assert (chat.private, len(chat.notices)) == ([cause], 1)


async def test_that_a_notice_found_no_way_either_is_told_in_private_each_time() -> None:
    chat = Chat()
    await chat.refuses(chat.part(), Cause.BLOCKED)
    await chat.refuses(chat.part("failed.b.0", ContentKind.ASIDE, "t1!failed.b.0"), Cause.BLOCKED)
    assert chat.private == [Cause.BLOCKED, Cause.BLOCKED]


async def test_what_was_refused_for_good_is_logged_once_as_it_is_at_the_end() -> None:
    """What was refused on its way is tried once more then."""
    chat = Chat()
    part = chat.part()
    with capture_logs() as logs:
        for final in (False, True):
            await chat.refuses(replace(part, row=replace(part.row, final=final)), Cause.BLOCKED)
    assert [one["event"] for one in logs] == ["delivery.failed"]
    assert chat.private == [Cause.BLOCKED], "who asked is told at once"


async def test_a_chat_that_takes_no_files_may_take_words() -> None:
    chat = Chat()
    await chat.refuses(chat.part(kind=ContentKind.FILE), Cause.NO_RIGHTS)
    assert (chat.private, len(chat.notices)) == ([], 1)


async def test_of_chats_with_trouble_so_many_are_known_the_latest() -> None:
    troubles = SurfaceTroubles(FakeClock(), cast("object", None))  # pyright: ignore[reportArgumentType]
    for number in range(MOST + 3):
        troubles.note(f"s{number}", Cause.BLOCKED, "words")
    assert list(troubles.known) == [f"s{number}" for number in range(3, MOST + 3)]


@pytest.mark.parametrize("later", [False, True])
async def test_what_is_missed_is_said_also_where_the_storage_was_away_when_it_was_to_be_noted(*, later: bool) -> None:
    chat = Chat()
    if later:  # the chat takes nothing first, and then something
        await chat.refuses(chat.part(), Cause.BLOCKED)
    chat.paper.away = True
    with pytest.raises(StorageUnavailable):
        await (chat.troubles.back(chat.ledger, ME) if later else chat.refuses(chat.part(), Cause.OTHER))
    assert [part.row.origin for part in chat.ledger.ready() if "!failed" in part.row.origin] == chat.notices != []


@pytest.mark.parametrize("who", ["the same, owned anew", "another of the chat", "another, and the first is not ours"])
async def test_what_is_missed_is_said_by_whoever_has_its_conversation_by_then(who: str) -> None:
    """Under an ownership that is over, all of the chat would be taken for somebody else's, and what runs there be said twice."""
    chat = Chat()
    await chat.refuses(chat.part(), Cause.BLOCKED)
    anew, other = replace(ME, epoch=ME.epoch + 1), replace(ME, session="s_other")
    if who == "another, and the first is not ours":
        chat.ledger.owners.clear()
    await chat.troubles.back(chat.ledger, anew if who == "the same, owned anew" else other)
    owners = [chat.ledger.owners[origin] for origin in chat.notices]
    assert owners == {"the same, owned anew": [anew], "another of the chat": [ME]}.get(who, [])
    await chat.troubles.back(chat.ledger, anew)
    assert len(chat.notices) == 1, "and once"
