"""What a call says that fails by a mistake, a file or its time: whether it may have been done is never left open where that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.base import EffectClass, NotPossible, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.registry import DOUBT, Runnable, ToolRegistry

CONTEXT = ToolContext("t", "c", "t:c", Path("nowhere"), "m", SystemClock(), lambda _: None)


class Fails:
    """Fails so; None: it never ends."""

    def __init__(self, effect: EffectClass, error: Exception | None) -> None:
        self.spec = ToolSpec("try", "Tries.", {"type": "object"}, effect, deadline_seconds=60.0 if error else 0.01)
        self._error = error

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("effect", EffectClass)
@pytest.mark.parametrize(
    ("error", "status"),
    [(None, ToolStatus.TIMED_OUT), (OSError(28, "no space"), ToolStatus.FAILED), (KeyError("x"), ToolStatus.FAILED)],
)
async def test_what_may_have_been_done_is_said_of_whatever_is_no_mere_look(
    effect: EffectClass, error: Exception | None, status: ToolStatus
) -> None:
    tool = Fails(effect, error)
    outcome = await ToolRegistry([tool]).run(Runnable(tool.spec, {}), CONTEXT)
    assert outcome.status is status
    assert outcome.text.endswith(DOUBT) is (effect is not EffectClass.PURE)


@pytest.mark.parametrize("effect", EffectClass)
async def test_what_a_tool_would_not_do_was_not_done(effect: EffectClass) -> None:
    tool = Fails(effect, NotPossible("Nothing was done."))
    outcome = await ToolRegistry([tool]).run(Runnable(tool.spec, {}), CONTEXT)
    assert (outcome.status, outcome.text) == (ToolStatus.FAILED, "Nothing was done.")
