"""``/resume``: from whatever goes on in a chat one comes to each of one's conversations, also back to the chat's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from agent_core.store.sessions.rows import PlaceChange
from gateway.commands.carrying import Request
from gateway.commands.people import PeopleCommands
from gateway.people.linking import Conversation
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

OWN, OTHER, THIRD = (SessionKey(platform, "1", "7") for platform in ("telegram", "discord", "slack"))


@pytest.mark.parametrize("chosen", [OWN, OTHER, THIRD])
@pytest.mark.parametrize("current", [OWN, OTHER])
async def test_each_conversation_that_does_not_go_on_here_already_goes_on_here(
    current: SessionKey, chosen: SessionKey
) -> None:
    clock = FakeClock()
    origin = ChatOrigin(ChatAddress("telegram", "1", "7"), ChatKind.PRIVATE, ChatPerson("7", "Ada"))

    async def found(*_: object) -> Conversation:
        return Conversation(chosen.text(), clock.now, "Plan the trip")

    directory = SimpleNamespace(
        allowed=True, owns=gives(True), session_of=gives(current),
        chosen=found,
    )  # fmt: skip
    none: Any = None
    accepting = SimpleNamespace(queues=SimpleNamespace(known=gives(None)))
    commands = PeopleCommands(
        cast("Any", SimpleNamespace(directory=directory)), cast("Any", accepting), none, none, none, none, clock
    )
    inbound = FromChat(
        account="telegram/1", platform_key="k", session=current, input=(InputMessage("/resume 1"),), surface="telegram",
        memory_scope="s", chat=origin,
    )  # fmt: skip
    reply = await commands.handlers()["resume"](Request(none, "1", inbound, 1, none, admin=False, own=OWN))
    if chosen == current:
        assert (reply.words, reply.change.place) == ("That conversation goes on here already.", None)
    else:
        there = chosen.text() if chosen != OWN else None
        assert reply.change.place == PlaceChange(OWN.text(), there)
