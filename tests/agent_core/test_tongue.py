"""Sentences for people: each catalogue is whole and fits, English is what stands in the code, and whose language it is."""

from __future__ import annotations

import ast
import os
import re
import shutil
import string
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hatch_build
from agent_core.text import tongue
from agent_core.text.durations import duration
from agent_core.text.tongue import (
    COMMAND_NAMES,
    LANGUAGES,
    accepted,
    catalogue,
    chosen,
    command,
    known_sentence,
    language_of,
    number,
    speak,
    speak_many,
    speaking,
    spelled,
    spoken_now,
    translated,
    written_in,
)
from gateway.commands.registry import TYPED
from tests.catalogues import KEYWORDS, OTHERS, PACKAGES, ROOT, forms, sources, stored, template
from tests.source import nodes

SOURCE = template()
PRESENT = tuple(tag for tag in OTHERS if len(stored(tag)))


def names(words: str) -> set[str]:
    """What stands in braces; of a command its name, since what is typed behind it may be put in another language."""
    found = {name for _, name, _, _ in string.Formatter().parse(words) if name is not None}
    return {name.partition(" ")[0] if name.startswith("/") else name for name in found}


def named_command(name: str) -> str:
    return name.removeprefix("/") if name.startswith("/") else ""


def test_every_sentence_of_the_source_can_be_filled() -> None:
    for message in SOURCE:
        for words in sources(message):
            assert all(name.isidentifier() or named_command(name) in COMMAND_NAMES for name in names(words)), words


def unseen(source: str) -> list[str]:
    """Sentences that Babel does not see: those that stand in the braces of an f-string, which it reads as one text."""
    inside = (one for found in nodes(source) if isinstance(found, ast.JoinedStr) for one in ast.walk(found))
    calls = [
        one
        for one in inside
        if isinstance(one, ast.Call) and getattr(one.func, "id", getattr(one.func, "attr", "")) in KEYWORDS
    ]
    given = (of for call in calls for of in call.args if isinstance(of, ast.Constant) and isinstance(of.value, str))
    return [str(of.value) for of in given]


