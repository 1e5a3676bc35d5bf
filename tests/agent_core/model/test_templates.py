"""Conversations in the forms that chat templates take: what each wants is so, whatever the conversation, and nothing said is lost."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.messages import Message, text_of
from agent_core.model.manners import POLITE, amended
from agent_core.model.templates import AS_IT_IS, TemplateForm, fitted, learnt, plainer
from agent_core.turn.transcript import problems

PICTURE: Json = [
    {"type": "text", "text": "See."},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
]
EITHER = (False, True)
FORMS = [TemplateForm(no_system=a, plain_turns=b, single_calls=c, short_ids=d, one_text=e) for a in EITHER for b in EITHER for c in EITHER for d in EITHER for e in EITHER]  # fmt: skip


def text(words: str) -> Json:
    return {"type": "text", "text": words}


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    found: list[Message] = []
    if draw(st.booleans()):
        found.append({"role": "system", "content": "Be kind."})
    for turn in range(draw(st.integers(1, 4))):
        found.append(
            {
                "role": "user",
                "content": draw(
                    st.sampled_from([f"Question {turn}.", [text(f"Question {turn}."), text("!")], PICTURE])
                ),
            }
        )
        for step in range(draw(st.integers(0, 2))):
            ids = [f"call_{turn}_{step}_{n}" for n in range(draw(st.integers(1, 3)))]
            calls: Json = [
                {"id": i, "type": "function", "function": {"name": "read", "arguments": f'{{"n": "{i}"}}'}} for i in ids
            ]
            found.append(
                {"role": "assistant", "content": draw(st.sampled_from([None, "I look."])), "tool_calls": calls}
            )
            found.extend(
                {"role": "tool", "tool_call_id": i, "content": f"Result of {i}."} for i in draw(st.permutations(ids))
            )
        found.append({"role": "assistant", "content": f"Answer {turn}."})
    found.append({"role": "user", "content": "And now?"})
    return found


def said(messages: list[Message]) -> str:
    return json.dumps([text_of(m.get("content")) for m in messages]) + json.dumps(
        [m.get("tool_calls") for m in messages]
    )


@given(conversations(), st.sampled_from(FORMS))
def test_a_conversation_in_any_form_is_valid_has_all_that_was_said_and_stays_as_it_is(
    messages: list[Message], form: TemplateForm
):
    found = fitted(messages, form)
    assert problems(found) == []
    assert fitted(found, form) == found
    for each in (
        "Be kind.",
        *(f"Question {n}." for n in range(4)),
        *(f"Answer {n}." for n in range(4)),
        "And now?",
        "Result of call_0_0_0.",
    ):
        assert said(messages).count(each) == said(found).count(each)
    pictures = json.dumps(messages).count("image_url")
    assert json.dumps(found).count("image_url") == pictures


@given(conversations(), st.sampled_from(FORMS))
def test_each_form_is_what_its_template_wants(messages: list[Message], form: TemplateForm):
    found = fitted(messages, form)
    roles = [message["role"] for message in found]
    if form.no_system:
        assert "system" not in roles
    if form.plain_turns:
        turns = [role for role in roles if role != "system"]
        assert turns == ["user", "assistant"] * (len(turns) // 2) + ["user"]
    calls = [message.get("tool_calls") or [] for message in found]
    if form.single_calls:
        assert all(len(each) < 2 for each in calls if isinstance(each, list))
        assert all(roles[at + 1] == "tool" for at, each in enumerate(calls) if each)
    if form.one_text:
        assert all("image_url" in str(m["content"]) for m in found if isinstance(m.get("content"), list))
    if form.short_ids:
        ids = [str(message["tool_call_id"]) for message in found if "tool_call_id" in message]
        assert all(len(each) == 9 and each.isalnum() for each in ids)
        assert len(set(ids)) == len(ids)


CALLED: list[Message] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Read."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Words."},
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("System role not supported", TemplateForm(no_system=True)),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", TemplateForm(no_system=True)),
        ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", TemplateForm(no_system=True)),
        ("Conversation roles must alternate user/assistant/user/assistant/...", TemplateForm(plain_turns=True)),
        ("Only user and assistant roles are supported, with the exception of an initial optional system message!", TemplateForm(plain_turns=True)),
        ("This model only supports single tool-calls at once!", TemplateForm(single_calls=True)),
        ("Multiple tool calls are not supported.", TemplateForm(single_calls=True)),
        ("Tool call id was call_49c89af0 but must be a-z, A-Z, 0-9, with a length of 9", TemplateForm(short_ids=True)),
        ("messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", TemplateForm(short_ids=True)),
        ("messages.2.content.0.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'", TemplateForm(short_ids=True)),
        ("Value 'f:0' at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", TemplateForm(short_ids=True)),
        ("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 60 instead.", TemplateForm(short_ids=True)),
        ("Invalid 'messages[3].tool_call_id': string too long. Expected a string with maximum length 40", TemplateForm(short_ids=True)),
        ("The server is overloaded", AS_IT_IS),
    ],
)  # fmt: skip
def test_what_a_template_says_is_learnt_under_any_status(words: str, form: TemplateForm):
    sent = {"model": "m", "messages": CALLED}
    assert learnt(AS_IT_IS, CALLED, words) == form
    for status in (400, 404, 500):
        found = amended(POLITE, sent, status, {"error": {"message": words}})
        assert (found.form if found else AS_IT_IS) == form


@pytest.mark.parametrize(
    "words",
    [
        "Failed to deserialize the JSON body into the target type: messages[1]: invalid type: sequence, expected a string at line 1 column 120",
        "json: cannot unmarshal array into Go struct field Message.messages.content of type string",
        'can only concatenate str (not "list") to str',
        "messages.2.tool.content Input should be a valid string [type=string_type, input_value=[{'type': 'text'}]]",
        "'messages.2' : for 'role:tool' the following must be satisfied[('messages.2.content' : value must be a string)]",
    ],
)
def test_lists_are_no_lists_where_nothing_but_text_is_taken(words: str):
    """opencode and others send lists always."""
    listed: list[Message] = [{"role": "user", "content": [text("a"), text("b")]}]
    form = learnt(AS_IT_IS, listed, words)
    assert form == TemplateForm(one_text=True)
    assert fitted(listed, form) == [{"role": "user", "content": "a\n\nb"}]
    assert learnt(form, fitted(listed, form), words) == form
    # It is the picture that is refused
    assert learnt(AS_IT_IS, [{"role": "user", "content": PICTURE}], words) == AS_IT_IS


def test_roles_that_must_alternate_without_tools_mean_the_system_role():
    """Mistral's first templates say so of a system message, which they do not know."""
    words = "Conversation roles must alternate user/assistant/user/assistant/..."
    assert learnt(AS_IT_IS, CALLED[:2], words) == TemplateForm(no_system=True)
    plain = learnt(AS_IT_IS, CALLED, words)
    assert learnt(plain, fitted(CALLED, plain), words) == TemplateForm(plain_turns=True, no_system=True)


