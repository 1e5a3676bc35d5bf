"""What a call says that fails by a mistake, a file or its time: whether it may have been done is never left open where that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.store.errors import StorageUnavailable
from agent_core.text.redaction import Redactor
from agent_core.tools.base import EffectClass, NotPossible, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.registry import DOUBT, NO_STORAGE, Runnable, ToolRegistry

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


class StorageAway:
    """Cannot store anything so often, then it can."""

    def __init__(self, effect: EffectClass, times: int) -> None:
        self.spec = ToolSpec("try", "Tries.", {"type": "object"}, effect, deadline_seconds=60.0)
        self.times = times

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        self.times -= 1
        if self.times >= 0:
            raise StorageUnavailable("too many clients already")
        return ToolOutcome(ToolStatus.OK, "Stored.")


@pytest.mark.parametrize("effect", EffectClass)
async def test_what_may_be_run_again_waits_for_the_database_and_nothing_else_is(
    effect: EffectClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.tools.registry.STORAGE_SECONDS", 0.0)
    tool = StorageAway(effect, 3)
    outcome = await ToolRegistry([tool]).run(Runnable(tool.spec, {}), CONTEXT)
    if effect is EffectClass.EFFECT:
        assert outcome == ToolOutcome(ToolStatus.FAILED, f"try {NO_STORAGE}{DOUBT}")
        assert tool.times == 2
    else:
        assert outcome.text == "Stored."


class Says:
    """Gives back this."""

    def __init__(self, text: str) -> None:
        self.spec = ToolSpec("say", "Says.", {"type": "object"}, EffectClass.PURE)
        self._text = text

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        return ToolOutcome(ToolStatus.OK, self._text)


async def said(text: str, most: int, hide: Callable[[str], str] = str) -> ToolOutcome:
    tool = Says(text)
    return await ToolRegistry([tool], result_chars=most, hide=hide).run(Runnable(tool.spec, {}), CONTEXT)


SECRET = "sk-0123456789abcdef"


@pytest.mark.parametrize("before", range(0, 140, 3))
async def test_no_piece_of_a_secret_is_shown_wherever_a_long_result_is_cut(before: int) -> None:
    hide = Redactor.of([SECRET]).hide
    outcome = await said("." * before + SECRET + "," * (140 - before), 90, hide)
    assert not [SECRET[at : at + 6] for at in range(len(SECRET) - 5) if SECRET[at : at + 6] in outcome.text]


@pytest.mark.parametrize("size", [0, 89, 90, 91, 5_000])
async def test_a_long_result_is_shown_from_both_its_ends_and_says_how_much_is_not(size: int) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(size))
    outcome = await said(text, 90)
    if size <= 90:
        assert (outcome.text, outcome.left_out_chars) == (text, 0)
        return
    head, _, tail = outcome.text.partition(f"\n[… {size - 90} characters left out …]\n")
    assert (text.startswith(head), text.endswith(tail), len(head), len(tail)) == (True, True, 60, 30)
    assert outcome.left_out_chars == size - 90
