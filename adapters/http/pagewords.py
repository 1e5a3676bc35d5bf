"""The page in its reader's language: its own table of English words, and its first lines, filled from the catalogue. Pure.

The English words stand in ``words.js``, a line each, and are sentences of the catalogues like any other (`tests.catalogues` reads them there); a browser
is given the table of its own language alone.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Mapping

from agent_core.text.tongue import ENGLISH, LANGUAGES, known_sentence, sentence, speak_many, speaking

_LINE = re.compile(r'^  "([a-z_.]{1,60})": "([^"\\\n]{1,600})",$', re.MULTILINE)
TYPED = frozenset({"gateway", "try.files", "try.help", "try.stall"})
"""A name, and what is said to the rehearsal, which knows English."""
ONE, OTHER = ".one", ".other"
FORMS = {"zero": 0, "one": 1, "two": 2, "few": 3, "many": 11, "other": 100}
"""The forms that browsers know (Unicode's categories), each with a number that has it wherever a language has the form."""
SCRIPTLESS = sentence("This page needs JavaScript. Without it, use the terminal: outspoken chat")


def table_of(script: str) -> Mapping[str, str]:
    """The page's words by their names, as they stand in English."""
    return {found[1]: found[2] for found in _LINE.finditer(script)}


def sentences_of(script: str) -> list[str | tuple[str, str]]:
    """What the catalogues have of the page: each sentence, or one and many."""
    table = table_of(script)
    pairs = {name.removesuffix(ONE) for name in table if name.endswith(ONE) and name.removesuffix(ONE) + OTHER in table}
    one_each = [words for name, words in table.items() if name not in TYPED and not _either(name, pairs)]
    return [*one_each, *((_counting(table[stem + ONE]), _counting(table[stem + OTHER])) for stem in sorted(pairs))]


def _either(name: str, pairs: set[str]) -> bool:
    return name.removesuffix(ONE) in pairs or name.removesuffix(OTHER) in pairs


@functools.lru_cache(maxsize=len(LANGUAGES))
def spoken_words(script: str, language: str) -> str:
    """``words.js`` in a language."""
    if not language:
        return script
    table = table_of(script)
    with speaking(language):
        return _LINE.sub(lambda found: _said(found[1], found[2], table), script)


def _said(name: str, words: str, table: Mapping[str, str]) -> str:
    if name in TYPED:
        return _line(name, words)
    if name.endswith(ONE) and (many := table.get(name.removesuffix(ONE) + OTHER)) is not None:
        stem = name.removesuffix(ONE)
        said = {
            form: speak_many(_counting(words), _counting(many), count, count="{n}") for form, count in FORMS.items()
        }
        return "\n".join(_line(f"{stem}.{form}", each) for form, each in said.items())
    if name.endswith(OTHER) and name.removesuffix(OTHER) + ONE in table:
        return ""
    return _line(name, known_sentence(words))


def _counting(words: str) -> str:
    """What counts something is ``{n}`` on the page and ``{count}`` in the catalogues."""
    return words.replace("{n}", "{count}")


def _line(name: str, words: str) -> str:
    return f'  "{name}": "{words.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}",'


@functools.lru_cache(maxsize=len(LANGUAGES))
def spoken_page(page: str, language: str) -> str:
    """``index.html`` for a language: its name and its direction, and the one sentence that stands in it."""
    if not language:
        return page
    side = "rtl" if LANGUAGES[language].leftward else "ltr"
    with speaking(language):
        said = html.escape(known_sentence(SCRIPTLESS))
    begun = page.replace(f'<html lang="{ENGLISH}" dir="ltr">', f'<html lang="{language}" dir="{side}">', 1)
    return begun.replace(SCRIPTLESS, said)
