"""A turn that breaks a law of the machine, because of a bug of ours, ends with words all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent_core.failures import exits
from agent_core.failures.exits import Exit, ExitCode
from tests.gateway.rig import chunk, gateway


async def refuse(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": "Sorry, "}) + chunk({}, "content_filter"))


def nothing(_: Exit) -> str:
    """The planted bug: an exit that says nothing."""
    return ""


async def test_an_ending_without_a_notice_is_noticed_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exits.RefusedMidway, "text", nothing)
    with capture_logs() as logs:
        async with gateway(tmp_path, refuse) as rig:
            ended = await rig.say("hello", key="K")
            assert rig.hub.laws_broken == 1
    broken = [event for event in logs if event["event"] == "invariant.broken"]
    assert len(broken) == 1
    assert "no notice says so" in str(broken[0]["laws"])
    assert ended.exit.code is ExitCode.INTERNAL_ERROR
    assert "Something went wrong inside the gateway" in ended.view.text
    assert isinstance(ended.exit, exits.InternalError)
    assert ended.exit.reference in ended.view.text
    async with gateway(tmp_path, refuse) as rig:
        again = await rig.say("hello", key="K")
    assert (again.turn, again.exit) == (ended.turn, ended.exit), "what was shown is what was stored"
