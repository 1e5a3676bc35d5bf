"""Calls as ``<invoke name=…>`` with ``<parameter name=…>``: MiniMax M2, DeepSeek's DSML, Step 3, Anthropic's older form."""

from __future__ import annotations

from functools import cache

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.steps import Grammar, NotACall, one_of, spaces
from agent_core.model.families.grammar.tagged import Tags, arguments, begun, clean_name, header

_SPACES = ("", "antml:", "steptml:", "｜DSML｜", "|DSML|", "minimax:")
_WRAPPED = ("minimax:tool_call", "function_calls", "antml:function_calls", "tool_calls")
_DSML = tuple(f"{bar}DSML{bar}{name}" for bar in "｜|" for name in ("function_calls", "tool_calls"))
_STEP_OPENS = ("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>function<｜tool_sep｜>")
_STEP_CLOSES = ("<｜tool_call_end｜>", "<｜tool_calls_end｜>")
_CLOSERS = (*(f"</{name}>" for name in (*_WRAPPED, *_DSML)), *_STEP_CLOSES)


@cache
def _tags(space: str) -> Tags:
    return Tags(
        opens=(f"<{space}parameter name=", f"<{space}parameter"),
        value_ends=(f"</{space}parameter>",),
        ends=(f"</{space}invoke>",),
        around=_CLOSERS,
        nexts=(f"<{space}invoke name=",),
    )


def _read(calls: Calls, opener: str) -> Grammar:
    tags = _tags(opener.removeprefix("<").removesuffix("invoke name="))
    inside, well = yield from header(">")
    name = clean_name(f"name={inside}", "name")
    if not well or not name:
        if well or "\n" in inside or len(inside) > 128:
            raise NotACall
        calls.committed = True
        return
    yield from spaces()
    first = yield from one_of(*tags.after_value)
    if first is None:
        raise NotACall
    begun(calls, name)
    yield from arguments(calls, tags, first=first)


FAMILY = Family(
    name="invoke",
    models="MiniMax M2, DeepSeek V3.2 and V4 (DSML), Step 3, models trained on Anthropic's older form",
    form='`<minimax:tool_call><invoke name="…"><parameter name="…">text</parameter></invoke></minimax:tool_call>`; `<｜DSML｜invoke …>`',
    source="MiniMaxAI/MiniMax-M2 tool calling guide; DeepSeek-V3.2 encoding; vllm/tool_parsers: minimax_m2, deepseekv32, step3",
    openers=tuple(f"<{space}invoke name=" for space in _SPACES),
    follows=("",),
    read=_read,
    wrappers=(*(f"<{name}>" for name in (*_WRAPPED, *_DSML)), *_STEP_OPENS),
    closers=(*_CLOSERS, *(f"</{space}invoke>" for space in _SPACES)),
    noise=_STEP_CLOSES,
    examples=(
        Example(
            'I look it up.\n<minimax:tool_call>\n<invoke name="look_up">\n<parameter name="word">tide</parameter>\n'
            '<parameter name="pages">[1, 2]</parameter>\n</invoke>\n</minimax:tool_call>',
            (("look_up", '{"word": "tide", "pages": [1, 2]}'),),
            "I look it up.",
        ),
        Example(
            '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look_up">\n<｜DSML｜parameter name="word" string="true">7</｜DSML｜parameter>\n'
            '<｜DSML｜parameter name="pages" string="false">[7]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
            (("look_up", '{"word": "7", "pages": [7]}'),),
        ),
        Example(
            '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="look_up">'
            '<steptml:parameter name="word">tide</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
            (("look_up", '{"word": "tide"}'),),
        ),
        Example(
            '<function_calls>\n<invoke name="look_up">\n<parameter name="word">tide</parameter>\n</invoke>\n</function_calls>',
            (("look_up", '{"word": "tide"}'),),
        ),
    ),
)
