"""Carries out one step after the other in one chat: what is decided by `adapters.delivery.reconcile` is done here, and stored before and after."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import assert_never

import structlog

from adapters.contract.chat import Ability, CallFailed, Cause, ChatAddress, ContentKind, Fate, Flow
from adapters.delivery.aftermath import behind, failed
from adapters.delivery.reconcile import (
    Create,
    Delete,
    Edit,
    FinishGrowing,
    GrowBy,
    Part,
    finished,
    removed,
    sent_by,
    settled,
    ungrown,
)
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.signals import PartSent, SendFailed, Tell
from agent_core.store.deliveries.rows import INSTEAD, DeliveryState
from gateway.delivery.accounts import Accounts, Gates
from gateway.delivery.calls import CALL_SECONDS, UPLOAD_SECONDS, ChatCalls
from gateway.delivery.cosmetics import Cosmetics
from gateway.delivery.forming import Forming
from gateway.delivery.ledger import Ledger, Records
from gateway.delivery.troubles import BLOCKED_CAUSES, SurfaceTroubles
from gateway.delivery.turnoutlet import FirstSigns, TurnOutlet

log = structlog.get_logger("delivery")

Moved = Callable[[ChatAddress, str], Awaitable[None]]
"""A chat (the address) has another id from now on."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all surfaces of an outbox have in common."""

    accounts: Accounts
    gates: Gates
    records: Records
    troubles: SurfaceTroubles
    forming: Forming
    moved: Moved
    say_damaged: Callable[[ChatAddress], object]
    """Say in a chat that what it should show cannot be stored."""
    tell: Tell
    clock: Clock
    chance: random.Random


