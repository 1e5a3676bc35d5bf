"""What goes out at ``/v1/chat/completions``, byte for byte, for scripted sights: ``said/completions.txt`` has it.

``python -m tests.adapters.test_completions_said`` writes it anew: read the difference before it is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.contract.base import LeftOpen, Queued, Showing, Sight
from agent_core.failures.exits import Answered, ExitCode
from agent_core.turn.state import CallItem
from agent_core.turn.view import Bubble, BubbleKind
from tests.adapters.scripted import ended, example, said, shown, text, tool

KEPT = Path(__file__).parent / "said" / "completions.txt"
ASKED: dict[str, Any] = {"model": "some-model", "messages": [{"role": "user", "content": "hi"}]}
STREAM: dict[str, Any] = {**ASKED, "stream": True, "stream_options": {"include_usage": True}}
WORDS = {"X-Request-Id": "r-1", "X-Outspoken-Errors": "words"}
NOTE = Bubble("n1", BubbleKind.NOTE, "The provider takes no tools.", final=True)
STATUS = Bubble("status", BubbleKind.STATUS, "Waiting for the model, 20 s", final=False)
MENDED = Bubble("m1", BubbleKind.MENDED, "The provider was away for 20 s.", final=True)

Script = Sequence[Sight | float | BaseException]
PLAIN: Script = [
    Showing("t_1", shown(text("s0", "Hel"))),
    Showing("t_1", shown(text("s0", "Hello “there”"))),
    ended(Answered(), text("s0", "Hello “there”.", BubbleKind.ANSWER, final=True)),
]
LONG: Script = [
    Queued(2),
    Queued(1, line=4),
    16.0,
    Showing("t_1", shown(text("s0", "Let me look.", BubbleKind.INTERIM, final=True), tool("c1", "list_files", "running"))),
    4.0,
    Showing("t_1", shown(text("s0", "Let me look.", BubbleKind.INTERIM, final=True), tool("c1", "list_files", "running", 4))),
    4.0,
    Showing("t_1", shown(text("s0", "Let me look.", BubbleKind.INTERIM, final=True), tool("c1", "list_files", "done"), NOTE, STATUS)),
    Showing("t_1", shown(text("s0", "Let me look.", BubbleKind.INTERIM, final=True), tool("c1", "list_files", "done"), NOTE, text("s1", "There is\n[outspo"))),
    Showing("t_1", shown(text("s0", "Let me look.", BubbleKind.INTERIM, final=True), tool("c1", "list_files", "done"), NOTE, text("s1", "There is\n[outspoken] one"))),
    ended(
        Answered(), text("s0", "Let me look.", BubbleKind.INTERIM, final=True), tool("c1", "list_files", "done"), NOTE, MENDED,
        text("s1", "There is\n[outspoken] one file.", BubbleKind.ANSWER, final=True),
    ),
]  # fmt: skip
HANDED: Script = [
    Showing("t_1", shown(text("s0", "I ask."))),
    ended(
        example(ExitCode.HANDED_TO_CLIENT), text("s0", "I ask.", BubbleKind.INTERIM, final=True),
        handed=(CallItem("call_1", "look", '{"a": 1}'), CallItem("call_2", "see", "")),
    ),
]  # fmt: skip
CUT: Script = [
    Showing("t_1", shown(text("s0", "Half of"))),
    ended(example(ExitCode.BROKEN_IN_TEXT, tools_done=[]), text("s0", "Half of", final=True)),
]
ASKED_LIMIT: Script = [
    ended(example(ExitCode.CUT_BY_LENGTH, limit_was_asked=True), text("s0", "Half of", final=True)),
]
SCRIPTS: Mapping[str, tuple[Mapping[str, Any], Script]] = {
    "plain, streamed": (STREAM, PLAIN),
    "plain, whole": (ASKED, PLAIN),
    "long, streamed": (STREAM, LONG),
    "long, whole": (ASKED, LONG),
    "calls of the client's tools, streamed": (STREAM, HANDED),
    "calls of the client's tools, whole": (ASKED, HANDED),
    "cut, streamed": ({**ASKED, "stream": True}, CUT),
    "cut, whole": (ASKED, CUT),
    "cut at the limit that was asked for, streamed": (STREAM, ASKED_LIMIT),
    "cut at the limit that was asked for, whole": (ASKED, ASKED_LIMIT),
    "left open, streamed": (STREAM, [PLAIN[0], LeftOpen("t_1", shown(text("s0", "Hello")))]),
    "left open, whole": (ASKED, [PLAIN[0], LeftOpen("t_1", shown(text("s0", "Hello")))]),
    "never started, streamed": (STREAM, [ended(example(ExitCode.NOT_STARTED))]),
    "never started, whole": (ASKED, [ended(example(ExitCode.NOT_STARTED))]),
    "a mistake of ours, streamed": (STREAM, [PLAIN[0], RuntimeError("planted")]),
}


@pytest.mark.parametrize(("told", "finish"), [('{"a": [1, 2', "length"), ('{"a": [1, 2]}', "stop")])
@pytest.mark.parametrize("stream", [True, False])
async def test_data_that_ends_before_its_end_is_told_as_cut_whether_it_is_streamed_or_not(
    told: str, finish: str, *, stream: bool
) -> None:
    script: Script = [
        Showing("t_1", shown(text("s0", '{"a": '))),
        ended(Answered(), text("s0", told, BubbleKind.ANSWER, final=True)),
    ]
    body = {**ASKED, "stream": stream, "response_format": {"type": "json_object"}}
    _, _, got = await said(script, "/v1/chat/completions", body, {"X-Outspoken-Errors": "status"})
    assert f'"finish_reason":"{finish}"' in got.decode()


async def everything() -> str:
    """All that is said, as text."""
    parts: list[str] = []
    for name, (body, script) in SCRIPTS.items():
        status, headers, got = await said(script, "/v1/chat/completions", body, WORDS)
        kept = {name: headers[name] for name in ("content-type", "retry-after") if name in headers}
        parts.append(f"### {name}: {status} {kept}\n{got.decode()}\n")
    return "\n".join(parts)


async def test_what_is_said_at_chat_completions_is_what_is_kept():
    assert await everything() == KEPT.read_text(encoding="utf-8")


if __name__ == "__main__":
    KEPT.write_text(asyncio.run(everything()), encoding="utf-8")