def test_no_sentence_is_said_where_the_catalogues_do_not_see_it() -> None:
    assert unseen("""f'{speak("Hidden {what}", what=1)} and {tongue.sentence("another")}'""") == [
        "Hidden {what}",
        "another",
    ]
    assert unseen('words = speak("Seen")\nf"{words} {speak(LABEL)}"') == []
    found = [
        (path.relative_to(ROOT).as_posix(), words)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for words in unseen(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("language", PRESENT)
def test_each_catalogue_has_every_sentence_and_no_other(language: str) -> None:
    here, there = stored(language), {str(one.id) for one in SOURCE}
    assert {str(one.id) for one in here} == there, "python -m tests.catalogues"
    assert [one.id for one in here if one.id and not all(forms(one))] == []
    assert [one.id for one in here if one.fuzzy and one.id] == []


def test_no_sentence_hides_in_an_f_string() -> None:
    """Babel does not look into them: what is said only there would be in no catalogue."""
    known = {words for one in SOURCE for words in sources(one)}
    hidden = [
        (path.relative_to(ROOT).as_posix(), call.lineno)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for string in nodes(path.read_text("utf-8"))
        if isinstance(string, ast.JoinedStr)
        for call in ast.walk(string)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in SPEAKING
        for first in call.args[:1]
        if isinstance(first, ast.Constant) and first.value not in known
    ]
    assert hidden == []


SPEAKING = frozenset({"speak", "speak_many", "sentence", "clause"})
OTHER_ADDRESS = {
    "fr": r"\b(toi|tes|les tiens|décide dans|(?<!je )réponds|choisis|écris|ouvre-|essaie|attends|envoie|mets)\b",
    "es": r"\b(usted|ustedes|escriba|envíe|responda|espere|pruebe|elija|inténtelo)\b",
    "pt": r"\b(tu|teu|teus|tua|tuas|contigo|diz-me|envia|recusas)\b",
    "ru": r"\b(ты|тебя|тебе|тобой|твой|твоя|твоё|твои|твоего|скажи|выбери|напиши|ответь|попробуй|отправь|подожди)\b",
    "zh": "你",
}
"""Words that speak to people in another way than the language's other sentences do: *vous*, *tú*, *você*, *вы*, 您."""


@pytest.mark.parametrize("language", sorted(OTHER_ADDRESS))
def test_each_language_speaks_to_people_in_one_way(language: str) -> None:
    other = re.compile(OTHER_ADDRESS[language], re.IGNORECASE)
    assert [words for one in stored(language) if one.id for words in forms(one) if other.search(words)] == []


@pytest.mark.parametrize("language", PRESENT)
def test_each_sentence_speaks_of_the_same(language: str) -> None:
    for message in stored(language):
        if not message.id:
            continue
        wanted = names(sources(message)[-1])
        for words in forms(message):
            less = {"count"} if message.pluralizable else set[str]()
            assert wanted - less <= names(words) <= wanted, (language, message.id)
            assert words[:1].isspace() == sources(message)[0][:1].isspace() or language in ("zh", "ja"), message.id
            assert words.count("\n") == sources(message)[0].count("\n"), message.id


@pytest.mark.parametrize("language", PRESENT)
def test_marks_stand_as_they_are(language: str) -> None:
    for message in stored(language):
        for mark in "⚠⏳🔐ℹ":
            assert all((mark in words) == (mark in sources(message)[0]) for words in forms(message)), message.id


@pytest.mark.parametrize("language", PRESENT)
def test_every_form_of_the_plural_is_used_as_the_language_has_it(language: str) -> None:
    said = catalogue(language)
    for message in stored(language):
        if message.pluralizable:
            one, many = sources(message)
            for count in (0, 1, 2, 3, 5, 11, 21, 100, 1_000):
                assert said.ngettext(one, many, count) in forms(message)


def test_english_is_what_stands_in_the_code() -> None:
    for message in SOURCE:
        for words in sources(message):
            assert speak(words) == words == known_sentence(words)


def test_a_compiled_catalogue_is_found_for_each_that_is_written() -> None:
    assert set(translated()) == set(PRESENT)


@pytest.mark.parametrize("language", PRESENT)
@given(seconds=st.integers(0, 10**7))
def test_durations_are_said_in_each_language(language: str, seconds: int) -> None:
    with speaking(language):
        assert any(letter.isdigit() for letter in duration(seconds))


def test_a_block_speaks_and_what_is_behind_it_does_not() -> None:
    with speaking("de"):
        assert spoken_now() == "de"
        with speaking("en"):
            assert not spoken_now()
        assert number(1_234_567.5, 1) == "1.234.567,5"
    assert not spoken_now()
    assert number(1_234_567.5, 1) == "1,234,567.5"


def test_one_and_many() -> None:
    said = [speak_many("{count} time", "{count} times", count) for count in (0, 1, 2)]
    assert said == ["0 times", "1 time", "2 times"]


def said_in(source: str) -> list[str]:
    """The sentences that a file speaks, wherever in it they stand."""
    calls = [node for node in nodes(source) if isinstance(node, ast.Call) and node.args]
    spoken = [one for one in calls if isinstance(one.func, ast.Name) and one.func.id in ("speak", "sentence")]
    firsts = [one.args[0].value for one in spoken if isinstance(one.args[0], ast.Constant)]
    return [words for words in firsts if isinstance(words, str) and words]


def test_no_sentence_stands_where_the_catalogues_do_not_see_it() -> None:
    known = {words for message in SOURCE for words in sources(message)}
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert {one for path in files for one in said_in(path.read_text("utf-8"))} <= known


_BARE = re.compile(rf"(?<![\w{{/.<])/({'|'.join(COMMAND_NAMES)})\b")


@pytest.mark.parametrize("language", ["en", *PRESENT])
def test_no_sentence_says_how_a_command_is_written(language: str) -> None:
    for message in SOURCE if language == "en" else stored(language):
        assert not [words for words in (*sources(message), *forms(message)) if _BARE.search(words)]


def test_the_commands_in_sentences_are_those_that_can_be_typed() -> None:
    assert COMMAND_NAMES == TYPED


def test_a_surface_spells_commands_as_it_writes_them() -> None:
    said = speak("{/stop all}, or {other} within {minutes} min", other=command("link AB-12"), minutes=3)
    assert spelled(said) == "/stop all, or /link AB-12 within 3 min"
    assert spelled(said, "!") == "!stop all, or !link AB-12 within 3 min"
    assert (
        spelled("{/if} of somebody's own stays, and {stop} too", "!") == "{/if} of somebody's own stays, and {stop} too"
    )
    with speaking("ar"):
        assert spelled(speak("{/new}")) == "\u2068/new\u2069"


@given(st.text())
def test_what_is_spelled_once_is_spelled(words: str) -> None:
    assert spelled(spelled(words)) == spelled(words)


def test_a_latin_name_in_arabic_is_set_apart() -> None:
    with speaking("ar"):
        assert speak("{tool}!", tool="read_file") == "\u2068read_file\u2069!"
        assert speak("{tool}!", tool=4) == "4!"


@pytest.mark.parametrize(
    ("tag", "language"),
    [("de", "de"), ("de-AT", "de"), ("pt_BR", "pt"), ("zh-Hans-CN", "zh"), ("EN-us", "en"), ("", ""), ("tlh", ""), ("*", "")],
)  # fmt: skip
def test_a_tag_means_one_of_our_languages(tag: str, language: str) -> None:
    assert language_of(tag) == language


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("nl,fr;q=0.5,de;q=0.7", "de"),
        ("en-US,en;q=0.9,de;q=0.1", "en"),
        ("*", ""),
        ("fr;q=0", ""),
        ("fr;q=much", ""),
        ("", ""),
    ],
)
def test_what_a_browser_accepts(header: str, language: str) -> None:
    assert accepted(header) == language


