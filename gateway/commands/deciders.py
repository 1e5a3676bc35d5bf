"""Who may decide about what a turn waits for, where several people may read the question: one rule for each button and command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.contract.base import FromApi, FromChat
from adapters.contract.chat import ChatKind
from gateway.commands.carrying import Request
from gateway.limits.whose import asker_of
from gateway.people.access import names_of
from gateway.queues.queue import Running, Waiting
from gateway.sessions.consents import ASKER, NOBODY, approvers_words, may_decide, only_words


def deciding_refused(request: Request, running: Running, approvers: Sequence[str]) -> str:
    """Why who writes may not decide about a call, in words; empty if they may."""
    origin, people = request.origin, askers_of(running.messages)
    named = [f"{origin.address.platform}/{name}" for name in names_of(origin.person)]
    private, presser = origin.kind is ChatKind.PRIVATE, (asker_of(request.inbound), *named)
    if may_decide(approvers, [*people], presser, private=private, admin=request.admin):
        return ""
    return only_words(approvers, [*people.values()])


def askers_of(messages: Sequence[Waiting]) -> Mapping[str, str]:
    """The people in whose name a turn runs that answers these messages: as ACCOUNT/PERSON, with their names. None where no person asked."""
    found: dict[str, str] = {}
    for message in messages:
        inbound = message.inbound
        task = inbound.task if isinstance(inbound, FromApi) else None
        chat = inbound.chat if isinstance(inbound, FromChat) else task.chat if task is not None else None
        if chat is not None and chat.person.id not in NOBODY:
            found[asker_of(inbound)] = chat.person.name
    return found


def operator_refused(messages: Sequence[Waiting], approvers: Sequence[str]) -> str:
    """Who may decide about a call, if whoever runs the gateway may not; empty if they may. They are everybody's admin."""
    people = askers_of(messages)
    if may_decide(approvers, [*people], (), private=False, admin=True):
        return ""
    return approvers_words(approvers, [*people.values()])


def answering_refused(request: Request, running: Running, approvers: Sequence[str]) -> str:
    """Why who writes may not answer what a tool asks, in words; empty if they may: it is put to whoever asked, and who may decide about
    the tool's calls may answer for them."""
    return deciding_refused(request, running, (ASKER, *(one for one in approvers if one != ASKER)))
