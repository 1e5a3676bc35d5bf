"""What a failure belongs to: the key, the title and the action of its group, for `outspoken triage`. Pure.

Rules. A turn's failure belongs to its fingerprint, whatever the size of the call that broke off: one stall comes with calls of every
size. What is our own fault has one group for each exit. All that the storage's absence leads to is one trouble, and so is a
connection that is lost, deaf and made anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import assert_never

from adapters.contract.chat import Cause
from adapters.platforms import platform_of, platforms
from agent_core.failures.exits import EXITS, ExitCode
from agent_core.failures.notices import DAMAGED, RESTORED, ExitClass
from agent_core.failures.shortage import NO_DISK, NO_FILES, NO_MEMORY
from agent_core.learning.incidents import failure_title, parts_of
from agent_core.store.keeping.forgetting import DROPPED, DROPPING
from gateway.observe.logcatalogue import DISK, LogEvent, event_of
from gateway.operate.triage.grouping import Issue
from gateway.queues.inbox import BY_CLIENT, BY_PERSON

OWN_FAULT = frozenset({"turn.driver_failed", "turn.driver_stuck", "invariant.broken", "turn.unreadable"})
"""Lines that accompany the end of a turn by `internal_error`."""
CONNECTION = frozenset({"adapter.deaf", "adapter.ended"})
"""With those of platforms that say so themselves (`LogEvent.connection`)."""
POINTERS = frozenset({"incident.opened"})
"""Lines about failures that are counted already."""
STORAGE = Issue("storage", "the storage did not answer", DISK, everyone=True)
DAMAGE = Issue(
    "storage|damaged", "the database is damaged: conversations set aside",
    "outspoken db check says where. Restore a backup if it says so: outspoken db restore.", everyone=True,
)  # fmt: skip
AFTER_RESTORE = (
    "A backup was put back then (outspoken db restore), and this was open in it. What was done since the backup was made is not known: ask "
    "those whom it concerns, or look into the database that was kept beside it."
)
SET_ASIDE = Issue("restored", "set aside when a backup was put back", AFTER_RESTORE)
"""A turn, or a part of an answer, that a restore has ended."""
PUT_BACK = "a backup was put back"
"""The reason of the row that marks a restore."""
NOT_TAKEN: Mapping[str, str] = {
    "queue_full": "Conversations get more messages than are answered in time. See what holds the turns up.",
    "gateway_full": "More people ask than are answered in time. See what holds the turns up, or raise `[session] open_turns`.",
    "no model that may answer it is there": "An agent or a key names models, and none of them is there. Run: outspoken doctor",
    NO_FILES: "The process has as many files and connections open as it may: allow it more (LimitNOFILE= of systemd, ulimit -n), and see what holds so many.",
    NO_DISK: "Free some space where the state directory and the workspaces are.",
    NO_MEMORY: "The machine has too little memory for what it does at once: lower `[session] open_turns`, or give it more.",
    "too many messages": "A person writes faster than per_minute lets them. Nothing, unless it should be more.",
}
CLIENTS_MISTAKE = (
    "Clients were told what is wrong. The lines api.refused name the requests, outspoken explain tells of each."
)
NO_FAILURE = (PUT_BACK, "not allowed to talk", BY_CLIENT, BY_PERSON, DROPPED, DROPPING)
"""Why messages are dropped rightly."""


@lru_cache(10_000)
def turn_issue(fingerprint: str) -> Issue:
    """Of a failure in a turn; ``exit|endpoint|model|tool|size``, or an exit alone."""
    code, endpoint, model, tool = fingerprint, "", "", ""
    if fingerprint.count("|") >= 4:
        code, endpoint, model, tool, _ = parts_of(fingerprint)
    try:
        known = ExitCode(code)
    except ValueError:  # a log of a newer version
        return Issue(
            f"turn|{code}", code.replace("_", " "), "This program is older than the log: it does not know this exit."
        )
    action = EXITS[known].operator
    if EXITS[known].kind in (ExitClass.OURS, ExitClass.NOT_STARTED):
        return Issue(f"turn|{code}", EXITS[known].title, action)
    return Issue(f"turn|{code}|{endpoint}|{model}|{tool}", failure_title(code, endpoint, model, tool), action)


def cause_of(words: str) -> str:
    """The database keeps a platform's words where the log has a `Cause`: that one, if the words tell it; else the words."""
    lowered = words.lower()
    blocked = (one for platform in platforms() for one in platform.blocked_words)
    return Cause.BLOCKED.value if any(one in lowered for one in blocked) else words


