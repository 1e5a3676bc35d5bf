"""Words of others that one turn has read are known as such by the next ones of its conversation, and by no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.contract.chat import Attachment, AttachmentKind
from agent_core.failures.known import Known
from agent_core.journal.rows import opened_of
from agent_core.jsonvalue import Json
from agent_core.rules.taint import ATTACHED, EARLIER
from agent_core.settings import Route
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from gateway.config.types import SessionPolicy
from gateway.sessions.opening import HubSettings, opened_event
from tests.gateway.rig import QUICK, Rig, call_chunk, chunk, gateway
from tests.gateway.test_accepting import in_chat


class Reads:
    """Gives back what somebody else has written, or its own words."""

    def __init__(self, *, foreign: bool) -> None:
        self.spec = ToolSpec("read", "reads", {"type": "object"}, EffectClass.PURE, foreign=foreign)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        del arguments, context
        return ToolOutcome(ToolStatus.OK, "what stands there")


async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    del request
    asks = messages[-1]["content"] == "read it"
    await response.write(call_chunk("read", "{}") if asks else chunk({"content": "Fine."}, "stop"))


async def earlier(rig: Rig, words: str, **more: Any) -> bool:
    end = await rig.say(words, **more)
    row = (await rig.store.turns.journal(end.turn))[0]
    opened = opened_of(row.kind, row.body)
    assert opened is not None
    return EARLIER in opened.foreign


@pytest.mark.parametrize("foreign", [False, True])
async def test_the_next_turns_know_it_also_after_a_restart_and_other_conversations_do_not(
    tmp_path: Path, *, foreign: bool
) -> None:
    tools = [Reads(foreign=foreign)]
    async with gateway(tmp_path, reply, tools=tools) as rig:
        assert not await earlier(rig, "read it")
        assert await earlier(rig, "go on") is foreign
        assert not await earlier(rig, "go on", session="another")
    async with gateway(tmp_path, reply, tools=tools) as rig:
        assert await earlier(rig, "and on") is foreign


@pytest.mark.parametrize("which", [None, 0, 1, 2])
def test_words_of_others_are_known_whichever_of_several_messages_that_are_answered_together_brings_them(
    which: int | None,
) -> None:
    settings = HubSettings(QUICK, "", 1, 9, SessionPolicy.QUEUE, Path("/nowhere"), 9, False, "test")
    said = [in_chat("7", number) for number in range(3)]
    if which is not None:
        picture = Attachment(AttachmentKind.IMAGE, "ref", "a.png")
        said[which] = replace(said[which], chat=replace(said[which].chat, attachments=(picture,)))
    made = opened_event(said, settings, (Route("m", "host"),), Known(), at=1, seed=1)
    assert (ATTACHED in made.foreign) is (which is not None)
