"""What goes over the wire: one JSON object a line, over TCP. Both sides read it into these types, and nothing else.

The bot opens a connection and says its token. With ``listen`` it is then told events, each with a number, and says which it has
taken (``taken``); what it has not, it is told again next time. Without ``listen`` it makes one call, gets one answer, and is done.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Line(BaseModel):
    """What all lines have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Hello(Line):
    token: str
    listen: bool = False


class Welcome(Line):
    ok: bool
    bot: str = ""
    """The bot's own id."""


class Person(Line):
    id: str
    name: str


class File(Line):
    ref: str
    name: str
    mime: str
    size: int


class Event(Line):
    """Something that a person did."""

    number: int
    kind: Literal["message", "edit", "press"]
    chat: str
    private: bool
    person: Person
    message: str
    """The id of the message that was written, edited or pressed."""
    thread: str = ""
    text: str = ""
    command: str = ""
    mentions_bot: bool = False
    for_others: bool = False
    reply_to_bot: bool = False
    files: tuple[File, ...] = ()
    album: str = ""


class Span(Line):
    start: int
    end: int
    style: str


class Call(Line):
    """Something that the bot wants done. The same `create` with the same `key` does nothing twice."""

    do: Literal["create", "edit", "delete", "typing", "private", "fetch", "menu"]
    chat: str = ""
    thread: str = ""
    message: str = ""
    key: str = ""
    text: str = ""
    spans: tuple[Span, ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()
    """(what it says, what comes back when it is pressed)"""
    reply_to: str = ""
    silent: bool = False
    file_name: str = ""
    data: str = Field(default="", repr=False)
    """Of a file, in base64."""
    names: tuple[str, ...] = ()
    """Of commands, for the menu."""


class Answer(Line):
    """What came of a call."""

    value: str = ""
    """The message's id, the chat's id, or the file in base64."""
    refused: Literal["", "token", "too fast", "later", "form", "blocked", "no rights", "no message"] = ""
    after_seconds: float = 0.0


TEXT_LIMIT = 4_000
"""Characters of a message."""
FILE_LIMIT_BYTES = 1_000_000
LINE_LIMIT_BYTES = 4_000_000
PING_SECONDS = 1.0
"""Whoever listens hears an empty line at least so often."""
