"""What is over of a turn is told as it would be told anew, whatever was said and done, and wherever it was looked at meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.failures.remedies import Advice
from agent_core.jsonvalue import Json
from agent_core.messages import THOUGHTS, InputMessage, Message, ToldConversation
from agent_core.settings import Route
from agent_core.turn.effects import CallModel
from agent_core.turn.rounds import RoundsOver
from agent_core.turn.standing import Standing
from agent_core.turn.state import AdviceItem, AssistantItem, CallItem, Item, PersonItem, ToolItem
from agent_core.turn.transcript import request_messages
from tests.agent_core.turns import Rig

PICTURE: list[Json] = [{"type": "image_url"}]


def said(*calls: str, text: str = "", thoughts: Mapping[str, Json] | None = None) -> AssistantItem:
    return AssistantItem(text, tuple(CallItem(call, "look", '{"at":1}') for call in calls), thoughts or {})


def back(call: str) -> ToolItem:
    return ToolItem(call, "look", "seen")


LATE = [said("a"), PersonItem(InputMessage(content="and?")), said("b"), back("a"), back("b"), said("c")]
SEEN = [said("a"), back("a"), PersonItem(InputMessage(content=PICTURE)), said("b"), back("b")]
MUTE = [said("a"), back("a"), AssistantItem("", (), {"text": "hm"}), PersonItem(InputMessage(content="and?"))]
BETWEEN: st.SearchStrategy[Item] = st.one_of(
    st.builds(PersonItem, st.builds(InputMessage, content=st.sampled_from(["and?", "so", PICTURE]))),
    st.just(AdviceItem(Advice.SMALLER_PIECES)),
    st.just(AssistantItem("well")),
    st.just(AssistantItem("", (), {"text": "hm"})),
)  # fmt: skip


@st.composite
def rounds_of_a_turn(draw: st.DrawFn) -> list[Item]:
    """Replies, the results of their calls in any order, seldom one of them missing or late, and what comes between."""
    items: list[Item] = []
    for number in range(draw(st.integers(0, 6))):
        calls = [f"c{number}{one}" for one in range(draw(st.integers(0, 3)))]
        thoughts: dict[str, Json] = {"text": "hm"} if draw(st.integers(0, 5)) == 0 else {}
        items.append(said(*calls, text=draw(st.sampled_from(["", "so"])), thoughts=thoughts))
        here = [back(call) for call in draw(st.permutations(calls))[draw(st.sampled_from([0, 0, 0, 1])) :]]
        late = draw(st.sampled_from([0, 0, 0, 1]))
        between = draw(st.lists(BETWEEN, max_size=2)) if draw(st.booleans()) else []
        items += [*here[late:], *between, *here[:late]]
    return items


PAST: st.SearchStrategy[list[Message]] = st.sampled_from([
    [],
    [{"role": "user", "content": "before"}, {"role": "assistant", "content": "so"}],
    [{"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}],
    [{"role": "user", "content": PICTURE}],
])  # fmt: skip


def opened(asked: Json = "look") -> Standing:
    turn = Rig().turn
    assert turn.opened is not None
    turn.opened = replace(turn.opened, input=(InputMessage(content=asked),))
    turn.items.clear()
    return turn


@given(
    PAST,
    rounds_of_a_turn(),
    st.lists(st.integers(0, 30), max_size=6),
    st.booleans(),
    st.sampled_from(["", "so far"]),
    st.sampled_from([None, Advice.SMALLER_PIECES]),
)
@example([], LATE, [4], False, "", None)
@example([], SEEN, [], False, "", None)
@example([], MUTE, [], False, "", None)
def test_what_is_over_and_what_came_behind_it_are_the_whole(
    past: list[Message], items: list[Item], looks: list[int], other: bool, partial: str, advice: Advice | None
):
    turn, rounds = opened(), RoundsOver()
    effect = CallModel(1, Route("m", "e", "c"), True, partial=partial, advice=advice)
    for many in [*sorted(min(look, len(items)) for look in looks), len(items)]:
        turn.items[:] = items[:many]
        if other and turn.items and isinstance(turn.items[0], AssistantItem):
            turn.items[0] = replace(turn.items[0], text=f"other {many}")  # as where something of it was taken back
        told, since = rounds.told(turn, lambda: past)
        anew = request_messages("", past, turn, effect)
        conversation = ToldConversation([told], rounds.behind(turn, effect)) if since else ToldConversation([], anew)
        assert orjson.loads(conversation.encoded) == list(conversation) == anew
        for one in orjson.loads(b"[%b]" % told):
            assert isinstance(one.get("content"), str | None)
            assert THOUGHTS not in one


def calls_of(work: Callable[[], object]) -> int:
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def test_a_late_round_is_told_by_as_few_calls_as_an_early_one():
    def told(many: int) -> int:
        turn, rounds = opened(), RoundsOver()
        effect = CallModel(1, Route("m", "e", "c"), True)
        for number in range(many):
            turn.items += [said(f"c{number}"), back(f"c{number}")]
            rounds.told(turn, list)
        turn.items += [said("d"), back("d")]

        def ask() -> bytes:
            told, _ = rounds.told(turn, list)
            return ToldConversation([told], rounds.behind(turn, effect)).encoded

        return calls_of(ask)

    assert told(3) == told(60)
