"""Laws of what becomes of a call that comes to no result."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.base import DoubtCause, EffectClass, ToolStatus
from agent_core.tools.mcp.calling import (
    CallAgain,
    CallTrouble,
    Lost,
    NotReached,
    ServerRefused,
    Silent,
    Unreadable,
    Untaken,
    next_of,
    repeatable,
    told,
)
from agent_core.tools.mcp.terms import ServerTerms

TROUBLES = st.sampled_from([NotReached, Untaken, Lost, Silent, Unreadable, ServerRefused])
CLASSES = st.sampled_from(list(EffectClass))


LISTS = st.sets(st.sampled_from(["tool", "*", "other"])).map(tuple)


@given(TROUBLES, st.integers(1, 10), CLASSES, LISTS)
def test_only_what_reads_or_what_the_operator_vouches_for_is_made_again(
    kind: type[CallTrouble], attempt: int, effect: EffectClass, keyed: tuple[str, ...]
):
    safe = repeatable(ServerTerms("s", "s__", keyed=keyed), "tool", effect)
    if next_of(kind("why"), attempt, safe=safe) is CallAgain.AGAIN and kind is not Untaken:
        assert effect is EffectClass.PURE or (effect is EffectClass.KEYED and {"tool", "*"} & {*keyed})


@given(TROUBLES)
def test_no_call_is_made_for_ever(kind: type[CallTrouble]):
    assert next_of(kind("why"), 5, safe=True) is CallAgain.TELL


@given(TROUBLES, CLASSES)
def test_every_end_says_why_and_whether_it_may_have_been_done(kind: type[CallTrouble], effect: EffectClass):
    outcome = told(kind("the very reason"), "tool", "server", effect)
    assert "the very reason" in outcome.text
    sent_unanswered = kind in (Lost, Silent, Unreadable)
    assert ("may have been done" in outcome.text) == (sent_unanswered and effect is not EffectClass.PURE)
    said: dict[type[CallTrouble], DoubtCause] = {
        Lost: DoubtCause.WENT_AWAY,
        Silent: DoubtCause.SLOW,
        Unreadable: DoubtCause.NO_RESULT,
    }
    assert outcome.doubt is said.get(kind, DoubtCause.UNSAID)
    doubtful = outcome.status in (ToolStatus.UNKNOWN, ToolStatus.TIMED_OUT)
    if effect is not EffectClass.PURE:
        assert doubtful == sent_unanswered


@given(TROUBLES, st.booleans())
def test_only_what_was_lost_with_its_connection_or_not_taken_is_made_again_at_once(kind: type[CallTrouble], safe: bool):
    """A server that was silent may still be at work on it."""
    assert (next_of(kind("why"), 1, safe=safe) is CallAgain.AGAIN) == ((kind is Lost and safe) or kind is Untaken)
