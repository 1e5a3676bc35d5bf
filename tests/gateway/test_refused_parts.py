"""A client that brings its whole conversation each time pays a model's refusal of a picture once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_core.failures.exits import ExitCode
from agent_core.failures.leftout import LeftOut, LeftOutKind, Suspect, attached
from agent_core.learning.refused import MOST, RefusedContents
from agent_core.messages import InputMessage, Message
from tests.gateway.rig import chunk, gateway


def picture(name: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{name}"}}


def history(name: str) -> tuple[Message, ...]:
    return (
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture(name)]},
        {"role": "assistant", "content": "A cat."},
    )


async def test_a_picture_that_a_model_cannot_see_is_sent_to_it_once_however_often_a_client_brings_it(tmp_path: Path):
    sent: list[bool] = []

    async def blind(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        sent.append("image_url" in str(messages))
        if sent[-1]:
            error = b'{"error": {"message": "This model does not support image input", "code": 400}}'
            await response.write(b"data: " + error + b"\n\n")
            return
        await response.write(chunk({"content": "It is a cat."}, "stop") + b"data: [DONE]\n\n")

    async with gateway(tmp_path, blind) as rig:
        for number in range(3):
            ended = await rig.say(
                "", session=f"once{number}", input=(InputMessage("And now?"),), own_history=history("AAAA")
            )
            assert ended.exit.code is ExitCode.ANSWERED
        assert sent == [True, False, False, False]
        await rig.say("", session="other", input=(InputMessage("And now?"),), own_history=history("BBBB"))
    assert sent[4:] == [True, False], "another picture may be another matter"


def test_words_are_not_remembered_and_pictures_within_bounds():
    refused = RefusedContents()
    said: list[Message] = [{"role": "user", "content": "Hello"}]
    refused.note([LeftOut("h", "m", (Suspect("", LeftOutKind.MESSAGE),))], said)
    assert refused.of(said) == ()
    for number in range(MOST + 5):
        refused.note([LeftOut("h", "m", (Suspect("", LeftOutKind.PICTURE),))], history(str(number)))
    assert refused.of(history("0")) == ()
    ((kind, key),) = attached(history(str(MOST)))
    assert refused.of(history(str(MOST))) == (LeftOut("h", "m", (Suspect(key, kind),)),)


def test_what_still_comes_up_is_remembered_longer_than_what_does_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent_core.learning.refused.MOST", 2)
    refused = RefusedContents()
    left = [LeftOut("h", "m", (Suspect("", LeftOutKind.PICTURE),))]
    for name in ("A", "B"):
        refused.note(left, history(name))
    assert refused.of(history("A"))
    refused.note(left, history("C"))
    assert [bool(refused.of(history(name))) for name in ("A", "B", "C")] == [True, False, True]
