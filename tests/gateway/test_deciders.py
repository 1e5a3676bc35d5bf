"""Who may decide about a call: whoever asked, or is on the list, by each name that a list may give them; nobody else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from gateway.commands.carrying import Request
from gateway.commands.deciders import answering_refused, askers_of, deciding_refused
from gateway.later.tasks import TaskLimits, work_of
from gateway.queues.queue import Running, Waiting
from gateway.sessions.consents import ADMINS, ANYONE, ASKER, NOBODY

ADA, BEN = ChatPerson("U7", "Ada", "Ada_L"), ChatPerson("8", "Ben")


def wrote(person: ChatPerson, kind: ChatKind = ChatKind.GROUP) -> FromChat:
    origin = ChatOrigin(ChatAddress("slack", "T1", "C"), kind, person)
    return FromChat(
        account="slack/T1", platform_key=person.id, session=SessionKey("slack", "T1", "C"), input=(InputMessage("do"),),
        surface="slack", memory_scope="s", chat=origin,
    )  # fmt: skip


def pressed(by: ChatPerson, kind: ChatKind = ChatKind.GROUP, *, admin: bool = False) -> Request:
    inbound = wrote(by, kind)
    return Request(cast("Any", None), "", inbound, 1, cast("Any", None), admin, inbound.session)


def asked(*people: ChatPerson) -> Running:
    waiting = tuple(Waiting(number, number, wrote(person), 0) for number, person in enumerate(people))
    return cast("Running", SimpleNamespace(messages=waiting))


@pytest.mark.parametrize("name", ["slack/u7", "slack/U7", "slack/T1/U7", "slack/@ada_l", "slack/@Ada_L"])
def test_whoever_is_on_the_list_decides_about_what_others_asked_by_each_of_their_names(name: str) -> None:
    assert deciding_refused(pressed(ADA), asked(BEN), (name,)) == ""
    assert deciding_refused(pressed(BEN), asked(BEN), (name,)) == f"Only {name} may decide that. It still waits."


@pytest.mark.parametrize("name", ["telegram/U7", "slack/Ada", "slack/T2/U7", "slack/8", "U7"])
def test_another_persons_name_is_nobody_elses(name: str) -> None:
    assert deciding_refused(pressed(ADA), asked(BEN), (name,))


@pytest.mark.parametrize("admin", [False, True])
@pytest.mark.parametrize("by", [ADA, BEN])
@pytest.mark.parametrize("list_", [(ASKER,), (ADMINS,), (ASKER, ADMINS), (ANYONE,)])
def test_in_a_group_those_decide_that_the_list_says_and_whoever_asked_answers_in_any_case(
    list_: tuple[str, ...], by: ChatPerson, *, admin: bool
) -> None:
    own = by == ADA
    may = ANYONE in list_ or (ASKER in list_ and own) or (ADMINS in list_ and admin)
    assert (deciding_refused(pressed(by, admin=admin), asked(ADA), list_) == "") is may
    assert (answering_refused(pressed(by, admin=admin), asked(ADA), list_) == "") is (may or own)


def test_whose_task_it_is_decides_about_its_calls_as_whoever_asked() -> None:
    place = wrote(ADA).chat
    limits = TaskLimits(1, 1, 60, 5, 60)
    task = work_of(wrote(ADA), "task:1", 1, "Report", "Write it.", limits, tainted=False)
    assert task.task is not None
    assert task.task.chat == replace(place, message="", attachments=(), group="", unfinished=False, foreign="")
    running = cast("Running", SimpleNamespace(messages=(Waiting(1, 1, task, 0),)))
    assert deciding_refused(pressed(ADA), running, (ASKER,)) == ""
    assert "Ada" in deciding_refused(pressed(BEN), running, (ASKER,))


@pytest.mark.parametrize("who", sorted(NOBODY))
def test_what_no_person_asked_is_decided_by_whoever_reads_the_question(who: str) -> None:
    """A schedule, a hook or whoever runs the gateway presses no button in the chat."""
    running = asked(ChatPerson(who, "scheduled"))
    assert askers_of(running.messages) == {}
    assert deciding_refused(pressed(BEN), running, (ASKER,)) == ""
    assert deciding_refused(pressed(BEN), asked(ChatPerson(who, "scheduled"), ADA), (ASKER,))
