"""Whatever happens in a turn and before it: no request that it leads to is one that a strict provider refuses."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.failures.known import Known, KnownStall
from agent_core.failures.remedies import Advice, advice_words
from agent_core.jsonvalue import Json
from agent_core.machine.turn import Turn
from agent_core.messages import GATEWAY_PREFIX, InputMessage, Message
from agent_core.turn.effects import CallModel, Effect, EndTurn
from agent_core.turn.events import Event, Steered
from agent_core.turn.transcript import alternating, closed_turn_messages, repaired, request_messages
from tests.agent_core.strict import objections
from tests.agent_core.test_turn_laws import BASE, plausible
from tests.agent_core.turns import Rig, opened

PICTURE: Json = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
contents: st.SearchStrategy[tuple[InputMessage, ...]] = st.lists(
    st.sampled_from([InputMessage("hello"), InputMessage(PICTURE)]), min_size=1, max_size=3
).map(tuple)
known = st.sampled_from([Known(), Known(stalls=(KnownStall("write", 500, ended=2), KnownStall("send", 9, ended=3)))])


def played(data: st.DataObject, history: list[Message]) -> Turn:
    """A turn to its end, or not; each of its requests is looked at."""
    turn = Turn()
    event = replace(opened(BASE), input=data.draw(contents), known=data.draw(known))
    effects: list[Effect] = turn.feed(event)
    for _ in range(data.draw(st.integers(0, 25))):
        for call in effects:
            if isinstance(call, CallModel):
                request = request_messages("sys", history, turn, call)
                assert objections(request) == [], request
        events: list[Event] = plausible(effects, data, 2_000)
        if data.draw(st.integers(0, 9)) == 0:
            events.insert(0, Steered(at=2_000, input=data.draw(contents)[0]))
        for one in events:
            effects = [e for e in turn.feed(one) if not isinstance(e, EndTurn)] or effects
        if turn.exit is not None:
            break
    return turn


@settings(deadline=None)
@given(st.data())
def test_no_request_of_a_turn_is_one_that_a_strict_provider_refuses(data: st.DataObject) -> None:
    history: list[Message] = []
    for _ in range(2):
        turn = played(data, history)
        if turn.exit is None:
            return
        history = repaired([*history, *closed_turn_messages(turn)])


def test_advice_stands_behind_the_persons_words_and_is_marked() -> None:
    rig = Rig()
    for _ in range(2):
        rig.begins_call("write", '{"a": "b')
        rig.breaks()
    (_, person) = request_messages("sys", [], rig.turn, rig.last_call)
    assert person == {"role": "user", "content": f"hello\n\n{advice_words(Advice.SMALLER_PIECES, 'write')}"}


def test_advice_stands_behind_the_tools_result_and_the_result_stays_whole() -> None:
    rig = Rig()
    rig.calls_tool("read")
    rig.returns("contents")
    for _ in range(2):
        rig.finish("stop")
    *_, result = request_messages("sys", [], rig.turn, rig.last_call)
    assert result["role"] == "tool"
    assert str(result["content"]).startswith(f"contents\n\n{GATEWAY_PREFIX} You returned nothing.")


def test_a_picture_keeps_its_place_before_the_advice() -> None:
    advice: Message = {"role": "user", "content": f"{GATEWAY_PREFIX} go on"}
    (joined,) = alternating([{"role": "user", "content": PICTURE}, advice])
    assert isinstance(joined["content"], list)
    assert [part["type"] for part in joined["content"] if isinstance(part, dict)] == ["text", "image_url", "text"]


def test_people_who_are_told_apart_by_their_names_stay_apart() -> None:
    two: list[Message] = [{"role": "user", "name": "a", "content": "x"}, {"role": "user", "name": "b", "content": "y"}]
    assert alternating(two) == two
