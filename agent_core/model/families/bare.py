"""Calls without any mark: JSON or Python alone, as Llama 3 and 4 and small models write them, and Phi-4's and FireFunction's ``functools``.

Nothing sets them apart from an answer but this: the whole reply is calls, and every name is a tool on offer. As soon as that cannot
be so any more, the text is shown. A code block around all of it changes nothing: small models write one, and Gemma 3 in ``tool_code``.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import field

from agent_core.jsonvalue import Json
from agent_core.model.families.family import Calls, Example, Family
from agent_core.model.families.grammar.notation import NotReadable, read_calls
from agent_core.model.families.grammar.steps import (
    END,
    Grammar,
    NotACall,
    Step,
    ahead,
    json_value,
    one_of,
    spaces,
    until,
    word,
)
from agent_core.model.families.grammar.values import object_of, object_text, read_json
from agent_core.model.families.llama import plain_calls
from agent_core.model.families.pieces import BrokenReason
from agent_core.records import dataclass

_KEYS = frozenset({"name", "arguments", "parameters", "type", "id", "function", "tool_name", "tool_call_id"})
_LIST = "tool_calls"
"""The key of a whole message's calls."""
_QUOTED_KEYS = tuple(f'"{key}"' for key in sorted(_KEYS | {_LIST}))
_FENCE = "```"
_JSON = frozenset({"", "json", "tool_call", "tool_calls", "tool", "function_call"})
"""What stands behind a fence whose block may be calls in JSON."""
_CODE = "tool_code"
_INDENT = re.compile(r"^\s*(?:print\()?(?:default_api\.)?")
_BEHIND = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "</s>", "<|endoftext|>", "<end_of_turn>", "<|eot|>")


