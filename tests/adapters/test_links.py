"""Links to conversations: they open what they were made for and nothing else, and show what they promise and nothing else. Without a gateway."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.sessions import METADATA_CHARS, SessionTurn
from adapters.http.sessions.links import SHOWN, SharedLink, digest_of, parts_of, shared_message
from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage
from agent_core.turn.view import Bubble, BubbleKind
from tests.adapters.scripted import ended
from tests.adapters.scripted import example as exit_of

numbers = st.integers(1, 2**50)
secrets = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", min_size=32, max_size=43)


@given(secrets, numbers, numbers, st.text(max_size=400))
def test_what_is_kept_of_a_link_is_read_again_and_has_no_secret(secret: str, number: int, at: int, title: str):
    link = SharedLink(digest_of(secret), number, at, title)
    noted = link.noted()
    assert len(noted) <= METADATA_CHARS
    assert SharedLink.of(noted) == SharedLink(link.digest, number, at, title[:200])
    assert secret not in link.digest


@given(secrets, secrets)
def test_a_link_is_opened_by_its_secret_alone(secret: str, other: str):
    link = SharedLink(digest_of(secret), 1, 1, "")
    assert link.opened_by(secret)
    assert link.opened_by(other) == (secret == other)


@given(st.text(max_size=80) | secrets.map(lambda one: f"s_01.{one}"))
def test_what_is_no_link_has_no_parts(text: str):
    parts = parts_of(text)
    assert parts is None or ".".join(parts) == text


@pytest.mark.parametrize("noted", ["", "yes", f"{'0' * 32} 1", f"{'g' * 32} 1 2 title", f"{'0' * 32} -1 2 title"])
def test_what_was_noted_otherwise_is_no_link(noted: str):
    assert SharedLink.of(noted) is None


@pytest.mark.parametrize("kind", BubbleKind)
def test_of_a_turn_is_shown_what_was_promised_and_nothing_else(kind: BubbleKind):
    bubble = Bubble(
        "SECRET-key", kind, "Words that are shown, **bold**", final=True, tool="write_file", state="done", call="SECRET-call", whole="SECRET-whole",
        change="SECRET-change", path="SECRET-path", arguments="SECRET-arguments", result="SECRET-result", options=("SECRET-option",),
    )  # fmt: skip
    if kind is BubbleKind.ACTIVITY:
        bubble.text = "write_file SECRET-line"
    said = (InputMessage("What is said"), InputMessage("SECRET-system", role="system"))
    turn = SessionTurn(
        "SECRET-turn",
        7,
        5,
        6,
        told=True,
        asked=said,
        seen=ended(exit_of(ExitCode.ANSWERED), bubble),
        model="SECRET-model",
    )
    shown = shared_message(turn)
    told = json.dumps(shown)
    assert "SECRET" not in told
    assert (shown["number"], shown["person"]) == (7, "What is said")
    mine = [one for one in shown["bubbles"] if one["key"] == "0"]
    assert len(mine) == (kind in SHOWN)
    assert ("Words that are shown" in told) == (kind in SHOWN and kind is not BubbleKind.ACTIVITY)
    assert ("write_file" in told) == (kind is BubbleKind.ACTIVITY)
