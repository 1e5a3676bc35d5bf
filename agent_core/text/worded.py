"""Closed sets whose members bring their own words, so that a member is one line in one place."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Worded(StrEnum):
    """A member is its stored value, and what is said of it. In the words, names in braces stand for what else is known."""

    _value_: str
    words: str

    def __new__(cls, value: str, words: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words
        return member
