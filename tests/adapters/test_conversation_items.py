"""Items of stored turns: ids that differ, stay, and lead back to their turn, whatever happened in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from aiohttp.web import Response
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import Ended, Showing
from adapters.contract.sessions import SessionTurn
from adapters.http.api.keptresponses import items_of
from adapters.http.common import CALLER
from adapters.http.sessions.conversations import TURNS_AT_ONCE, Conversations, NotServed
from adapters.http.sessions.items import items, turn_in
from adapters.http.sessions.pages import MOST, Paging, paging
from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage, Message
from agent_core.turn.state import CallItem
from tests.adapters.scripted import ended, example, shown, text, tool
from tests.adapters.test_not_theirs import ADA, KEPT, Asked
from tests.adapters.test_not_theirs import served as kept_served

asked = st.lists(
    st.sampled_from(
        [
            InputMessage("hello"),
            InputMessage("", role="system"),
            InputMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]),
            InputMessage("gave", role="tool", tool_call_id="c1"),
        ]
    ),
    max_size=4,
)
call: Message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "a", "arguments": "{}"}}]}  # fmt: skip
histories = st.lists(st.sampled_from([call, {"role": "user", "content": "before"}]), max_size=3)


def turn(number: int, history: Sequence[Message], inputs: Sequence[InputMessage], code: ExitCode | None) -> SessionTurn:
    bubbles = (text("s1", "I look.", final=True), tool("c1", "look", "done"), text("s2", "Found."))
    handed = (CallItem("c_1", "mine", "{}"),) if code is ExitCode.HANDED_TO_CLIENT else ()
    seen: Ended | Showing = Showing("t_1", shown(*bubbles))
    if code is not None:
        seen = ended(example(code), *bubbles, handed=handed)
    return SessionTurn("t_1a", number, 1_000, None, told=True, history=tuple(history), asked=tuple(inputs), seen=seen)


@given(st.integers(1, 10**12), histories, asked, st.sampled_from([None, *ExitCode]), st.booleans())
def test_ids_differ_stay_and_lead_to_the_turn(
    number: int, history: list[Message], inputs: list[InputMessage], code: ExitCode | None, thinking: bool
):
    made = turn(number, history, inputs, code)
    found = items(made, thinking=thinking)
    names = [item["id"] for item in found]
    assert len(set(names)) == len(names)
    assert {turn_in(name) for name in names} <= {("t_1a", number)}
    assert items(made, thinking=thinking) == found
    assert all(item["type"] for item in found)
    said: list[Message] = [*history, *(one.to_message() for one in inputs)]
    came = [item["id"] for item in found if item["id"].startswith("in_")]
    assert len(came) == sum(map(len, map(items_of, said))), "all that came is told, also what its client brought along"


@given(st.text(max_size=40))
def test_what_is_no_id_of_ours_leads_nowhere_or_to_a_turn(name: str):
    found = turn_in(name)
    assert found is None or (found[0].startswith("t_") and found[1] >= 0)


@given(
    st.dictionaries(
        st.sampled_from(["limit", "after", "order"]), st.text(max_size=6) | st.sampled_from(["1", "100", "asc", "desc"])
    )
)
def test_whatever_the_query_there_is_a_page_or_a_problem_that_names_what_is_wrong(query: dict[str, str]):
    page: Any = paging(query)
    if isinstance(page, Paging):
        assert 1 <= page.limit <= MOST
        assert page.newest_first == (query.get("order", "desc") == "desc")
    else:
        assert page.status == 400
        assert page.param in query


def test_a_turn_of_which_nothing_is_kept_has_what_was_asked_at_most():
    gone = SessionTurn("t_1a", 1, 1_000, 2_000, told=False, removed="no longer kept")
    assert items(gone, thinking=True) == []


# ---------------------------------------------------------------------- page by page


class Turns:
    """A conversation of turns with these many messages each; not all of them are told."""

    def __init__(self, turns: Sequence[tuple[int, bool]]) -> None:
        self.turns = [
            replace(turn(number, (), [InputMessage(f"{number}.{n}") for n in range(count)], None), turn=f"t_{number}", told=told)
            for number, (count, told) in enumerate(turns, 1)
        ]  # fmt: skip

    async def turns_of(self, _: object, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        assert limit == TURNS_AT_ONCE
        found = [one for one in self.turns if (one.number < number if newest_first else one.number > number)]
        return (found[::-1] if newest_first else found)[:limit]

    @property
    def names(self) -> list[str]:
        return [item["id"] for one in self.turns if one.told for item in items(one, thinking=True)]


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, MOST])
async def test_page_by_page_every_item_is_met_once_and_in_order(limit: int, newest_first: bool):
    of = Turns([(1, True), (3, True), (2, False), (0, True), (4, True)] * 5)
    served = Conversations(cast("Any", SimpleNamespace(turns=of.turns_of)), thinking=True)
    sight: Any = None
    met: list[str] = []
    more = True
    while more:
        page = await served._page(sight, Paging(limit, met[-1] if met else "", newest_first), thinking=True)
        more = len(page) > limit
        met += [item["id"] for item in page[:limit]]
    assert met == (of.names[::-1] if newest_first else of.names)
    for wrong in ("nothing", "in_t_1_1_99", "in_t_99_99_0"):
        with pytest.raises(NotServed):
            await served._page(sight, Paging(limit, wrong, newest_first), thinking=True)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 3, 20])
async def test_page_by_page_all_that_was_asked_is_met_once_and_in_order(limit: int, order: str):
    words = [InputMessage(f"word {n}") for n in range(7)]
    inbound = replace(KEPT.inbound, input=tuple(words))
    served = kept_served(replace(KEPT, inbound=inbound))
    met: list[str] = []
    more = True
    while more:
        asked: Any = Asked({CALLER: ADA})
        asked.query = {"limit": str(limit), "order": order, **({"after": met[-1]} if met else {})}
        answer = await served.items(asked)
        assert isinstance(answer, Response)
        assert isinstance(answer.body, bytes)
        page = orjson.loads(answer.body)
        met += [item["id"] for item in page["data"]]
        more = page["has_more"]
    names = [f"in_s_1_5_{n}" for n in range(7)]
    assert met == (names if order == "asc" else names[::-1])
