"""In whose language the gateway speaks: every sentence for a person is made by one function here, from the catalogue of that person's language.

Theory. The English sentence stands in the code where it is used, and is its own name in the catalogues: `speak("Stopped, as you asked.")`. What it
speaks of stands in braces and is handed over by name, so that a language may put it elsewhere. A sentence that is kept in a constant or a table is
marked by `sentence` there and spoken where it is used; one that counts something is `speak_many`. A command stands in braces with its slash,
``{/stop all}``, and so it leaves here: how it is written is the business of the surface that shows it (`spelled`). Without a block of `speaking` all of it is English,
as it stands: models, logs and whoever runs the gateway read English, and no catalogue is loaded for that.

Words are rendered as late as possible. What is stored is what happened (an exit with its facts), and with a turn its person's language; so a notice
after a restart is said in it.

Catalogues are ``agent_core/languages/*.po``, compiled to ``.mo`` when the package is built; one is loaded when somebody speaks its language first.

Laws (tests/agent_core/test_tongue.py): English is what stands in the code; each catalogue has every sentence, with the same names in braces; a name
in Latin letters within a sentence that is written from right to left is set apart, so that its signs stay where they belong; no surface shows a command
in braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from agent_core.records import dataclass

FOLDER = Path(__file__).parents[1] / "languages"
ENGLISH = "en"


class Catalogue(Protocol):
    """The sentences of a language; `gettext.NullTranslations` is one."""

    def gettext(self, message: str) -> str: ...

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str: ...


@dataclass(frozen=True, slots=True)
class SpokenLanguage:
    """What of a language no catalogue says."""

    name: str
    """As its speakers call it."""
    group: str = ","
    """Between the thousands."""
    point: str = "."
    leftward: bool = False
    """It is written from right to left."""
    moment: str = "%d/%m/%Y, %H:%M"
    """A day and a time, in numbers, for `strftime`."""


LANGUAGES: Mapping[str, SpokenLanguage] = {
    ENGLISH: SpokenLanguage("English", moment="%a %d %b %Y, %H:%M"),
    "de": SpokenLanguage("Deutsch", ".", ",", moment="%d.%m.%Y, %H:%M"),
    "es": SpokenLanguage("Español", ".", ","),
    "fr": SpokenLanguage("Français", "\u202f", ","),
    "pt": SpokenLanguage("Português", ".", ","),
    "ru": SpokenLanguage("Русский", "\u00a0", ",", moment="%d.%m.%Y, %H:%M"),
    "zh": SpokenLanguage("简体中文", moment="%Y年%m月%d日 %H:%M"),
    "ja": SpokenLanguage("日本語", moment="%Y年%m月%d日 %H:%M"),
    "ar": SpokenLanguage("العربية", leftward=True),
    "hi": SpokenLanguage("हिन्दी"),
}
"""The languages that the gateway speaks, by the tags that stand for them."""

_NOW: ContextVar[str] = ContextVar("language", default="")
_LOADED: dict[str, Catalogue] = {}
_APART, _TOGETHER = "\u2068", "\u2069"
_LEFTWARD_MARK = "\u200f"


def speaking(language: str) -> AbstractContextManager[None]:
    """A block in which sentences are made in this language (a tag of `LANGUAGES`; empty or ``en``: English)."""
    return _Speaking(language)


class _Speaking(AbstractContextManager[None]):
    __slots__ = ("_before", "_language")

    def __init__(self, language: str) -> None:
        self._language = "" if language == ENGLISH else language

    def __enter__(self) -> None:
        self._before: Token[str] = _NOW.set(self._language)

    def __exit__(self, *_: object) -> None:
        _NOW.reset(self._before)


def begin_speaking(language: str) -> None:
    """From here on this task speaks this language, and so do tasks that it begins."""
    _NOW.set("" if language == ENGLISH else language)


def spoken_now() -> str:
    """The tag of the language that is spoken here; empty for English."""
    return _NOW.get()


def sentence(message: str) -> str:
    """Marks a sentence for the catalogues that is spoken elsewhere; gives it as it is."""
    return message


def speak(message: str, /, **values: object) -> str:
    """The sentence in the language of here, with `values` for the names in its braces."""
    language = _NOW.get()
    if not language:
        return message.format_map(_Named(values)) if values else message
    said = catalogue(language).gettext(message) if message else ""
    return _filled(said, values, language)


def speak_many(one: str, many: str, count: int, /, **values: object) -> str:
    """The same where `count` decides the form, which is ``{count}`` in the sentence."""
    values.setdefault("count", count)
    language = _NOW.get()
    if not language:
        return (one if count == 1 else many).format_map(_Named(values))
    return _filled(catalogue(language).ngettext(one, many, count), values, language)


def clause(message: str) -> str:
    """Marks words that are kept as they read in English, filled in; `known_sentence` knows them by their form. Gives them as they are."""
    _CLAUSES.setdefault(message, None)
    return message


_CLAUSES: dict[str, re.Pattern[str] | None] = {}
"""Each with what knows it again, once somebody has asked."""
_NAME = re.compile(r"\\{(\w+)\\}")


def known_sentence(words: str) -> str:
    """What was stored in English: as a sentence of here if it is one of ours, else as it stands."""
    language = _NOW.get()
    if not language or not words:
        return words
    if (said := catalogue(language).gettext(words)) != words:
        return _filled(said, {}, language)
    for message in _CLAUSES:
        found = _form(message).fullmatch(words[:_CLAUSE_CHARS])
        if found is not None:
            values = found.groupdict()
            if (why := values.get(WHY)) is not None:
                values[WHY] = known_sentence(why)  # one of ours as well, as a rule
            return speak(message, **values)
    return words


_CLAUSE_CHARS = 600
WHY = "why"
"""Where one reason stands in another."""


def _form(message: str) -> re.Pattern[str]:
    known = _CLAUSES[message]
    if known is None:
        known = _CLAUSES[message] = re.compile(_NAME.sub(r"(?P<\1>[^\n]{1,200}?)", re.escape(message)))
    return known


def names_in(message: str) -> list[str]:
    """What a sentence has in braces."""
    return [part.partition("}")[0] for part in message.split("{")[1:]]


def number(value: float, digits: int = 0) -> str:
    """A number as it is written here."""
    written = f"{value:,.{digits}f}"
    language = LANGUAGES.get(_NOW.get())
    if language is None or (language.group, language.point) == (",", "."):
        return written
    return written.translate({ord(","): language.group, ord("."): language.point})


def moment_form() -> str:
    """How a day and a time are written here, for `strftime`."""
    return LANGUAGES[_NOW.get() or ENGLISH].moment if _NOW.get() in LANGUAGES else LANGUAGES[ENGLISH].moment


def beginning(words: str) -> str:
    """A clause as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


