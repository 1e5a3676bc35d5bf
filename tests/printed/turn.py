"""The page ``docs/turn.md``: in which phase a turn takes which event, printed from the tables that the machine is driven by. Pure.

``python -m tests.printed.turn > docs/turn.md``; a test compares the two (tests/docs/test_generated.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from agent_core.machine.turn import FACTS, JUDGEMENTS, LEADS
from agent_core.turn.events import Happened
from agent_core.turn.questions import ANSWERS, MUST_BE_ANSWERED, Question
from agent_core.turn.state import Phase

_HEAD = """# The turn's tables

<!-- Printed by `python -m tests.printed.turn`; do not edit. -->

The machine (`agent_core/machine/turn.py`) waits for one thing at a time, its *phase*. What it does with an event stands in two tables, which are the
dispatch itself: `FACTS` for what happens, `JUDGEMENTS` for what was judged of it. The functions are in `agent_core/machine/taking.py`.

```mermaid
stateDiagram-v2
"""
_FACTS = """```

## Facts

`–`: it cannot come then. In the daemon it is late, is logged as `turn.late` and changes nothing; in a journal it is refused, with these words. Before
the first event the words are “the first event of a turn must be TurnOpened”, after the end “the turn had ended by then”. A call's events are refused
as well if their call was not wanted, not begun, or nobody was to approve it (`ToolRound.misfit`).

"""
_JUDGEMENTS = """
## Judgements

A judgement is taken if the question that it answers is open, in whatever phase; any other is refused: “nothing was to be judged”. `RemedyJudged` stands
beside the answer and needs the remedy that it speaks of to be at work.

| judgement | taken by | answers |
|---|---|---|
"""
_QUESTIONS = """
## Questions

What a fact leaves open, and what it means that the journal says nothing.

| question | silence |
|---|---|
"""


def markdown() -> str:
    """The page docs/turn.md."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield _HEAD + "\n".join(_drawing())
    phases = [phase for phase in Phase if phase not in (Phase.NEW, Phase.ENDED)]
    first = f"| fact | {' | '.join(phase.value for phase in (Phase.NEW, *phases))} | else |"
    yield _FACTS + f"{first}\n|{'---|' * first.count(' | ')}---|"
    for kind, row in FACTS.items():
        cells = [f"`{row.takes.__name__}`" if phase in row.phases else "–" for phase in (Phase.NEW, *phases)]
        yield f"| {_name(kind)} | {' | '.join(cells)} | {row.otherwise} |"
    yield _JUDGEMENTS + "\n".join(
        f"| {_name(kind)} | `{takes.__name__}` | {_questions(ANSWERS.get(kind, ()))} |"
        for kind, takes in JUDGEMENTS.items()
    )
    yield _QUESTIONS + "\n".join(
        f"| `{kind.__name__}` | {'is no answer' if issubclass(kind, MUST_BE_ANSWERED) else 'the ordinary'} |"
        for kind in Question.__args__
    )


def _drawing() -> Iterator[str]:
    yield f"    [*] --> {Phase.NEW}"
    for here, ways in LEADS.items():
        for there, words in ways.items():
            yield f"    {here} --> {there}: {words}"
    yield f"    {Phase.ENDED} --> [*]"


def _name(kind: type[Happened]) -> str:
    stored = f" (stored as `{kind.kind()}`)" if kind.kind() != kind.__name__ else ""
    return f"`{kind.__name__}`{stored}"


def _questions(kinds: tuple[type[Question], ...]) -> str:
    return ", ".join(f"`{kind.__name__}`" for kind in kinds) or "every question"


if __name__ == "__main__":
    sys.stdout.write(markdown())
