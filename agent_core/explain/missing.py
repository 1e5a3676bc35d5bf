"""Why nothing came of a message that is not stored, in sentences. Pure; for operators, and so in English."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.explain.why import MOST_LINES, NEEDS_A_PERSON, UP, Sentence, adapter_words, fitted
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import AdapterStateRow


def gone_lines(before: tuple[int, int] | None, after: tuple[int, int]) -> list[Sentence]:
    """Of a message of ours that is not stored any more: between which others, (number, ms), it came."""
    lines = [Sentence(before[1], f"The message before it came (number {before[0]}).")] if before is not None else []
    words = f"It came before this: the next one that is stored, number {after[0]}."
    return [*lines, Sentence(after[1], words, frame=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingStored:
    """Nothing is stored of what somebody says they wrote."""

    at: int
    since: int
    until: int
    where: str
    adapters: Sequence[AdapterStateRow]
    """From the state in force at `since` to the last one before `until`."""
    starts: Sequence[int]
    """When the gateway was started, the last time before `since` first."""
    kept_days: int = 0
    """For how many days messages are kept; 0 is for ever."""
    forgotten: bool = False
    """It is so long ago that messages of then are not kept."""
    before: tuple[int, int] | None = None
    """(number, ms) of the last message of the chat before that time."""
    after: tuple[int, int] | None = None


def missing_lines(missing: NothingStored, *, show_text: bool) -> list[Sentence]:
    """What can be said about a message that is not stored: above all, how the adapter was doing then."""
    lines = [
        Sentence(row.at, adapter_words(row, show_text=show_text), frame=row.state != UP) for row in missing.adapters
    ]
    lines += [Sentence(at, "The gateway was started.", frame=True) for at in missing.starts if at >= missing.since]
    if missing.before is not None:
        lines.append(
            Sentence(missing.before[1], f"The last message before that came from there (number {missing.before[0]}).")
        )
    if missing.after is not None:
        lines.append(Sentence(missing.after[1], f"The next message came from there (number {missing.after[0]})."))
    lines.append(Sentence(missing.at, _verdict(missing), frame=True))
    return fitted(sorted(lines, key=lambda line: line.at), MOST_LINES - 1)


def _verdict(missing: NothingStored) -> str:
    nothing = f"No message from {missing.where} is stored around this time."
    if missing.forgotten:
        return (
            f"{nothing} Messages and the states of adapters are kept for {missing.kept_days} days, so one may have come then and been "
            "forgotten; turns are kept, and can be explained by their ids."
        )
    then = [row for row in missing.adapters if row.at <= missing.at]
    trouble = [row for row in missing.adapters if row.state != UP and row.at <= missing.until]
    if not missing.adapters:
        running = "" if missing.starts else " No gateway had been started then."
        return f"{nothing} No state of its adapter is stored either: it may not have been configured.{running}"
    if then and then[-1].state != UP:
        how = "needed a person" if then[-1].state == NEEDS_A_PERSON else f"was {then[-1].state}"
        return f"{nothing} The adapter {how}, so it cannot have come; the platform may deliver it later."
    if trouble:
        return f"{nothing} The adapter was up, yet in trouble around then, so it may have been lost on its way."
    return (
        f"{nothing} The adapter was up: either it did not reach us, or it was not meant for the bot "
        "(in a group: no mention, no reply to it), and such messages are not stored."
    )
