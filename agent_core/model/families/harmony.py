"""Harmony, the form of gpt-oss: messages in channels. ``analysis`` is thought, ``final`` is said, what has a recipient is a call."""

from __future__ import annotations

import re

from agent_core.model.families.family import Calls, Ends, Example, Family
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, json_value, one_of, spaces, until
from agent_core.model.families.grammar.tagged import clean_name
from agent_core.model.families.pieces import BrokenReason

_START, _CHANNEL, _MESSAGE, _CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_THOUGHT = Ends((*_ENDS, "<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"))
_RECIPIENT = re.compile(r"\bto=([^\s<]{1,160})")
_CHANNELS = ("analysis", "commentary", "final")


def _read(calls: Calls, opener: str) -> Grammar:
    """A header is a role, a channel, a recipient and a content type, in this order or nearly; then the message."""
    parts: list[str] = [opener]
    while True:
        text, mark = yield from until(_CHANNEL, _CONSTRAIN, _MESSAGE, _START, *_ENDS, "\n\n")
        parts.append(text)
        if mark in (_MESSAGE, END) or sum(map(len, parts)) > 400 or mark == "\n\n":
            break
        if mark in _ENDS:  # a message without a message
            return
        parts.append(mark)
    header = "".join(parts)
    recipient = _RECIPIENT.search(header)
    if mark != _MESSAGE:
        if mark != END or len(header) > 200:
            raise NotACall
        calls.committed = True
        if recipient:
            calls.broken(BrokenReason.CUT_OFF)
        return
    if recipient is not None and not recipient[1].startswith(("assistant", "user", "all")):
        yield from _call(calls, clean_name(recipient[1].removeprefix("functions.")))
    elif "analysis" in header or ("commentary" not in header and "final" not in header and _CHANNEL in header):
        calls.thinks = _THOUGHT


def _call(calls: Calls, name: str) -> Grammar:
    calls.open(name or "unknown")
    yield from spaces()
    if (yield from one_of("{", take=False)) is None:
        rest, found = yield from until(*_ENDS, _START, _CHANNEL)
        if rest.strip():
            calls.broken(
                BrokenReason.CUT_OFF if found == END and not calls.ends_well else BrokenReason.UNREADABLE, rest.strip()
            )
        else:
            calls.arguments("")
        return
    text, whole, found = yield from json_value(*_ENDS, _START, _CHANNEL)
    if whole:
        calls.arguments(text)
    else:
        calls.broken(BrokenReason.UNREADABLE if found else BrokenReason.CUT_OFF, text if found else "")


FAMILY = Family(
    name="harmony",
    models="gpt-oss",
    form="`<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`",
    source="openai/harmony docs/format.md; vllm/tool_parsers/gptoss; vllm issues 32587, 35906 (tokens in names, missing <|start|>)",
    openers=(_CHANNEL, _START),
    follows=(*_CHANNELS, "assistant", "functions", "to="),
    read=_read,
    noise=(
        *_ENDS,
        "<|constrain|>",
        "<|message|>",
        "<|endoftext|>",
        "<|im_end|>",
        "<|im_start|>",
        "<|eos|>",
        "<|endofprompt|>",
    ),
    examples=(
        Example(
            "<|channel|>analysis<|message|>He wants a song.<|end|><|start|>assistant<|channel|>commentary to=functions.play "
            '<|constrain|>json<|message|>{"song": "Blue"}<|call|>',
            (("play", '{"song": "Blue"}'),),
            "",
            "He wants a song.",
        ),
        Example(
            "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Here it is.<|return|>",
            (),
            "Here it is.",
            "Easy.",
        ),
        Example(
            '<|start|>assistant to=functions.play<|channel|>commentary json<|message|>{"song": "Blue"}<|call|>',
            (("play", '{"song": "Blue"}'),),
        ),
    ),
)
