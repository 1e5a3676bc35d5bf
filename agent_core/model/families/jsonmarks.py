"""One mark and JSON, and perhaps another mark: Granite, Phi-4, InternLM, Command A, GigaChat, Apertus, Pangu."""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.jsoncalls import json_calls
from agent_core.model.families.grammar.steps import Grammar, json_value
from agent_core.model.families.grammar.values import object_of, read_json
from agent_core.model.families.pieces import BrokenReason

_ENDS = {
    "<|tool_call|>": (),
    "<|plugin|>": ("<|action_end|>",),
    "<|interpreter|>": ("<|action_end|>",),
    "<|START_ACTION|>": ("<|END_ACTION|>",),
    "<|function_call|>": (),
    "[unused11]": (),
}
_APERTUS, _APERTUS_END = "<|tools_prefix|>", "<|tools_suffix|>"


def _read(calls: Calls, opener: str) -> Grammar:
    if opener == _APERTUS:
        yield from _read_apertus(calls)
        return
    yield from json_calls(calls, *_ENDS[opener], once=not _ENDS[opener])


def _read_apertus(calls: Calls) -> Grammar:
    """A list of objects, each with a name as its only key, and the arguments as its value."""
    calls.committed = True
    text, whole, found = yield from json_value(_APERTUS_END)
    try:
        value = read_json(text)[1] if whole else None
    except ValueError:
        value = None
    entries = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    pairs = [(name, given) for each in entries for name, given in each.items() if isinstance(given, dict | None)]
    if not pairs:
        calls.broken(BrokenReason.UNREADABLE if whole or found else BrokenReason.CUT_OFF, text)
    for name, given in pairs:
        calls.open(name)
        calls.arguments(object_of(given if isinstance(given, dict) else {}))


FAMILY = Family(
    name="json-behind-a-mark",
    models="Granite 3, Phi-4-mini, InternLM 2 and 3, Command R7B and A, GigaChat 3, Apertus, Pangu",
    form='`<|tool_call|>[{…}]`; `<|action_start|><|plugin|>{…}<|action_end|>`; `<|START_ACTION|>[{"tool_name": …}]<|END_ACTION|>`; …',
    source="vllm/tool_parsers: granite, phi4mini, internlm2, apertus, gigachat3, pangu; Cohere's docs; sglang cohere_command4_detector.py",
    openers=(*_ENDS, _APERTUS),
    follows=("{", "["),
    read=_read,
    wrappers=("<|action_start|>",),
    closers=("<|/tool_call|>", "[unused12]"),
    noise=("<|action_end|>", "<|END_ACTION|>", "<|message_sep|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>",
           "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>", _APERTUS_END, "<|assistant_end|>"),
    examples=(
        Example('So.<|tool_call|>[{"name": "weigh", "arguments": {"what": "egg"}}]', (("weigh", '{"what": "egg"}'),), "So."),
        Example('<|action_start|><|plugin|>\n{"name": "weigh", "parameters": {"what": "egg"}}<|action_end|>', (("weigh", '{"what": "egg"}'),)),
        Example(
            '<|START_THINKING|>An egg.<|END_THINKING|><|START_ACTION|>[\n  {"tool_call_id": "0", "tool_name": "weigh", "parameters": '
            '{"what": "egg"}}\n]<|END_ACTION|>',
            (("weigh", '{"what": "egg"}'),),
            "",
            "An egg.",
        ),
        Example('<|tools_prefix|>[{"weigh": {"what": "egg"}}, {"now": {}}]<|tools_suffix|>', (("weigh", '{"what": "egg"}'), ("now", "{}"))),
        Example('<|function_call|>{"name": "weigh", "arguments": {"what": "egg"}}', (("weigh", '{"what": "egg"}'),)),
    ),
)  # fmt: skip
