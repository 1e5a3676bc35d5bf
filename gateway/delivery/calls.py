"""Calls to a platform: whatever comes of one is its answer, or a `CallFailed` that says what is known of it.

A library that raises while it reads an answer has made its call. So anything that no port has a name for is *unknown*: it may have
been done, and is looked up, or marked, and has a bound of tries (`adapters.delivery.aftermath`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from adapters import refusing
from adapters.contract.chat import (
    Ability,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Fate,
    Flow,
    Piece,
    Traits,
)
from adapters.contract.files import spelled_out
from adapters.delivery.aftermath import Instead
from adapters.delivery.reconcile import Part
from adapters.delivery.substitutes import instead_of, text_of_file
from adapters.text.styled import Styled
from agent_core.patience import Limit
from agent_core.text.tongue import sentence, speak, speaking
from gateway.delivery.accounts import Gates
from gateway.delivery.forming import Forming

log = structlog.get_logger("delivery")
T = TypeVar("T")

CALL_SECONDS = 50.0
"""For a call that is to be seen; the platforms' libraries have limits of their own below it."""
UPLOAD_SECONDS = 180.0
COSMETIC_SECONDS = 10.0
"""For what nobody misses: typing, drafts, what the agent does."""
LABEL = sentence("(Sent again after an interruption; you may see this twice.)")
ASTRAY = sentence("(This belongs to a topic that is closed or no longer there.)")


async def called(call: Awaitable[T], platform: str, seconds: float = CALL_SECONDS) -> T:
    """The answer to a call of a port. Raises `CallFailed`, and nothing else but a cancellation."""
    try:
        async with Limit(seconds):
            return await call
    except CallFailed:
        raise
    except TimeoutError as error:
        raise CallFailed(Fate.UNKNOWN, refusing.SLOWER.format(platform=platform, seconds=f"{seconds:g}")) from error
    except Exception as error:
        kind = type(error).__name__
        log.exception("delivery.unreadable", platform=platform, error=kind)
        words = refusing.NOT_UNDERSTOOD.format(platform=platform, what=kind)
        raise CallFailed(Fate.UNKNOWN, words, cause=Cause.UNREADABLE) from error


def as_sent(part: Part, address: ChatAddress, ability: Ability, traits: Traits) -> Content:
    """A part's content as it goes out: without form if that was refused, with a label if it may be there already. Pure."""
    content = part.content
    body = Styled(content.body.text) if part.row.plain else content.body
    buttons = () if part.row.plain else content.buttons
    feedback, tasks = ("", ()) if part.row.plain else (content.feedback, content.tasks)
    lost = part.row.cause == Cause.NO_THREAD.value
    reply_to = "" if lost or (part.row.plain and not traits.replies) else content.reply_to
    with speaking(content.language):
        if part.row.labelled and ability is Ability.NONE and content.kind is not ContentKind.STATUS:
            body = Styled(f"{speak(LABEL)}\n\n") + body
        if lost and address.thread:
            body = Styled(f"{speak(ASTRAY)}\n\n") + body
    return replace(content, body=body, buttons=buttons, reply_to=reply_to, feedback=feedback, tasks=tasks)


class ChatCalls:
    """Those of one chat, each counted by its gates."""

    def __init__(self, address: ChatAddress, port: ChatPort, gates: Gates, forming: Forming) -> None:
        self.address = address
        self.port = port
        self.forming = forming
        self.traits = port.traits(address)
        """As far as the chat has not refused any of them."""
        self._gates = gates

    async def count(self, call: Awaitable[str | None], seconds: float = CALL_SECONDS) -> str:
        """A call that counts against the limits; raises `CallFailed` and nothing else."""
        self._gates.passed(self.address)
        return await self.ask(call, seconds) or ""

    async def ask(self, call: Awaitable[str | None], seconds: float = CALL_SECONDS) -> str | None:
        """A call that changes nothing."""
        try:
            return await called(call, self.address.platform.capitalize(), seconds)
        except CallFailed as error:
            if error.fate in (Fate.NOT_SENT, Fate.UNKNOWN):
                self._gates.missed(self.address)
            elif error.cause is Cause.NOT_LET_IN:
                self._gates.shut_out(self.address)
            raise

    async def attempt(self, call: Awaitable[str | None]) -> CallFailed | None:
        """A call that nobody misses if it fails; why it did."""
        try:
            await self.count(call, COSMETIC_SECONDS)
        except CallFailed as error:
            if error.fate is Fate.TOO_FAST:
                await self.too_fast(error)
            return error
        return None

    async def too_fast(self, error: CallFailed) -> None:
        await self._gates.too_fast(self.address, error.retry_after, error.whole_bot)

    def target(self, part: Part) -> ChatAddress:
        return replace(self.address, thread="") if part.row.cause == Cause.NO_THREAD.value else self.address

    def content(self, part: Part) -> Content:
        """See `as_sent`."""
        return as_sent(part, self.address, self.port.ability, self.traits)

    def flow(self, content: Content, final: bool) -> Flow:
        return self.port.flow(content, final=final)

    async def instead(self, content: Content) -> Instead:
        """What may be shown in place of a content that was refused."""
        spelled: Sequence[Piece] = ()
        if text := text_of_file(await spelled_out(content)):
            spelled = await self.forming.growing(self.port.parts, text) or self.port.parts(
                text, growing=False, plain=True
            )
        return partial(instead_of, spelled=spelled, shorter=self.port.shorter, replies=self.traits.replies)
