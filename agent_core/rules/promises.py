"""Whether a reply is the answer, or only promises something and stops. Pure; its time is linear in the reply's length.

Theory. A reply that ends with "Now dispatching task 5:" and has no tool call has not done what it says; the turn must not pass for answered.
Where a sentence stands says most: only the end of a reply can promise, and only if nothing comes after it. A colon with nothing behind it leads
on, in whatever language. A list, a table, a quotation, code, data, a question are ends. The language comes second, and of it the form, not the
verb: first person, future or present, "let me", "I still have to", "on to". What the person has to do first (conditions, offers, requests)
and what is only polite are none.

Who promises a reminder or word later promises as well: a turn that is over wakes nobody. If a tool that can do so ran, it is kept.

What stays unclear is said to be unclear, and counts as the answer: a promise that is missed is a reply that says too much, and one that is
seen where there is none makes the model say what it has said already. `agent_core.judging.judge` takes care that nobody sees it twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import orjson

from agent_core.records import dataclass
from agent_core.rules.promising.language import languages
from agent_core.rules.promising.tongue import likely_languages
from agent_core.rules.promising.underway import IS_SET, LATER, begun_in_background, is_under_way, keeps_time
from agent_core.text.patterns import late
from agent_core.text.tongue import speak

READ_CHARS = 1500
"""Of a reply no more than this is read, beyond counting its code fences."""
SENTENCE_CHARS = 400
"""A last sentence of more is a paragraph."""
ASIDE_CHARS = 60
"""A last sentence of less may be a word that follows a promise ("Won't be a minute!")."""
SENTENCE_WORDS = 3
"""Fewer long words are a name or a word of thanks."""
SHORT_REPLY_CHARS = 300
"""A reply of less may be nothing but a promise."""


class Reading(StrEnum):
    """What the end of a reply amounts to."""

    ANSWER = "answer"
    PROMISE = "promise"
    UNCLEAR = "unclear"


class PromiseSign(StrEnum):
    """By what it was told."""

    NOTHING = "nothing"
    """No sign of a promise."""
    ACT = "act"
    """The last sentence says in the first person what comes next."""
    LEADS_ON = "leads_on"
    """It ends in a colon, and nothing follows."""
    PATIENCE = "patience"
    """It asks for patience."""
    TRAILS_OFF = "trails_off"
    """Little text that ends in dots."""
    STEPS = "steps"
    """A list of steps that it is about to take."""
    ASIDE = "aside"
    """Little text that promises, and then a short sentence."""
    CLAIMED = "claimed"
    """It says that a reminder is set, and no tool ran that could."""
    UNDER_WAY = "under_way"
    """It says that work goes on by itself, and no tool ran."""
    NO_CALL = "no_call"
    """Its finish reason speaks of a call, and there is none."""
    FOREIGN = "foreign"
    """Little text after tools, in a language whose forms are not known."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ends."""

    reading: Reading
    sign: PromiseSign = PromiseSign.NOTHING
    sentence: str = ""
    """The sentence that promises, or may, as the model wrote it, without emphasis around it; at most `SENTENCE_CHARS` long."""
    done: bool = False
    """It says no more than that nothing is left to do; told only of replies whose words are gone."""


ANSWERED = Ending(Reading.ANSWER)


class _Row(NamedTuple):
    acts: re.Pattern[str]
    apart: re.Pattern[str]
    goes_on: re.Pattern[str]
    when: re.Pattern[str]
    asks: re.Pattern[str]
    waits: re.Pattern[str]


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFC", "|".join(f"(?:{pattern})" for pattern in patterns)))


class _Rows(dict[str, _Row]):
    """A language's patterns, made when it is first met: those of all take 0.15 s, and of most no gateway meets a word."""

    def __missing__(self, code: str) -> _Row:
        row = next(row for row in languages() if row.code == code)
        self[code] = _Row(
            _any_of(row.acts),
            _any_of(row.apart),
            _any_of([row.goes_on]),
            _any_of([row.when]),
            _any_of([row.asks]),
            _any_of([rf"(?:{row.waits})\W*"]),
        )
        return self[code]


ROWS = _Rows()


