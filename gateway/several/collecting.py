"""Queues what other gateways have stored for conversations that are run here.

Who accepts a message does not run it: its owner finds it in the store. Being told there is something new makes that quick; looking each second
makes it certain. What a node left that is gone, or that gave its slices away, is the keeper's to take up (`gateway.recovery.keeper`).
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from agent_core.bell import Bell
from agent_core.records import dataclass
from agent_core.store.inbox.rows import InboxState
from agent_core.store.sessions.takeups import LeftMessage
from agent_core.store.store import Conflict, Damaged, Fenced, LeaseLost, OwnedElsewhere, StorageUnavailable, Store
from gateway.chats.commandintake import CommandIntake
from gateway.commands.messages import Messages
from gateway.delivery.owners import Owner
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from gateway.sessions.accepting import Accepting
from gateway.setaside.takeup import LeftKind
from gateway.sharing.portion import Portion

log = structlog.get_logger("gateway")

LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Collecting:
    """`run` it in a task."""

    portion: Portion
    store: Store
    accepting: Accepting
    commands: CommandIntake
    messages: Messages
    keeper: Callable[[], None]
    """Has the keeper look at once."""
    bell: Bell
    above: int = 0
    """The highest number that was seen: what is in a message is read with the look that finds it first."""

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self.look()
                except (StorageUnavailable, LeaseLost) as error:
                    log.warning("slices.not_collected", error=str(error))
                except Exception:
                    log.exception("slices.failed")
                await self.bell.wait(LOOK_SECONDS)
        finally:
            self.bell.close()

    async def look(self) -> None:
        """Queue what is new."""
        if self.accepting.runner.closing or not self.portion.held:
            return
        found = await self.store.left.brought(self.portion.held, self.above)
        self.above = max((one.inbox_id for one in found), default=self.above)
        left = set[str]()
        for one in found:
            if one.owner not in (None, self.store.node):
                self.keeper()  # whoever had the conversation has it no more
            elif not self._known(one) and not await self._collected(one, sure=one.session not in left):
                left.add(one.session)

    async def _collected(self, one: LeftMessage, *, sure: bool) -> bool:
        """Whether nothing of it is left to others. `sure`: nor is anything before it."""
        try:
            async with self.portion.changing_hands:
                return self.portion.mine(one.key) and await self._collect(one, sure=sure)
        except (Conflict, Damaged, Fenced, OwnedElsewhere, inbox.UnreadableMessage) as error:
            log.warning("slices.left_to_the_keeper", inbox=one.inbox_id, error=str(error))
            self.keeper()
            return False

    def _known(self, one: LeftMessage) -> bool:
        """It is in this process's hands already."""
        if one.lane == COMMAND_LANE:
            return self.commands.carries_out(one.inbox_id) or self._taken_up(LeftKind.COMMAND, str(one.inbox_id))
        queue = self.accepting.queues.of(one.session)
        if one.lane != NORMAL_LANE or self._taken_up(LeftKind.SESSION, one.session):
            return True
        return queue is not None and (queue.blocked or queue.knows(one.inbox_id))

    def _taken_up(self, kind: LeftKind, name: str) -> bool:
        """It is the keeper's. What is ours it leaves alone for a while, because that may just be coming: from here."""
        known = self.accepting.left.known.get((kind, name))
        return known is not None and not (known.item.ours and known.taken_at is None)

    async def _collect(self, one: LeftMessage, *, sure: bool) -> bool:
        row = one.row if one.lane == NORMAL_LANE else None  # a command may be carried out and forgotten by now
        row = row or await self.store.inbox.one(one.inbox_id)
        if row is None or row.state is not InboxState.NEW or self.accepting.coming(row.account, row.platform_key):
            return True
        if one.lane == COMMAND_LANE:
            queue = await self.accepting.owned(one.key, one.session)
            await self.commands.carry_out(row.id, Owner(one.session, queue.epoch))
            return True
        inbound = inbox.decode(row.body)
        queued = await self.accepting.collect(row, inbound, one.key, lambda: sure and not self._known(one))
        if queued:
            await self.messages.announce(inbound, row.id, row.session)
        return queued
