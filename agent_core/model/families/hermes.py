"""Hermes: JSON between ``<tool_call>`` tags. The form that most templates without tokens of their own use."""

from __future__ import annotations

import re

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.jsoncalls import json_calls
from agent_core.model.families.grammar.steps import Grammar, NotACall, ahead

_WORDS = ("<tools>", "<tool>")
"""What is no call in them is somebody's XML."""
_FIRST_KEY = re.compile(r"""[\[{\s]*+(["'])(?:name|tool_name|function|arguments|parameters|type|id)\1""")
_KEY_ENDS = re.compile(r"""\w["']""")
_KEY_WITHIN = 60
_BRACKET = "[TOOL_REQUEST]"
_ENDS = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<function_call>": "</function_call>",
    "<tools>": "</tools>",
    "<longcat_tool_call>": "</longcat_tool_call>",
    "<TOOLCALL>": "</TOOLCALL>",
    _BRACKET: "[END_TOOL_REQUEST]",
    "<tool>": "</tool>",
}


def _read(calls: Calls, opener: str) -> Grammar:
    """The end tag may be missing: then the next opening tag ends the call, or the text does."""
    if opener in _WORDS:
        begins = yield from ahead(_KEY_WITHIN, _KEY_ENDS)
        if calls.ends_well and not _FIRST_KEY.match(begins):
            raise NotACall
    if opener == _BRACKET:  # its end looks like the beginning of a list
        yield from json_calls(calls, once=True)
    else:
        yield from json_calls(calls, _ENDS[opener], stays=opener)


FAMILY = Family(
    name="hermes",
    models="Hermes 2 and 3, Qwen 2.5 and 3, ERNIE 4.5, MiniMax M1, Hunyuan A13B, Jamba, Nemotron, LongCat, Granite 20B FC, xLAM; any model at LM Studio",
    form='`<tool_call>{"name": …, "arguments": {…}}</tool_call>`; also `<tool_calls>`, `<function_call>`, `<TOOLCALL>`, `<tools>`, `<tool>`, `[TOOL_REQUEST]`',
    source="NousResearch/Hermes-Function-Calling; vllm/tool_parsers: hermes, minimax, hunyuan_a13b, jamba, longcat, nemotron_json; "
    "LM Studio's documentation of tools; ollama issue 9680",
    openers=tuple(_ENDS),
    words=_WORDS,
    follows=("{", "["),
    read=_read,
    closers=tuple(_ENDS.values()),
    examples=(
        Example(
            'Let me see.\n<tool_call>\n{"name": "find_train", "arguments": {"from": "Bern"}}\n</tool_call>',
            (("find_train", '{"from": "Bern"}'),),
            "Let me see.",
        ),
        Example(
            '<tool_calls>\n{"name": "find_train", "arguments": {"from": "Bern"}}\n{"name": "now", "arguments": {}}\n</tool_calls>',
            (("find_train", '{"from": "Bern"}'), ("now", "{}")),
        ),
        Example('[TOOL_REQUEST]{"name": "now", "arguments": {}}[END_TOOL_REQUEST]', (("now", "{}"),)),
        Example('<TOOLCALL>[{"name": "now", "arguments": {}}]</TOOLCALL>', (("now", "{}"),)),
    ),
)
