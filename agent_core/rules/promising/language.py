"""How people say in thirty-four languages what they do next. Data of `promises`, which says what is done with it.

A row knows a language's *forms* (first person, future, "let me", "I still have to", "on to"), not the verbs of an agent's work: any verb in
such a form is an act, unless it is one of the few by which people talk, think, wait or are polite (`but`). A row has

- `common` and `letters`: words, and letters beside those that all have, by which the language is known from others of its script;
- `acts`: how an act is announced, searched in the last sentence; `CLAUSE` is where a clause may begin;
- `goes_on`: names of the next thing, after which a colon may be followed by it ("Next up: the index.");
- `apart`: what makes it none: conditions that the person has to meet, offers, courtesies, other people's acts;
- `asks`: the sentence before asks the person for something, so the act waits for them;
- `when`: it happens only once something else has: a condition, unless the act is to tell the person;
- `waits`: a whole sentence that only asks for patience. It promises by itself.

Everything is in lower case, without emphasis and with plain apostrophes. To add a language: a row, and endings in tests/corpora.
"""

from __future__ import annotations

from dataclasses import dataclass

CLAUSE = r"(?:^|[,;:.!…–—(،؛。，、：；·]\s*|\s-\s)"


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


def any_of(words: str) -> str:
    """A pattern for any one of the words, each of which may be a pattern; a tilde stands for a space in one."""
    return f"(?:{'|'.join(words.split())})".replace("~", " ")


def but(words: str) -> str:
    """Not followed by any one of the words, whole."""
    return rf"(?!{any_of(words)}(?!\w))"


def lead(words: str) -> str:
    """A clause's beginning and up to four small words of it."""
    return rf"{CLAUSE}(?:{any_of(words)}(?:,? |: )){{0,4}}+"
