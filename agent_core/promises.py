"""Finds a reply that announces an action of the model's own and stops. Pure, without a model call.

Theory. A reply that ends with "Now dispatching task 5:" and has no tool call has not done what it says; the turn must not pass
for answered. Only the end counts: the last sentence of the last line (and, if that only asks for patience, the one before).

It is an announcement if one of a language's `announcing` patterns is found in it and none of that language's `otherwise`
patterns (courtesies, offers, conditions, other times). It is none if it asks, is quoted, comes after a request to the person,
or if the reply ends in a list, a heading, a quotation, a table or code. A colon that has content after it is followed by
that content, so the announcement is not the end.

The patterns are data: `promisewords` has one row for each language. They prefer silence: a missed announcement is an answer that says
too much, a false one costs a step. Time is linear: beyond counting code fences, at most `LOOK_BACK_CHARS` are read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from agent_core.promisewords import LANGUAGES

LOOK_BACK_CHARS = 400
"""A last line of more is a paragraph: only sentences that begin within this many characters of the end are read."""


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


TABLE = tuple((_any_of(language.announcing), _any_of(language.otherwise)) for language in LANGUAGES)
_REQUESTS = _any_of(language.requests for language in LANGUAGES)
_PATIENCE = re.compile(rf"(?:{'|'.join(language.patience for language in LANGUAGES)})\W*")

_SENTENCE_END = re.compile(r"(?<=[.!?…।؟])\s+(?=[^\sa-zà-þа-яёіїєґ(])|(?<=[。！？])")
_NO_SENTENCE = re.compile(r"\s*(?:[-*+•|>#]\s|\d+[.)]\s|[|>]|```|~~~|</|\$\$)|.*(?:```|\||</\w+>)\s*$")
_KEPT = ".!?…:;,。！？：)।؟؛،"
_ASKING = ("?", "？", "؟")
_EDGES = " \t*_~`\"'“”„«»"
_QUOTES = ('"', "”", "“", "»", "'", "’", "」", "』")
_MID_COLON = re.compile(r"(?::\s+|：\s*)\S")


def announced_action(text: str) -> str | None:
    """The sentence at the end of a reply that announces an action of the model's own; None if there is none.

    The sentence is given as the model wrote it, without emphasis around it, at most `LOOK_BACK_CHARS` long.
    """
    sentences = _last_sentences(text)
    if not sentences:
        return None
    last, before = sentences[-1], sentences[-2] if len(sentences) > 1 else ""
    if last.endswith(_QUOTES) or _plain(last).endswith((*_ASKING, "か。")):
        return None
    if _PATIENCE.fullmatch(_plain(last)):
        return before.strip(_EDGES) if _announces(before) else last.strip(_EDGES)
    if not _announces(last) or (before and _REQUESTS.search(_plain(before))):
        return None
    return last.strip(_EDGES)


def _last_sentences(text: str) -> list[str]:
    """The sentences of the last line, none if that is no prose."""
    tail = text.rstrip()[-2 * LOOK_BACK_CHARS :]
    if not tail or text.count("```") % 2:
        return []
    line = tail[tail.rfind("\n") + 1 :]
    if _NO_SENTENCE.match(line):
        return []
    sentences = [part.strip() for part in _SENTENCE_END.split(line) if part.strip()]
    kept = [sentence for sentence in sentences if len(sentence) <= LOOK_BACK_CHARS]
    return kept[-2:] if kept and kept[-1] == sentences[-1] else []


def _plain(sentence: str) -> str:
    """A sentence in lower case, without emphasis, symbols at its end and typographic apostrophes."""
    text = sentence.lower().replace("’", "'").replace("*", "").strip(_EDGES)
    while text and not (text[-1].isalnum() or text[-1] in _KEPT or unicodedata.category(text[-1]).startswith("M")):
        text = text[:-1]
    return text.rstrip(_EDGES)


def _announces(sentence: str) -> bool:
    text = _plain(sentence)
    if text.endswith(_ASKING):
        return False
    for announcing, otherwise in TABLE:
        found = announcing.search(text)
        if found is not None and not _MID_COLON.search(text, found.end()) and not otherwise.search(text):
            return True
    return False
