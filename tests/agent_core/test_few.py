"""A queue of a few does what a deque does."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from agent_core.few import Few


@given(st.lists(st.sampled_from(["append", "appendleft", "popleft", "clear"])))
def test_it_does_what_a_deque_does(doing: list[str]) -> None:
    few, queue = Few[int](), deque[int]()
    for number, what in enumerate(doing):
        match what:
            case "append":
                few.append(number)
                queue.append(number)
            case "appendleft":
                few.appendleft(number)
                queue.appendleft(number)
            case "popleft" if queue:
                assert few.popleft() == queue.popleft()
            case "clear":
                few.clear()
                queue.clear()
            case _:
                pass
        assert list(few) == list(queue)
        assert bool(few) == bool(queue)
