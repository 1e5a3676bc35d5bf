"""Whatever a model says, and however often: all of it is passed on in the end, once and in its order, unless it was a loop."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.stream.listening import Listening
from agent_core.turn.events import (
    Event,
    ReasoningArrived,
    RefusalBegan,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
)

SAID = st.sampled_from(
    ["Hello. ", " ", "\n", "I am still at it. ", "I am still at it. ", ".", "and now this", "\u200b"]
)
EVENTS = st.lists(
    st.one_of(
        st.builds(TextArrived, at=st.integers(0, 9), text=SAID),
        st.builds(ReasoningArrived, at=st.integers(0, 9), text=SAID),
        st.builds(ToolArgumentsArrived, at=st.integers(0, 9), index=st.integers(0, 1), text=SAID),
        st.builds(ToolCallNamed, at=st.just(0), index=st.integers(0, 1), call=st.just("c"), name=st.just("look")),
        st.just(RefusalBegan(at=0)),
    ),
    max_size=30,
)


@given(EVENTS, st.integers(1, 5))
def test_nothing_is_lost_or_said_twice_or_in_another_order(events: list[Event], together: int) -> None:
    listening, passed = Listening(), list[Event]()
    for first in range(0, len(events), together):
        some = events[first : first + together]
        now, alive = listening.take(some)
        passed += now
        assert passed == events[: len(passed)]
        assert listening.holding is (len(passed) < first + len(some))
        assert not alive or now, "what is new is passed on at once"
    assert passed + listening.released() == events
    assert not listening.holding


def test_a_repetition_in_whatever_channel_is_a_loop() -> None:
    for kind in (TextArrived, ReasoningArrived):
        listening = Listening()
        listening.take([kind(at=0, text="Hello. ")])
        for _ in range(3_000):
            listening.take([kind(at=0, text="Let me look at this once more. ")])
        assert listening.looping, kind
    listening = Listening()
    for _ in range(3_000):
        listening.take([ToolArgumentsArrived(at=0, index=0, text='{"path": "a.txt"} ')])
    assert listening.looping
