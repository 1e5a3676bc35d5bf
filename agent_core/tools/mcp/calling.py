"""What can become of a call to a server, and what is said of it. Pure.

Law (tests/mcp/test_calling.py): a call with an effect that its server may have taken is never made again, and unless the server answered its
outcome is not known; whatever happens, the words say why and whether it may have been done.
"""

from __future__ import annotations

from enum import Enum

from agent_core.tools.base import DoubtCause, EffectClass, ToolOutcome, ToolStatus
from agent_core.tools.mcp.terms import EVERY, REPEAT, ServerTerms


class CallTrouble(Exception):
    """A call did not come to a result. The words complete "the server NAME ..."."""


class NotReached(CallTrouble):
    """Nothing was sent."""


class Untaken(NotReached):
    """It was not sent, or the server did not know our connection any more: it cannot have begun with it."""


class Lost(CallTrouble):
    """It was sent, and the connection ended before a result came."""


class Silent(CallTrouble):
    """It was sent, and no result came in time."""


class Unreadable(CallTrouble):
    """A result came that cannot be read."""


class ServerRefused(CallTrouble):
    """The server answered that it does not do it; the words are the server's."""


class CallAgain(Enum):
    """What is done about a trouble."""

    AGAIN = "again"
    TELL = "tell"


def repeatable(terms: ServerTerms, tool: str, effect: EffectClass) -> bool:
    """Whether a call that was sent may be sent again. That a tool may be repeated is believed of its operator, not of its server."""
    match effect:
        case EffectClass.PURE:
            return True
        case EffectClass.KEYED:
            return tool in terms.keyed or EVERY in terms.keyed
        case EffectClass.EFFECT:
            return False


def next_of(trouble: CallTrouble, attempt: int, *, safe: bool) -> CallAgain:
    """Whether a call is made again whose attempt number `attempt` (from 1) met this; `safe` as `repeatable` says. What was not taken is made for the
    first time then, whatever it does."""
    may = isinstance(trouble, Untaken) or (isinstance(trouble, Lost) and safe)
    return CallAgain.AGAIN if may and not REPEAT.over(attempt) else CallAgain.TELL


def begun_before(tool: str) -> ToolOutcome:
    """The outcome of a call that a dead process began, and that is not sent again."""
    words = f"{tool} was begun, and the gateway was restarted before it came back.{_doubt(EffectClass.KEYED)}"
    return ToolOutcome(ToolStatus.UNKNOWN, words, doubt=DoubtCause.RESTARTED)


def told(trouble: CallTrouble, tool: str, server: str, effect: EffectClass) -> ToolOutcome:
    """The outcome of a call that met this and is not made again."""
    about = f"{tool}: the server {server} {trouble}."
    match trouble:
        case Untaken():
            return ToolOutcome(ToolStatus.FAILED, f"{about} It did not take the call, so nothing was done.")
        case NotReached():
            return ToolOutcome(ToolStatus.FAILED, f"{about} The call was not sent, so nothing was done.")
        case ServerRefused():
            return ToolOutcome(ToolStatus.FAILED, f"{tool} failed: {trouble}")
        case Silent():
            return ToolOutcome(ToolStatus.TIMED_OUT, f"{about}{_doubt(effect)}", doubt=DoubtCause.SLOW)
        case _:
            status = ToolStatus.FAILED if effect is EffectClass.PURE else ToolStatus.UNKNOWN
            cause = DoubtCause.NO_RESULT if isinstance(trouble, Unreadable) else DoubtCause.WENT_AWAY
            return ToolOutcome(status, f"{about}{_doubt(effect)}", doubt=cause)


def _doubt(effect: EffectClass) -> str:
    if effect is EffectClass.PURE:
        return " It only reads, so nothing was changed."
    return (
        " The call had been sent: it may have been done, in whole or in part, or not at all. Do not simply repeat it: check first "
        "whether it was done, or ask the person."
    )