_SENTENCE_END = late(r"(?<=[.!?…।॥؟۔])\s+(?=[^\sa-zà-þа-яёіїєґ(])|(?<=[。！？])(?=[^。！？）」』])")
_NO_SENTENCE = late(r"^\s*(?:[-*+•|>#]\s|\d+[.)]\s|[|>]|```|~~~|</|\$\$)")
_NO_SENTENCE_END = late(r"(?:```|\||</\w{1,20}>)$")
_LISTED = late(r"^\s*(?:[-*+•]|\d+[.)])\s")
_NUMBER = late(r"^\s*(\d+)[.)]\s")
_NUMBERED = late(r"^[ \t]*\d+[.)]\s", re.MULTILINE)
_KEPT = ".!?…:;,。！？：)।॥؟؛،۔·；"
_ASKING = ("?", "？", "؟", "\u037e")
_LEADS = (":", "：")
_TRAILS = ("…", "...")
_EDGES = " \t*_~`\"'“”„«»"
_QUOTES = ('"', "”", "“", "»", "'", "’", "」", "』")
_SPOKEN = late(r'"[^"\n]{1,300}"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」')
"""What somebody else says, within a sentence."""
_LONG_WORD = late(r"[^\W\d_]{4,}")
_MID_COLON = late(r":\s+\S|：\s*\S")
_VOWEL_SIGNS = late("[\u064b-\u0652\u0640\u0591-\u05c7]")


def read_ending(text: str, tools_run: Sequence[str] = ()) -> Ending:
    """How a reply without a tool call ends. `tools_run` are the names of the tools that ran in its turn."""
    tail = text.rstrip()[-READ_CHARS:]
    if not tail or text.count("```") % 2 or _is_data(text):
        return ANSWERED
    line = tail[tail.rfind("\n") + 1 :]
    if (_NO_SENTENCE.match(line) and not _ordinal(line, tail)) or _NO_SENTENCE_END.search(line[-24:]):
        return _steps(tail)
    sentences = _sentences(line)
    if not sentences or len(sentences[-1]) > SENTENCE_CHARS:
        return ANSWERED
    last, before = sentences[-1], sentences[-2] if len(sentences) > 1 else ""
    plain = _plain(last)
    if last.endswith(_QUOTES) or not plain or plain.endswith((*_ASKING, "か")):
        return ANSWERED
    languages = likely_languages(line, tail)
    if "el" in languages and plain.endswith(";"):
        return ANSWERED
    spoken = _SPOKEN.sub("“”", last)
    plain = plain if spoken == last else _plain(spoken)
    return _read(last, plain, before, languages, _Whole(len(text), tuple(tools_run)))


def _is_data(text: str) -> bool:
    """It is whole JSON: no sentence, whatever its values say."""
    bare = text.strip()
    if (bare[:1], bare[-1:]) not in (("{", "}"), ("[", "]")):
        return False
    try:
        orjson.loads(bare)
    except orjson.JSONDecodeError:
        return False
    return True


def sign_words(sign: str) -> str:
    """By what a reply was taken for a promise, for whoever asks why."""
    match sign:
        case PromiseSign.ACT:
            return speak("its last sentence says what the model does next, and nothing was done")
        case PromiseSign.LEADS_ON:
            return speak("it ended in a colon, and nothing followed")
        case PromiseSign.UNDER_WAY:
            return speak("it says that something is under way or comes by itself, and nothing was")
        case PromiseSign.PATIENCE:
            return speak("it ended by asking for patience, and nothing was under way")
        case _:
            return ""


class _Whole(NamedTuple):
    """What of the rest matters."""

    chars: int
    tools_run: tuple[str, ...]


def _read(last: str, plain: str, before: str, languages: tuple[str, ...], whole: _Whole) -> Ending:
    """What a last sentence says; `plain` without what somebody else says in it."""
    rows = [ROWS[code] for code in languages]
    said = last.strip(_EDGES)
    if any(row.waits.fullmatch(plain) for row in rows):
        told = before.strip(_EDGES) if _before_announces(before, rows) else said
        return Ending(Reading.PROMISE, PromiseSign.PATIENCE, told)
    if _announces(plain, rows) and ("de" in languages or not _is_name(last)):
        later = LATER.search(plain) is not None
        if _asks(before, rows) or (later and any(keeps_time(tool) for tool in whole.tools_run)):
            return ANSWERED
        if later and (IS_SET.search(plain) or IS_SET.search(_plain(before[-SENTENCE_CHARS:]))):
            return Ending(Reading.UNCLEAR, PromiseSign.CLAIMED, said)
        bare = len(plain.rpartition(": ")[2].split()) == 1 and ": " in plain and not plain.endswith(_TRAILS)
        return Ending(Reading.UNCLEAR if bare else Reading.PROMISE, PromiseSign.ACT, said)
    return _left_open(plain, said, before, rows, whole)


