"""DeepSeek V3, R1 and V3.1: special tokens around a name and JSON. (V3.2 and later write DSML: see `invoke`.)"""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, json_value, one_of, spaces, until
from agent_core.model.families.grammar.tagged import clean_name
from agent_core.model.families.pieces import BrokenReason

_BARS = ("｜", "|")
_JOINTS = ("▁", " ")


def _forms(words: str) -> tuple[str, ...]:
    """A token as it is, and as servers without its characters write it."""
    forms = tuple(f"<{bar}{words.replace(' ', joint)}{bar}>" for bar in _BARS for joint in _JOINTS)
    return (*forms, f"<|{words.replace(' ', '_')}|>") if words.startswith("tool outputs") else forms


_BEGIN, _SEP, _END = _forms("tool call begin"), _forms("tool sep"), _forms("tool call end")
_ALL_BEGIN, _ALL_END = (*_forms("tool calls begin"), *_forms("tool calls")), _forms("tool calls end")


def _read(calls: Calls, _opener: str) -> Grammar:
    """V3: the word "function", the name, and JSON in a code block. V3.1: the name, and JSON."""
    first, mark = yield from until(*_SEP, "\n\n", *_END)
    if mark == END:
        if len(first) > 200:
            raise NotACall
        calls.committed = True
        return
    if mark not in _SEP:
        raise NotACall
    yield from spaces()
    if (yield from one_of("{", take=False)) is None and first.strip() == "function":
        first, mark = yield from until("\n", "{", "```", *_END)
        if mark == "{":
            yield from _arguments(calls, first, deep=1)
            return
        if mark == "\n":
            yield from spaces()
            mark = yield from one_of("```json", "```")
        if mark in ("```", "```json"):
            yield from one_of("json")
        yield from spaces()
    yield from _arguments(calls, first, deep=0)


def _arguments(calls: Calls, name: str, *, deep: int) -> Grammar:
    calls.open(clean_name(name) or name.strip()[:128])
    if not deep and (yield from one_of("{", take=False)) is None:
        rest, found = yield from until(*_END, *_ALL_END)
        if rest.strip("` \n"):
            calls.broken(BrokenReason.CUT_OFF if found == END else BrokenReason.UNREADABLE, rest.strip())
        else:
            calls.arguments("") if found else calls.broken(BrokenReason.CUT_OFF)
        return
    text, whole, found = yield from json_value(*_END, *_ALL_END, deep=deep)
    text = "{" * deep + text
    if not whole:
        calls.broken(BrokenReason.UNREADABLE if found else BrokenReason.CUT_OFF, text if found else "")
        return
    yield from spaces()
    yield from one_of("```")
    yield from spaces()
    yield from one_of(*_END)
    calls.arguments(text)


FAMILY = Family(
    name="deepseek",
    models="DeepSeek V3, R1, V3.1",
    form="`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`",
    source="deepseek-ai chat templates (V3-0324, R1-0528, V3.1); vllm/tool_parsers: deepseekv3, deepseekv31; llama.cpp common/chat",
    openers=_BEGIN,
    follows=("",),
    read=_read,
    wrappers=_ALL_BEGIN,
    closers=(*_END, *_ALL_END),
    noise=(*_END, *_ALL_END, "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"),
    examples=(
        Example(
            'I count.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>count_birds\n```json\n{"where": "pond"}\n```'
            "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            (("count_birds", '{"where": "pond"}'),),
            "I count.",
        ),
        Example(
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>count_birds<｜tool▁sep｜>{"where": "pond"}<｜tool▁call▁end｜>'
            '<｜tool▁call▁begin｜>count_birds<｜tool▁sep｜>{"where": "roof"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
            (("count_birds", '{"where": "pond"}'), ("count_birds", '{"where": "roof"}')),
        ),
    ),
)
