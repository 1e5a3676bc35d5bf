"""Questions of tools: whatever is asked and answered, the tool gets what fits its form, and every step can be read back."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.text.tongue import speaking
from agent_core.tools.asking import (
    AnswerAction,
    AskedField,
    AskedStep,
    FieldKind,
    NotFitting,
    PersonAsked,
    ToolAnswer,
    ToolQuestion,
    kept,
    read_question,
    read_value,
    shown_step,
    step_of,
    steps_of,
)
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.registry import Runnable, ToolRegistry

NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)


def _whole(low: int) -> dict[str, Json]:
    return {"type": "integer", "minimum": low, "maximum": low + 5}


def _choice(names: list[str]) -> dict[str, Json]:
    return {"type": "string", "enum": [*names]}


def _several(names: list[str]) -> dict[str, Json]:
    return {"type": "array", "items": _choice(names), "minItems": 1}


def _text(most: int) -> dict[str, Json]:
    return {"type": "string", "maxLength": most}


CHOICES = st.lists(NAMES, min_size=1, max_size=4, unique=True)
YES_NO: dict[str, Json] = {"type": "boolean"}
MAIL: dict[str, Json] = {"type": "string", "format": "email"}
PROPOSED: st.SearchStrategy[Json] = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(), NAMES, st.lists(NAMES, max_size=3), st.just("x" * 9_000)
)


def _proposing(schema: dict[str, Json], default: Json) -> dict[str, Json]:
    """With what the program proposes, which may be anything."""
    return {**schema, "default": default}


PLAIN: st.SearchStrategy[dict[str, Json]] = st.one_of(
    st.builds(_whole, st.integers(-5, 5)),
    st.just(YES_NO),
    st.builds(_choice, CHOICES),
    st.builds(_several, CHOICES),
    st.builds(_text, st.integers(1, 9)),
    st.just(MAIL),
)
FIELDS = st.one_of(PLAIN, st.builds(_proposing, PLAIN, PROPOSED))
SCHEMAS = st.dictionaries(NAMES, FIELDS, min_size=1, max_size=4)
WORDS = st.one_of(
    st.sampled_from(["yes", "no", "1", "-3", "skip", "decline", "cancel", "a@b", "", '"x"']),
    NAMES,
    st.text(max_size=12),
)


def question(schema: Json, needed: list[Json] | None = None) -> ToolQuestion:
    found = read_question("desk (book)", "Which?", {"properties": schema, "required": needed or []})
    assert isinstance(found, ToolQuestion), found
    return found


@given(SCHEMAS, st.lists(WORDS, max_size=25), st.booleans())
def test_what_a_tool_gets_fits_its_form_and_steps_are_read_back(schema: dict[str, Json], said: list[str], needed: bool):
    asked = question(schema, [*schema] if needed else [])
    asking = PersonAsked(asked, [])
    asking.begin()
    for words in said:
        asking.answer(words, "ada")
        assert steps_of(kept(asking.steps)) == tuple(asking.steps)
        assert sum(step.open for step in asking.steps) == (asking.action is None)
    if asking.action is None:
        asking.expire()
        assert asking.result().action is AnswerAction.CANCEL
        return
    answer = asking.result()
    if answer.action is not AnswerAction.ACCEPT:
        assert not answer.content
        return
    assert set(answer.content) <= set(schema)
    assert not needed or set(answer.content) == set(schema)
    for one in asked.fields:
        value = answer.content.get(one.name)
        match one.kind:
            case FieldKind.WHOLE if value is not None:
                assert isinstance(value, int)
                assert one.least is not None
                assert one.least <= value <= one.least + 5
            case FieldKind.CHOICE if value is not None:
                assert value in [each for each, _ in one.options]
            case FieldKind.SEVERAL if value is not None:
                assert isinstance(value, list)
                assert value
                assert set(value) <= {each for each, _ in one.options}
            case FieldKind.YES_NO:
                assert value is None or isinstance(value, bool)
            case _:
                assert value is None or isinstance(value, str)
                assert one.most is None or len(value or "") <= one.most


@pytest.mark.parametrize(
    ("schema", "usual"),
    [
        ({"type": "string", "oneOf": [{"const": "hero-1", "title": "Superman"}], "default": "hero-1"}, "Superman"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Ada", "Bob"], "default": "b"}, "Bob"),
        ({"type": "array", "items": {"anyOf": [{"const": "f1", "title": "Tuna"}, {"const": "f2", "title": "Trout"}]},
          "default": ["f1", "f2"]}, "Tuna, Trout"),
        ({"type": "boolean", "default": True}, "yes"),
        ({"type": "number", "default": 3.14}, "3.14"),
        ({"type": "integer", "default": 2, "maximum": 1}, None),
        ({"type": "string", "enum": ["a"], "default": "z"}, None),
        ({"type": "boolean", "default": "yes"}, None),
        ({"type": "string", "maxLength": 3, "default": "long"}, None),
    ],
)  # fmt: skip
def test_what_is_proposed_is_shown_as_people_read_it_and_only_if_it_fits(schema: Json, usual: str | None):
    shown = step_of(question({"a": schema}), 0).text.splitlines()[-1]
    assert (f"(then it is {usual})" in shown) if usual is not None else "then it is" not in shown


def test_a_person_is_answered_in_their_language():
    with speaking("de"):
        asking = PersonAsked(question({"n": _whole(1)}, ["n"]), [])
        asking.begin()
        assert "ganze Zahl" in asking.answer("many", "ada")
        assert asking.answer("2", "ada") == "Danke."
        asking = PersonAsked(question({"n": _whole(1)}, ["n"]), [])
        asking.begin()
        asking.expire()
        assert shown_step(asking.steps[-1]).endswith("niemand hat rechtzeitig geantwortet")


@given(SCHEMAS, st.text(max_size=2_000))
def test_a_question_fits_into_a_message_and_begins_no_line_as_ours(schema: dict[str, Json], words: str):
    asked = read_question("desk", words, {"properties": schema})
    assert isinstance(asked, ToolQuestion)
    for at in range(len(asked.fields)):
        shown = step_of(asked, at).text
        assert len(shown) < 1_600
        lines = shown.splitlines()
        assert lines[0].startswith("desk asks")
        assert lines[-1].startswith("Answer with {/answer}")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"password": {"type": "string"}}}, "looks like a secret"),
        ({"properties": {"a": {"type": "string", "title": "API key"}}}, "looks like a secret"),
        ({"properties": {"a": {"type": "string", "format": "password"}}}, "looks like a secret"),
        ({"properties": {"a": {"type": "object"}}}, "cannot be asked for"),
        ({"properties": {f"f{n}": {"type": "boolean"} for n in range(30)}}, "form of 1 to 20 fields"),
        ({"properties": {"a": {"type": "string", "enum": ["x" * 50] * 20}}}, "more choices than can be shown"),
        (None, "form of 1 to 20 fields"),
    ],
)
def test_what_is_not_asked(schema: Json, words: str):
    found = read_question("desk", "?", schema)
    assert isinstance(found, str)
    assert words in found


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://a:b@c.example/",
        "https://x.example/" + "a" * 600,
        "https://[x",
    ],
)
def test_an_address_that_is_not_shown(address: str):
    assert isinstance(read_question("desk", "?", None, address), str)


def test_an_address_is_said_with_its_host():
    found = read_question("desk", "Log in", None, "https://login.example.org/a?b=c")
    assert isinstance(found, ToolQuestion)
    shown = step_of(found, 0).text
    assert "at login.example.org" in shown
    assert "https://login.example.org/a?b=c" in shown


def test_what_was_answered_before_a_restart_is_not_asked_again():
    asked = question({"seats": {"type": "integer"}, "quiet": {"type": "boolean"}}, ["seats", "quiet"])
    first = PersonAsked(asked, [])
    first.begin()
    assert first.answer("many", "ada") == "It must be a whole number."
    assert first.answer("3", "ada") == ""
    known = {step.mark: step.answer for step in steps_of(kept(first.steps)) if step.answer}
    second = PersonAsked(asked, [], known)
    second.begin()
    assert [step.answer for step in second.steps] == ["3", None]
    second.answer("yes", "ada")
    assert second.result().content == {"seats": 3, "quiet": True}


@given(SCHEMAS, st.lists(WORDS.filter(str.strip), max_size=10), st.sets(st.integers(0, 9)))
def test_what_is_asked_again_after_a_restart_stands_where_it_stood(
    schema: dict[str, Json], said: list[str], deaths: set[int]
):
    asked = question(schema)
    calm, shaken = PersonAsked(asked, []), PersonAsked(asked, [])
    calm.begin()
    shaken.begin()
    for number, words in enumerate(said):
        if number in deaths and shaken.action is None:
            before = [*steps_of(kept(shaken.steps))]
            shaken = PersonAsked(asked, before, {one.mark: one.answer for one in before if one.answer})
            shaken.begin()
        assert shaken.steps == calm.steps
        assert shaken.answer(words, "ada") == calm.answer(words, "ada")
    assert (shaken.action, shaken.content, shaken.steps) == (calm.action, calm.content, calm.steps)


def test_a_question_of_before_a_restart_that_is_not_put_again_waits_for_nobody():
    first = PersonAsked(question({"seats": {"type": "integer"}}), [])
    first.begin()
    second = PersonAsked(question({"quiet": {"type": "boolean"}}), [*first.steps])
    second.begin()
    assert [step.open for step in second.steps] == [True]
    assert "quiet" in second.steps[0].text


def test_two_fields_that_take_the_same_are_two_questions():
    asked = question({"from": {"type": "string", "title": "City"}, "to": {"type": "string", "title": "City"}})
    assert len({step_of(asked, at).mark for at in (0, 1)}) == 2


def test_who_would_not_say_has_not_declined():
    for words, action in (("cancel", AnswerAction.CANCEL), ("Decline", AnswerAction.DECLINE)):
        asking = PersonAsked(question({"a": {"type": "boolean"}}), [])
        asking.begin()
        asking.answer(words, "ada")
        assert asking.result().action is action


def test_a_choice_is_known_in_other_letters_only_where_one_alone_can_be_meant():
    one = AskedField("a", "A", FieldKind.CHOICE, needed=True, options=(("no", "no"), ("NO", "NO"), ("Yes", "Yes")))
    assert [read_value(one, said) for said in ("no", "NO", "yes")] == ["no", "NO", "Yes"]
    assert isinstance(read_value(one, "No"), NotFitting)


def test_what_is_usual_counts_for_what_is_skipped():
    asked = question({"a": {"type": "string", "default": "b"}, "c": {"type": "boolean"}})
    asking = PersonAsked(asked, [])
    asking.begin()
    asking.answer("skip", "")
    asking.answer("skip", "")
    assert asking.result().content == {"a": "b"}


@given(st.text(max_size=30))
def test_words_in_quotes_are_taken_as_they_are(words: str):
    one = AskedField("a", "A", FieldKind.TEXT, needed=False)
    value = read_value(one, f'"{words}"')
    assert value == words or isinstance(value, NotFitting)


def test_a_step_is_shown_with_its_answer():
    assert shown_step(AskedStep("m", "Which?", answer="3")) == "Which?\n→ 3"
    assert "nobody answered" in shown_step(AskedStep("m", "Which?", answer=""))


async def test_what_a_tool_asks_holds_none_of_the_gateways_secrets(tmp_path: Path):
    heard: list[ToolQuestion] = []

    async def ask(asked: ToolQuestion) -> ToolAnswer:
        heard.append(asked)
        return ToolAnswer(AnswerAction.DECLINE)

    class Asking:
        spec = ToolSpec("asks", "Asks.", {"type": "object"}, EffectClass.PURE)

        async def run(self, arguments: object, context: ToolContext) -> ToolOutcome:
            options = (("canary", "the canary"),)
            fields = (
                AskedField("a", "Is it canary?", FieldKind.CHOICE, needed=True, options=options),
                AskedField("b", "And?", FieldKind.TEXT, needed=False, usual="canary"),
            )
            await context.ask(ToolQuestion("canary desk", "I know canary", fields, "https://example.org/?key=canary"))
            return ToolOutcome(ToolStatus.OK, "done")

    registry = ToolRegistry([Asking()], hide=lambda text: text.replace("canary", "***"))
    where = ToolContext("t", "c", "t:c", tmp_path, "m", SystemClock(), lambda _: None, ask=ask)
    await registry.run(Runnable(Asking.spec, {}), where)
    (asked,) = heard
    shown = [step_of(asked, at) for at in range(len(asked.fields))]
    assert not any("canary" in f"{one.text}{one.options}" for one in shown)
    assert asked.fields[0].options[0][0] == "canary", "what the tool gets is what it offered"
    assert asked.fields[1].usual is None
