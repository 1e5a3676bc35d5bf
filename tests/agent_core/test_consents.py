"""What a standing consent covers: exactly what was shown."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.judging.compaction import SessionMemory
from agent_core.rules.consents import LONGEST, Kind, Lasting, covered, kind_of, offered
from agent_core.text.tongue import speaking
from agent_core.turn.effects import AskApproval, RunTool
from agent_core.turn.events import ApprovalAnswered, Verdict
from agent_core.turn.view import view
from tests.agent_core.turns import SETTINGS, Rig

values = st.text(max_size=20) | st.integers(-(2**63), 2**63) | st.lists(st.text(max_size=5), max_size=2)
arguments = st.dictionaries(st.sampled_from(["path", "url", "to", "command", "text", "n"]), values, max_size=4).map(
    lambda found: orjson.dumps(found).decode()
)


@given(arguments, arguments)
def test_a_consent_covers_what_has_its_kind_and_nothing_else(one: str, other: str) -> None:
    kind = kind_of("post", one)
    if kind is not None:
        assert covered({kind}, "post", one, tainted=False) == kind
        assert covered({kind}, "send", one, tainted=False) is None
        assert (covered({kind}, "post", other, tainted=False) is not None) == (kind_of("post", other) == kind)
        assert "post" in kind.words()


def _agreed(tool: str, found: str, *, tainted: bool, asker: str) -> Kind | None:
    kind = kind_of(tool, found)
    return replace(kind, tainted=tainted, asker=asker) if kind is not None else None


kinds = st.builds(
    _agreed,
    st.sampled_from(["post", "send"]),
    arguments,
    tainted=st.booleans(),
    asker=st.sampled_from(["", "toy/1/ada"]),
)


@given(st.lists(kinds), st.sampled_from(["post", "send"]), arguments)
def test_what_was_agreed_to_before_words_of_others_were_read_covers_nothing_after_that(
    found: list[Kind | None], tool: str, wanted: str
) -> None:
    given_before = [kind for kind in found if kind is not None]
    after = covered(given_before, tool, wanted, tainted=True)
    assert after is None or after.tainted
    assert after is None or covered(given_before, tool, wanted, tainted=False) is not None
    assert covered([kind for kind in given_before if not kind.tainted], tool, wanted, tainted=True) is None


@given(st.sampled_from(["post", "send"]), arguments)
def test_nobody_can_agree_for_good_to_what_words_of_others_may_want(tool: str, wanted: str) -> None:
    assert Lasting.ALWAYS not in offered(tool, wanted, tainted=True, once=False)
    assert offered(tool, wanted, tainted=False, once=True) == (Lasting.ONCE,)


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


def test_what_cannot_be_shown_whole_is_agreed_to_once() -> None:
    for length, standing in ((LONGEST - 2, True), (LONGEST - 1, False)):
        wanted = orjson.dumps({"to": "x" * length}).decode()
        assert (kind_of("post", wanted) is not None) is standing
        assert (Lasting.ALWAYS in offered("post", wanted, tainted=False, once=False)) is standing


def test_it_says_in_words_what_it_covers() -> None:
    assert kind_of("fetch_url", '{"url":"https://a.example/x"}') == Kind("fetch_url", (("url", "https://a.example/…"),))
    assert (
        Kind("fetch_url", (("url", "https://a.example/…"),)).words()
        == "every call of fetch_url with url https://a.example/…"
    )
    assert Kind("todo").words() == "every call of todo, with any arguments"
    with speaking("de"):
        assert Kind("todo").words() == "jeder Aufruf von todo, mit beliebigen Argumenten"
        assert Kind("post", (("chat", '"a"'), ("to", '"b"'))).words() == 'jeder Aufruf von post mit chat "a", to "b"'


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


def test_what_was_agreed_to_before_is_asked_about_again_once_words_of_others_were_read() -> None:
    rig = Rig(SETTINGS)
    assert rig.turn.opened is not None
    kind = Kind("danger", (("to", '"ann"'),))
    rig.turn.opened = replace(rig.turn.opened, consents=(kind,), foreign=("a page",))
    effect = rig.calls_tool("danger", '{"to":"ann"}')[0]
    assert isinstance(effect, AskApproval)
    asked = view(rig.turn, rig.tick()).bubbles[-1]
    assert "The model has read words that are not yours (a page)." in asked.text
    assert asked.offers == (Lasting.ONCE, Lasting.CONVERSATION)
    rig.feed(ApprovalAnswered(at=rig.tick(), call=effect.call, verdict=Verdict.GIVEN, lasts=Lasting.CONVERSATION))
    rig.returns("done")
    assert isinstance(rig.calls_tool("danger", '{"to":"ann"}')[0], RunTool)
    past = SessionMemory()
    past.add(rig.turn)
    assert [one.tainted for one in past.consents] == [True]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a/one.txt", "a/two.txt", True),
        ("a/b/one.txt", "a/b/./two.txt", True),
        ("a/b/one.txt", "a/two.txt", False),
        ("a/one.txt", "a/b/two.txt", False),
        ("a/one.txt", "b/one.txt", False),
        ("a/../one.txt", "a/two.txt", False),
        ("one.txt", "two.txt", False),
        ("../a/one.txt", "../a/two.txt", False),
        ("/a/one.txt", "/a/two.txt", False),
    ],
)
def test_a_consent_to_a_path_covers_its_folder_and_none_in_it_or_above(one: str, other: str, same: bool) -> None:
    kinds_ = [kind_of("write", orjson.dumps({"path": path, "content": "x"}).decode()) for path in (one, other)]
    assert None not in kinds_
    assert (kinds_[0] == kinds_[1]) is same
