"""LFM2 and OLMo 3: Python calls between marks, in a list or one a line. LFM2 writes JSON there, if it is told to."""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.jsoncalls import json_calls
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, ahead, one_of, until, word
from agent_core.model.families.llama import plain_calls

_ENDS = {"<|tool_call_start|>": "<|tool_call_end|>", "<function_calls>": "</function_calls>"}


def _read(calls: Calls, opener: str) -> Grammar:
    end = _ENDS[opener]
    if (yield from one_of("{", "[{", take=False)) is not None:
        yield from json_calls(calls, end)
        return
    listed = yield from one_of("[")
    name = yield from word()
    following = yield from ahead(1)
    if following and (following != "(" or not name):
        raise NotACall
    calls.committed = True
    rest, found = yield from until(end)
    plain_calls(calls, f"{listed or ''}{name}{rest}", cut=found == END and not calls.ends_well)


FAMILY = Family(
    name="python-between-marks",
    models="LFM2, OLMo 3",
    form='`<|tool_call_start|>[name(key="value")]<|tool_call_end|>`; `<function_calls>name(key="value")</function_calls>`',
    source="Liquid AI docs, tool use; vllm/tool_parsers: lfm2, olmo3",
    openers=tuple(_ENDS),
    follows=("[", "{", ""),
    read=_read,
    closers=tuple(_ENDS.values()),
    noise=("<|tool_call_end|>", "<|tool_response_start|>", "<|tool_response_end|>"),
    examples=(
        Example(
            'One.<|tool_call_start|>[find_bus(line="7")]<|tool_call_end|>', (("find_bus", '{"line": "7"}'),), "One."
        ),
        Example(
            "<function_calls>\nfind_bus(line=\"7\")\nfind_bus(line='8', late=True)\n</function_calls>",
            (("find_bus", '{"line": "7"}'), ("find_bus", '{"line": "8", "late": true}')),
        ),
    ),
)
