"""Llama 3: ``<|python_tag|>`` and JSON, several with semicolons between, or a built-in tool as Python. (Without the tag: see `bare`.)"""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.jsoncalls import json_calls
from agent_core.model.families.grammar.notation import NotReadable, read_calls
from agent_core.model.families.grammar.steps import END, Grammar, one_of, spaces, until
from agent_core.model.families.grammar.values import object_of
from agent_core.model.families.pieces import BrokenReason

_TAG = "<|python_tag|>"
_STOPS = ("<|eom_id|>", "<|eot_id|>", "<|python_end|>", "<|eot|>", "<|header_start|>")


def plain_calls(calls: Calls, text: str, *, cut: bool) -> None:
    """Calls as Python writes them."""
    calls.committed = True
    try:
        found = read_calls(text)
    except NotReadable:
        calls.name = text.strip().lstrip("[").partition("(")[0].strip()[:128] if "(" in text else ""
        if calls.name.replace(".", "").isidentifier():
            calls.open(calls.name)
        else:
            calls.name = ""
        calls.broken(BrokenReason.CUT_OFF if cut else BrokenReason.UNREADABLE, text.strip())
        return
    for call in found:
        calls.open(call.name.removesuffix(".call"))
        calls.arguments(object_of(call.arguments))


def _readable(text: str) -> bool:
    try:
        return bool(read_calls(text))
    except NotReadable:
        return False


def _read(calls: Calls, _opener: str) -> Grammar:
    if (yield from one_of("{", "[{", take=False)) is None:
        text, found = yield from until("\n", *_STOPS)
        if found == "\n" and not _readable(text):  # a program
            rest, found = yield from until(*_STOPS)
            text += f"\n{rest}"
        plain_calls(calls, text, cut=found == END and not calls.ends_well)
        return
    while True:
        yield from json_calls(calls, once=True)
        yield from spaces()
        if not (yield from one_of(";", ",")):
            return
        yield from spaces()
        if not (yield from one_of("{", take=False)):
            return


FAMILY = Family(
    name="llama",
    models="Llama 3.1, 3.2, 3.3, 4",
    form='`<|python_tag|>{"name": …, "parameters": {…}}`; `<|python_start|>[name(key=value)]<|python_end|>`',
    source="Meta's prompt formats for Llama 3.1 to 4; vllm/tool_parsers: llama, llama4_pythonic",
    openers=(_TAG, "<|python_start|>"),
    follows=("{", "[", ""),
    read=_read,
    noise=(
        *_STOPS,
        "<|header_end|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|begin_of_text|>",
        "<|end_of_text|>",
    ),
    examples=(
        Example(
            '<|python_tag|>{"name": "play", "parameters": {"song": "Blue"}}<|eom_id|>', (("play", '{"song": "Blue"}'),)
        ),
        Example(
            'Two.<|python_tag|>{"name": "play", "parameters": {"song": "Blue"}}; {"name": "stop", "parameters": {}}',
            (("play", '{"song": "Blue"}'), ("stop", "{}")),
            "Two.",
        ),
        Example(
            '<|python_start|>[play(song="Blue", times=2), stop()]<|python_end|>',
            (("play", '{"song": "Blue", "times": 2}'), ("stop", "{}")),
        ),
        Example(
            '<|python_tag|>web_search.call(query="tides in Brest")', (("web_search", '{"query": "tides in Brest"}'),)
        ),
    ),
)
