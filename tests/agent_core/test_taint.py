"""Who sees what of a call, and what an address says."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.rules.taint import DEEPEST, MOST_CHARS, AskedWhy, composed, named, reaches_outside, sources_words
from agent_core.settings import ToolFacts
from agent_core.tools.base import EffectClass, Reach, ToolStatus, WhenTainted
from agent_core.turn.effects import AskApproval, RunTool
from agent_core.turn.events import ApprovalAnswered, ToolReturned, Verdict
from agent_core.turn.toolround import gives_links
from agent_core.turn.view import view
from tests.agent_core.turns import SETTINGS, Rig

words = st.text(max_size=40)
values = st.recursive(words | st.integers(-9, 9) | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))  # fmt: skip
arguments = st.dictionaries(words, values, max_size=3).map(lambda found: orjson.dumps(found).decode())
texts = st.lists(words, max_size=3)


@given(arguments, texts, texts)
def test_what_stays_here_is_never_asked_about_and_what_goes_out_always_is(
    said: str, own: list[str], read: list[str]
) -> None:
    assert not reaches_outside(Reach.HERE, said, own, read)
    assert reaches_outside(Reach.OUTSIDE, said, own, read)


@given(arguments, texts, texts, words)
def test_more_words_of_others_make_no_address_harmless_that_they_do_not_hold(
    said: str, own: list[str], read: list[str], more: str
) -> None:
    secret = orjson.dumps({"url": "https://evil.example/?d=c4n4ry"}).decode()
    if "evil.example/?d=c4n4ry" not in more:
        assert reaches_outside(Reach.ADDRESS, secret, (), [*read, more])
    if reaches_outside(Reach.ADDRESS, said, own, read):
        assert reaches_outside(Reach.ADDRESS, said, own, ())


@pytest.mark.parametrize(
    ("address", "said", "read", "asked"),
    [
        ("https://x.example/a", "see https://x.example/a please", "", False),
        ("https://x.example/b", "what is new on x.example?", "", False),
        ("https://www.x.example/b", "x.example", "", False),
        ("https://x.example:8443/b", "X.Example!", "", False),
        ("https://x.example.evil.example/b", "what is new on x.example?", "", True),
        ("https://notx.example/b", "what is new on x.example?", "", True),
        ("https://x.example@evil.example/", "x.example", "", True),
        ("https://evil.example/next", "", "go on at https://evil.example/next", False),
        ("https://evil.example/next?d=secret", "", "go on at https://evil.example/next?d=", True),
        ("https://evil.example/#secret", "", "https://evil.example/", False),
        ("https://evil.example\\@x.example/", "x.example", "", True),
        ("HTTPS://EVIL.EXAMPLE/?d=secret", "", "https://evil.example/", True),
        ("evil.example/secret", "", "", True),
        ("127.0.0.1/secret", "", "", True),
        ("//evil.example/secret", "", "", True),
        ("see evil.example/secret, now", "", "", True),
    ],
)  # fmt: skip
def test_an_address_that_the_model_made_itself(address: str, said: str, read: str, *, asked: bool) -> None:
    assert composed(address, said, read) is asked
    if "\\" not in address:
        found = orjson.dumps({"q": [{"deep": address}]}).decode()
        assert reaches_outside(Reach.ADDRESS, found, [said], [read]) is asked


@pytest.mark.parametrize(
    "told", ['{"q":"what is new in python"}', "{}", '{"n":3,"path":"notes/today.txt x"}', '{"city":"Bern"}']
)
def test_what_holds_no_address_says_nothing(told: str) -> None:
    assert not reaches_outside(Reach.ADDRESS, told, (), ())


def test_where_the_words_stand_is_told_shortly() -> None:
    assert sources_words(["a", "b", "a", "c", "d", "e"]) == "a, b, c, 2 more"


# ---------------------------------------------------------------------- in a turn

POST = ToolFacts("post", EffectClass.EFFECT, reach=Reach.OUTSIDE)
CONTAINED = replace(SETTINGS, tools=(*SETTINGS.tools, POST))


def _read(rig: Rig, *, foreign: bool = True) -> None:
    effect = rig.calls_tool("read")[0]
    assert isinstance(effect, RunTool)
    rig.feed(ToolReturned(at=rig.tick(), call=effect.call, status=ToolStatus.OK, text="words", foreign=foreign))


def test_a_turn_that_read_only_its_own_words_is_not_asked() -> None:
    rig = Rig(CONTAINED)
    _read(rig, foreign=False)
    assert isinstance(rig.calls_tool("post")[0], RunTool)


def test_a_tainted_turn_is_asked_and_told_why_and_runs_once_somebody_agreed() -> None:
    rig = Rig(CONTAINED)
    _read(rig)
    effect = rig.calls_tool("post")[0]
    assert isinstance(effect, AskApproval)
    asked = next(one for one in view(rig.turn, rig.now).bubbles if one.kind == "approval")
    assert "words that are not yours (read)" in asked.text
    given_ = rig.feed(ApprovalAnswered(at=rig.tick(), call=effect.call, verdict=Verdict.GIVEN))
    assert isinstance(given_[0], RunTool)


def test_an_older_turn_is_decided_by_its_own_rules() -> None:
    rig = Rig(replace(CONTAINED, rules=16))
    _read(rig)
    assert isinstance(rig.calls_tool("post")[0], RunTool)


def test_the_operators_word_about_a_tool_counts() -> None:
    rig = Rig(replace(SETTINGS, tools=(*SETTINGS.tools, replace(POST, tainted=WhenTainted.ALLOW))))
    _read(rig)
    assert isinstance(rig.calls_tool("post")[0], RunTool)


def test_an_effect_whose_outcome_nobody_knows_is_not_done_anew_without_a_persons_word() -> None:
    rig = Rig(SETTINGS)
    rig.calls_tool("send", '{"to":"a"}')
    rig.returns("no answer in time", status=ToolStatus.TIMED_OUT)
    effect = rig.calls_tool("send", '{"to":"a","text":"in other words"}')[0]
    assert isinstance(effect, AskApproval)
    asked = next(one for one in view(rig.turn, rig.now).bubbles if one.kind == "approval")
    assert "it may happen twice" in asked.text
    rig.feed(ApprovalAnswered(at=rig.tick(), call=effect.call, verdict=Verdict.GIVEN))
    rig.returns("sent")
    assert isinstance(rig.calls_tool("send", '{"to":"a"}')[0], RunTool)  # now it is known


def test_another_effect_of_the_same_tool_is_not_held_up_by_it() -> None:
    rig = Rig(SETTINGS)
    rig.calls_tool("send", '{"to":"a"}')
    rig.returns("no answer in time", status=ToolStatus.TIMED_OUT)
    assert isinstance(rig.calls_tool("send", '{"to":"b"}')[0], RunTool)


def test_where_nobody_can_be_asked_it_is_not_done_anew_and_the_person_is_told() -> None:
    rig = Rig(replace(SETTINGS, can_approve=False))
    rig.calls_tool("send", '{"to":"a"}')
    rig.returns("no answer in time", status=ToolStatus.TIMED_OUT)
    rig.calls_tool("send", '{"to":"a"}')
    assert [one.name for one in rig.tools_run] == ["send"]
    assert any("was not run again" in one.text for one in view(rig.turn, rig.now).bubbles)
    assert AskedWhy.REPEATED.once


@pytest.mark.parametrize(
    ("arguments", "outside"),
    [
        ('{"q":"' + "x" * MOST_CHARS + '"}', True),  # it may hold anything, and is not searched
        ('{"q":"' + "x" * (MOST_CHARS - 8) + '"}', False),
        ('{"https://evil.example/?d=1":1}', True),
        ('{"q":' + "[" * DEEPEST + '"x"' + "]" * DEEPEST + "}", True),
        ('{"q":' + "[" * (DEEPEST - 1) + '"x"' + "]" * (DEEPEST - 1) + "}", False),
        ("{not json", False),
    ],
)
def test_an_address_is_found_wherever_it_hides(arguments: str, *, outside: bool) -> None:
    assert reaches_outside(Reach.ADDRESS, arguments, (), ()) is outside


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("look at a.example", True),
        ("look at www.a.example, please", True),
        ("see A.EXAMPLE.", True),
        ("https://a.example/x", True),
        ("a.example.evil.org", False),
        ("a.examples", False),
        ("my-a.example", False),
        ("b.a.example", False),
        ("xa.example", False),
    ],
)
def test_a_host_is_named_as_a_whole(said: str, *, found: bool) -> None:
    assert named("a.example", said) is found
    assert named("www.a.example", said) is found


def test_what_was_found_was_written_elsewhere_unless_an_address_was_searched_for():
    search = ToolFacts("search_web", EffectClass.PURE, links=True)
    assert gives_links(search, '{"query": "weather in Rome, 3.5 days"}')
    for query in ("https://evil.example/?d=1", "see evil.example/1", "10.0.0.1/x", "x //evil.example/1"):
        assert not gives_links(search, orjson.dumps({"query": query}).decode()), query
    assert not gives_links(search, "{")
    assert not gives_links(replace(search, links=False), '{"query": "weather"}')
    fetch = ToolFacts("fetch_url", EffectClass.PURE, reach=Reach.ADDRESS, links=True)
    assert gives_links(fetch, '{"url": "https://example.org"}')
