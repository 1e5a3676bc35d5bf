"""Who may decide about what a turn waits for, where several people may read the question: one rule for each button and command."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.contract.base import FromChat
from adapters.contract.chat import ChatKind
from gateway.commands.carrying import Request
from gateway.limits.whose import asker_of
from gateway.people.access import names_of
from gateway.queues.queue import Running
from gateway.sessions.consents import ASKER, NOBODY, approvers_words, may_decide, only_words


def deciding_refused(request: Request, running: Running, approvers: Sequence[str]) -> str:
    """Why who writes may not decide about a call, in words; empty if they may."""
    origin, asked = request.origin, [message.inbound for message in running.messages]
    people = [one for one in asked if isinstance(one, FromChat) and one.chat.person.id not in NOBODY]
    named = [f"{origin.address.platform}/{name}" for name in names_of(origin.person)]
    private, presser = origin.kind is ChatKind.PRIVATE, (asker_of(request.inbound), *named)
    if may_decide(approvers, [asker_of(one) for one in people], presser, private=private, admin=request.admin):
        return ""
    return only_words(approvers, [one.chat.person.name for one in people])


def operator_refused(running: Running, approvers: Sequence[str]) -> str:
    """Who may decide about a call, if whoever runs the gateway may not; empty if they may. They are everybody's admin."""
    asked = [asker_of(message.inbound) for message in running.messages]
    if may_decide(approvers, [one for one in asked if one], (), private=False, admin=True):
        return ""
    names = [one.inbound.chat.person.name for one in running.messages if isinstance(one.inbound, FromChat)]
    return approvers_words(approvers, names)


def answering_refused(request: Request, running: Running, approvers: Sequence[str]) -> str:
    """Why who writes may not answer what a tool asks, in words; empty if they may: it is put to whoever asked, and who may decide about
    the tool's calls may answer for them."""
    return deciding_refused(request, running, (ASKER, *(one for one in approvers if one != ASKER)))