def _left_open(plain: str, said: str, before: str, rows: list[_Row], whole: _Whole) -> Ending:
    """Its words promise nothing of its own; its form may, or it says that work goes on by itself."""
    little = whole.chars <= SHORT_REPLY_CHARS
    announced = _before_announces(before, rows)
    going = is_under_way(plain, _plain(before[-SENTENCE_CHARS:]), announced=announced)
    if little and going and (begun_in_background(plain) or not _none_of_it(plain, rows)):
        return Ending(Reading.UNCLEAR if whole.tools_run else Reading.PROMISE, PromiseSign.UNDER_WAY, said)
    leads, trails = plain.endswith(_LEADS), plain.endswith(_TRAILS)
    aside = little and len(said) <= ASIDE_CHARS and announced
    foreign = little and not rows and bool(whole.tools_run) and len(_LONG_WORD.findall(said)) >= SENTENCE_WORDS
    if not (leads or (trails and little) or aside or foreign) or _none_of_it(plain, rows):
        return ANSWERED
    if leads:
        unsure = any(row.asks.search(plain) for row in rows)
        return Ending(Reading.UNCLEAR if unsure else Reading.PROMISE, PromiseSign.LEADS_ON, said)
    if _asks(before, rows):
        return ANSWERED
    if trails:
        return Ending(Reading.UNCLEAR, PromiseSign.TRAILS_OFF, said)
    if aside:
        return Ending(Reading.UNCLEAR, PromiseSign.ASIDE, before.strip(_EDGES))
    return Ending(Reading.UNCLEAR, PromiseSign.FOREIGN, said)


def _is_name(sentence: str) -> bool:
    """Two words or more, each with a capital: "Leonardo da Vinci." A name may look like a verb."""
    words = [word for word in _LONG_WORD.findall(sentence) if not word.isupper()]
    return len(words) > 1 and all(word.istitle() for word in words) and not sentence.endswith((*_LEADS, *_TRAILS))


def _asks(before: str, rows: Sequence[_Row]) -> bool:
    """The sentence before asks the person for something, so that what is announced waits for them."""
    plain = _plain(before[-SENTENCE_CHARS:]) if before else ""
    return bool(plain) and any(row.asks.search(plain) for row in rows)


def _before_announces(before: str, rows: Sequence[_Row]) -> bool:
    return bool(before) and len(before) <= SENTENCE_CHARS and _announces(_plain(before), rows)


def _ordinal(line: str, tail: str) -> bool:
    """A number at the beginning of a line that is no list's: "6. göreve geçiyorum:"."""
    number = _NUMBER.match(line)
    return number is not None and (
        line.rstrip().endswith(_LEADS) or (number[1] != "1" and len(_NUMBERED.findall(tail)) == 1)
    )


def _steps(tail: str) -> Ending:
    """The reply ends in no sentence. A list may be of steps that the sentence above it says will be taken."""
    lines = tail.split("\n")
    if not _LISTED.match(lines[-1]):
        return ANSWERED
    above = next(
        (line for line in reversed(lines) if line.strip() and not _LISTED.match(line) and line[0] not in " \t"), ""
    )
    sentences = _sentences(above)
    if not sentences or not above.rstrip().rstrip("*_").endswith(_LEADS):
        return ANSWERED
    last = sentences[-1]
    rows = [ROWS[code] for code in likely_languages(above, tail)]
    if len(last) > SENTENCE_CHARS or not _announces(_plain(last), rows):
        return ANSWERED
    return Ending(Reading.UNCLEAR, PromiseSign.STEPS, last.strip(_EDGES))


def _sentences(line: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(line[-2 * SENTENCE_CHARS :]) if part.strip()][-2:]


def _plain(sentence: str) -> str:
    """A sentence in lower case, without emphasis, vowel signs, symbols at its end and typographic apostrophes."""
    if not sentence:
        return ""
    text = sentence.replace("İ", "i").lower().replace("*", "")
    if not text.isascii():
        text = text.replace("’", "'").replace("\u02bc", "'")
        text = _VOWEL_SIGNS.sub("", text)
    text = unicodedata.normalize("NFC", text).strip(_EDGES)
    while text and not (text[-1].isalnum() or text[-1] in _KEPT or unicodedata.category(text[-1]).startswith("M")):
        text = text[:-1]
    text = text.rstrip(_EDGES)
    return text if text.endswith("...") else text.rstrip(".!。！।॥۔ ")


def _announces(plain: str, rows: Sequence[_Row]) -> bool:
    """A sentence says what its speaker does next. What one of the likely languages takes for polite or for a condition is none."""
    return any(_acts(plain, row) for row in rows) and not plain.endswith(_ASKING) and not _none_of_it(plain, rows)


def _none_of_it(plain: str, rows: Sequence[_Row]) -> bool:
    return any(row.apart.search(plain) for row in rows)


def _acts(plain: str, row: _Row) -> bool:
    found = row.goes_on.search(plain) or any(
        not _MID_COLON.search(plain, act.end()) for act in row.acts.finditer(plain)
    )
    return bool(found) and (not row.when.search(plain) or LATER.search(plain) is not None)