class Sender:
    """That of one surface. Nothing else makes calls that count."""

    def __init__(
        self,
        calls: ChatCalls,
        ledger: Ledger,
        cosmetics: Cosmetics,
        signs: FirstSigns,
        outlets: Sequence[TurnOutlet],
        shared: Shared,
    ) -> None:
        self._calls = calls
        self._port = calls.port
        self._ledger = ledger
        self._cosmetics = cosmetics
        self._signs = signs
        self._outlets = outlets
        self._shared = shared
        self._clock = shared.clock

    async def do(self, step: Create | Edit | GrowBy | FinishGrowing | Delete) -> None:
        """Carry a step out; what becomes of its part is stored, whatever comes of the call."""
        try:
            match step:
                case Create():
                    await self._create(step)
                case Edit():
                    await self._edit(step)
                case GrowBy():
                    await self._append(step)
                case FinishGrowing():
                    await self._finish(step)
                case Delete():
                    await self._delete(step)
                case _:
                    assert_never(step)
        except CallFailed as error:
            await self._failed(step.part, error, creating=isinstance(step, Create))

    async def _create(self, step: Create) -> None:
        part, calls, ledger = step.part, self._calls, self._ledger
        # Where a thread is the place to grow in, there is none without it.
        first = step.first if not calls.traits.replies or calls.content(part).reply_to else None
        status = part.content.kind is ContentKind.STATUS
        if part.row.state is DeliveryState.UNKNOWN and status and self._port.ability is Ability.NONE:
            await ledger.keep(replace(part, row=replace(part.row, state=DeliveryState.SKIPPED, gone=True)))
            return
        if part.row.final and not status:
            self._cosmetics.draft = None
        now = self._clock.now_ms()
        before, part = part, await ledger.keep_begun(part, repeated=step.repeated)
        if not self._shared.records.may_send():
            ledger.not_begun(before)
            return
        sent = sent_by(step, self._port.ability, calls.traits)
        try:
            if step.repeated and self._port.ability is Ability.NONE:
                await self._itself()
            found = await self._find(part, now) if step.look_up else None
            if found is None and part.row.gone:
                await ledger.keep(removed(ledger.current(part), self._clock.now_ms()))
                return
            seconds = UPLOAD_SECONDS if part.content.kind is ContentKind.FILE else CALL_SECONDS
            platform_id = found or await calls.count(self._made(part, first), seconds)
        except CallFailed as error:
            of_the_chat = error.fate is not Fate.REFUSED or error.cause in (Cause.NO_THREAD, Cause.NOT_LET_IN)
            if first is None or of_the_chat:
                raise
            # Whether the stream or the chat is refused is told by the ordinary call.
            log.info("surface.no_streams", chat=ledger.surface, words=error.words)
            calls.traits = replace(calls.traits, streams=False)
            await ledger.keep(ungrown(ledger.current(part)))
            return
        self._delivered()
        self._signs.part_shown(part.row.origin, self._outlets)
        if first is not None:
            self._cosmetics.previewed()
        self._cosmetics.status_shown(part)
        there = first if found is None else None
        await self._keep_sent(
            settled(ledger.current(part), platform_id, sent, self._port.ability, self._clock.now_ms(), there)
        )
        if step.repeated:
            log.info(
                "delivery.settled", chat=ledger.surface, origin=part.row.origin, part=part.row.key, found=found is not None
            )  # fmt: skip

    async def _itself(self) -> None:
        """What may be there already, and nobody can tell, is sent once more alone: not to a proxy that answers in the platform's place. Raises
        `CallFailed`, and then it has not been sent."""
        try:
            await self._calls.ask(self._port.itself())
        except CallFailed as error:
            if error.fate is not Fate.UNKNOWN:
                raise
            shielded = error.cause in (Cause.SHIELDED, Cause.UNREADABLE)
            raise CallFailed(Fate.NOT_SENT, error.words, cause=Cause.SHIELDED if shielded else error.cause) from error

    async def _find(self, part: Part, now: int) -> str | None:
        """The id of a part that may be there already, if it is; what is another part's, which says the same, is none."""
        since = min(part.row.sending_at or now, now) - 60_000
        sought = self._calls.content(replace(part, content=part.tried or part.content))
        found = await self._calls.ask(self._port.find(self._calls.target(part), sought, part.row.key, since))
        others = (one for one in self._ledger.parts.values() if one.stands and one.name != part.name)
        return None if any(one.row.platform_id == found for one in others) else found

    def _made(self, part: Part, first: Flow | None) -> Awaitable[str]:
        """The call that creates a part."""
        target, content = self._calls.target(part), self._calls.content(part)
        if first is None:
            return self._port.create(target, content, part.row.key)
        person = next((outlet.person for outlet in self._outlets if outlet.turn == part.row.origin), "")
        return self._port.start(target, content, first, person)

    async def _append(self, step: GrowBy) -> None:
        """A state on the way: it is not stored."""
        part, platform_id = step.part, _id(step.part)
        assert part.there is not None
        now = self._clock.now_ms()
        self._cosmetics.previewed()
        if step.more:
            await self._calls.count(self._port.append(self._calls.target(part), platform_id, step.more))
            self._delivered()
        self._ledger.parts[part.name] = settled(
            self._ledger.current(part), platform_id, part.content, self._port.ability, now, part.there + step.more
        )

    async def _finish(self, step: FinishGrowing) -> None:
        part, calls = step.part, self._calls
        await calls.count(
            self._port.finish(calls.target(part), _id(part), calls.content(part), step.more, part.row.key)
        )
        self._delivered()
        sent = part.content if step.more is not None else None
        current = self._ledger.current(part)
        await self._keep_sent(finished(current, sent, self._port.ability, self._clock.now_ms()))

    async def _edit(self, step: Edit) -> None:
        part, platform_id = step.part, _id(step.part)
        if not part.row.final:
            self._cosmetics.previewed()
        await self._calls.count(self._port.edit(self._calls.target(part), platform_id, self._calls.content(part)))
        self._delivered()
        self._cosmetics.status_shown(part)
        current = self._ledger.current(part)
        done = settled(current, platform_id, part.content, self._port.ability, self._clock.now_ms())
        if part.row.final:
            await self._keep_sent(done)
        else:  # a state on the way need not be stored: after a restart the turn shows it anew
            self._ledger.parts[done.name] = done

    async def _delete(self, step: Delete) -> None:
        part = step.part
        if part.row.platform_id is not None and not step.leave:  # else it is not there, or nobody can know which it is
            try:
                await self._calls.count(self._port.delete(self._calls.target(part), part.row.platform_id))
            except CallFailed as error:
                if error.fate is not Fate.REFUSED or error.cause not in (Cause.NO_MESSAGE, Cause.UNEDITABLE):
                    raise
        # What is wanted may be another thing since the call began.
        await self._ledger.keep(removed(self._ledger.current(part), self._clock.now_ms()))

    def _delivered(self) -> None:
        self._shared.accounts.delivered(self._calls.address)
        self._shared.troubles.over(self._ledger.surface)

    async def _keep_sent(self, part: Part) -> None:
        await self._ledger.keep(part)
        self.receipt(part)
        if (owner := self._ledger.owners.get(part.row.origin)) is not None:  # the chat may have another id by now
            await self._shared.troubles.back(self._ledger, owner)

    def receipt(self, part: Part) -> None:
        """Say that a part was sent that will not change any more; a status, which comes and goes, has no receipt."""
        row, address = part.row, self._calls.address
        lasting = row.final and not row.gone and part.content.kind is not ContentKind.STATUS
        if row.state is DeliveryState.SENT and lasting:
            log.info(
                "delivery.sent", chat=self._ledger.surface, origin=row.origin, part=row.key, platform_id=row.platform_id
            )
            kind, now = part.content.kind.value, self._clock.now_ms()
            wanted_at = now - self._ledger.waited(part.name)
            self._shared.tell(
                PartSent(platform=address.platform, origin=row.origin, kind=kind, wanted_at=wanted_at, sent_at=now)
            )

    async def _failed(self, part: Part, error: CallFailed, *, creating: bool) -> None:
        """What is decided of a call that failed is stored, logged, and told where somebody has to know it."""
        calls, ledger, shared = self._calls, self._ledger, self._shared
        instead = await calls.instead(part.content)
        before, share = ledger.current(part), shared.chance.random()
        current, *others = failed(
            before, error, self._port.ability,
            creating=creating, now=self._clock.now_ms(), share=share, instead=instead,
        )  # fmt: skip
        if error.fate is Fate.TOO_FAST:
            await calls.too_fast(error)
        follow = behind(before, [current, *others], ledger.parts.values(), self._clock.now_ms())
        await ledger.keep(current, *others, *follow)
        given_up = current.row.state is DeliveryState.FAILED
        if given_up:
            ledger.waited(part.name)
            self._signs.given_up(part.row.origin)
        fate, cause = error.fate.value, error.cause.value
        final = given_up and current.row.final
        shared.tell(SendFailed(platform=calls.address.platform, fate=fate, cause=cause, final=final))
        if error.cause is Cause.MOVED and error.moved_to:
            await shared.moved(calls.address, error.moved_to)
        elif given_up and (current.row.final or error.cause in BLOCKED_CAUSES):
            await shared.troubles.given_up(calls.address, ledger, current, error)
        elif current.row.cause.startswith(INSTEAD):
            log.warning(
                "delivery.instead", chat=ledger.surface, origin=part.row.origin, part=part.row.key, cause=cause or None,
                how=current.row.cause.removeprefix(INSTEAD), parts=len(others),
            )  # fmt: skip
        elif not (error.fate is Fate.REFUSED and error.cause in (Cause.UNCHANGED, Cause.NO_MESSAGE)):
            log.info(
                "delivery.retried", chat=ledger.surface, origin=part.row.origin, part=part.row.key, fate=fate, cause=cause or None,
                attempt=current.row.attempt, words=error.words,
            )  # fmt: skip


def _id(part: Part) -> str:
    """The platform's id of a part whose message is there."""
    assert part.row.platform_id is not None
    return part.row.platform_id
