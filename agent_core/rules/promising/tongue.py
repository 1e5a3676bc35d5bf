"""In which of the known languages a reply ends: told by its script, its words, the ends of its words, and its letters. Pure.

A short reply says little of its language, so several may be likely; each of them is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from agent_core.rules.promising.language import languages
from agent_core.text.patterns import late

TOLD_CHARS = 200
"""By so much of a reply's end, and as much of its last line, its language is told."""
_SCRIPTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (code, late(f"[{ranges}]"))
    for code, ranges in (
        ("ja", "\u3040-\u30ff"), ("ko", "\uac00-\ud7af"), ("zh", "\u3400-\u9fff"), ("th", "\u0e00-\u0e7f"),
        ("hi", "\u0900-\u097f"), ("bn", "\u0980-\u09ff"), ("he", "\u0590-\u05ff"), ("el", "\u0370-\u03ff\u1f00-\u1fff"),
        ("arabic", "\u0600-\u06ff\ufb50-\ufdff"), ("cyrillic", "\u0400-\u04ff"),
    )
)  # fmt: skip
_SHARED = {
    "arabic": ("ar", "fa", "ur"),
    "cyrillic": ("ru", "uk", "bg"),
}
_NO_LATIN = late("[\u0370-\u1cff\u1f00-\u1fff\u3040-\ud7ff\ufb50-\ufdff]")
_LETTER = re.compile(r"[^\W\d_]")
_HINTED = 0.5
"""A reply in Latin letters without a word that is known is in no known language: a name may look like a verb in any ("hello", "tomato")."""
_TELLING = 0.3
"""A word tells something if it is of five languages at most: "ok" is of eleven."""
_NEAR = 0.7
"""A language whose score is less than this below the best one's is asked as well: a short reply says little of its language."""


_ESCAPE = re.compile(r"\\[a-zA-Z]")
_LITERAL = re.compile(r"[^\W\d_]{4,}")
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
_LONG_WORD = 5


class _Known(NamedTuple):
    """What is known of the languages of one script."""

    codes: tuple[str, ...]
    hints: dict[str, tuple[tuple[int, float], ...]]
    """Their words, and ends of words behind a hyphen, and how much each speaks for which of them."""
    letters: dict[str, frozenset[str]]
    """Letters of their own, beside those that all have."""
    anybodys: frozenset[str]
    """Letters of any language's own."""


@cache
def _known(script: str) -> _Known:
    """Made when the script is first met."""
    codes = _SHARED.get(script) or tuple(row.code for row in languages() if row.script == script)
    letters = {row.code: frozenset(row.letters.split()) for row in languages()}
    return _Known(codes, _hints(codes), letters, frozenset[str]().union(*letters.values()))


def _hints(codes: Sequence[str]) -> dict[str, tuple[tuple[int, float], ...]]:
    found: dict[str, int] = {}
    """Of which languages a hint is: a bit for each. There are thousands of hints, and few sets of languages."""
    for number, code in enumerate(codes):
        row = next(row for row in languages() if row.code == code)
        forms = _ESCAPE.sub(" ", " ".join((*row.acts, *row.apart, row.asks, row.waits, row.goes_on, row.when)))
        for word in (*row.common.replace("~", " ").split(), *_LITERAL.findall(forms)):
            if _WORD.fullmatch(word):
                found[word] = found.get(word, 0) | 1 << number
                if len(word) >= _LONG_WORD:
                    end = f"-{word[-3:]}"
                    found[end] = found.get(end, 0) | 1 << number

    @cache
    def says(of: int, weight: float) -> tuple[tuple[int, float], ...]:
        numbers = [number for number in range(len(codes)) if of >> number & 1]
        return tuple((number, weight / len(numbers)) for number in numbers)

    return {hint: says(of, 0.5 if hint[0] == "-" else 1.5) for hint, of in found.items()}


SISTERS = {"cs": "sk", "sk": "cs", "da": "no", "no": "da", "es": "pt", "pt": "es"}
"""Languages that a sentence may not tell apart: the other one is asked as well."""


def likely_languages(line: str, tail: str) -> tuple[str, ...]:
    """In which languages a reply may be, likeliest first; none if it is in one whose forms are not known."""
    line = line[-TOLD_CHARS:]
    script = _script(line) if _NO_LATIN.search(line) else ""
    if script and script not in _SHARED:
        return (script,)
    codes, hints, letters, anybodys = _known(script)
    text = f"{line} {tail[-TOLD_CHARS:]}".lower().replace("’", "'")
    scores = [0.0] * len(codes)
    is_word = False
    for word in _WORD.findall(text):
        for number, weight in hints.get(word, ()):
            scores[number] += weight
            is_word = is_word or weight >= _TELLING
        if len(word) >= _LONG_WORD:
            for number, weight in hints.get(f"-{word[-3:]}", ()):
                scores[number] += weight
    own = anybodys.intersection(text)
    if own:
        for number, code in enumerate(codes):
            has = len(own & letters[code])
            scores[number] += 0.3 * has - (len(own) - has)
    best = max(scores)
    if not script and not is_word and not own:
        return ()
    if best < _HINTED:
        return () if not script else codes
    likely = [
        code
        for code, score in sorted(zip(codes, scores, strict=True), key=lambda each: -each[1])
        if score >= best - _NEAR
    ]
    return tuple(dict.fromkeys((*likely, *(SISTERS[code] for code in likely if code in SISTERS))))


def _script(line: str) -> str:
    """The script that most of a line is in; empty for Latin."""
    counts = {code: len(pattern.findall(line)) for code, pattern in _SCRIPTS}
    if counts["ja"] and counts["ja"] * 8 >= counts["zh"]:
        counts["ja"] += counts["zh"]
    code = max(counts, key=lambda each: counts[each])
    letters = len(_LETTER.findall(line))
    dense = code in {"ja", "zh", "ko"}  # a letter of these says as much as three of an alphabet
    return code if counts[code] * (4 if dense else 2) >= letters and counts[code] else ""
