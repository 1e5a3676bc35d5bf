"""A command is carried out once, whoever finds it: done twice, a stop would end the next turn, and a press would be pressed again."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from agent_core.store.inbox.rows import InboxRow, InboxState
from gateway.chats.commandintake import CommandIntake
from gateway.delivery.owners import Owner
from gateway.people.access import PersonStanding
from gateway.people.routing import GroupRules
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE
from gateway.sharing.inhand import InHand
from tests.agent_core.turns import gives

NUMBER = 7
ON_THE_PAGE = FromApi(
    account="web", platform_key="c1", session=SessionKey("web", "page", "1"), input=(InputMessage("/stop"),),
    surface="web", memory_scope="",
)  # fmt: skip
IN_A_CHAT = FromChat(
    account="telegram/1", platform_key="c1", session=SessionKey("telegram", "1", "2"), input=(InputMessage("/stop"),),
    surface="telegram", memory_scope="telegram/1",
    chat=ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("7", "Ada")),
)  # fmt: skip


class Carrying:
    """Commands that are begun stay in hand until they are `over`."""

    def __init__(self) -> None:
        self.in_hand = InHand[int, str]()
        self.begun: list[int] = []
        self.admin = False

    def begin(self, request: Any) -> None:
        self.begun.append(request.inbox_id)
        self.admin = request.admin
        self.in_hand.take(request.inbox_id, request.key)

    def over(self) -> None:
        self.in_hand.leave(NUMBER)


def _nothing(_: Carrying) -> None: ...


class Found:
    """An intake that reads one command, beside which something happens."""

    def __init__(
        self,
        meanwhile: Callable[[Carrying], None] = _nothing,
        *,
        coming: bool = False,
        said: Inbound = ON_THE_PAGE,
        standing: PersonStanding = PersonStanding.STRANGER,
    ) -> None:
        row = InboxRow(
            id=NUMBER, account="web", platform_key="c1", session="s1", arrival=NUMBER, lane=COMMAND_LANE,
            body=inbox.encode(said), state=InboxState.NEW, reason=None, received_at=1,
        )  # fmt: skip

        async def one(_: int) -> InboxRow:
            meanwhile(self.carrying)
            return row

        def on_its_way(_account: str, _key: str) -> bool:
            return coming

        self.carrying = Carrying()
        store = SimpleNamespace(inbox=SimpleNamespace(one=one))
        accepting = SimpleNamespace(store=store, coming=on_its_way)
        members = SimpleNamespace(
            accounts=("telegram/1",), standing_of=gives(standing), rules_of=gives(GroupRules()),
            directory=SimpleNamespace(changing=gives(None)),
        )  # fmt: skip
        self.intake = CommandIntake(
            cast("Any", accepting), cast("Any", members), cast("Any", self.carrying), cast("Any", None)
        )

    async def carry_out(self) -> list[int]:
        assert await self.intake.carry_out(NUMBER, Owner("s1", 1)), "it is no fault of this gateway's"
        return self.carrying.begun


async def test_what_is_new_is_begun() -> None:
    assert await Found().carry_out() == [NUMBER]


async def test_what_is_in_hand_is_not_begun_again() -> None:
    """The keeper saw it before whoever collects it began it."""
    found = Found()
    await found.carry_out()
    assert await found.carry_out() == [NUMBER]


async def test_what_ends_while_it_is_read_is_not_begun_again() -> None:
    found = Found(Carrying.over)
    found.carrying.in_hand.take(NUMBER, "web/page/1//")
    assert await found.carry_out() == []


async def test_what_is_begun_and_ends_while_it_is_read_is_not_begun_again() -> None:
    def both(carrying: Carrying) -> None:
        carrying.in_hand.take(NUMBER, "web/page/1//")
        carrying.over()

    assert await Found(both).carry_out() == []


async def test_what_was_not_stored_as_done_is_begun_again() -> None:
    """The storage was away for so long that its answer was given up."""
    found = Found()
    await found.carry_out()
    found.carrying.over()
    assert await found.carry_out() == [NUMBER, NUMBER]


@pytest.mark.parametrize("coming", [True, False])
async def test_what_whoever_stored_it_is_about_to_begin_is_theirs(coming: bool) -> None:
    assert await Found(coming=coming).carry_out() == ([] if coming else [NUMBER])


@pytest.mark.parametrize("standing", PersonStanding)
@pytest.mark.parametrize("said", [ON_THE_PAGE, IN_A_CHAT], ids=["on the page", "in a chat"])
async def test_who_runs_the_gateway_is_known_in_chats_and_nobody_else_counts_as_that(
    said: Inbound, standing: PersonStanding
) -> None:
    found = Found(said=said, standing=standing)
    await found.carry_out()
    assert found.carrying.admin == (said is IN_A_CHAT and standing is PersonStanding.ADMIN)
