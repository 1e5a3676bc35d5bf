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
from agent_core.text.tongue import known_sentence, sentence, speak, speak_many, speaking, spelled
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

CONTINUE = sentence("Say “continue” to let it try again from here.")
GO_ON = sentence("Say “continue” to go on from here.")
UNFINISHED = sentence("The task is not finished.")
ONLY_THE_REST_THEN = sentence("Then say “continue” to have only the rest done.")
ONLY_THE_REST = sentence(
    "Say “continue” in a moment to have only the rest done: the whole, sent again, may do twice what is done. Nothing is running now."
)
ANEW = sentence("start anew with {/new}")
ANEW_FIRST = sentence("Start anew with {/new}")
_INSTEAD = {
    ANEW: sentence("begin a new conversation"),
    ANEW_FIRST: sentence("Begin a new conversation"),
    FILES_BY_COMMAND: sentence("Ask for what you do not need to be deleted."),
}
"""What is said where there are no commands."""
BY_OPERATOR = sentence("Asking again will not help before whoever runs this gateway has set that right.")
A_MOMENT_SECONDS = 60
"""Who asks for a longer pause than that is not asked again "in a moment"."""


def for_programs(words: str, language: str = "") -> str:
    """A notice in this language for those who have no commands: whoever calls the API."""
    with speaking(language):
        for command, instead in _INSTEAD.items():
            words = words.replace(speak(command), speak(instead))
    return spelled(words)


def say(*parts: str) -> str:
    """The sentences that there are, one behind the other; such as stand in constants are spoken here."""
    return " ".join(known_sentence(part) for part in parts if part)


def instead(advice: str) -> str:
    """Advice that may name the command to begin anew."""
    return speak(advice, anew=speak(ANEW), anew_first=speak(ANEW_FIRST))


def times(count: int) -> str:
    return speak_many("{count} time", "{count} times", count)


def attempts_words(count: int) -> str:
    """Behind what was tried so often."""
    return speak_many(", even after {count} attempt", ", even after {count} attempts", count)


def names(tools: Iterable[str]) -> str:
    """Tool names for a sentence: repeated ones counted, at most six shown."""
    counted = Counter(name or speak("an unnamed tool") for name in tools)
    shown = [f"{name} ×{count}" if count > 1 else name for name, count in list(counted.items())[:6]]
    if len(counted) > 6:
        shown.append(speak("{count} more", count=len(counted) - 6))
    return ", ".join(shown)


def work_words(done: Sequence[str], dropped: Sequence[str], unsure: Sequence[str]) -> str:
    """What had been done and what was not; empty if no tool was involved."""
    return say(
        speak("Done before that: {tools}.", tools=names(done)) if done else "",
        speak("Not executed: {tools}.", tools=names(dropped)) if dropped else "",
        speak("May or may not have run: {tools} – check before you repeat it.", tools=names(unsure)) if unsure else "",
    )


def later_words(retry_after_seconds: int, *, ran: bool) -> str:
    """When to try again, and what: not again what was done."""
    if retry_after_seconds >= A_MOMENT_SECONDS:
        when = speak("The provider says to try again in {duration}.", duration=duration(retry_after_seconds))
        return say(when, ONLY_THE_REST_THEN if ran else speak("Nothing is running now."))
    return say(ONLY_THE_REST if ran else speak("Send it again in a moment; nothing is running now."))


FORGOTTEN = sentence(
    "What you said here until now, and what was answered, is being removed, because somebody asked that you be forgotten; what ran for it is stopped. What you write from now on is answered."
)
"""What whoever is forgotten is told where something of theirs ran or waited."""
DAMAGED = sentence("what this conversation held cannot be read any more, because the storage is damaged")
"""Also the reason that is stored with its messages."""
RESTORED = sentence(
    "a backup was put back, in which this was still open; what was done since that backup was made is not known"
)
"""The reason that is stored with what was open in a backup (`outspoken db restore`)."""
UNREADABLE = sentence("cannot be read any more, because the storage is damaged")
"""What is said of the end of a turn whose journal is lost."""
AFTER_DAMAGE = sentence(
    "It is kept, but set aside. A new conversation begins here with what you write next; send again what still matters. Whoever runs the gateway is told."
)


class NotStarted(Worded):
    """Why an accepted message was not run, and what is said of it."""

    QUEUE_FULL = (
        "queue_full",
        sentence(
            "Your message was not taken up: {count} messages are already waiting here. It is not kept; send it again when they are done."
        ),
    )
    TOO_OLD = (
        "too_old",
        sentence(
            "Your message was received too late to act on it. Nothing was done; send it again if it still matters."
        ),
    )
    QUOTA = (
        "quota",
        sentence("Your message was not taken up: the quota is used up. It is not kept; send it again later."),
    )
    QUARANTINED = (
        "quarantined",
        sentence(
            "Your message was not taken up: this conversation is set aside after repeated failures. {anew_first}."
        ),
    )
    DAMAGED = (
        "damaged",
        sentence("Your message was not answered, and nothing was done for it: {damaged}. {after_damage}"),
    )
    """What the conversation held cannot be read: it is set aside, and its chat goes on with a new one."""
    GONE = "gone", sentence("This was worked on before, and is over. What came of it {detail}.")
    """It was run and is over, but what came of it is not there any more."""
    FORGOTTEN = "forgotten", sentence("Your message was not answered. {forgotten}")
    """Its person is being forgotten."""
    RESTORED = "restored", sentence("Your message was set aside: {restored}. Send it again if it still matters.")
    """It still waited in a backup that was put back."""
    WITHDRAWN = "withdrawn", sentence("Your message was taken back before it was answered. Nothing was done for it.")
    """Whoever sent it took it back."""
    NOT_OPENED = (
        "not_opened",
        sentence(
            "Your message was received, but a mistake of mine kept it from being worked on. Nothing was done; send it again."
        ),
    )
    """A mistake of ours."""
    SHORT = (
        "short",
        sentence(
            "Your message was received, but could not be worked on: {detail}. Nothing was done; send it again in some minutes. "
            "If this goes on, tell whoever runs the gateway."
        ),
    )
    """The machine had none left of something (`agent_core.failures.shortage`); `detail` says of what."""
    NO_MODEL = (
        "no_model",
        sentence("Your message was not answered: no model that may answer it is there. {by_operator}"),
    )
    """Whoever set the gateway up named models that it does not have."""
    SHUTTING_DOWN = (
        "shutting_down",
        sentence("Your message was not taken up: the gateway is shutting down. Send it again in a minute."),
    )

    def said(self, count: int = 0, detail: str = "") -> str:
        """What the person reads. `count`: messages that wait; `detail`: what else is known of why."""
        if self is NotStarted.QUARANTINED and detail:
            return speak(
                "Your message was set aside: {detail}. Say it in another way, and tell whoever runs the gateway.",
                detail=known_sentence(detail),
            )
        return speak(
            self.words,
            count=count,
            detail=known_sentence(detail) if detail else speak("is not there any more"),
            anew_first=speak(ANEW_FIRST),
            damaged=speak(DAMAGED),
            after_damage=speak(AFTER_DAMAGE),
            forgotten=speak(FORGOTTEN),
            restored=speak(RESTORED),
            by_operator=speak(BY_OPERATOR),
        )
