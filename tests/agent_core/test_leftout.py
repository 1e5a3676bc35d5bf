"""What a provider refuses is found and left out, and the rest of the conversation stays as it was."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_core.failures.complaints import NOTHING_SAID, Complaint, Concern, Place
from agent_core.failures.leftout import (
    MOST_SUSPECTS,
    MOST_TRIES,
    Leaving,
    LeftOut,
    LeftOutKind,
    Suspect,
    doubted,
    fitting,
    looked_at,
    message_digest,
    suspects,
    tries,
    without,
)
from agent_core.jsonvalue import Json
from agent_core.messages import Message
from agent_core.settings import Route
from agent_core.turn.state import Remark, TimelineEntry
from agent_core.turn.timeline import remark
from agent_core.turn.transcript import problems
from tests.agent_core.strict import objections

PICTURE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SYSTEM: Message = {"role": "system", "content": "Be kind."}
PICTURES = Complaint(Concern.PICTURES)


def picture(number: int) -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{number:04}"}}


def said(words: str) -> Message:
    return {"role": "assistant", "content": words}


def result(number: int, words: str) -> Message:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": words}


def user(words: str, *parts: Json) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": words}, *parts] if parts else words}


def call(number: int) -> Message:
    function: Json = {"name": "read_file", "arguments": f'{{"path": "{number}.txt"}}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Message], int]:
    """A valid conversation, and where the message stands that is being answered."""
    messages: list[Message] = [SYSTEM] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 12))):
        shown = [picture(number)] if draw(st.integers(0, 3)) == 0 else []
        messages.append(user(draw(st.sampled_from((f"question {number}", "and now?"))), *shown))
        if draw(st.integers(0, 2)) == 0:
            messages += [call(number), result(number, f"result {number}")]
        messages.append(said(f"answer {number}"))
    current = len(messages)
    messages.append(user("and now?", *([picture(99)] if draw(st.booleans()) else [])))
    if draw(st.booleans()):
        messages += [call(100), result(100, "result 100")]
    return messages, current


def asked(
    messages: Sequence[Message], current: int, poison: set[str], complaint: Complaint = NOTHING_SAID
) -> tuple[int, list[Message]]:
    """How many calls it takes until no poison is in what is sent, and what is sent then. A provider that refuses says `complaint`."""
    leaving, calls = Leaving(), 0
    while True:
        sent = without(messages, leaving.parts, current)
        if not any(word in str(message) for word in poison for message in sent):
            return calls, sent
        further = leaving.next(suspects(sent, complaint, current))
        if further is None:
            return -1, sent
        leaving = further
        calls += 1
        assert calls <= 50


@given(conversations(), st.data())
def test_whatever_earlier_part_is_refused_it_is_found_in_a_few_calls(
    made: tuple[list[Message], int], data: st.DataObject
):
    messages, current = made
    words = [f"{kind} {n}" for n in range(12) for kind in ("question", "answer", "result")] + [
        "result 100",
        "png;base64",
    ]
    there = [word for word in words if any(word in str(m.get("content")) for m in messages)]
    assume(there)
    poison = data.draw(st.sampled_from(there))
    calls, sent = asked(messages, current, {poison})
    assert 0 < calls <= MOST_TRIES
    assert problems(sent) == []
    assert objections(sent) == objections(messages)


@given(conversations())
def test_the_words_that_are_being_answered_are_never_left_out(made: tuple[list[Message], int]):
    messages, current = made
    calls, sent = asked(messages, current, {"and now?"})
    assert calls == -1
    assert "and now?" in str(sent[current])
    loop: list[Message] = [*messages[: current + 1], call(100), result(100, "result 100")]
    calls, sent = asked(loop, current + 2, {"and now?"})  # a client's tool brings its result
    assert calls == -1
    assert "and now?" in str(sent[current])
    suspected = {one.key for one in suspects(loop, NOTHING_SAID, current + 2) if one.kind is LeftOutKind.MESSAGE}
    assert message_digest(loop[current]) not in suspected - {message_digest(one) for one in loop[:current]}
    earlier = [one for one in suspects(messages, NOTHING_SAID, len(messages)) if one.kind is LeftOutKind.MESSAGE]
    assert "and now?" in str(without(messages, earlier, current)[current])  # as an earlier turn has learnt it


@given(conversations(), st.integers(1, 12))
def test_a_named_message_is_left_out_alone_in_one_call(made: tuple[list[Message], int], number: int):
    messages, current = made
    at = next((p for p, m in enumerate(messages) if m.get("content") == f"answer {number}"), None)
    assume(at is not None)
    assert at is not None
    calls, sent = asked(messages, current, {f"answer {number}'"}, Complaint(Concern.MESSAGE, (Place(at),)))
    assert calls == 1
    assert [p for p in range(len(messages)) if messages[p] != sent[p]] == [at]


def test_where_a_provider_counts_without_system_messages_the_right_picture_is_left_out():
    messages: list[Message] = [
        {"role": "system", "content": "x"},
        user("one", picture(1)),
        said("a"),
        user("two", picture(2)),
    ]
    found = suspects(messages, Complaint(Concern.PICTURE, (Place(2, 1, native=True),)), 3)
    sent = without(messages, [one for one in found if one.named], len(messages))
    assert "base64,0001" in str(sent)
    assert "base64,0002" not in str(sent)


@given(conversations())
def test_a_model_that_takes_no_pictures_gets_none_and_hears_of_each(made: tuple[list[Message], int]):
    messages, current = made
    assume("image_url" in str(messages))
    calls, sent = asked(messages, current, {"image_url"}, PICTURES)
    assert calls == 1
    assert str(sent).count("a picture was here") == str(messages).count("'type': 'image_url'")
    assert all(isinstance(message.get("content"), str | None) for message in sent)


def test_two_bad_pictures_that_are_named_one_after_the_other_are_both_left_out():
    messages: list[Message] = [user("a", picture(1)), said("x"), user("b", picture(2))]
    first = Leaving().next(suspects(messages, Complaint(Concern.PICTURE, (Place(0, 1),)), 2))
    assert first is not None
    second = first.next(suspects(without(messages, first.parts, 2), Complaint(Concern.PICTURE, (Place(2, 1),)), 2))
    assert second is not None
    assert "base64" not in str(without(messages, second.parts, 2))


def test_what_is_left_out_in_vain_is_put_back():
    messages: list[Message] = [
        user("a"),
        said("x"),
        user("b"),
        said("y"),
        user("c"),
    ]
    found = suspects(messages, NOTHING_SAID, 4)
    first = Leaving().next(found)
    assert first is not None
    second = first.next(found)
    assert second is not None
    assert not {one.key for one in first.parts} & {one.key for one in second.parts}


def test_a_refused_parameter_accuses_no_message():
    assert suspects([user("a"), said("x"), user("b")], Complaint(Concern.FIELD), 2) == ()


def test_a_notice_of_the_gateway_is_no_suspect():
    told = said("[Notice from the gateway, not written by the model: no.]")
    assert [one.role for one in suspects([user("bad"), told, user("b")], NOTHING_SAID, 2)] == ["user"]


@given(conversations())
def test_leaving_out_again_changes_nothing_and_the_rest_is_as_it_was(made: tuple[list[Message], int]):
    messages, current = made
    found = suspects(messages, NOTHING_SAID, current)
    for one in found:
        sent = without(messages, [one], current)
        assert without(sent, [one], current) == sent
        changed = [p for p in range(len(messages)) if messages[p] != sent[p]]
        assert changed
        if one.kind is LeftOutKind.MESSAGE:
            assert all(messages[p].get("role") == one.role for p in changed)


@given(conversations())
def test_what_was_found_in_one_turn_is_known_in_the_next(made: tuple[list[Message], int]):
    messages, current = made
    found = suspects(messages, NOTHING_SAID, current)
    later = [*messages, said("well"), user("more")]
    for one in found:
        assert without(later, [one], len(later)) != later


def test_advice_behind_a_message_does_not_hide_it():
    plain: list[Message] = [user("a"), call(1), result(1, "bad")]
    advised: list[Message] = [*plain[:2], {**plain[2], "content": "bad\n\n[outspoken] Go on."}]
    left = [one for one in suspects(plain, NOTHING_SAID, 0) if one.role == "tool"]
    sent = without(advised, left, 0)
    assert "bad" not in str(sent[2])
    assert str(sent[2]["content"]).endswith("[outspoken] Go on.")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 31, 200])
def test_everything_is_tried_in_a_few_tries(count: int):
    found = [
        Suspect(str(number), LeftOutKind.PICTURE if number % 5 == 1 else LeftOutKind.MESSAGE) for number in range(count)
    ]
    made = tries(found)
    assert len(made) <= MOST_TRIES
    assert {one for group in made for one in group} == set(found)


def test_a_model_without_eyes_that_does_not_say_so_loses_its_pictures_and_nothing_else():
    messages: list[Message] = [
        user("a", picture(1)),
        said("x"),
        user("b", picture(2)),
        said("y"),
    ]
    messages.append(user("c"))
    calls, sent = asked(messages, 4, {"image_url"})
    assert calls == 1
    assert [str(one).count("left it out") for one in sent] == [1, 0, 1, 0, 0]


NOTICE = "[Notice from the gateway, not written by the model: the model did not reply.]"


@given(conversations())
def test_what_a_model_has_answered_is_not_doubted(made: tuple[list[Message], int]):
    messages, current = made
    found = doubted(messages, current)
    assert {one.kind for one in found} <= {LeftOutKind.PICTURE}
    assert bool(found) == ("'type': 'image_url'" in str(messages[current:]))


@given(conversations(), st.integers(0, 12), st.integers(0, 12))
def test_what_is_in_turns_without_an_answer_is_left_out_first(made: tuple[list[Message], int], lost: int, more: int):
    messages, current = made
    answers = {f"answer {lost}", f"answer {more}"}
    assume(any(str(m.get("content")) in answers for m in messages))
    messages = [said(NOTICE) if str(m.get("content")) in answers else m for m in messages]
    first = Leaving().next_doubted(doubted(messages, current))
    assert first is not None
    sent = str(without(messages, first.parts, current))
    for number in range(12):
        gone = f"answer {number}" in answers and f"question {number}'" in str(messages)
        assert (f"question {number}'" in sent) == (f"question {number}'" in str(messages) and not gone)
    assert NOTICE in sent
    assert "and now?" in sent


@given(conversations(), st.booleans())
def test_after_a_turn_without_an_answer_everything_is_doubted_at_last_and_never_more_than_twice(
    made: tuple[list[Message], int], results: bool
):
    messages, current = made
    assume(current > 1)
    messages[current - 1] = said(NOTICE)
    leaving, tried = Leaving(), 0
    while (further := leaving.next_doubted(doubted(messages, current, results=results))) is not None:
        leaving, tried = further, tried + 1
    assert 1 <= tried <= 2
    sent = without(messages, leaving.parts, current)
    assert "question" not in str(sent)
    assert "and now?" in str(sent[current])
    assert problems(sent) == []


@pytest.mark.parametrize("number", [0, MOST_SUSPECTS, 2 * MOST_SUSPECTS])
def test_what_a_provider_names_is_suspected_first_however_much_there_is(number: int):
    messages = [user("hello"), *(said(f"words {one}") for one in range(2 * MOST_SUSPECTS + 1)), user("and now")]
    found = suspects(messages, Complaint(Concern.UNSAID, (Place(1 + number),)), len(messages) - 1)
    assert [one.named for one in found] == [True] + [False] * (MOST_SUSPECTS - 1)
    assert found[0].key == message_digest(messages[1 + number])


def test_what_one_model_refused_is_left_out_for_that_model_and_no_other() -> None:
    parts = {where: (Suspect(f"{where}", LeftOutKind.PICTURE),) for where in ("hm", "hn", "gm", "again")}
    known = [LeftOut("h", "m", parts["hm"]), LeftOut("h", "n", parts["hn"]), LeftOut("g", "m", parts["gm"])]
    known.append(LeftOut("h", "m", parts["again"]))
    assert fitting(known, "h", "m") == (*parts["hm"], *parts["again"])
    assert fitting(known, "g", "m") == parts["gm"]
    assert fitting(known, "g", "n") == ()


SUSPECTS = st.builds(Suspect, st.sampled_from("ab"), st.sampled_from(list(LeftOutKind)), now=st.booleans())


@given(st.lists(st.tuples(st.lists(SUSPECTS, max_size=3), st.lists(SUSPECTS, max_size=3)), max_size=4))
def test_what_was_left_out_is_told_once_in_a_turn(calls: list[tuple[list[Suspect], list[Suspect]]]):
    """Of what an earlier turn left out it is told only if it belongs to the message that is being answered."""
    timeline: list[TimelineEntry] = []
    told: list[tuple[str, LeftOutKind]] = []
    for kept, new in calls:
        due = {(one.key, one.kind) for one in (*new, *(one for one in kept if one.now))} - set(told)
        remarks = remark(timeline, kept, new, Route("m", "host"), None)
        found = [(part.key, part.kind) for one in remarks for part in one.left_out]
        assert sorted(found) == sorted(due)
        told += found
        timeline += remarks
    keys = [one.key for one in timeline if isinstance(one, Remark)]
    assert len(set(keys)) == len(keys)


def test_what_a_model_takes_none_of_is_about_what_is_asked_now_where_there_is_any_of_it() -> None:
    none_taken = LeftOut("h", "m", (Suspect("", LeftOutKind.PICTURE, named=True),))
    picture: Message = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,A"}}],
    }
    words: Message = {"role": "user", "content": "And now?"}
    for messages, now in (([picture], True), ([words], False)):
        ((part,),) = [one.parts for one in looked_at([none_taken], messages)]
        assert part.now is now
