"""The page ``docs/exits.md``: every way in which a turn ends, printed from the code that ends turns. Pure.

``python -m gateway.operate.pages.exits > docs/exits.md``; a test compares the two (tests/docs/test_generated.py). The notices are made by
the function that makes those which people read, of an example's facts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from adapters.contract.chat import ACTION_LABELS
from agent_core.judging.remedies import LADDERS, RESTART_SECONDS, Asks, Failure, Helps, Pause, Remedy, Use
from agent_core.turn.exits import (
    Action,
    BreakCause,
    Budget,
    Exit,
    ExitClass,
    ExitCode,
    Facts,
    Measure,
    NotStarted,
    Spend,
    exit_class,
    finish_reason,
    process_status,
)
from agent_core.turn.notices import notice_for
from agent_core.turn.settings import LadderCounts
from gateway.operate.triage.actions import action_for

WHEN: Mapping[ExitCode, str] = {
    ExitCode.ANSWERED: "The model gave its answer.",
    ExitCode.HANDED_TO_CLIENT: "The model asked for tools of the API client, which goes on itself.",
    ExitCode.BROKEN_BEFORE_TEXT: "Nothing came of a reply, or the connection broke before any of it, also on the other ways.",
    ExitCode.BROKEN_IN_TEXT: "The stream broke in the text, and going on from there failed as well.",
    ExitCode.BROKEN_IN_TOOL_CALL: "The stream broke inside a tool call. What is half there is never executed.",
    ExitCode.SAME_STALL_AGAIN: "The same tool's call stalled for the third time or more, in this turn or in earlier ones, and all that there is was tried.",
    ExitCode.EMPTY_REPLY: "The model returned nothing at all.",
    ExitCode.EMPTY_AFTER_TOOLS: "Tools ran, and then the model returned nothing. What it said before is no answer.",
    ExitCode.THINKING_ONLY: "The model only reasoned.",
    ExitCode.PROMISED_WITHOUT_ACTING: "The model announced work and did not do it, also when it was asked to.",
    ExitCode.CUT_BY_LENGTH: "The text reached the model's output limit.",
    ExitCode.TOOL_CALL_CUT_BY_LENGTH: "A tool call reached the model's output limit.",
    ExitCode.REFUSED: "The provider's content filter refused the request.",
    ExitCode.REFUSED_MIDWAY: "The provider's content filter stopped a reply on its way.",
    ExitCode.UNKNOWN_TOOL: "The model asks again and again for a tool that does not exist.",
    ExitCode.UNREADABLE_ARGUMENTS: "The model sends again and again arguments that cannot be read.",
    ExitCode.REPEATING_FAILING_CALL: "The same call failed in the same way too often.",
    ExitCode.FAILING_TOOL: "One tool failed too often in a row.",
    ExitCode.NO_PROGRESS: "The same reading call gave the same result too often, or the same call with an effect was made far too often.",
    ExitCode.GOING_IN_CIRCLES: "A cycle of calls went round too often.",
    ExitCode.STEP_LIMIT: "So many model calls were made for one message.",
    ExitCode.TIME_LIMIT: "So much time was spent on one message.",
    ExitCode.SPEND_LIMIT: "A budget has no room for another model call.",
    ExitCode.RATE_LIMITED: "The provider answered 429, longer than is waited for.",
    ExitCode.PROVIDER_DOWN: "The provider cannot be reached, or answers with errors.",
    ExitCode.PROVIDER_GARBAGE: "What answers is no chat completion.",
    ExitCode.NOT_AUTHORISED: "The provider refuses the key, and there is no other one.",
    ExitCode.PAYMENT_REQUIRED: "The provider wants money.",
    ExitCode.MODEL_NOT_FOUND: "The provider does not know the model.",
    ExitCode.BAD_REQUEST: "The provider refuses the request itself, so it is not repeated.",
    ExitCode.CONTEXT_OVERFLOW: "The conversation does not fit into the model's context, also shortened.",
    ExitCode.REQUEST_TOO_LARGE: "The request has too many bytes for the provider, also shortened.",
    ExitCode.STOPPED: "A person stopped it.",
    ExitCode.SUPERSEDED: "A person's next message took its place.",
    ExitCode.APPROVAL_DENIED: "A person said no to a tool.",
    ExitCode.APPROVAL_EXPIRED: "Nobody said yes or no to a tool in time.",
    ExitCode.INTERRUPTED_BY_RESTART: "The gateway was restarted, and nothing safe was left to go on with: the turn's time was up by then, or restarts had broken off one step too often.",
    ExitCode.INTERNAL_ERROR: "A mistake in outspoken.",
    ExitCode.NOT_STARTED: "A message was accepted and could not be run.",
}
"""When it comes to that. For every exit: the page cannot be made without."""

_FACTS = Facts(
    cause=BreakCause.STALLED, seconds=120, attempts=4, steps=3, tools_done=("read_file",), tool="write_file", count=4, limit=50,
    announced="Now dispatching task 5:", pattern="the call of write_file breaks off", tried=("the same call again", "advice to send smaller pieces"),
    reference="err_7k2m", reason=NotStarted.QUEUE_FULL, model="some-model",
)  # fmt: skip
_DROPPED = replace(_FACTS, tools_dropped=("write_file",))
_BARE = replace(_FACTS, tools_done=())

EXAMPLES: Mapping[ExitCode, Facts] = {
    ExitCode.BROKEN_BEFORE_TEXT: replace(_BARE, cause=BreakCause.NO_CONTENT),
    ExitCode.BROKEN_IN_TEXT: replace(_FACTS, cause=BreakCause.DROPPED, attempts=3),
    ExitCode.BROKEN_IN_TOOL_CALL: replace(_DROPPED, attempts=3),
    ExitCode.EMPTY_AFTER_TOOLS: replace(_FACTS, tool="", text_shown=True),
    ExitCode.CUT_BY_LENGTH: _BARE,
    ExitCode.TOOL_CALL_CUT_BY_LENGTH: replace(_DROPPED, attempts=3),
    ExitCode.REFUSED: _BARE,
    ExitCode.UNKNOWN_TOOL: replace(_FACTS, tool="save_file"),
    ExitCode.REFUSED_MIDWAY: _BARE,
    ExitCode.TIME_LIMIT: replace(_FACTS, limit=1800),
    ExitCode.SPEND_LIMIT: replace(
        _FACTS,
        spend=Spend(
            budget=Budget.DAY, measure=Measure.TOKENS, limit=1_000_000, used=1_003_211, opens="2026-11-22 00:00 UTC",
            opens_in_seconds=7500,
        ),
    ),
    ExitCode.RATE_LIMITED: replace(_BARE, status=429, retry_after_seconds=600),
    ExitCode.PROVIDER_DOWN: replace(_BARE, cause=BreakCause.SERVER_ERROR, status=503, seconds=15),
    ExitCode.PROVIDER_GARBAGE: replace(_BARE, status=200, attempts=1),
    ExitCode.NOT_AUTHORISED: replace(_BARE, status=401),
    ExitCode.PAYMENT_REQUIRED: replace(_BARE, status=402),
    ExitCode.MODEL_NOT_FOUND: replace(_BARE, status=404),
    ExitCode.BAD_REQUEST: replace(_BARE, status=400, attempts=1, detail="temperature must be at most 1"),
    ExitCode.CONTEXT_OVERFLOW: replace(_BARE, size=131_000),
    ExitCode.REQUEST_TOO_LARGE: replace(_BARE, size=131_000, status=413),
    ExitCode.STOPPED: replace(_FACTS, detail="write_file"),
    ExitCode.APPROVAL_EXPIRED: replace(_FACTS, limit=600),
    ExitCode.INTERRUPTED_BY_RESTART: replace(_FACTS, tools_unsure=("write_file",)),
    ExitCode.NOT_STARTED: replace(_BARE, limit=20),
}  # fmt: skip
"""The facts of an example, where the usual ones do not fit."""

CLASSES: Mapping[ExitClass, str] = {
    ExitClass.CLEAN: "It ended well",
    ExitClass.HANDED: "It ended well, and the client goes on",
    ExitClass.PROVIDER: "The model or its provider failed",
    ExitClass.LIMIT: "A limit was reached",
    ExitClass.LOOP: "The model went round in a loop",
    ExitClass.REFUSED: "The provider's filter said no",
    ExitClass.STOPPED: "A person ended it",
    ExitClass.OURS: "The gateway itself failed",
    ExitClass.NOT_STARTED: "It never began",
}

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

Written by `python -m gateway.operate.pages.exits > docs/exits.md` from the code that ends turns; a test compares the two.

Every turn ends by exactly one of these exits. All but the clean ones come with a notice: what happened, what was done and what was not, and what to do
next. A notice is stored with the turn's end before it is shown, on every surface, and never passes for words of the model. The notices here are made
by the same function, of an example's facts.

- **`finish_reason`** is what clients of the API see; the exit itself is in `outspoken.exit` of the last chunk. `stop` belongs to `answered` alone.
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


def facts_of(code: ExitCode) -> Facts:
    """The facts of the page's example."""
    return EXAMPLES.get(code, _FACTS)


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
    yield "## All of them\n\n| exit | class | `finish_reason` | exit status |\n|---|---|---|---|"
    for code in ExitCode:
        yield f"| [`{code}`](#{code}) | {exit_class(code)} | `{finish_reason(code)}` | {process_status(code)} |"
    for group, words in CLASSES.items():
        yield f"\n## {words}\n"
        for code in ExitCode:
            if exit_class(code) is group:
                yield from _exit(code)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _labels(actions: Sequence[Action]) -> str:
    return ", ".join(ACTION_LABELS[action] for action in actions)


def _exit(code: ExitCode) -> Iterator[str]:
    yield f"### `{code}`\n\n{WHEN[code]}\n"
    notice = notice_for(Exit(code, facts_of(code)))
    if notice is not None:
        yield f"> ⚠️ {notice.text}\n"
        if notice.actions:
            before = notice_for(Exit(code, replace(facts_of(code), tools_done=(), tools_unsure=())))
            other = before.actions if before is not None else ()
            also = f" Where no tool has run: {_labels(other)}." if other != notice.actions else ""
            yield f"Buttons: {_labels(notice.actions)}.{also}\n"
    yield f"For the operator: {action_for(code)}\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