@dataclass(slots=True)
class _Found:
    whole: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Names and arguments."""
    cut: str = ""
    """The name of a call that the end of the text cut."""
    broken: tuple[str, str] | None = None


def read(calls: Calls, _opener: str) -> Grammar:
    """The whole reply, from its first character. Raises `NotACall` as soon as it is text."""
    names = calls.offered.schemas
    if not names:
        raise NotACall
    mark = yield from one_of("functools[", "[", "{")
    if not mark:
        raise NotACall
    if mark == "[":
        yield from spaces()
        if (yield from one_of("{", take=False)) is None:
            yield from _python(calls)
            return
    yield from _all(calls, listed=mark != "{")


def fenced(calls: Calls, _opener: str) -> Grammar:
    """A code block that is the whole reply; its fence has not been read."""
    if not calls.offered.schemas:
        raise NotACall
    yield from one_of(_FENCE)
    language, mark = yield from until("\n", "`", " ")
    if mark != "\n":
        raise NotACall
    if language.strip() == _CODE:
        yield from _code(calls)
        return
    yield from spaces()
    mark = (yield from one_of("[", "{")) if language.strip().lower() in _JSON else None
    if not mark:
        raise NotACall
    yield from _all(calls, listed=mark == "[")


def _code(calls: Calls) -> Grammar:
    """Python in a block of its own: one call in a line, perhaps printed."""
    block, mark = yield from until(_FENCE)
    yield from _nothing_follows()
    lines = [line.strip() for line in block.strip().splitlines() if line.strip()]
    code = [
        _INDENT.sub("", line)[: -1 if line.startswith("print(") and line.endswith("))") else None] for line in lines
    ]
    text, name = ", ".join(code), code[0].partition("(")[0] if code else ""
    try:
        names = {call.name for call in read_calls(text)}
    except NotReadable:
        names = {name if "(" in text else ""}
    if not names <= calls.offered.schemas.keys():
        raise NotACall
    plain_calls(calls, text, cut=mark == END)


def _all(calls: Calls, *, listed: bool) -> Grammar:
    """Objects and nothing else; the bracket or brace before the first has been read."""
    if listed:
        yield from spaces()
        if (yield from one_of("{", take=False)) is None:
            raise NotACall
    found = _Found()
    yield from _objects(calls, found, listed=listed)
    for name, arguments in found.whole:
        calls.open(name)
        calls.arguments(arguments)
    if found.cut:
        calls.open(found.cut)
        calls.broken(BrokenReason.CUT_OFF)
    if found.broken:
        calls.open(found.broken[0])
        calls.broken(BrokenReason.UNREADABLE, found.broken[1])


def _objects(calls: Calls, found: _Found, *, listed: bool) -> Grammar:
    """Objects up to the end of the text, in a list or one after the other."""
    opened = not listed
    while True:
        yield from spaces()
        if not opened and not (yield from one_of("{")):
            raise NotACall
        opened = False
        if not (yield from _object(calls, found)):
            return
        yield from spaces()
        following = yield from one_of(*((",", "]") if listed else (";", ",", "{")), *_BEHIND, _FENCE)
        if following in ("]", END, _FENCE) or following in _BEHIND:
            yield from _nothing_follows()
            return
        if following is None:
            raise NotACall
        opened = following == "{"


def _nothing_follows() -> Grammar:
    while True:
        yield from spaces()
        following = yield from one_of(*_BEHIND, _FENCE, "]", ";")
        if following == END:
            return
        if following is None:
            raise NotACall


def _object(calls: Calls, found: _Found) -> Generator[Step, None, bool]:
    """One call; its brace has been read. False if the text ends in it."""
    yield from spaces()
    key = yield from one_of(*_QUOTED_KEYS)
    if not key:
        raise NotACall
    head = "{" + key
    if key in ('"name"', '"tool_name"'):
        yield from spaces()
        if not (yield from one_of(":")):
            raise NotACall
        yield from spaces()
        if not (yield from one_of('"')):
            raise NotACall
        name, mark = yield from until('"', "\n")
        if name not in calls.offered.schemas or mark != '"':
            raise NotACall
        head += f': "{name}"'
    rest, whole, _ = yield from json_value(deep=1)
    text = head + rest
    if whole:
        _judge(calls, found, text)
        return True
    found.cut = _name_in(calls, text)
    if not found.cut or not ('"arguments"' in text or '"parameters"' in text):
        raise NotACall
    return False


def _name_in(calls: Calls, text: str) -> str:
    """The tool that half an object names."""
    return next((name for name in calls.offered.schemas if f'"{name}"' in text), "")


def _judge(calls: Calls, found: _Found, text: str) -> None:
    try:
        value = read_json(text)[1]
    except ValueError:
        name = _name_in(calls, text)
        if not name or not ('"arguments"' in text or '"parameters"' in text):
            raise NotACall from None
        found.broken = (name, text)
        return
    listed = value.get(_LIST) if isinstance(value, dict) and len(value) == 1 else None
    if listed == []:
        raise NotACall
    for one in listed if isinstance(listed, list) else [value]:
        found.whole.append(_call(calls, one))


def _call(calls: Calls, value: Json) -> tuple[str, str]:
    """The name and the arguments of one call."""
    function = value.get("function") if isinstance(value, dict) else None
    outer = value if isinstance(value, dict) else {}
    inner = function if isinstance(function, dict) else outer
    name = inner.get("name", inner.get("tool_name", function))
    given: Json = inner.get("arguments", inner.get("parameters"))
    known = isinstance(name, str) and name in calls.offered.schemas
    if not known or not {*outer} <= _KEYS or not isinstance(given, dict | str | None) or not isinstance(name, str):
        raise NotACall
    try:
        return name, object_text(given) if isinstance(given, str) else object_of(given or {})
    except ValueError:
        raise NotACall from None


def _python(calls: Calls) -> Grammar:
    """A list of Python calls; its bracket has been read."""
    name = yield from word()
    if name not in calls.offered.schemas or (yield from one_of("(")) != "(":
        raise NotACall
    space = yield from spaces()
    close = yield from one_of(")")
    key = ""
    if close is None:
        key = yield from word()
        space += yield from spaces()
        following = yield from ahead(1)
        if not key or following not in ("=", ""):
            raise NotACall
    rest, found = yield from until(*_BEHIND)
    text = f"[{name}({close or key + space}{rest}".strip()
    try:
        written = read_calls(text)
    except NotReadable:
        if ")]" in text and not text.endswith("]"):
            raise NotACall from None
        plain_calls(calls, text, cut=found == END and not text.endswith("]"))
        return
    if any(call.name not in calls.offered.schemas for call in written):
        raise NotACall
    plain_calls(calls, text, cut=False)


FAMILY = Family(
    name="bare",
    models="Llama 3 and 4, Phi-4-mini, xLAM, Hammer, small models without a template for tools",
    form='`{"name": …, "parameters": {…}}`, `[{…}, {…}]`, `[name(key=value)]`, `functools[{…}]`, `{"tool_calls": […]}`, each as the whole reply and with a tool on offer, also in a code block; there `tool_code` as well',
    source="Meta's prompt formats for Llama 3.1 and 3.2; vllm/tool_parsers: llama, pythonic, xlam, phi4mini",
    openers=(),
    follows=(),
    read=read,
    examples=(
        Example('{"name": "look_up", "parameters": {"word": "tide"}}', (("look_up", '{"word": "tide"}'),)),
        Example('[look_up(word="tide"), now()]', (("look_up", '{"word": "tide"}'), ("now", "{}"))),
        Example('functools[{"name": "look_up", "arguments": {"word": "tide"}}]', (("look_up", '{"word": "tide"}'),)),
    ),
)