COMMAND_NAMES = frozenset(
    [
        "new",
        "redo",
        "stop",
        "tasks",
        "retry",
        "undo",
        "status",
        "why",
        "model",
        "agent",
        "queue",
        "steer",
        "answer",
        "remind",
        "timezone",
        "resume",
        "link",
        "unlink",
        "usage",
        "language",
        "files",
        "memory",
        "forget",
        "approvals",
        "instructions",
        "help",
        "access",
        "start",
        "press",
    ]
)
"""What stands in braces in sentences. The commands themselves are in `gateway.commands.registry`."""
SLASH = "/"
_COMMAND = re.compile(r"\{/([a-z]+)((?: [^{}\n]+)?)\}")


def command(words: str) -> str:
    """A command, with what is typed behind it, as it stands in our texts until a surface shows them."""
    return f"{{/{words}}}"


def spelled(words: str, prefix: str = SLASH) -> str:
    """A text of ours as a surface shows it that knows commands by this prefix."""
    return words if "{/" not in words else _COMMAND.sub(lambda found: _spelled(found, prefix), words)


def _spelled(found: re.Match[str], prefix: str) -> str:
    return f"{prefix}{found[1]}{found[2]}" if found[1] in COMMAND_NAMES else found[0]


class _Named(dict[str, object]):
    """What stands in a sentence's braces; a command stays as it is."""

    def __missing__(self, name: str) -> str:
        if name.startswith("/"):
            return f"{{{name}}}"
        raise KeyError(name)


def _filled(said: str, values: Mapping[str, object], language: str) -> str:
    known = LANGUAGES.get(language)
    if known is None or not known.leftward:
        return said.format_map(_Named(values)) if values else said
    said = _COMMAND.sub(f"{_APART}\\g<0>{_TOGETHER}", said)
    return said.format_map(_Named({name: _set_apart(value) for name, value in values.items()})) if values else said


