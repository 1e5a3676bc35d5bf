"""An end can always be stored, and a conversation can always go on, whatever the storage does not take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_core.failures.exits import ExitCode
from agent_core.store.errors import Rejected
from agent_core.store.turns.access import Turns
from agent_core.tools.base import EffectClass
from tests.gateway.rig import CountingTool, call_chunk, chunk, gateway


def picky(monkeypatch: pytest.MonkeyPatch, error: Exception, *, methods: Sequence[str], refuses: Any) -> None:
    """A store that fails at an operation if `refuses` says so of its arguments."""
    for name in methods:
        real = getattr(Turns, name)

        async def method(self: Turns, *arguments: Any, _real: Any = real, **named: Any) -> Any:
            if refuses((*arguments, *named.values())):
                raise error
            return await _real(self, *arguments, **named)

        monkeypatch.setattr(Turns, name, method)


def holds(words: str) -> Any:
    def look(value: Any) -> bool:
        if isinstance(value, bytes):
            return words.encode() in value
        if isinstance(value, str):
            return words in value
        if isinstance(value, list | tuple):
            return any(look(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
        return is_dataclass(value) and any(look(getattr(value, each.name)) for each in fields(value))

    return look


async def says(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
    words = str(messages[-1]["content"])
    if "tool" in words:
        await response.write(call_chunk("POISON", "{}") + b"data: [DONE]\n\n")
    else:
        await response.write(
            chunk({"content": "POISON." if "badly" in words else "All is well."}, "stop") + b"data: [DONE]\n\n"
        )


@pytest.mark.parametrize(
    "error", [Rejected("a value that the database does not hold"), MemoryError("no room to pack it")]
)
@pytest.mark.parametrize("words", ["Say it badly", "Use a tool"])
@pytest.mark.parametrize("methods", [("append",), ("close",), ("append", "close", "intend")])
async def test_what_the_storage_does_not_take_ends_visibly_and_the_next_message_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, methods: tuple[str, ...], error: Exception
) -> None:
    picky(monkeypatch, error, methods=methods, refuses=holds("POISON"))
    look = CountingTool("look", EffectClass.PURE, tmp_path / "ran")
    async with gateway(tmp_path, says, tools=[look]) as rig:
        ended = await rig.say(words)
        assert ended.view.text or ended.exit.code is ExitCode.ANSWERED
        assert (await rig.say("And now?")).exit.code is ExitCode.ANSWERED
    async with gateway(tmp_path, says, tools=[look]) as rig:
        assert rig.recovered == 0, "no turn was left open"
        assert (await rig.say("Still there?")).exit.code is ExitCode.ANSWERED
