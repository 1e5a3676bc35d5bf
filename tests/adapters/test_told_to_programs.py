"""What a client's program is told of a turn: each number is what it is called, and of a turn that was removed nothing that was said in it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from adapters.contract.sessions import SessionTurn
from adapters.http.api.facts import facts_of
from adapters.http.api.spoken import status_comment
from adapters.http.sessions.managed import exported_turn
from adapters.slack.inbound import read_command
from agent_core.failures.exits import ExitCode
from agent_core.turn.view import Bubble, BubbleKind, View
from tests.adapters.scripted import SUMMARY, ended, example


def test_each_number_of_the_facts_is_its_own() -> None:
    numbers = {
        one.name: place
        for place, one in enumerate(fields(SUMMARY), 1)
        if isinstance(getattr(SUMMARY, one.name), int | float)
    }
    told = facts_of(ended(example(ExitCode.ANSWERED), summary=replace(SUMMARY, **numbers)), "s")
    named = {"seconds": "seconds", "steps": "steps", "tool_calls": "tool_calls", "model_calls": "attempts"}
    assert {name: told[name] for name in named} == {name: numbers[of] for name, of in named.items()}


@pytest.mark.parametrize("removed", ["", "forgotten"])
def test_of_a_turn_that_was_removed_nothing_is_exported_that_was_said_in_it(removed: str) -> None:
    last = ended(example(ExitCode.TIME_LIMIT))
    turn = SessionTurn("t", 1, 1_000, 2_000, told=False, removed=removed, seen=last)
    told = exported_turn(turn, thinking=True)
    assert (told["exit"] is None, told["notice"] is None) == (bool(removed), bool(removed))
    assert told["removed"] == (removed or None)


@pytest.mark.parametrize("typed", ["stop all", "STOP all", "  Stop   all ", "/stop all", "!Stop all"])
def test_a_slash_command_of_slack_is_known_as_it_is_written_anywhere(typed: str) -> None:
    body = {"channel_id": "D1", "text": typed, "user_id": "U1", "user_name": "ada", "trigger_id": "1"}
    read = read_command(body, "T1")
    assert (read.command, read.text) == ("stop", "all")
    assert read_command({**body, "text": ""}, "T1").command == "help"


SHOWN = {
    "a question": (Bubble("q", BubbleKind.QUESTION, "Which one?", final=False, tool="ask"), "waiting for an answer to ask"),
    "one that is answered": (Bubble("q", BubbleKind.QUESTION, "Which one?", final=True, tool="ask"), ""),
    "an approval": (Bubble("a", BubbleKind.APPROVAL, "May it?", final=False, tool="post"), "waiting for approval of post"),
    "one that is decided": (Bubble("a", BubbleKind.DECIDED, "It may.", final=True, tool="post"), ""),
    "a tool": (Bubble("t", BubbleKind.ACTIVITY, "read", final=False, tool="read", state="running", seconds=3), "running read, 3 s"),
    "one that is back": (Bubble("t", BubbleKind.ACTIVITY, "read", final=True, tool="read", state="done", seconds=3), ""),
    "a status": (Bubble("s", BubbleKind.STATUS, "retrying", final=False), "retrying"),
    "text": (Bubble("x", BubbleKind.PARTIAL, "Well", final=False), ""),
}  # fmt: skip


@pytest.mark.parametrize("latest", SHOWN)
@pytest.mark.parametrize("before", [None, *SHOWN])
def test_a_comment_says_what_is_under_way_last_and_nothing_of_what_is_over(before: str | None, latest: str) -> None:
    bubbles = [SHOWN[name][0] for name in (before, latest) if name is not None]
    said = SHOWN[latest][1] or (SHOWN[before][1] if before is not None else "")
    assert status_comment(View(tuple(bubbles), open=True)) == said