def _set_apart(value: object) -> object:
    """A name of another direction keeps its signs, and moves none of those around it."""
    if isinstance(value, str) and any(letter.isascii() and letter.isalpha() for letter in value):
        return f"{_APART}{value}{_TOGETHER}"
    return value


def catalogue(language: str) -> Catalogue:
    """The sentences of a language; English ones where there is no catalogue of it."""
    found = _LOADED.get(language)
    if found is None:
        found = _LOADED[language] = _loaded(language)
    return found


def _loaded(language: str) -> Catalogue:
    import gettext  # who speaks English needs it not

    compiled = FOLDER / f"{language}.mo"
    if language not in LANGUAGES or not compiled.is_file():
        return gettext.NullTranslations()
    with compiled.open("rb") as file:
        return gettext.GNUTranslations(file)


def uncompiled() -> tuple[str, ...]:
    """The languages of a checkout whose catalogue is written and not compiled, or has changed since; they speak English, or an older state."""
    found = {path.stem: path.stat().st_mtime_ns for path in FOLDER.glob("*.po")}
    compiled = {path.stem: path.stat().st_mtime_ns for path in FOLDER.glob("*.mo")}
    return tuple(tag for tag in LANGUAGES if tag in found and compiled.get(tag, 0) < found[tag])


# ---------------------------------------------------------------------- whose language it is


def translated() -> tuple[str, ...]:
    """The languages beside English of which there is a catalogue."""
    return tuple(tag for tag in LANGUAGES if tag != ENGLISH and (tag in _LOADED or (FOLDER / f"{tag}.mo").is_file()))


@lru_cache(64)
def language_of(tag: str) -> str:
    """Which of our languages a tag means (``pt-BR``, ``zh_Hans``, ``de``); empty if it is none of them."""
    named = tag.strip().lower().replace("_", "-").partition("-")[0]
    return named if named in LANGUAGES else ""


def accepted(header: str) -> str:
    """The language that an ``Accept-Language`` asks for, the most wanted of ours; empty if it asks for none of them."""
    wanted: list[tuple[float, int, str]] = []
    for place, part in enumerate(header[:500].split(",")):
        tag, _, weight = part.partition(";")
        found = language_of(tag)
        try:
            much = float(weight.partition("=")[2] or 1)
        except ValueError:
            continue
        if found and much > 0:
            wanted.append((-much, place, found))
    return min(wanted)[2] if wanted else ""


_LOOKED_AT = 400
_RUSSIAN = frozenset("абвгдеёжзийклмнопрстуфхцчшщъыьэюя")
_RUSSIAN_ALONE = frozenset("ыэё")
"""Letters of Russian that Ukrainian, Bulgarian and Serbian have not."""
_ARABIC_ALONE = frozenset("ةيكىأإ")
_NOT_ARABIC = frozenset("یکپچژگٹڈڑںےہۆێە")
"""Letters of Persian, Urdu and Kurdish."""
_CHINESE_ALONE = frozenset("这们说么对还过时个让给请问话吗呢没谁语你您")
"""Characters that Japanese does not write."""
_HINDI = frozenset(["है", "हैं", "हूँ", "हूं", "क्या", "नहीं", "मैं", "में", "मुझे"])
"""Words that Marathi and Nepali, in the same script, have otherwise."""


def written_in(text: str) -> str:
    """The language of a text, where its letters alone say so for sure; else empty."""
    head = text[:_LOOKED_AT].lower()
    if head.isascii():
        return ""
    letters = frozenset(head)
    if any("\u3041" <= one <= "\u30fa" for one in letters):
        return "ja"
    if letters & _CHINESE_ALONE:
        return "zh"
    cyrillic = {one for one in letters if "\u0400" <= one <= "\u04ff"}
    if cyrillic & _RUSSIAN_ALONE and cyrillic <= _RUSSIAN:
        return "ru"
    if letters & _ARABIC_ALONE and not letters & _NOT_ARABIC:
        return "ar"
    return "hi" if not _HINDI.isdisjoint(head.replace("।", " ").replace("?", " ").split()) else ""


def of_environment(environ: Mapping[str, str]) -> str:
    """The language that a terminal's environment asks for: the first of these that is set decides, as everywhere. Empty for English."""
    said = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return chosen(said.partition(".")[0])


def chosen(*wishes: str) -> str:
    """The first of these languages (tags, or empty) that is one of ours; empty for English."""
    found = next((known for wish in wishes if (known := language_of(wish))), "")
    return "" if found == ENGLISH else found
