"""What commands tell of a conversation is what is so: what runs, which model answers, what was used today and in all, and who may see which command."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.store.turns.rows import Usage
from agent_core.turn.view import BubbleKind
from gateway.commands import telling
from gateway.commands.carrying import Request
from gateway.commands.registry import BY_NAME, doing_words, help_words, usage_words
from gateway.commands.telling import TellingCommands
from gateway.delivery.owners import Owner
from gateway.limits.agents import Agent
from gateway.limits.standing import Standings, TurnStanding
from gateway.queues.prefs import Prefs
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
SAID = FromChat(
    account="telegram/1", platform_key="m1", session=KEY, input=(), surface="telegram", memory_scope="telegram/1/2//",
    chat=ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("2", "Ann", zone="Asia/Tokyo"), "m1"),
)  # fmt: skip


class Chat:
    """A conversation of which something is told."""

    def __init__(self, prefs: Prefs, *, running: bool = False) -> None:
        self.clock = FakeClock()
        self.since: list[int] = []
        self.standings: list[TurnStanding] = []
        self.asked: list[tuple[object, ...]] = []
        driver = SimpleNamespace(
            seen=SimpleNamespace(current_view=gives(SimpleNamespace(bubbles=()))), opened_at=self.clock.now - 65_000, identity=SimpleNamespace(turn="t_9"),
        )  # fmt: skip
        turn = SimpleNamespace(driver=driver, same_chat=gives(True)) if running else None
        queue = SimpleNamespace(running=turn, waiting=())

        async def session(_: object) -> Any:
            return SimpleNamespace(policy=prefs.encode())

        async def usage(_: object, since: int = 0) -> Usage:
            self.since.append(since)
            return Usage(1 if since else 5, 10 if since else 50, 2)

        async def budgets(_: object, standing: TurnStanding) -> tuple[str, ...]:
            self.standings.append(standing)
            return ("budgets",)

        async def latest(*_: object) -> list[Any]:
            return [SimpleNamespace(turn="t_8")]

        async def entries(*_: object) -> list[Any]:
            return []

        store = SimpleNamespace(
            sessions=SimpleNamespace(one=session),
            turns=SimpleNamespace(usage=usage, latest=latest),
            memory=SimpleNamespace(entries=entries),
        )
        outbox = SimpleNamespace(troubles=SimpleNamespace(known={}), surfaces=SimpleNamespace(unsent_of=gives(0)))
        self.commands = TellingCommands(
            cast("Any", SimpleNamespace(known=gives(queue))), cast("Any", SimpleNamespace(default="gpt")), cast("Any", None),
            cast("Any", outbox), cast("Any", SimpleNamespace(usage=budgets)), None, cast("Any", store), self.clock,
            rehearsal=False, standings=Standings({"coder": Agent("coder")}), zone="UTC",
        )  # fmt: skip

    async def do(self, name: str) -> str:
        request = Request(BY_NAME[name], "", SAID, 7, Owner("s1", 3), admin=False, own=KEY)
        return (await self.commands.handlers()[name](request)).words


@pytest.mark.parametrize(("chosen", "model"), [("", "gpt"), ("mini", "mini")])
async def test_status_names_what_runs_and_the_model_that_was_chosen(chosen: str, model: str) -> None:
    assert f"Model: {model}" in await Chat(Prefs(model=chosen)).do("status")
    words = await Chat(Prefs(), running=True).do("status")
    assert words.startswith("Working for 65 s.")
    assert (await Chat(Prefs()).do("status")).startswith("Nothing is running here.")


async def test_usage_is_that_of_today_and_in_all_under_the_agent_that_answers_here() -> None:
    chat = Chat(Prefs(agent="coder"))
    words = await chat.do("usage")
    today = datetime.fromtimestamp(chat.clock.now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert chat.since == [0, round(today.timestamp() * 1000)]
    assert [one.name for one in chat.standings] == ["coder"]
    assert words.splitlines()[0].startswith("This conversation today: 1 answer, 10 tokens in")
    assert words.splitlines()[1].startswith("In all: 5 answers, 50 tokens in")
    assert usage_words(Usage(5, 50, 2), Usage(1, 10, 2)) == "\n".join(words.splitlines()[:2])


@pytest.mark.parametrize(("running", "turn"), [(True, "t_9"), (False, "t_8")])
async def test_why_is_asked_of_what_runs_or_was_last_by_the_clocks_of_whoever_asks(
    monkeypatch: pytest.MonkeyPatch, turn: str, *, running: bool
) -> None:
    asked: list[tuple[str, str]] = []

    async def why(_store: object, name: str, _now: object, zone: Any) -> tuple[str, ...]:
        asked.append((name, str(zone)))
        return ("It went so.",)

    monkeypatch.setattr(telling, "why", why)
    assert await Chat(Prefs(), running=running).do("why") == "It went so."
    assert asked == [(turn, "Asia/Tokyo")]


@pytest.mark.parametrize("admin", [True, False])
def test_only_admins_are_told_of_admins_commands(*, admin: bool) -> None:
    assert ("access" in help_words(admin=admin, rehearsal="")) is admin


@pytest.mark.parametrize(
    ("kind", "final", "said"),
    [
        (BubbleKind.QUESTION, False, "It waits for your answer"),
        (BubbleKind.QUESTION, True, "The model is at work"),
        (BubbleKind.APPROVAL, False, "It waits for your decision"),
        (BubbleKind.ACTIVITY, False, "Running"),
    ],
)
def test_what_a_turn_does_is_what_it_waits_for(kind: BubbleKind, said: str, *, final: bool) -> None:
    bubble = SimpleNamespace(kind=kind, final=final, text="make test", left="9 min left", state="running", seconds=4)
    assert doing_words(cast("Any", SimpleNamespace(bubbles=(bubble,)))).startswith(said)
