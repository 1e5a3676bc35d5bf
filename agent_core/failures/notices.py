"""What is told of exits: to programs, their classes; to people, notices with phrases that several exits say, what can be pressed, and why a
message was not run.

What one exit alone says stands in its record (`exits`); what is said while a turn goes on, in `view`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Self

from agent_core.limits.quotas import FILES_BY_COMMAND
from agent_core.records import dataclass
from agent_core.text.durations import duration
from agent_core.text.worded import Worded


class ExitClass(StrEnum):
    """What a program needs to know of an exit: its finish reason in the API (standard values only: strict clients break on others), the
    exit status of a one-shot command, and the HTTP status where nothing was produced and the exit has none of its own (200: the finish
    reason says it all). `heading` is the heading of its exits in the documentation."""

    _value_: str
    finish_reason: str
    status: int
    http: int
    heading: str

    def __new__(cls, value: str, finish_reason: str, status: int, http: int, heading: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.finish_reason, member.status, member.http, member.heading = finish_reason, status, http, heading
        return member

    CLEAN = "clean", "stop", 0, 200, "It ended well"
    HANDED = "handed", "tool_calls", 0, 200, "It ended well, and the client goes on"
    PROVIDER = "provider", "length", 10, 502, "The model or its provider failed"
    LIMIT = "limit", "length", 11, 500, "A limit was reached"
    LOOP = "loop", "length", 12, 502, "The model went round in a loop"
    REFUSED = "refused", "content_filter", 13, 200, "The provider's filter said no"
    STOPPED = "stopped", "length", 14, 499, "A person ended it"
    OURS = "ours", "length", 15, 500, "The gateway itself failed"
    NOT_STARTED = "not_started", "length", 75, 503, "It never began"


class Action(StrEnum):
    """What a person can do about a notice with one press."""

    CONTINUE = "continue"
    RETRY = "retry"
    WHY = "why"


@dataclass(frozen=True, slots=True)
class Notice:
    """What the gateway says to a person about an exit."""

    text: str
    actions: tuple[Action, ...] = ()


AGAIN = (Action.CONTINUE, Action.RETRY, Action.WHY)
RETRY = (Action.RETRY, Action.WHY)
WHY = (Action.WHY,)

CONTINUE = "Say “continue” to let it try again from here."
GO_ON = "Say “continue” to go on from here."
UNFINISHED = "The task is not finished."
ONLY_THE_REST_THEN = "Then say “continue” to have only the rest done."
ONLY_THE_REST = "Say “continue” in a moment to have only the rest done: the whole, sent again, may do twice what is done. Nothing is running now."
ANEW = "start anew with /new"
ANEW_FIRST = ANEW[:1].upper() + ANEW[1:]
_INSTEAD = {
    ANEW: "begin a new conversation",
    ANEW_FIRST: "Begin a new conversation",
    FILES_BY_COMMAND: "Ask for what you do not need to be deleted.",
}
"""What stands in the place of commands where there are none."""
BY_OPERATOR = "Asking again will not help before whoever runs this gateway has set that right."
A_MOMENT_SECONDS = 60
"""Who asks for a longer pause than that is not asked again "in a moment"."""


def for_programs(words: str) -> str:
    """A notice for those who have no commands: whoever calls the API."""
    for command, instead in _INSTEAD.items():
        words = words.replace(command, instead)
    return words


def say(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def times(count: int, word: str = "time") -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def names(tools: Iterable[str]) -> str:
    """Tool names for a sentence: repeated ones counted, at most six shown."""
    counted = Counter(name or "an unnamed tool" for name in tools)
    shown = [f"{name} ×{count}" if count > 1 else name for name, count in list(counted.items())[:6]]
    return ", ".join([*shown, f"{len(counted) - 6} more"] if len(counted) > 6 else shown)


def work_words(done: Sequence[str], dropped: Sequence[str], unsure: Sequence[str]) -> str:
    """What had been done and what was not; empty if no tool was involved."""
    return say(
        f"Done before that: {names(done)}." if done else "",
        f"Not executed: {names(dropped)}." if dropped else "",
        f"May or may not have run: {names(unsure)} – check before you repeat it." if unsure else "",
    )


def later_words(retry_after_seconds: int, *, ran: bool) -> str:
    """When to try again, and what: not again what was done."""
    if retry_after_seconds >= A_MOMENT_SECONDS:
        when = f"The provider says to try again in {duration(retry_after_seconds)}."
        return f"{when} {ONLY_THE_REST_THEN if ran else 'Nothing is running now.'}"
    return ONLY_THE_REST if ran else "Send it again in a moment; nothing is running now."


FORGOTTEN = (
    "What you said here until now, and what was answered, is being removed, because somebody asked that you be forgotten; what ran for it is "
    "stopped. What you write from now on is answered."
)
"""What whoever is forgotten is told where something of theirs ran or waited."""
DAMAGED = "what this conversation held cannot be read any more, because the storage is damaged"
"""Also the reason that is stored with its messages."""
RESTORED = "a backup was put back, in which this was still open; what was done since that backup was made is not known"
"""The reason that is stored with what was open in a backup (`outspoken db restore`)."""
UNREADABLE = "cannot be read any more, because the storage is damaged"
"""What is said of the end of a turn whose journal is lost."""
AFTER_DAMAGE = (
    "It is kept, but set aside. A new conversation begins here with what you write next; send again what still matters. Whoever runs "
    "the gateway is told."
)


class NotStarted(Worded):
    """Why an accepted message was not run, and what is said of it."""

    QUEUE_FULL = (
        "queue_full",
        "Your message was not taken up: {count} messages are already waiting here. It is not kept; send it again when they are done.",
    )
    TOO_OLD = (
        "too_old",
        "Your message was received too late to act on it. Nothing was done; send it again if it still matters.",
    )
    QUOTA = "quota", "Your message was not taken up: the quota is used up. It is not kept; send it again later."
    QUARANTINED = (
        "quarantined",
        f"Your message was not taken up: this conversation is set aside after repeated failures. {ANEW_FIRST}.",
    )
    DAMAGED = (
        "damaged",
        f"Your message was not answered, and nothing was done for it: {DAMAGED}. {AFTER_DAMAGE}",
    )
    """What the conversation held cannot be read: it is set aside, and its chat goes on with a new one."""
    GONE = "gone", "This was worked on before, and is over. What came of it {detail}."
    """It was run and is over, but what came of it is not there any more."""
    FORGOTTEN = "forgotten", f"Your message was not answered. {FORGOTTEN}"
    """Its person is being forgotten."""
    RESTORED = "restored", f"Your message was set aside: {RESTORED}. Send it again if it still matters."
    """It still waited in a backup that was put back."""
    WITHDRAWN = "withdrawn", "Your message was taken back before it was answered. Nothing was done for it."
    """Whoever sent it took it back."""
    NOT_OPENED = (
        "not_opened",
        "Your message was received, but a mistake of mine kept it from being worked on. Nothing was done; send it again.",
    )
    """A mistake of ours."""
    SHUTTING_DOWN = (
        "shutting_down",
        "Your message was not taken up: the gateway is shutting down. Send it again in a minute.",
    )

    def said(self, count: int = 0, detail: str = "") -> str:
        """What the person reads. `count`: messages that wait; `detail`: what else is known of why."""
        if self is NotStarted.QUARANTINED and detail:
            return f"Your message was set aside: {detail}. Say it in another way, and tell whoever runs the gateway."
        return self.words.format(count=count, detail=detail or "is not there any more")