def test_a_template_that_says_the_same_of_every_form_is_not_asked_for_ever():
    words = "Conversation roles must alternate user/assistant/user/assistant/..."
    form, tries = AS_IT_IS, 0
    while (better := learnt(form, fitted(CALLED, form), words)) != form:
        form, tries = better, tries + 1
    assert tries == 2


def test_a_grammar_that_fails_costs_first_what_narrows_values_and_then_the_tools():
    tools: Json = [{"type": "function", "function": {"name": "save", "parameters": {"type": "object", "required": ["pattern"], "properties": {
        "pattern": {"type": "string", "pattern": "^x$", "maxLength": 4000}, "format": {"type": "array", "maxItems": 3, "items": {"type": "string", "format": "date"}}}}}}]  # fmt: skip
    plain = orjson.loads(plainer(orjson.dumps(tools)))
    assert plain[0]["function"]["parameters"] == {
        "type": "object",
        "required": ["pattern"],
        "properties": {"pattern": {"type": "string"}, "format": {"type": "array", "items": {"type": "string"}}},
    }
    refusal: Json = {"error": {"message": "Failed to initialize samplers: failed to parse grammar"}}
    sent = {"model": "m", "messages": CALLED, "tools": tools}
    first = amended(POLITE, sent, 400, refusal)
    assert first is not None
    assert first.plain_schemas
    assert "tools" not in first.left_out
    second = amended(first, sent, 400, refusal)
    assert second is not None
    assert "tools" in second.left_out
