"""The page ``docs/exits.md``: every way in which a turn ends, printed from the code that ends turns. Pure.

``python -m tests.printed.exits > docs/exits.md``; a test compares the two (tests/docs/test_generated.py). The notices are made by
the function that makes those which people read, of an example's facts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from adapters.contract.chat import ACTION_LABELS
from agent_core.failures.exits import EXITS, Exit, ExitCode, read
from agent_core.failures.notices import Action, ExitClass
from agent_core.failures.remedies import LADDERS, RESTART_SECONDS, Asks, Failure, Helps, Pause, Remedy, Use
from agent_core.settings import LadderCounts
from agent_core.text.tongue import spelled

FAILURES: Mapping[Failure, str] = {
    Failure.BEFORE_CONTENT: "nothing came, or a break before any content; 429, 5xx, network",
    Failure.IN_TEXT: "a break in the text",
    Failure.NOTHING_MORE: "asked to go on from a text: nothing",
    Failure.THOUGHT_MORE: "asked to go on from a text: only reasoning",
    Failure.IN_TOOL_CALL: "a break inside a tool call",
    Failure.EMPTY: "an empty reply",
    Failure.THINKING_ONLY: "only reasoning",
    Failure.PROMISED: "an announcement without an act",
    Failure.LENGTH: "text at the output limit",
    Failure.LENGTH_IN_TOOL_CALL: "a tool call at the output limit",
    Failure.OVERFLOW: "larger than the model's context",
    Failure.TOO_LARGE: "larger than the provider takes",
    Failure.CREDENTIAL: "401, 402, 403",
    Failure.REQUEST: "400, 404, the provider's filter",
}

HELPING: Mapping[Helps, str] = {
    Helps.ANY: "the next key or model, if there is one",
    Helps.OTHER_CREDENTIAL: "the next key or model with another key, if there is one",
    Helps.OTHER_MODEL: "the next model, if there is one",
    Helps.LARGER_WINDOW: "the next model whose context is larger, if there is one",
}
MOST = 100
"""More often than that is as often as there is another way."""

_HEAD = """# Exits and notices

Written by `python -m tests.printed.exits > docs/exits.md` from the code that ends turns; a test compares the two.

Every turn ends by exactly one of these exits. All but the clean ones come with a notice: what happened, what was done and what was not, and what to do
next. A notice is stored with the turn's end before it is shown, on every surface, and never passes for words of the model. The notices here are made
by the same function, of an example's facts.

- **`finish_reason`** is what clients of the API see; the exit itself is in `outspoken.exit` of the last chunk. `stop` belongs to `answered` alone.
- **HTTP** is the status that a program gets where nothing was produced (a provider's own comes first; 200: the finish reason says it all); see
  [the API](api.md#failures).
- **Exit status** is that of `outspoken ask`.
- **For the operator** is what `outspoken triage` says.

## What is tried first

The remedies, in their order; how often each is tried is configuration ([`[recovery]`](configuration.md#recovery), `[model] attempts`).

| failure | remedies |
|---|---|
"""


_BESIDE = """What is [known of earlier failures](stalls.md) may add to this and never takes away from it: what is tried beforehand is given up at its first
failure, and the table begins from its first row. A tool's calls that have broken off three times in a conversation are, after all of it, asked for as text.
"""


def _remedy(remedy: Remedy, use: Use, times: int) -> str:
    if remedy.recipe.asks is Asks.NEXT:
        return HELPING[use.helps]
    least, most = (f"{seconds:g}" for seconds in RESTART_SECONDS)
    pause = f", from the second time on after {least} to {most} s" if use.pause is Pause.RESTART else ""
    return (use.page or remedy.recipe.page) + (f" ({_times(times)}{pause})" if times < MOST else "")


def markdown() -> str:
    """The page docs/exits.md."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    counts = LadderCounts()
    rows: list[str] = []
    for failure, remedies in LADDERS.items():
        tried = [_remedy(remedy, use, use.times(counts)) for remedy, use in remedies]
        rows.append(f"| {FAILURES[failure]} | {'; then '.join(tried)} |")
    yield _HEAD + "\n".join(rows) + "\n"
    yield _BESIDE
    yield "## All of them\n\n| exit | class | `finish_reason` | HTTP | exit status |\n|---|---|---|---|---|"
    records = [EXITS[code] for code in ExitCode]
    for record in records:
        code, kind = record.code, record.kind
        yield f"| [`{code}`](#{code}) | {kind} | `{kind.finish_reason}` | {record.http} | {kind.status} |"
    for kind in ExitClass:
        yield f"\n## {kind.heading}\n"
        for record in records:
            if record.kind is kind:
                yield from _exit(record)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _labels(actions: Sequence[Action]) -> str:
    return ", ".join(ACTION_LABELS[action] for action in actions)


def example(record: type[Exit]) -> Exit:
    """One that ended so."""
    return read({"code": record.code, "facts": record.example})


def _exit(record: type[Exit]) -> Iterator[str]:
    yield f"### `{record.code}`\n\n{record.__doc__}\n"
    told = example(record)
    notice = told.notice()
    if notice is not None:
        yield f"> ⚠️ {spelled(notice.text)}\n"
        if notice.actions:
            before = told.offers()
            also = f" Where no tool has run: {_labels(before)}." if before != notice.actions else ""
            yield f"Buttons: {_labels(notice.actions)}.{also}\n"
    yield f"For the operator: {record.operator}\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
