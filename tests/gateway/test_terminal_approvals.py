"""A call that waits for an approval, in ``outspoken chat``: shown with what it would change, decided by a word."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.terminal.ask import GatewayLost
from adapters.terminal.conversation import Decider, Lines
from adapters.terminal.deciding import TypedChoice, asked_lines, choice_of, choices_words
from agent_core.jsonvalue import Json
from tests.gateway.test_process import daemon, environment, outspoken
from tests.ports import free_port

ASKS = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
ALL: dict[str, Json] = {"offers": ["once", "conversation", "always"]}


@pytest.mark.parametrize(
    ("typed", "said", "written"),
    [
        ("yes\napprove\n", "✅ Approved.", True),
        ("conversation\n", "✅ Approved for this conversation.", True),
        ("deny\n", "🚫 Denied: it does not run.", False),
        ("", "Nothing more can be read here.", False),
    ],
)
def test_what_waits_is_shown_with_its_diff_and_a_word_decides(
    tmp_path: Path, typed: str, said: str, written: bool
) -> None:
    env = environment(tmp_path, free_port(), **ASKS)
    with daemon(env, tmp_path / "log"):
        talk = outspoken(env, "chat", stdin=f"write a.txt: milk\n{typed}/quit\n" if typed else "write a.txt: milk\n")
    assert talk.returncode == 0
    assert 'May I write "a.txt" (1 line)? (write_file)' in talk.stderr
    assert "+milk" in talk.stderr
    assert said in talk.stderr
    assert talk.stderr.count("Type  ✅ approve") == 1 + typed.startswith("yes")
    assert ("“yes” decides nothing here." in talk.stderr) is typed.startswith("yes")
    assert "(Decide within 10 min; then the answer ends without it.)" in talk.stderr
    assert bool(list(tmp_path.rglob("a.txt"))) is written


def test_without_a_daemon_it_is_the_same(tmp_path: Path) -> None:
    env = environment(tmp_path, free_port(), **ASKS)
    talk = outspoken(env, "chat", stdin="write a.txt: milk\napprove\n/quit\n")
    assert "✅ Approved." in talk.stderr
    assert list(tmp_path.rglob("a.txt"))


def test_where_others_decide_it_is_said_and_goes_on_waiting(tmp_path: Path) -> None:
    env = environment(
        tmp_path, free_port(), **ASKS, OUTSPOKEN_TOOLS__APPROVERS="admins", OUTSPOKEN_TOOLS__APPROVAL_SECONDS="10"
    )
    with daemon(env, tmp_path / "log"):
        talk = outspoken(env, "chat", stdin="write a.txt: milk\napprove\n")
    assert "Only an admin may decide that" in talk.stderr
    assert not list(tmp_path.rglob("a.txt"))


@given(st.text(max_size=14) | st.sampled_from(["approve", "Deny ", "y", "a", "1", "", "no", "always", "approve all"]))
def test_only_whole_words_decide(words: str) -> None:
    found = choice_of(words, ALL)
    said = words.strip().lower()
    assert (found is not None) == (said in ("approve", "conversation", "always", "deny"))
    assert found is None or found.approve is (said != "deny")


def test_what_is_not_offered_cannot_be_typed() -> None:
    once: dict[str, Json] = {"offers": ["once"]}
    assert choice_of("always", once) is None
    assert choice_of("approve", once) == TypedChoice(approve=True)
    assert "always" not in choices_words(once, colours=False)


def test_nothing_of_others_steers_the_terminal_and_more_and_less_have_colours() -> None:
    one = {"question": "May I\x1b[2J?", "diff": "+a\x1b[31m\n-b\n c"}
    plain, coloured = asked_lines(one, colours=False), asked_lines(one, colours=True)
    assert plain == ["🔐 May I\\u001b[2J?", "+a\\u001b[31m", "-b", " c"]
    assert coloured[1:3] == ["\x1b[32m+a\\u001b[31m\x1b[0m", "\x1b[31m-b\x1b[0m"]


@pytest.mark.parametrize("decided", [True, False])
async def test_what_was_decided_is_not_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, decided: bool
) -> None:
    """It may be listed for a moment more: who is asked again would answer what comes next."""
    waits: dict[str, Json] = {"id": "7", "turn": "t_1", "question": "May I?", **ALL}
    read: list[str] = []

    async def call(method: str, _path: str, _body: Json = None) -> dict[str, Json]:
        return {"data": [waits]} if method == "GET" else {}

    async def line() -> str:
        read.append("deny")
        return "deny"

    asking = Decider("http://127.0.0.1:1", None, Lines(line), list)
    monkeypatch.setattr(asking._remote, "call", call)
    asking._decided = {"7"} if decided else set()
    async with asking:
        asking.begin("t_1")
        while asking.asks:
            await asyncio.sleep(0)
    assert read == ([] if decided else ["deny"])
    assert ("May I?" in capsys.readouterr().err) is not decided


async def test_what_never_reached_the_gateway_is_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: dict[str, Json] = {"id": "7", "turn": "t_1", "question": "May I?", **ALL}
    told: list[Json] = []

    async def call(method: str, _path: str, body: Json = None) -> dict[str, Json]:
        if method == "GET":
            return {"data": [waits]}
        told.append(body)
        if len(told) == 1:
            raise GatewayLost("The gateway does not answer.")
        return {}

    async def line() -> str:
        return "approve"

    asking = Decider("http://127.0.0.1:1", None, Lines(line), list)
    monkeypatch.setattr(asking._remote, "call", call)
    async with asking:
        for _ in range(3):
            asking.begin("t_1")
            while asking.asks:
                await asyncio.sleep(0)
    said = capsys.readouterr().err
    assert told == [{"approve": True, "lasts": "once"}] * 2
    assert (said.count("May I?"), said.count("✅ Approved.")) == (2, 1)
