"""What carries out the commands of chats, put together when the first one is given: a gateway that only serves programs needs none of it."""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.ports import Clock
from agent_core.store.store import Store
from gateway.commands.approvals import ApprovalCommands
from gateway.commands.buttons import Buttons
from gateway.commands.carrying import CommandReply, Handler, Request
from gateway.commands.conversation import ConversationCommands
from gateway.commands.files import files_command
from gateway.commands.holding import Holding
from gateway.commands.memories import MemoryCommands
from gateway.commands.messages import Messages
from gateway.commands.people import PeopleCommands
from gateway.commands.tasks import TaskCommands
from gateway.commands.telling import TellingCommands
from gateway.commands.timed import TimedCommands
from gateway.config.sections import Config
from gateway.delivery.outbox import Outbox
from gateway.later.tasks import Tasks
from gateway.people.members import Members
from gateway.sessions.hub import Hub
from gateway.shell.background import BackgroundCommands


def handlers_of(
    config: Config,
    hub: Hub,
    members: Members,
    messages: Messages,
    outbox: Outbox,
    store: Store,
    clock: Clock,
    zone: str,
    tasks: Tasks,
    background: BackgroundCommands | None,
) -> Mapping[str, Handler]:
    """What carries out each command."""
    people = PeopleCommands(members, hub.accepting, hub.stopping, messages, outbox, store, clock)
    holding = Holding(messages, store, clock)
    conversation = ConversationCommands(
        hub.accepting,
        hub.stopping,
        hub.watching,
        hub.chain,
        messages,
        outbox,
        store,
        people.leave,
        hub.doors.standings,
        background,
    )
    telling = TellingCommands(
        hub.queues,
        hub.chain,
        members,
        outbox,
        hub.budgets,
        hub.quotas,
        store,
        clock,
        rehearsal=hub.about().rehearsal,
        standings=hub.doors.standings,
        zone=zone,
    )
    timed = TimedCommands(hub.queues, store, outbox, messages, clock, zone, config.quota.reminders)
    return {
        **people.handlers(),
        **conversation.handlers(),
        **telling.handlers(),
        **timed.handlers(),
        "hold": holding.hold,
        "control": _controlled(hub),
        "files": files_command(hub.quotas),
        "approvals": ApprovalCommands(hub.stopping.consents, hub.opener.recall).approvals,
        "tasks": TaskCommands(tasks, store, clock).tasks,
        **MemoryCommands(
            store, hub.quotas, hub.doors.standings, frozenset(config.tools.memory_writers), hub.opener.instructions
        ).handlers(),
        "press": Buttons(conversation, telling, messages, hub.stopping, store).press,
    }


def _controlled(hub: Hub) -> Handler:
    async def handled(request: Request) -> CommandReply:
        if hub.portion.asked is not None:
            await hub.portion.asked(request.inbound.session, request.inbox_id, request.words)
        return CommandReply("")

    return handled