@lru_cache(10_000)
def delivery_issue(platform: str, cause: str) -> Issue:
    """Of a part that was refused for good. `cause` is one of `Cause`, or the platform's words."""
    if cause == RESTORED:
        return SET_ASIDE
    try:
        known = Cause(cause)
    except ValueError:
        plain = alike(cause)
        return Issue(
            f"delivery|{platform}|{plain}", f"not delivered on {platform}: {plain}", delivery_action(Cause.OTHER)
        )
    words = known.value.replace("_", " ") or "no reason given"
    return Issue(f"delivery|{platform}|{known.value}", f"not delivered on {platform}: {words}", delivery_action(known))


def dropped_issue(reason: str) -> Issue:
    """Of a message that was accepted and not run, or of a request that the API refused (its reason names the status)."""
    code, request, status = reason.partition(" (HTTP ")
    if request:
        reason = code.partition(" at ")[0]
        if status.startswith("4") and reason not in NOT_TAKEN:
            return Issue(f"message|{reason}", f"requests refused: {reason.replace('_', ' ')}", CLIENTS_MISTAKE)
    if reason == RESTORED:
        return SET_ASIDE
    if reason == DAMAGED:
        return DAMAGE
    action = NOT_TAKEN.get(reason, "See the log at that time: turn.not_opened says why.")
    return Issue(f"message|{reason}", f"messages not run: {reason.replace('_', ' ')}", action)


@lru_cache(10_000)
def event_issue(name: str, level: str, values: tuple[str, ...]) -> Issue:
    """Of a log line from warning on that is about no turn and no delivery. `values` are those of the event's `by`."""
    event: LogEvent | None = event_of(name)
    if event is None:
        return Issue(f"log|{name}", name, "This program does not know the event: see the line itself.")
    if event.action == DISK:
        return STORAGE
    who = ", ".join(_named(name, field, value) for field, value in zip(event.by.split(), values, strict=False))
    if name in CONNECTION or event.connection or (name == "adapter.down" and level != "error"):
        deaf = event_of("adapter.deaf")
        return Issue(f"connection|{who}", f"connection lost: {who}", deaf.action if deaf else "", everyone=True)
    everyone = event.everyone or name.startswith(("adapter.", "credential."))
    title = f"{name}{': ' if who else ''}{who}"
    return Issue(f"log|{name}|{level}|{who}", title, event.action, everyone=everyone)


def _named(event: str, field: str, value: str) -> str:
    """An account with its platform before it, which a platform's own lines leave out."""
    area = event.partition(".")[0]
    return f"{area}/{value}" if field == "account" and "/" not in value and platform_of(area) is not None else value


_NUMBER = re.compile(r"[0-9]+")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|“[^”]*”")


def alike(words: str) -> str:
    """Words of an error without what differs from time to time: numbers and what is quoted."""
    return _NUMBER.sub("#", _QUOTED.sub("…", words))[:80].strip()


def delivery_action(cause: Cause) -> str:
    """What to do about parts that a platform refused for good."""
    match cause:
        case Cause.BLOCKED:
            return "The person has blocked the bot. Nothing to mend."
        case Cause.NO_RIGHTS | Cause.NO_CHAT:
            return "The bot may not write there, or is not there any more. Let it in again, with the right to write."
        case Cause.NO_THREAD | Cause.NO_MESSAGE | Cause.UNEDITABLE:
            return "What it belonged to was deleted or closed. Nothing to mend."
        case Cause.FILE:
            return "The file is too large, empty or gone. See the platform's limit."
        case Cause.FORM | Cause.TOO_LONG:
            return "The platform refused even the plain form: report it with the words."
        case Cause.UNREADABLE:
            return (
                "The platform's answers cannot be read, so nobody knows whether the parts are there: look into the chats. Bring the "
                "platform's library up to date, or report it with the log's `delivery.unreadable`."
            )
        case Cause.SHIELDED:
            return "Something before the platform refused it for an hour: look at the proxy or firewall, and at what in the text it takes amiss."
        case Cause.NOT_LET_IN:
            return "The platform refuses the bot's token. Renew it: `outspoken setup`, then `outspoken doctor`."
        case Cause.NONE | Cause.UNCHANGED | Cause.MOVED | Cause.NOT_GROWING | Cause.OTHER:
            return "See the platform's words. `outspoken doctor` looks at the bot's rights."
        case _:
            assert_never(cause)