@given(st.text(max_size=200))
def test_whatever_a_header_says_it_is_read(header: str) -> None:
    assert accepted(header) in {"", *LANGUAGES}
    assert written_in(header) in {"", *LANGUAGES}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Привет! Как дела?", ""),  # could be other languages' as well
        ("Это вы написали?", "ru"),
        ("Привіт, як справи? Це ґанок", ""),
        ("你好，请帮我", "zh"),
        ("こんにちは", "ja"),
        ("東京都", ""),
        ("أين المكتبة؟", "ar"),
        ("سلام، چطوری؟", ""),
        ("यह क्या है?", "hi"),
        ("हे काय आहे?", ""),
        ("Grüß Gott", ""),
        ("plain", ""),
    ],
)
def test_letters_tell_a_language_only_where_they_are_sure(text: str, language: str) -> None:
    assert written_in(text) == language


def test_the_first_wish_that_is_known_counts() -> None:
    assert chosen("", "tlh", "de-CH", "fr") == "de"
    assert chosen("en", "de") == ""
    assert chosen("", "") == ""


def test_a_catalogue_that_is_written_and_not_compiled_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tongue, "FOLDER", tmp_path)
    assert tongue.uncompiled() == ()  # a wheel has only what is compiled
    for name, at in (
        ("de.mo", 2),
        ("de.po", 1),
        ("fr.po", 1),
        ("ja.mo", 1),
        ("ja.po", 2),
        ("xx.po", 1),
        ("es.mo", 1),
        ("es.po", 1),
    ):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (at, at))
    assert tongue.uncompiled() == ("fr", "ja")


def test_a_catalogue_that_was_not_written_to_its_end_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be newer than its sentences, so nobody would write it again, and its language could not be spoken."""
    shutil.copy(hatch_build.LANGUAGES / "de.po", tmp_path)
    monkeypatch.setattr(hatch_build, "LANGUAGES", tmp_path)

    def half(target: BinaryIO, _: object) -> None:
        target.write(b"\xde\x12")
        raise KeyboardInterrupt

    monkeypatch.setattr(hatch_build, "write_mo", half)
    with pytest.raises(KeyboardInterrupt):
        hatch_build.compile_catalogues()
    monkeypatch.undo()
    assert not (tmp_path / "de.mo").exists()
