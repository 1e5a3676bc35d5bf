"""What is damaged for one conversation, and what for everybody: the decision."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.spread import AGAIN_SECONDS, MANY, MINUTE, Met, Spread

CHATS = [f"{platform}/1/{number}//" for platform in ("telegram", "slack") for number in range(6)]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([*CHATS, "telegram", "slack"]),  # a platform by itself: something was answered there
        st.booleans(),
        st.floats(0, 200),
    ),
    max_size=25,
)


def meet(spread: Spread, events: list[tuple[str, bool, float]]) -> list[tuple[Spread, Met | None]]:
    """Each state, with what led to it."""
    found: list[tuple[Spread, Met | None]] = []
    now = 0.0
    for who, usable, later in events:
        now += later
        met = Met(who, now, usable) if "/" in who else None
        spread = spread.after(met) if met is not None else spread.answered(who)
        found.append((spread, met))
    return found


@given(st.lists(st.sampled_from(CHATS), unique=True), st.floats(0, 5))
def test_however_many_are_set_aside_whole_it_is_not_everybodys(chats: list[str], apart: float) -> None:
    states = meet(Spread(), [(chat, True, apart) for chat in chats])
    assert not any(spread.everybodys for spread, _ in states)


@given(EVENTS, st.sampled_from(CHATS), st.booleans(), st.booleans(), st.floats(0, AGAIN_SECONDS))
def test_a_chat_whose_new_conversation_fails_as_well_makes_it_everybodys(
    before: list[tuple[str, bool, float]], chat: str, first: bool, second: bool, later: float
) -> None:
    states = meet(Spread(), [*before, (chat, first, 0.0), (chat, second, later)])
    assert states[-1][0].everybodys


@given(EVENTS)
def test_it_becomes_everybodys_only_by_a_chat_that_fails_again_or_by_many_at_once_with_no_answer_between(
    events: list[tuple[str, bool, float]],
) -> None:
    since: list[Met] = []
    before = False
    for (spread, met), (who, _, _) in zip(meet(Spread(), events), events, strict=True):
        assert spread.everybodys or not before, "it stays so"
        if met is None:
            since = [one for one in since if one.platform != who]
            assert spread.everybodys is before
        else:
            again = any(one.chat == met.chat and met.at - one.at <= AGAIN_SECONDS for one in since)
            since.append(met)
            useless = {one.chat for one in since if not one.usable and met.at - one.at <= MINUTE}
            if spread.everybodys and not before:
                assert again or len(useless) >= MANY
        before = spread.everybodys


@given(st.lists(st.sampled_from(CHATS), min_size=MANY, unique=True))
def test_many_chats_at_once_whose_new_conversations_cannot_be_used_make_it_everybodys(chats: list[str]) -> None:
    assert meet(Spread(), [(chat, False, 1.0) for chat in chats])[-1][0].everybodys
