"""How people say in thirty-four languages what they do next. The forms stand in the TOML files beside this one, a file for related languages.

A row knows a language's *forms* (first person, future, "let me", "I still have to", "on to"), not the verbs of an agent's work: any verb in
such a form is an act, unless it is one of the few by which people talk, think, wait or are polite. A row has

- `common` and `letters`: words, and letters beside those that all have, by which the language is known from others of its script;
- `acts`: how an act is announced, searched in the last sentence;
- `goes_on`: names of the next thing, after which a colon may be followed by it ("Next up: the index.");
- `apart`: what makes it none: conditions that the person has to meet, offers, courtesies, other people's acts;
- `asks`: the sentence before asks the person for something, so the act waits for them;
- `when`: it happens only once something else has: a condition, unless the act is to tell the person;
- `waits`: a whole sentence that only asks for patience. It promises by itself.

`[words]` and `[patterns]` are named for use in others: `%{name}` as it stands, `%any{name}` for any one of the words, `%but{name}` not
followed by one of them, `%lead{name}` a clause's beginning and up to four of them. A tilde stands for a space within a word, and a pattern
goes on in the next line where that is indented. Everything is in lower case, without emphasis and with plain apostrophes.
To add a language: a row, and endings in tests/corpora.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, cast

from agent_core.records import dataclass
from agent_core.text.patterns import late

_CLAUSE = r"(?:^|[,;:.!…–—(،؛。，、：；·]\s*|\s-\s)"
_NAMED = late(r"%(any|but|lead)?\{(\w+)\}")
_FAMILIES = ("germanic", "romance", "slavic", "further", "eastern")
_NEXT_LINE = late(r"\n *")


@dataclass(frozen=True, slots=True)
class Language:
    """One language's forms."""

    code: str
    common: str
    letters: str
    acts: tuple[str, ...]
    apart: tuple[str, ...]
    asks: str
    waits: str
    goes_on: str = r"(?!)"
    when: str = r"(?!)"
    script: str = ""
    """Of languages that share one; those that have a script of their own have their code. Latin is empty."""


def _read(file: str) -> dict[str, Any]:
    import tomllib  # behind the open port

    return tomllib.loads(Path(__file__).with_name(file).read_text("utf-8"))


@cache
def _phrases() -> dict[str, str]:
    return cast("dict[str, str]", _read("phrases.toml"))


def _any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})".replace("~", " ")


def phrases(name: str) -> re.Pattern[str]:
    """What `phrases.toml` has of this name."""
    return late(lambda: unicodedata.normalize("NFC", _NEXT_LINE.sub("", _phrases()[name])))


def _family(file: str) -> tuple[Language, ...]:
    data = _read(file)
    words, patterns = cast("dict[str, str]", data["words"]), cast("dict[str, str]", data.get("patterns", {}))

    def named(found: re.Match[str]) -> str:
        name = found[2]
        text = _words(words[name]) if name in words else _pattern(patterns[name])
        match found[1]:
            case "any":
                return _any_of(text)
            case "but":
                return rf"(?!{_any_of(text)}(?!\w))"
            case "lead":
                return rf"{_CLAUSE}(?:{_any_of(text)}(?:,? |: )){{0,4}}+"
            case _:
                return text

    def _words(text: str) -> str:
        return _NAMED.sub(named, " ".join(text.split()))

    def _pattern(text: str) -> str:
        return _NAMED.sub(named, _NEXT_LINE.sub("", text))

    rows = cast("list[dict[str, str | list[str]]]", data["languages"])
    return tuple(
        Language(
            **{  # pyright: ignore[reportArgumentType]
                name: tuple(map(_pattern, value))
                if isinstance(value, list)
                else _words(value)
                if name == "common"
                else _pattern(value)
                for name, value in row.items()
            }
        )
        for row in rows
    )


@cache
def languages() -> tuple[Language, ...]:
    """All of them; read when the first reply is to be judged."""
    return tuple(row for family in _FAMILIES for row in _family(f"{family}.toml"))
