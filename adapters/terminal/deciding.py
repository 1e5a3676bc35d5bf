"""A call that waits for an approval, in the conversation of a terminal: what is shown, and what typed words decide. Pure.

Nothing is approved by a key that is hit by mistake: a whole word is typed, approving and denying have none in common, and what is neither decides
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.terminal.approvals import offers_of
from adapters.terminal.operator import Table
from agent_core.records import dataclass
from agent_core.text.durations import duration
from agent_core.text.shown import harmless
from agent_core.text.tongue import speak

APPROVING: Mapping[str, str] = {"approve": "once", "conversation": "conversation", "always": "always"}
"""What is typed to approve, and for how long that counts."""
DENY = "deny"
GREEN, RED, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class TypedChoice:
    """What typed words decide."""

    approve: bool
    lasts: str = "once"


def choice_of(words: str, one: Table) -> TypedChoice | None:
    """What somebody decides by these words; None if they decide nothing."""
    said = words.strip().lower()
    if said == DENY:
        return TypedChoice(approve=False)
    lasts = APPROVING.get(said)
    return TypedChoice(approve=True, lasts=lasts) if lasts in offers_of(one) else None


def choices_words(one: Table, *, colours: bool) -> str:
    """What can be typed."""
    ways = {
        "once": "approve",
        "conversation": speak("{word} (such calls, in this one)", word="conversation"),
        "always": speak("{word} (such calls)", word="always"),
    }
    offered = [f"✅ {ways[lasts]}" for lasts in offers_of(one) if lasts in ways]
    words = [*(painted(each, GREEN, colours=colours) for each in offered), painted(f"🚫 {DENY}", RED, colours=colours)]
    return speak("Type  {words}", words="   ".join(words))


def asked_lines(one: Table, *, colours: bool) -> list[str]:
    """What is asked: the question with every argument, and what would become of a file."""
    lines = [f"🔐 {harmless(str(one.get('question')))}"]
    for line in harmless(str(one.get("diff") or "")).split("\n"):
        paint = {"+": GREEN, "-": RED}.get(line[:1])
        lines += [painted(line, paint, colours=colours) if paint else line] if line else []
    match one:
        case {"created_at": int(asked), "expires_at": int(until)}:
            limit = speak(
                "(Decide within {duration}; then the answer ends without it.)", duration=duration(until - asked)
            )
            return [*lines, limit]
        case _:
            return lines


def painted(words: str, paint: str, *, colours: bool) -> str:
    """In this colour, where there are colours."""
    return f"{paint}{words}{PLAIN}" if colours else words


def decided_words(choice: TypedChoice) -> str:
    """What was decided."""
    if not choice.approve:
        return speak("🚫 Denied: it does not run.")
    match choice.lasts:
        case "conversation":
            return speak("✅ Approved for this conversation.")
        case "always":
            return speak("✅ Approved always for such calls.")
        case _:
            return speak("✅ Approved.")


def waits_here(found: Sequence[Table], turn: str) -> Table | None:
    """The one of this turn."""
    return next((one for one in found if one.get("turn") == turn), None)
