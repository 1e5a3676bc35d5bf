"""Kimi: K2's special tokens around an id and JSON, and K3's XTML with an element for each argument."""

from __future__ import annotations

import html

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, json_value, one_of, spaces, until
from agent_core.model.families.grammar.tagged import Tags, arguments, attributes, clean_name, header
from agent_core.model.families.pieces import BrokenReason

_BEGIN, _ARGUMENT, _END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_SECTION = tuple(f"<|tool_call{s}_section_begin|>" for s in ("s", ""))
_SECTION_END = tuple(f"<|tool_call{s}_section_end|>" for s in ("s", ""))
_XTML_CALL, _XTML_TAGS = (
    "<|open|>call",
    Tags(
        opens=("<|open|>argument",),
        header_end="<|sep|>",
        value_ends=("<|close|>argument<|sep|>",),
        ends=("<|close|>call<|sep|>",),
        around=("<|close|>tools<|sep|>",),
        nexts=("<|open|>call",),
    ),
)
_XTML_JSON, _XTML_JSON_END = "<|open|>json", "<|close|>json<|sep|>"


def tool_of(call_id: str) -> str:
    """The tool in an id like ``functions.look_up:0``."""
    name, colon, number = call_id.strip().rpartition(":")
    return (name if colon and number.isdigit() else call_id.strip()).removeprefix("functions.").strip()


def _read(calls: Calls, opener: str) -> Grammar:
    if opener == _XTML_CALL:
        yield from _read_xtml(calls)
        return
    call_id, mark = yield from until(_ARGUMENT, "\n\n", _END, "{")
    name = clean_name(tool_of(call_id))
    if mark == END:
        if len(call_id) > 200:
            raise NotACall
        calls.committed = True
        return
    if not name or mark == "\n\n":
        raise NotACall
    calls.open(name)
    deep = int(mark == "{")
    if not deep:
        yield from spaces()
        if (yield from one_of("{", take=False)) is None:
            rest, found = ("", mark) if mark == _END else (yield from until(_END, *_SECTION_END))
            if found == END or rest.strip():
                calls.broken(BrokenReason.CUT_OFF if found == END else BrokenReason.UNREADABLE, rest.strip())
            else:
                calls.arguments("")
            return
    text, whole, found = yield from json_value(_END, *_SECTION_END, deep=deep)
    text = "{" * deep + text
    if whole:
        calls.arguments(text)
    else:
        calls.broken(BrokenReason.UNREADABLE if found else BrokenReason.CUT_OFF, text if found else "")


def _read_xtml(calls: Calls) -> Grammar:
    inside, well = yield from header("<|sep|>")
    name = clean_name(html.unescape(attributes(inside).get("tool", "")))
    if not well or not name:
        if well:
            raise NotACall
        calls.committed = True
        return
    calls.open(name)
    yield from spaces()
    if (yield from one_of(_XTML_JSON)) == _XTML_JSON:
        yield from header("<|sep|>")
        text, found = yield from until(_XTML_JSON_END, *_XTML_TAGS.ends)
        if found == END:
            calls.broken(BrokenReason.CUT_OFF)
        else:
            calls.arguments(text)
        return
    yield from arguments(calls, _XTML_TAGS)


FAMILY = Family(
    name="kimi",
    models="Kimi K2, K2.5, K3",
    form="`<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>…`",
    source="moonshotai/Kimi-K2 docs/tool_call_guidance.md; vllm/tool_parsers: kimi_k2, kimi_k3; vllm pull 28543, 31207, issue 51399",
    openers=(_BEGIN, _XTML_CALL),
    follows=("",),
    read=_read,
    wrappers=(*_SECTION, "<|open|>tools<|sep|>"),
    closers=(_END, *_SECTION_END),
    noise=(
        _END, *_SECTION_END, "<|close|>tools<|sep|>", "<|close|>call<|sep|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>",
        "<|close|>message<|sep|>", "<|im_middle|>",
    ),
    examples=(
        Example(
            'On it.<|tool_calls_section_begin|><|tool_call_begin|>functions.tides:0<|tool_call_argument_begin|>{"port": "Brest"}'
            '<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>',
            (("tides", '{"port": "Brest"}'), ("now", "{}")),
            "On it.",
        ),
        Example(
            "<|open|>think<|sep|>A port.<|close|>think<|sep|><|open|>response<|sep|>On it.<|close|>response<|sep|>"
            '<|open|>tools<|sep|><|open|>call tool="tides" index="1"<|sep|><|open|>argument key="port" type="string"<|sep|>Brest'
            '<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>'
            "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
            (("tides", '{"port": "Brest", "days": 2}'),),
            "On it.",
            "A port.",
        ),
    ),
)  # fmt: skip
