"""What follows from a call to a platform: who is told that it was not reached or does not know us, what has a receipt, and what of unknown outcome is let be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import Ability, CallFailed, Cause, ChatAddress, Content, ContentKind, Fate, Traits
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import new_part
from adapters.text.styled import Styled
from agent_core.store.deliveries.rows import DeliveryState
from gateway.delivery.calls import ChatCalls
from gateway.delivery.forming import Forming
from tests.agent_core.turns import gives
from tests.gateway.test_sender import CHAT, ME, chat


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CallFailed(Fate.NOT_SENT, "no network"), "missed"),
        (CallFailed(Fate.UNKNOWN, "no answer"), "missed"),
        (ValueError("odd"), "missed"),
        (CallFailed(Fate.REFUSED, "who?", cause=Cause.NOT_LET_IN), "shut out"),
        (CallFailed(Fate.REFUSED, "too long", cause=Cause.TOO_LONG), ""),
        (CallFailed(Fate.TOO_FAST, "wait", retry_after=3), ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize("nobody_misses_it", [True, False])
async def test_a_call_that_was_not_answered_or_not_let_in_is_told_of(
    error: Exception | None, told: str, *, nobody_misses_it: bool
) -> None:
    done: list[str] = []

    async def too_fast(_: ChatAddress, seconds: float, *__: object) -> None:
        done.append(f"pause {seconds:g}")

    def notes(what: str) -> Callable[[object], None]:
        return lambda _: done.append(what)

    async def call() -> str:
        if error is not None:
            raise error
        return "8"

    gates = SimpleNamespace(
        missed=notes("missed"), shut_out=notes("shut out"), passed=notes("counted"), too_fast=too_fast
    )
    port = SimpleNamespace(traits=gives(Traits(drafts=False)))
    calls = ChatCalls(CHAT, cast("Any", port), cast("Any", gates), Forming())
    if nobody_misses_it:
        failed = await calls.attempt(call())
        assert (failed is None) is (error is None)
        paused = ["pause 3"] if failed is not None and failed.fate is Fate.TOO_FAST else []
        assert done == ["counted", *([told] if told else []), *paused], "a pause is kept whoever was told of it"
        return
    if error is None:
        assert await calls.count(call()) == "8"
    else:
        with pytest.raises(CallFailed):
            await calls.count(call())
    assert done == ["counted", *([told] if told else [])]
    done.clear()
    if error is None:
        assert await calls.ask(call()) == "8"
        assert done == [], "a question changes nothing, and is not counted"


@pytest.mark.parametrize("kind", [ContentKind.TEXT, ContentKind.STATUS, ContentKind.NOTICE])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("state", [DeliveryState.SENT, DeliveryState.WANTED, DeliveryState.FAILED])
async def test_there_is_a_receipt_of_what_stands_there_and_stays(
    kind: ContentKind, state: DeliveryState, *, final: bool, gone: bool
) -> None:
    async with chat() as one:
        part = new_part(WantedPart("b", 0, Content(kind, Styled("words")), final=final), "telegram/1/2/", "t1", 1)
        one.surface._sender.receipt(replace(part, row=replace(part.row, state=state, gone=gone, platform_id="8")))
        stays = final and not gone and kind is not ContentKind.STATUS and state is DeliveryState.SENT
        assert one.log == (["told"] if stays else [])


async def test_a_status_that_may_be_there_is_not_sent_again_where_nobody_can_look() -> None:
    async with chat(Ability.NONE) as one:
        ledger = one.surface.ledger
        status = WantedPart("status", 0, Content(ContentKind.STATUS, Styled("Working")), final=True)
        ledger.propose("t1", ME, [status])
        for name, part in ledger.parts.items():
            ledger.parts[name] = replace(part, row=replace(part.row, state=DeliveryState.UNKNOWN, labelled=True))
        ledger.release("t1")
        one.surface.bell.ring()
        await one.until(lambda: "t1" in one.paper.rows)
        assert (one.paper.rows["t1"].state, one.paper.rows["t1"].gone) == (DeliveryState.SKIPPED, True)
        assert "stored sending" not in one.log
