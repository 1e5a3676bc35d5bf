"""What waits for somebody's word, as it is read in a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.terminal.operator import Table
from agent_core.jsonvalue import Json
from agent_core.text.durations import at_time, duration
from agent_core.text.shown import harmless, middle, plain

NOTHING = "Nothing waits for anybody's word."
LONGEST_LINE = 160


def approvals_lines(found: Sequence[Table]) -> list[str]:
    """All of them: what is asked in a line, and below it where, by whom and how long."""
    lines: list[str] = []
    for one in found:
        head, *rest = str(one.get("question")).split("\n")
        asked = " ".join((head, " · ".join(filter(None, rest)))).rstrip()
        lines += [f"{one.get('id')}  {middle(plain(asked), LONGEST_LINE)}", f"    {_about(one)}"]
    return lines or [NOTHING]


def approval_lines(one: Table) -> list[str]:
    """One of them, whole."""
    diff = str(one.get("diff") or "")
    return [
        str(one.get("id")),
        _about(one),
        *([f"Only {one.get('only')} may decide it."] if one.get("only") else []),
        f"It can be approved: {', '.join(offers_of(one))}",
        "",
        *harmless(str(one.get("question"))).split("\n"),
        *(["", *harmless(diff).split("\n")] if diff else []),
    ]


def not_one_words(name: str, count: int) -> str:
    """Why no single one is meant by a name."""
    if not name:
        return "Say which one is meant. outspoken approvals list shows what waits."
    if not count:
        return f"Nothing that waits is called {plain(name)}. outspoken approvals list shows what does."
    return f"{count} that wait end in {plain(name)}. Say more of the one that you mean."


def offers_of(one: Table) -> list[str]:
    """For how long it may be approved."""
    offers = one.get("offers")
    return [str(each) for each in offers] if isinstance(offers, list) else []


def _about(one: Table) -> str:
    left = one.get("seconds_left")
    time_left = duration(left) if isinstance(left, int) else "nobody knows how long"
    who = plain(f"{one.get('asker')} asked in {one.get('place')}")
    return f"{who}, since {_when(one.get('asked_at'))}; {time_left} left to decide"


def _when(at: Json) -> str:
    return f"{at_time(at):%Y-%m-%d %H:%M:%S} UTC" if isinstance(at, int) else "?"
