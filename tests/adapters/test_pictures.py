"""What a chat shows of a turn's view."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.chat import ContentKind, Traits
from adapters.delivery.parts import WantedPart, picture, status_words
from adapters.text.styled import Style, Styled
from agent_core.failures.notices import Action
from agent_core.turn.view import Bubble, BubbleKind, View

TEXTS = (BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER)
TOOLS = (BubbleKind.ACTIVITY, BubbleKind.APPROVAL, BubbleKind.DECIDED, BubbleKind.QUESTION)
WHILE_OPEN = (*TEXTS, BubbleKind.NOTE, BubbleKind.ACTIVITY, BubbleKind.MENDED, BubbleKind.FILE)
STATUS = Bubble("status", BubbleKind.STATUS, "Waiting for the model, 20 s", final=False)


def pieces(text: str, grows: bool) -> tuple[Styled, ...]:
    return tuple(Styled(text[at : at + 10]) for at in range(0, len(text), 10))


@st.composite
def views(draw: st.DrawFn) -> View:
    kinds = draw(st.lists(st.sampled_from(WHILE_OPEN), max_size=5))
    bubbles = [Bubble(f"b{i}", kind, f"words of {i}", final=True, state="done") for i, kind in enumerate(kinds)]
    if bubbles and bubbles[-1].kind in TEXTS and draw(st.booleans()):
        bubbles[-1] = replace(bubbles[-1], final=False)
    if draw(st.booleans()):
        bubbles.append(STATUS)
    return View(tuple(bubbles), open=True)


def status_of(view: View, *, growing: bool, drafts: bool) -> str:
    shown = picture(view, "t_1", pieces, traits=Traits(drafts=drafts), reply_to="", growing=growing)
    return "".join(one.content.body.text for one in shown.wanted if one.content.kind is ContentKind.STATUS)


@given(views())
def test_the_status_is_that_of_the_view_whatever_was_formatted_this_time(view: View) -> None:
    found = {status_of(view, growing=growing, drafts=drafts) for growing in (True, False) for drafts in (True, False)}
    assert len(found) == 1
    assert (STATUS in view.bubbles) == (STATUS.text in found.pop())


SAME = Traits(drafts=False)


def parts_of(*bubbles: Bubble, traits: Traits = SAME, reply_to: str = "", still: bool = False) -> list[WantedPart]:
    shown = picture(View(bubbles, open=still), "t_1", pieces, traits=traits, reply_to=reply_to)
    return list(shown.wanted)


def answer(text: str, key: str = "b0") -> Bubble:
    return Bubble(key, BubbleKind.ANSWER, text, final=True)


@given(st.integers(1, 45), st.booleans())
def test_where_people_reply_every_part_answers_and_elsewhere_the_first_one_does(size: int, replies: bool) -> None:
    found = [
        one.content.reply_to
        for one in parts_of(answer("x" * size), traits=Traits(drafts=False, replies=replies), reply_to="m")
    ]
    assert found == ["m" if replies or not number else "" for number in range(len(found))]
    assert not any(
        one.content.reply_to for one in parts_of(answer("x" * size), traits=Traits(drafts=False, replies=replies))
    )


@given(st.integers(1, 45))
def test_a_long_notice_is_acted_on_under_its_last_part(size: int) -> None:
    notice = Bubble("b0", BubbleKind.NOTICE, "x" * size, final=True, actions=(Action.CONTINUE,))
    found = [len(one.content.buttons) for one in parts_of(notice)]
    assert found == [0] * (len(found) - 1) + [1]


def test_the_words_of_a_long_text_that_grows_are_settled_but_for_the_last_part() -> None:
    growing = Bubble("b0", BubbleKind.ANSWER, "x" * 25, final=False)
    assert [one.final for one in parts_of(growing, still=True)] == [True, True, False]
    assert all(one.final for one in parts_of(growing)), "of a turn that is over nothing grows"


SOME = st.sampled_from([BubbleKind.ACTIVITY, BubbleKind.APPROVAL, BubbleKind.NOTE, BubbleKind.INTERIM])


@example([BubbleKind.INTERIM, BubbleKind.ACTIVITY, BubbleKind.NOTE, BubbleKind.ACTIVITY, BubbleKind.INTERIM], True)
@example([BubbleKind.APPROVAL], True)
@given(st.lists(SOME, max_size=6), st.booleans())
def test_every_tool_is_on_one_card_of_those_that_follow_each_other(kinds: list[BubbleKind], still: bool) -> None:
    bubbles = tuple(Bubble(f"b{i}", kind, "words", final=True, state="done") for i, kind in enumerate(kinds))
    found = parts_of(*bubbles, traits=Traits(drafts=False, cards=True), still=still)
    cards = [part for part in found if part.content.tasks]
    assert [task.id for card in cards for task in card.content.tasks] == [
        one.key for one in bubbles if one.kind is BubbleKind.ACTIVITY
    ]
    for card in cards:
        place = int(card.bubble[1:].removesuffix(".tools"))
        assert kinds[place] in TOOLS
        assert card.content.silent
        # Words end a card; while nothing but tools follows in an open turn, another may be added.
        assert card.final is (not still or BubbleKind.INTERIM in kinds[place:])
    texts = [place for place, part in enumerate(found) if part.content.kind is ContentKind.TEXT]
    between = [found[one + 1 : other] for one, other in pairwise([-1, *texts, len(found)])]
    assert all(sum(bool(part.content.tasks) for part in some) <= 1 for some in between), "one card between two texts"


@given(st.booleans())
def test_a_card_of_a_tool_that_runs_may_still_change(still: bool) -> None:
    runs = Bubble("b0", BubbleKind.ACTIVITY, "read", final=False, state="running")
    (card,) = [
        part
        for part in parts_of(runs, answer("x", "b1"), traits=Traits(drafts=False, cards=True), still=still)
        if part.content.tasks
    ]
    assert not card.final


@given(st.integers(1, 45))
def test_an_answer_is_judged_at_its_last_part(size: int) -> None:
    judged = Traits(drafts=False, feedback=True)
    found = [one.content.feedback for one in parts_of(answer("x" * size), traits=judged)]
    assert found == [""] * (len(found) - 1) + ["t_1"]
    assert not any(one.content.feedback for one in parts_of(answer("x" * size), traits=judged, still=True))
    assert not any(one.content.feedback for one in parts_of(answer("x" * size)))


def test_what_is_looked_at_another_time_keeps_the_reply() -> None:
    growing, view = Bubble("b0", BubbleKind.ANSWER, "x", final=False), answer("y", "b1")
    shown = picture(View((growing, view), open=True), "t_1", pieces, traits=SAME, reply_to="m", growing=False)
    assert [(one.bubble, one.content.reply_to) for one in shown.wanted] == [("b1", "")]
    shown = picture(View((view, growing), open=True), "t_1", pieces, traits=SAME, reply_to="m", growing=False)
    assert [(one.bubble, one.content.reply_to) for one in shown.wanted] == [("b1", "m")]
    assert shown.untouched == ("b0",)


def test_what_was_decided_and_a_file_are_shown_once_and_for_good() -> None:
    decided, file = parts_of(
        Bubble("b0", BubbleKind.DECIDED, "Approved.", final=True),
        Bubble("b1", BubbleKind.FILE, "a.txt", final=True, path="/there"),
    )
    assert (decided.content.kind, decided.content.silent, decided.final) == (ContentKind.APPROVAL, True, True)
    assert (file.content.file, file.content.file_name, file.final) == ("/there", "a.txt", True)


def test_a_status_is_the_last_part_and_is_not_there_to_stay() -> None:
    *_, status = parts_of(answer("x"), STATUS, still=True)
    assert (status.content.kind, status.content.silent) == (ContentKind.STATUS, True)
    assert (status.fleeting, status.final) == (True, False)
    assert all(one.content.kind is ContentKind.TEXT for one in parts_of(answer("x"), STATUS))


def test_a_chat_that_speaks_a_language_is_told_which() -> None:
    shown = picture(View((answer("x"),), open=False, language="de"), "t_1", pieces, traits=SAME, reply_to="")
    assert [one.content.language for one in shown.wanted] == ["de"]


@given(st.sampled_from(["", "- a\n+ b", "not in it"]))
def test_all_of_what_is_asked_is_shown_as_it_stands(change: str) -> None:
    asked = Bubble("b0", BubbleKind.APPROVAL, "May I write?\nto a.txt\n- a\n+ b\nnow", final=True, change=change)
    (part,) = parts_of(asked)
    body = part.content.body
    shown = {body.text[span.start : span.end]: span.style for span in body.spans}
    if change == "- a\n+ b":
        assert shown == {"to a.txt": Style.CODE, change: Style.PRE, "now\n": Style.CODE}
    else:
        assert shown == {body.text.partition("\n")[2]: Style.CODE}


def test_while_text_arrives_a_silence_is_told_and_no_tool() -> None:
    growing = Bubble("b1", BubbleKind.ANSWER, "x", final=False)
    tool = Bubble("b0", BubbleKind.ACTIVITY, "read", final=False, state="running", seconds=99)
    assert status_words([tool, growing]) == ""
    assert status_words([tool, growing, STATUS]) == f"⏳ {STATUS.text}"
    assert status_words([tool]).startswith("⚙️ read")


def test_of_what_was_mended_the_latest_alone_is_told() -> None:
    mended = [Bubble(f"m{number}", BubbleKind.MENDED, f"time {number}", final=True) for number in range(3)]
    assert status_words([*mended, STATUS]) == f"✓ time 2\n⏳ {STATUS.text}"


def test_where_what_is_to_be_approved_was_cut_all_of_it_is_a_file_before_the_question() -> None:
    asked = Bubble("b0", BubbleKind.APPROVAL, "May I?\nwrite …", final=True, call="c", whole="write all of it")
    all_of_it, question = parts_of(asked)
    assert (all_of_it.content.file_text, all_of_it.content.buttons) == ("write all of it", ())
    assert question.content.buttons
    assert len(parts_of(replace(asked, whole=""))) == 1


@given(st.lists(st.text("abc", min_size=1, max_size=50), min_size=1, max_size=5))
def test_what_is_pressed_names_its_question_and_its_place_among_the_answers(options: list[str]) -> None:
    asked = Bubble("b0", BubbleKind.QUESTION, "Who?\nsaid\nHow", final=True, call="c", options=tuple(options))
    (part,), (other,) = parts_of(asked), parts_of(replace(asked, key="b1"))
    pressed = [button.data for button in part.content.buttons]
    mark = pressed[0].removesuffix("0")
    assert pressed == [f"{mark}{place}" for place in range(len(options))]
    assert mark.startswith("answer:t_1:")
    assert not set(pressed) & {button.data for button in other.content.buttons}, "two questions of one call"
