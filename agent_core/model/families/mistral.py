"""Mistral: ``[TOOL_CALLS]`` and a JSON list, or (from tokenizer 11 on) a name, an id perhaps, and the arguments, for each call."""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.jsoncalls import json_calls
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, json_value, one_of, spaces, until, word
from agent_core.model.families.pieces import BrokenReason


def _read(calls: Calls, _opener: str) -> Grammar:
    if (yield from one_of("[{", "[\n", "[ ", "{", "[]", take=False)) is not None:
        yield from json_calls(calls, once=True)
        return
    name = yield from word()
    if not name:
        raise NotACall
    yield from spaces()
    mark = yield from one_of("[ARGS]", "[CALL_ID]", "{")
    if mark is None:
        raise NotACall
    calls.open(name)
    if mark == "[CALL_ID]":
        _, mark = yield from until("[ARGS]", "{", "[TOOL_CALLS]")
    if mark == "[ARGS]":
        yield from spaces()
        mark = yield from one_of("{")
    if mark != "{":
        rest, _ = ("", END) if mark == END else (yield from until("\n\n"))
        calls.broken(BrokenReason.UNREADABLE if rest.strip() else BrokenReason.CUT_OFF, rest.strip())
        return
    text, whole, _ = yield from json_value(deep=1)
    if whole:
        calls.arguments("{" + text)
    else:
        calls.broken(BrokenReason.CUT_OFF)


FAMILY = Family(
    name="mistral",
    models="Mistral, Mixtral, Ministral, Magistral, Devstral, Codestral",
    form='`[TOOL_CALLS][{"name": …, "arguments": {…}}]`; `[TOOL_CALLS]name[ARGS]{…}`, with `[CALL_ID]…` between',
    source="mistralai/mistral-common, tokens/tokenizers (instruct v3 to v13); vllm/tool_parsers/mistral_tool_parser.py",
    openers=("[TOOL_CALLS]",),
    follows=("[", "{", ""),
    read=_read,
    noise=("[/TOOL_CALLS]",),
    examples=(
        Example('[TOOL_CALLS][{"name": "add_row", "arguments": {"n": 1}}]', (("add_row", '{"n": 1}'),)),
        Example(
            'Two rows.[TOOL_CALLS]add_row[ARGS]{"n": 1}[TOOL_CALLS]add_row[CALL_ID]a1b2c3d4e[ARGS]{"n": 2}',
            (("add_row", '{"n": 1}'), ("add_row", '{"n": 2}')),
            "Two rows.",
        ),
        Example('[TOOL_CALLS] add_row{"n": 1}', (("add_row", '{"n": 1}'),)),
    ),
)
