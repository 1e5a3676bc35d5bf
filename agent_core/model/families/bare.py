"""Calls without any mark: JSON or Python alone, as Llama 3 and 4 and small models write them, and Phi-4's and FireFunction's ``functools``.

Nothing sets them apart from an answer but this: the whole reply is calls, and every name is a tool on offer. As soon as that cannot
be so any more, the text is shown.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

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
from agent_core.tools.base import Json

_KEYS = frozenset({"name", "arguments", "parameters", "type", "id", "function", "tool_name", "tool_call_id"})
_QUOTED_KEYS = tuple(f'"{key}"' for key in sorted(_KEYS))
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
    found = _Found()
    yield from _objects(calls, found, listed=mark != "{")
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
        following = yield from one_of(*((",", "]") if listed else (";", ",", "{")), *_BEHIND)
        if following in ("]", END) or following in _BEHIND:
            yield from _nothing_follows()
            return
        if following is None:
            raise NotACall
        opened = following == "{"


def _nothing_follows() -> Grammar:
    while True:
        yield from spaces()
        following = yield from one_of(*_BEHIND, "]", ";")
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
    function = value.get("function") if isinstance(value, dict) else None
    outer = value if isinstance(value, dict) else {}
    inner = function if isinstance(function, dict) else outer
    name = inner.get("name", inner.get("tool_name", function))
    given: Json = inner.get("arguments", inner.get("parameters"))
    known = isinstance(name, str) and name in calls.offered.schemas
    if not known or not {*outer} <= _KEYS or not isinstance(given, dict | str | None) or not isinstance(name, str):
        raise NotACall
    try:
        arguments = object_text(given) if isinstance(given, str) else object_of(given or {})
    except ValueError:
        raise NotACall from None
    found.whole.append((name, arguments))


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
    form='`{"name": …, "parameters": {…}}`, `[{…}, {…}]`, `[name(key=value)]`, `functools[{…}]`, each as the whole reply and with a tool on offer',
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
