"""What a client sends again and again is stored once: the database grows by what is new."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from agent_core.messages import InputMessage
from tests.gateway.rig import Rig, chunk, gateway

PICTURE = 700_000


async def echo(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": f"There are {len(messages)} messages."}))
    await response.write(chunk({}, "stop"))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def talk(rig: Rig, rounds: int, picture: str) -> int:
    """A client that keeps the conversation itself and sends it whole each time. Returns the bytes of what was new in it."""
    dice = random.Random(5)
    history: list[Any] = []
    look: Any = [
        {"type": "text", "text": "What is to be seen here?"},
        {"type": "image_url", "image_url": {"url": picture}},
    ]
    for number in range(rounds):
        words: Any = look if number == 0 else f"{number} {dice.randbytes(300).hex()}"
        ended = await rig.say("", session=f"once{number}", input=(InputMessage(words),), own_history=tuple(history))
        assert f"{number * 2 + 2} messages" in ended.view.text  # the system prompt is one
        assert rig.model.requests[-1]["messages"][1]["content"] == look
        history += [{"role": "user", "content": words}, {"role": "assistant", "content": ended.view.text}]
    return len(orjson.dumps(history))


async def test_twenty_messages_with_one_picture_take_the_room_of_one_picture(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + base64.b64encode(random.Random(1).randbytes(PICTURE)).decode()
    async with gateway(tmp_path, echo) as rig:
        new = await talk(rig, 20, picture)
    assert size_of(tmp_path) < new + 200_000, "the picture, and some ten kilobytes a turn"
