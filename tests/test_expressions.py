"""Every regular expression of the program takes a time that grows with the text alone, on texts that are made against it."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, cast

import pytest
import regex

from agent_core.rules import promises
from agent_core.rules.promising.language import languages
from agent_core.text.patterns import LatePattern
from tests.source import nodes

ROOT = Path(__file__).parents[1]
CHARS = 16_000
"""Of a text; a time that grows with its square is a hundred times that of one that grows with it."""
SECONDS = 0.15
LESS = 8
"""First it is given a text so many times shorter, ..."""
SUSPICIOUS = SECONDS / LESS**2
"""... and the long one if even that takes so long: what grows with the square is found by it, and what grows faster all the more."""

AT_ITS_PLACE = "it is only matched at one place"
SHORT = "it is only given short texts"
EXCEPTIONS: Mapping[str, str] = {
    "adapters.text.growing._CONTAINERS": AT_ITS_PLACE,
    "adapters.text.growing._FENCE_MARKERS": AT_ITS_PLACE,
    "adapters.text.growing._MARKERS_ONLY": AT_ITS_PLACE,
    "adapters.text.growing._DELIMITERS": AT_ITS_PLACE,
    "adapters.text.growing._REST_OF_LINK": AT_ITS_PLACE,
    "adapters.text.growing._ADDRESS": AT_ITS_PLACE,
    "adapters.text.growing._TAIL": "it is only searched in the markers at the end",
    "agent_core.model.families.grammar.jsoncalls._DEEP": AT_ITS_PLACE,
    "agent_core.model.families.grammar.notation._QUOTED": AT_ITS_PLACE,
    "agent_core.model.families.grammar.steps._STRUCTURE": AT_ITS_PLACE,
    "agent_core.model.families.grammar.values._STRING": AT_ITS_PLACE,
    "agent_core.model.families.hermes._FIRST_KEY": AT_ITS_PLACE,
    "agent_core.rules.promises.ROWS": "it is given a sentence of at most 400 characters",
    "agent_core.rules.promising.underway._STARTS": AT_ITS_PLACE,
    "agent_core.rules.promising.underway._TAIL": AT_ITS_PLACE,
    "adapters.http.routes: :[^{}]+\\}": "it is given the routes of the program's own table",
    "adapters.http.sessions.items._ID": AT_ITS_PLACE,
    "agent_core.explain.why._OF_REQUEST": SHORT,
    "agent_core.explain.why._QUOTED": SHORT,
}
OF_OPERATORS = ("gateway.config.", "gateway.operate.")
"""What operators write themselves, for a program that serves nobody: but not what is written to the log."""


class _Found:
    """A pattern, and where it is."""

    def __init__(self, where: str, pattern: re.Pattern[str], in_place: bool = False) -> None:
        self.where, self.pattern, self.in_place = where, pattern, in_place


def _modules() -> Iterator[tuple[str, Path]]:
    for root in ("agent_core", "adapters", "gateway"):
        for path in sorted((ROOT / root).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            ours = path.name != "__main__.py"
            if ours and (not module.startswith(OF_OPERATORS) or module == "gateway.observe.logging"):
                yield module, path


def _patterns(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, LatePattern):
        value = re.compile(value.pattern, value.given)
    if isinstance(value, re.Pattern | regex.Pattern):
        if isinstance(cast("Any", value).pattern, str):
            yield cast("re.Pattern[str]", value)  # both libraries have the same methods
    elif isinstance(value, tuple | list | set | frozenset | dict) and depth < 3:
        for one in cast("Any", value.values() if isinstance(value, dict) else value):
            yield from _patterns(one, depth + 1)


IN_PLACE = frozenset({"match", "fullmatch"})
OTHERS = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})


def _literals(module: str, path: Path) -> Iterator[_Found]:
    """Patterns that are written where they are used."""
    for node in nodes(path.read_text()):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=used), args=[written, *_]) if (
                used in IN_PLACE | OTHERS
            ):
                match written:
                    case ast.Constant(value=str(source)):
                        pass
                    case ast.JoinedStr():
                        source = "".join(
                            str(one.value) if isinstance(one, ast.Constant) else "X1" for one in written.values
                        )
                    case _:
                        continue
                yield _Found(f"{module}: {source}", re.compile(source), used in IN_PLACE)
            case _:
                pass


@cache
def everything() -> list[_Found]:
    """Every pattern once."""
    found: dict[tuple[str, int], _Found] = {}
    for row in languages():  # what is made when it is first met
        assert promises.ROWS[row.code]
    for module, path in _modules():
        for name, value in list(vars(importlib.import_module(module)).items()):
            made = value() if hasattr(value, "cache_info") and not signature(value).parameters else value
            for pattern in _patterns(made):
                found.setdefault((pattern.pattern, pattern.flags), _Found(f"{module}.{name}", pattern))
        for one in _literals(module, path):
            found.setdefault((one.pattern.pattern, one.pattern.flags), one)
    return list(found.values())


def units(source: str) -> Iterator[str]:
    """What a text against a pattern may be made of, again and again."""
    yield from sorted({char for char in source if not char.isalnum()} | set("a1A. \n\t-_é漢\"'<[(`*|/:@\\"))
    for word in list(dict.fromkeys(re.findall(r"[A-Za-z]{2,}", source)))[:10]:
        yield from (word, f"{word}aaaaaaaa-", f"<{word}:", f"{word} ", f"-{word}=")
    yield from ("ab ", "a1", "a.", "1.", " a", "\n ", "a:", "://a", "a: ", "](", "`a", "<a ", "1 h ", "\r\n", "-a-", "aaaaaaaaa-", "<#a|", "\\\"")  # fmt: skip


def seconds_for(pattern: re.Pattern[str], text: str, in_place: bool) -> float:
    began = time.process_time()
    for _ in () if in_place else pattern.finditer(text):
        pass
    pattern.match(text)
    pattern.fullmatch(text)
    return time.process_time() - began


def _text(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


def worst(pattern: re.Pattern[str], in_place: bool = False) -> tuple[float, str]:
    found = (0.0, "")
    for unit in units(pattern.pattern):
        for end in ("", "\x00!"):
            if seconds_for(pattern, _text(unit, CHARS // LESS) + end, in_place) < SUSPICIOUS:
                continue
            text = _text(unit, CHARS) + end
            took = seconds_for(pattern, text, in_place)
            if took > SECONDS:  # not by chance
                took = min(took, seconds_for(pattern, text, in_place))
            found = max(found, (took, unit + end))
            if took > SECONDS:
                return found
    return found


@pytest.mark.timeout(600)
def test_every_expression_of_the_program_is_linear() -> None:
    slow: list[str] = []
    patterns = everything()
    assert len(patterns) > 150
    for one in patterns:
        if one.where in EXCEPTIONS:
            continue
        took, unit = worst(one.pattern, one.in_place)
        if took > SECONDS:
            slow.append(f"{one.where}: {took:.2f} s for {unit!r}")
    assert slow == []


def test_an_expression_that_is_not_linear_is_found() -> None:
    assert worst(re.compile(r"\s*x"))[0] > SECONDS


@pytest.mark.parametrize("where", sorted(EXCEPTIONS))
def test_what_is_excepted_is_still_there(where: str) -> None:
    assert any(one.where == where for one in everything())
