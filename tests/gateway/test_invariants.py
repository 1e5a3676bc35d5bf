"""A turn that breaks a law of the machine, because of a bug of ours, ends with words all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

import agent_core.turn.view
from agent_core.turn.exits import Exit, ExitCode
from agent_core.turn.notices import Notice, notice_for
from tests.gateway.rig import chunk, gateway


async def refuse(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": "Sorry, "}) + chunk({}, "content_filter"))


def only_of_bugs(ending: Exit) -> Notice | None:
    """The planted bug: other endings than the internal error show nothing."""
    return notice_for(ending) if ending.code is ExitCode.INTERNAL_ERROR else None


async def test_an_ending_without_a_notice_is_noticed_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agent_core.turn.view, "notice_for", only_of_bugs)
    with capture_logs() as logs:
        async with gateway(tmp_path, refuse) as rig:
            ended = await rig.say("hello", key="K")
            assert rig.hub.laws_broken == 1
    broken = [event for event in logs if event["event"] == "invariant.broken"]
    assert len(broken) == 1
    assert "no notice says so" in str(broken[0]["laws"])
    assert ended.exit.code is ExitCode.INTERNAL_ERROR
    assert "Something went wrong inside the gateway" in ended.view.text
    assert ended.exit.facts.reference in ended.view.text
    async with gateway(tmp_path, refuse) as rig:
        again = await rig.say("hello", key="K")
    assert (again.turn, again.exit) == (ended.turn, ended.exit), "what was shown is what was stored"
