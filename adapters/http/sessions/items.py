"""The items of a stored turn, as `/v1/responses` spells them. Pure.

An item's id holds the id and the number of its turn, so that it is found again, and stays the same as long as the turn is kept.

Law (tests/adapters/test_conversation_items.py): ids of one turn differ, and `turn_in` finds the turn of each.
"""

from __future__ import annotations

import re
from typing import cast

from adapters.contract.base import Ended, Ticket
from adapters.contract.sessions import SessionTurn
from adapters.http.api.asked import ApiRequest
from adapters.http.api.keptresponses import items_of
from adapters.http.api.responses import ResponseSpelling
from adapters.http.api.spelling import ApiJob
from adapters.http.errorsas import ErrorsAs
from adapters.http.sessions.shapes import ItemObject
from agent_core.jsonvalue import Json

_ID = re.compile(r"[a-z]+_(t_[0-9a-z]+)_([0-9]{1,15})_.*")


def turn_in(item: str) -> tuple[str, int] | None:
    """The turn of an item, and its number; None if it is no such id."""
    found = _ID.fullmatch(item)
    return (found[1], int(found[2])) if found is not None else None


def items(turn: SessionTurn, *, thinking: bool) -> list[ItemObject]:
    """What was asked and what came of it, in order."""
    mark = f"{turn.turn}_{turn.number}"
    said = [*turn.history, *(message.to_message() for message in turn.asked)]
    asked = [item for message in said for item in items_of(message)]
    found: list[dict[str, Json]] = [{"id": f"in_{mark}_{number}", **item} for number, item in enumerate(asked)]
    found += _output(turn, thinking=thinking)
    return cast("list[ItemObject]", found)  # each has an id and a type


def _output(turn: SessionTurn, *, thinking: bool) -> list[dict[str, Json]]:
    if turn.seen is None:
        return []
    nothing = ApiRequest(
        model=turn.model, history=(), latest=(), system=(), tools=(), parameters={}, client_output_limit=False, session="",
        user="", stream=False, include_usage=False, digest="",
    )  # fmt: skip
    job = ApiJob(
        asked=nothing, ticket=Ticket(turn.number, turn.turn, duplicate=True), request_id="", created=turn.opened_at // 1000,
        headers={}, keyed=False, errors=ErrorsAs.STATUS, thinking=thinking,
    )  # fmt: skip
    spelling = ResponseSpelling(job)
    whole = spelling.whole(turn.seen) if isinstance(turn.seen, Ended) else spelling.unfinished(turn.seen)
    output = whole["output"]
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
