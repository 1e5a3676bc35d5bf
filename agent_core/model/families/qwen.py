"""Qwen3-Coder's XML: a function tag and a tag for each argument, the argument's text between line breaks. Seed-OSS and others as well."""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, json_value, one_of, spaces
from agent_core.model.families.grammar.tagged import Tags, arguments, begun, clean_name, header

_TAGS = Tags(
    opens=("<parameter=", "<parameter name=", "<param=", "<param name="),
    value_ends=("</parameter>", "</param>"),
    ends=("</function>",),
    around=("</tool_call>", "</seed:tool_call>"),
    nexts=("<tool_call>", "<seed:tool_call>", "<function=", "<|im_end|>"),
)


def _read(calls: Calls, _opener: str) -> Grammar:
    inside, well = yield from header(">")
    name = clean_name(inside, "name")
    if not well or not name:
        if well or inside.count("\n") or len(inside) > 128:
            raise NotACall
        calls.committed = True
        return
    yield from spaces()
    first = yield from one_of(*_TAGS.opens, *_TAGS.ends, *_TAGS.around)
    if first is not None:
        begun(calls, name)
        yield from arguments(calls, _TAGS, first=first)
        return
    if (yield from one_of("{", take=False)) is None:
        raise NotACall
    begun(calls, name)  # Llama's form: JSON in a function tag
    text, _, mark = yield from json_value("</function>")
    if mark == END:
        yield from spaces()
        yield from one_of("</function>")
    calls.arguments(text)


FAMILY = Family(
    name="qwen3-coder",
    models="Qwen3-Coder, Qwen 3.5, Nemotron 3, Seed-OSS, Step 3.5, MiMo; Llama 3.1 and Functionary with JSON in the tag",
    form="`<tool_call><function=name><parameter=key>text</parameter></function></tool_call>`; `<function=name>{…}</function>`",
    source="Qwen/Qwen3-Coder chat template; vllm/tool_parsers: qwen3coder, seed_oss; Meta's Llama 3.1 prompt formats (custom tools)",
    openers=("<function=", "<function name="),
    follows=("",),
    read=_read,
    wrappers=("<tool_call>", "<seed:tool_call>"),
    closers=("</function>", "</tool_call>", "</seed:tool_call>"),
    noise=("<seed:eos>", "<seed:bos>"),
    examples=(
        Example(
            "<tool_call>\n<function=write_note>\n<parameter=title>\nMilk\n</parameter>\n<parameter=times>\n2\n</parameter>\n"
            "</function>\n</tool_call>",
            (("write_note", '{"title": "Milk", "times": 2}'),),
        ),
        Example(
            "Noted.<seed:tool_call>\n<function=write_note>\n<parameter=title>Milk</parameter>\n</function>\n</seed:tool_call>",
            (("write_note", '{"title": "Milk"}'),),
            "Noted.",
        ),
        Example('<function=write_note>{"title": "Milk"}</function>', (("write_note", '{"title": "Milk"}'),)),
        Example(
            "<function=write_note>\n<parameter=title>\na </parameter> in it\n</parameter>\n</function>",
            (("write_note", '{"title": "a </parameter> in it"}'),),
        ),
    ),
)
