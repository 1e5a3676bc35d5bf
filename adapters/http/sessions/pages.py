"""Pages of lists: how much is asked for, and behind what. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.http.common import Problem
from agent_core.records import dataclass

MOST, USUAL = 100, 20


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page is asked for."""

    limit: int = USUAL
    after: str = ""
    """Behind this one; empty: from the beginning."""
    newest_first: bool = True


def paging(query: Mapping[str, str]) -> Paging | Problem:
    """What a query asks for."""
    limit, order = query.get("limit", str(USUAL)), query.get("order", "desc")
    if not (limit.isascii() and limit.isdigit() and len(limit) < 5 and 1 <= int(limit) <= MOST):
        return Problem(400, f"limit must be between 1 and {MOST}.", param="limit", code="invalid_value")
    if order not in ("asc", "desc"):
        return Problem(400, "order must be asc or desc.", param="order", code="invalid_value")
    if query.get("after") == "":
        return Problem(400, "after must name something, or be left out.", param="after", code="invalid_value")
    return Paging(int(limit), query.get("after", ""), order == "desc")
