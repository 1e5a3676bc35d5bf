"""The house as it is drawn and named in ``docs/architecture.md``: the picture of its rooms, its words, and where to look for what."""

from __future__ import annotations

import re

import pytest

from tests import architecture, glossary, rooms

NOT_SAID = re.compile(r"(?:^|_)(?:desk|rung|climb|climbed|subjects|dressing|slim|pacedbell)(?:_|$)", re.IGNORECASE)
"""Words that had two meanings, or that nobody in the field would look for."""
STORED = {"rung", "_AS_RUNG"}
"""Journals and tables have it, and keep it."""


def test_what_the_page_prints_of_the_house_is_true() -> None:
    text = architecture.PAGE.read_text()
    assert architecture.page(text) == text, "python -m tests.architecture writes it anew"


def test_a_page_without_a_place_for_what_is_printed_is_found() -> None:
    with pytest.raises(LookupError, match="0 places for words"):
        architecture.page("no place")


def test_no_room_uses_itself_by_way_of_others() -> None:
    assert rooms.circle(rooms.rooms()) == []


def test_rooms_in_a_circle_are_found_and_an_arrow_that_follows_is_left_out() -> None:
    assert sorted(set(rooms.circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}))) == ["a", "b", "c"]
    assert rooms.needed({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_no_two_classes_of_the_house_have_one_name() -> None:
    assert glossary.doubled() == {}


def test_every_class_that_many_rooms_use_is_among_the_words() -> None:
    assert glossary.widely_used() - set(glossary.WORDS.values()) == set()


def test_a_word_whose_carrier_is_gone_or_says_nothing_is_found() -> None:
    with pytest.raises(LookupError, match="no module"):
        glossary.meaning("gateway_of.nobody.Nothing")
    with pytest.raises(LookupError, match="no words"):
        glossary.meaning("agent_core.turn.state.NoSuchThing")


def test_words_that_mislead_name_nothing() -> None:
    assert {name for name in glossary.identifiers() if NOT_SAID.search(name)} - STORED == set()


def test_every_place_that_the_page_sends_somebody_to_is_there() -> None:
    places = re.findall(
        r"`((?:gateway|adapters|agent_core|tests|migrations|docs)/[\w./]+)`", architecture.PAGE.read_text()
    )
    assert len(places) > 60
    assert [place for place in places if not (rooms.ROOT / place).exists()] == []
