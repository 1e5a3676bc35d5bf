"""GLM 4.5 and later: the name, then keys and values in tags of their own. Hunyuan's third version puts a mark behind the name."""

from __future__ import annotations

from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, one_of, spaces, word
from agent_core.model.families.grammar.tagged import Tags, arguments

_TAGS = Tags(
    opens=("<arg_key>",),
    header_end="</arg_key>",
    value_opens="<arg_value>",
    value_ends=("</arg_value>",),
    ends=("</tool_call>",),
    around=("</tool_calls>",),
    nexts=("<tool_call>", "<|"),
)


def _read(calls: Calls, _opener: str) -> Grammar:
    name = yield from word()
    if not name:
        raise NotACall
    yield from spaces()
    first = yield from one_of("<arg_key>", "</tool_call>", "<tool_sep>")
    if first is None:
        raise NotACall
    if first == END:  # a call without arguments whose end was swallowed, or half a name
        if not calls.ends_well:
            calls.committed = True
        elif name in calls.offered.schemas:
            calls.open(name)
            calls.arguments("")
        else:
            raise NotACall
        return
    calls.open(name)
    yield from arguments(calls, _TAGS, first=None if first == "<tool_sep>" else first)


FAMILY = Family(
    name="glm",
    models="GLM 4.5, 4.6, 4.7, 5; Hunyuan 3",
    form="`<tool_call>name<arg_key>key</arg_key><arg_value>text</arg_value></tool_call>`",
    source="zai-org/GLM-4.5 chat template; vllm/tool_parsers: glm4_moe, glm47_moe, hy_v3",
    openers=("<tool_call>",),
    follows=("",),
    read=_read,
    wrappers=("<tool_calls>",),
    closers=("</tool_calls>", "</tool_call>"),
    noise=("<|observation|>", "<|user|>", "<|assistant|>"),
    examples=(
        Example(
            "Looking.\n<tool_call>find_shop\n<arg_key>what</arg_key>\n<arg_value>bread</arg_value>\n<arg_key>most</arg_key>\n"
            "<arg_value>3</arg_value>\n</tool_call>",
            (("find_shop", '{"what": "bread", "most": 3}'),),
            "Looking.",
        ),
        Example("<tool_call>find_shop</tool_call>", (("find_shop", "{}"),)),
        Example(
            "<tool_calls>\n<tool_call>find_shop<tool_sep>\n<arg_key>what</arg_key>\n<arg_value>bread</arg_value>\n</tool_call>\n</tool_calls>",
            (("find_shop", '{"what": "bread"}'),),
        ),
    ),
)
