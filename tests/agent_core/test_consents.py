"""What a standing consent covers: exactly what was shown."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.rules.consents import Kind, Lasting, covered, kind_of
from agent_core.turn.effects import AskApproval, RunTool
from agent_core.turn.events import ApprovalAnswered, Verdict
from tests.agent_core.turns import SETTINGS, Rig

values = st.text(max_size=20) | st.integers(-(2**63), 2**63) | st.lists(st.text(max_size=5), max_size=2)
arguments = st.dictionaries(st.sampled_from(["path", "url", "to", "command", "text", "n"]), values, max_size=4).map(
    lambda found: orjson.dumps(found).decode()
)


@given(arguments, arguments)
def test_a_consent_covers_what_has_its_kind_and_nothing_else(one: str, other: str) -> None:
    kind = kind_of("post", one)
    if kind is not None:
        assert covered(frozenset({kind}), "post", one) == kind
        assert covered(frozenset({kind}), "send", one) is None
        assert (covered(frozenset({kind}), "post", other) is not None) == (kind_of("post", other) == kind)
        assert "post" in kind.words()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"url": "https://a.example/x"}, {"url": "https://a.example/y?d=1"}, True),
        ({"url": "https://a.example/x"}, {"url": "https://a.example.evil.example/x"}, False),
        ({"url": "https://a.example/x"}, {"url": "http://a.example/x"}, False),
        ({"url": "https://a.example/x"}, {"url": "https://a.example@evil.example/x"}, False),
        ({"path": "notes/a.txt"}, {"path": "notes/b.txt"}, True),
        ({"path": "notes/a.txt"}, {"path": "notes/../b.txt"}, False),
        ({"path": "a.txt"}, {"path": "b.txt"}, False),
        ({"path": "../a/x"}, {"path": "../a/y"}, False),
        ({"command": "ls"}, {"command": "ls; rm -rf ."}, False),
        ({"to": "ann", "text": "x"}, {"to": "ann", "text": "y"}, True),
        ({"to": "ann"}, {"to": "bob"}, False),
        ({"to": "ann"}, {"to": "ann", "channel": "b"}, False),
    ],
)
def test_what_is_of_one_kind(one: dict[str, str], other: dict[str, str], *, same: bool) -> None:
    kinds = [kind_of("post", orjson.dumps(each).decode()) for each in (one, other)]
    assert (kinds[0] is not None and kinds[0] == kinds[1]) is same


def test_it_says_in_words_what_it_covers() -> None:
    assert kind_of("fetch_url", '{"url":"https://a.example/x"}') == Kind("fetch_url", (("url", "https://a.example/…"),))
    assert (
        Kind("fetch_url", (("url", "https://a.example/…"),)).words()
        == "every call of fetch_url with url https://a.example/…"
    )
    assert Kind("todo").words() == "every call of todo, with any arguments"


def test_what_was_agreed_to_for_longer_is_not_asked_again_in_the_turn() -> None:
    rig = Rig(SETTINGS)
    effect = rig.calls_tool("danger", '{"to":"ann"}')[0]
    assert isinstance(effect, AskApproval)
    rig.feed(ApprovalAnswered(at=rig.tick(), call=effect.call, verdict=Verdict.GIVEN, lasts=Lasting.CONVERSATION))
    rig.returns("done")
    assert isinstance(rig.calls_tool("danger", '{"to":"ann"}')[0], RunTool)
    rig.returns("done")
    assert isinstance(rig.calls_tool("danger", '{"to":"bob"}')[0], AskApproval)


def test_what_was_agreed_to_before_is_not_asked_about() -> None:
    rig = Rig(SETTINGS)
    assert rig.turn.opened is not None
    rig.turn.opened = replace(rig.turn.opened, consents=(Kind("danger", (("to", '"ann"'),)),))
    assert isinstance(rig.calls_tool("danger", '{"to":"ann"}')[0], RunTool)
