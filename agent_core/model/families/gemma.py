"""Gemma 4 and FunctionGemma: ``call:name{…}`` between marks, an object with bare keys whose texts stand between marks of their own."""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.notation import NotReadable, read_object
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, one_of, until, word
from agent_core.model.families.grammar.values import object_of
from agent_core.model.families.pieces import BrokenReason

_QUOTES = {"<|tool_call>": ("<tool_call|>", '<|"|>'), "<start_function_call>": ("<end_function_call>", "<escape>")}


def _read(calls: Calls, opener: str) -> Grammar:
    end, quote = _QUOTES[opener]
    if not (yield from one_of("call:")):
        calls.committed = True
        return
    name = yield from word()
    mark = yield from one_of("{")
    if mark is None or (mark and not name):
        raise NotACall
    calls.open(name)
    parts = ["{"] if mark else []
    while True:  # the end counts only outside of texts
        text, found = yield from until(end, quote)
        parts += (text, found)
        if found != quote:
            break
        text, found = yield from until(quote)
        parts += (text, found)
        if found == END:
            break
    written = "".join(parts).removesuffix(end).strip()
    if found == END and not written.endswith("}"):
        calls.broken(BrokenReason.CUT_OFF)
        return
    try:
        calls.arguments(object_of(read_object(written, quote)))
    except NotReadable:
        calls.broken(BrokenReason.CUT_OFF if found == END else BrokenReason.UNREADABLE, written)


FAMILY = Family(
    name="gemma",
    models="Gemma 4, FunctionGemma",
    form='`<|tool_call>call:name{key:<|"|>text<|"|>}<tool_call|>`; `<start_function_call>call:name{key:<escape>text<escape>}<end_function_call>`',
    source="Google's FunctionGemma formatting guide; sglang/function_call/gemma4_detector.py; vllm/tool_parsers: gemma4, functiongemma",
    openers=tuple(_QUOTES),
    follows=("call:",),
    read=_read,
    closers=tuple(end for end, _ in _QUOTES.values()),
    noise=(
        "<tool_call|>",
        "<end_function_call>",
        "<end_of_turn>",
        "<start_of_turn>",
        "<turn|>",
        "<|turn>",
        "<channel|>",
    ),
    examples=(
        Example(
            'Then:<|tool_call>call:set_lamp{room:<|"|>bath}<|"|>,level:3,on:true,days:[1,2]}<tool_call|>',
            (("set_lamp", '{"room": "bath}", "level": 3, "on": true, "days": [1, 2]}'),),
            "Then:",
        ),
        Example(
            "<start_function_call>call:set_lamp{room:<escape>bath<escape>}<end_function_call>",
            (("set_lamp", '{"room": "bath"}'),),
        ),
    ),
)
