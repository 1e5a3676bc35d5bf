"""That nothing can be stored is the one word that is not stored: it is said as often as it surely was not, and to no more chats at once than is good."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import CallFailed, ChatAddress, Content, ContentKind, Fate, Traits
from adapters.contract.pacing import Urgency
from adapters.text.styled import Styled
from gateway.delivery import words
from gateway.delivery.words import UNSTORED_MOST, UnstoredWords
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

SAID = Content(ContentKind.ASIDE, Styled("I cannot keep your message"))


class World:
    """Chats of one account that take words, or fail."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.fails: Exception | None = None
        self.wait = 0
        self.said: list[str] = []
        self.counted: list[str] = []
        self.unsaid: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        port = SimpleNamespace(create=self._create, traits=gives(Traits(drafts=False)))
        accounts = SimpleNamespace(knows=self._knows, of=gives(SimpleNamespace(port=port)))
        gates = SimpleNamespace(waits=self._waits, passed=self._passed)
        surfaces = SimpleNamespace(open=True, begin=self._begin)
        parts = (surfaces, accounts, gates, self.clock)
        self.words = UnstoredWords(*cast("Any", parts))

    @staticmethod
    def _knows(address: ChatAddress) -> bool:
        return address.account == "1"

    def _waits(self, _: ChatAddress) -> Mapping[Urgency, int]:
        return {Urgency.FINAL: self.wait}

    def _passed(self, address: ChatAddress) -> None:
        self.counted.append(address.chat)

    def _begin(self, work: Coroutine[Any, Any, None], _: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.ensure_future(work))
        return self.tasks[-1]

    async def _create(self, address: ChatAddress, *_: object) -> str:
        if self.fails is not None:
            raise self.fails
        self.said.append(address.chat)
        return "1"

    def say(self, chat: str, *, again: bool = True, account: str = "1") -> bool:
        address = ChatAddress("telegram", account, chat)
        return self.words.say(address, SAID, (lambda: self.unsaid.append(chat)) if again else None)

    async def over(self) -> None:
        await asyncio.gather(*self.tasks)


@pytest.mark.parametrize(
    ("error", "surely_not"),
    [
        (None, False),
        (CallFailed(Fate.NOT_SENT, "no network"), True),
        (CallFailed(Fate.TOO_FAST, "wait", retry_after=3), True),
        (CallFailed(Fate.UNKNOWN, "no answer"), False),
        (CallFailed(Fate.REFUSED, "blocked"), False),
        (ZeroDivisionError("ours"), False),
    ],
)
async def test_it_may_be_said_again_only_where_it_surely_was_not(error: Exception | None, surely_not: bool) -> None:
    world = World()
    world.fails = error
    assert world.say("2")
    await world.over()
    assert world.unsaid == (["2"] if surely_not else [])
    assert world.said == (["2"] if error is None else [])
    assert world.counted == ["2"], "it counts for the chat and its account as any call does"


async def test_not_all_are_told_at_once_and_who_never_says_it_again_is_told_all_the_same() -> None:
    world = World()
    told = [world.say(str(n)) for n in range(UNSTORED_MOST + 3)]
    assert told == [True] * UNSTORED_MOST + [False] * 3
    assert world.say("last", again=False)
    await world.over()
    assert world.say("next"), "as soon as some were told, others are"
    await world.over()
    assert len(world.said) == UNSTORED_MOST + 2


async def test_where_a_platform_wants_a_pause_only_what_is_said_once_waits_for_it() -> None:
    world = World()
    world.fails = CallFailed(Fate.TOO_FAST, "wait", retry_after=30)
    assert world.say("2")
    await world.over()
    world.fails = None
    assert not world.say("3"), "of the same account"
    world.clock.now += 29_000
    assert not world.say("3")
    world.clock.now += 1_001
    assert world.say("3")
    await world.over()
    world.wait = 40
    assert not world.say("4")
    assert not world.say("5", account="another"), "nobody is there who could say it"
    await world.over()


async def test_a_chat_that_may_not_be_written_to_is_waited_for_and_whoever_may_say_it_later_is_told_that_it_was_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(words, "UNSTORED_SECONDS", 0.05)
    world = World()
    world.wait = 100
    assert world.say("2", again=False)
    await asyncio.sleep(0.15)
    world.wait = 0
    await world.over()
    assert world.said == ["2"]
    monkeypatch.setattr(words, "CLOSED_SECONDS", 0.05)
    assert world.say("3")
    world.wait = 10_000
    await world.over()
    assert (world.said, world.unsaid) == (["2"], ["3"])
